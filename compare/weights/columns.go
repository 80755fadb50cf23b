package weights

import (
	"context"
	"maps"
	"math"
	"slices"
)

// A format that moves errors hides a wrong column from the groups of its rows: it is one code of each. Down the column the errors of a right
// one have little to do with its numbers, and a wrong one has nothing else.
const (
	minColumn  = 32  // rows that a column needs
	minSteps   = 1.0 // root mean square of its numbers, in steps: below 1, rounding can make every number zero
	otherwise  = 0.7 // below this cosine it may be another column of the original
	unlike     = 0.3 // below this it is not the original's, whatever else it is
	maxColumns = 64  // so many are held against each other
)

// column is what one pass has found out about a column of both sides.
type column struct {
	sums
	steps float64 // Σ of the squares of the original's numbers, in steps
}

// columns holds the columns of a tensor to the original's, of a format that moves errors and whose groups are right.
func (s *sides) columns(ctx context.Context, row *Row) error {
	mine, theirs := matrices(s.local), matrices(s.view.t)
	for i := range min(len(mine), len(theirs)) {
		if named, err := besides(s.r, mine[i], theirs[i]).columnsOf(ctx, row, nil); err != nil || named {
			return err
		}
	}
	return nil
}

// columnsOf looks for columns of the port that hold other columns of the original, and reports whether it named an error. explained reports
// whether moved columns explain the known errors. If no error is known, explained is nil, and columns unlike every column of the original
// are reported too.
func (s *sides) columnsOf(ctx context.Context, row *Row, explained func(from map[int]int) (bool, error)) (bool, error) {
	rows, n := s.local.flat()
	accuse := explained == nil
	if rows < minColumn {
		return false, nil
	}
	sums := make([]column, n)
	err := s.blocks(ctx, func(b *block) bool {
		for i, l := range b.local {
			x := b.original[i]
			k := &sums[b.c0+i%b.columns()]
			k.own, k.whole, k.both = k.own+l*l, k.whole+x*x, k.both+l*x
			if s := x / b.Step[i]; s-s == 0 {
				k.steps += s * s
			}
		}
		return true
	})
	if err != nil {
		return false, err
	}
	var far, empty []int
	for at := range sums {
		k := &sums[at]
		switch {
		case k.steps < minSteps*minSteps*float64(rows), !(k.cosine() < otherwise):
		case k.own == 0:
			empty = append(empty, at)
		default:
			far = append(far, at)
		}
	}
	if len(empty) > 0 && accuse {
		row.note("%s zero, the first is %d, and the original's are not: GPTQ does so where an input is always zero", count(len(empty), "column is", "columns are"), empty[0])
	}
	if len(far) == 0 {
		return false, nil
	}
	from, err := s.columnsElsewhere(ctx, far[:min(len(far), maxColumns)], sums)
	if err != nil {
		return false, err
	}
	first, wrong := -1, len(from)
	if wrong > 0 {
		first = slices.Min(slices.Collect(maps.Keys(from)))
	}
	if first >= 0 && !accuse && len(far) <= maxColumns { // of more it is not said where each comes from
		if ok, err := explained(from); !ok || err != nil {
			return false, err
		}
	}
	if first >= 0 {
		row.is(Mistake, columnsMoved(from, first, n, len(far) > maxColumns))
	} else if !accuse {
		return false, nil
	} else {
		far = slices.DeleteFunc(far, func(at int) bool { return sums[at].cosine() >= unlike })
		if wrong = len(far); wrong == 0 {
			return false, nil
		}
		first = far[0]
		row.wrong(Different, Values, "%s not the original's: the cosine of column %d is %s over %d rows", count(wrong, "column is", "columns are"), first, digits(sums[first].cosine(), 'f', 2), rows)
	}
	b, err := s.read(ctx, part{0, 1, first, first + 1})
	if err != nil {
		return false, err
	}
	row.At, row.Unequal = newElement(s.local, s.view.t, 0, first, b.local[0], b.original[0]), rows*wrong
	return true, nil
}

// columnsElsewhere maps columns of far to the columns of the original that they hold. A match needs the squared error of a relation of a
// format that moves errors. With [minSpread] rows or more, a cosine too high for unrelated columns is enough: the codes may have changed
// places without their scales.
func (s *sides) columnsElsewhere(ctx context.Context, far []int, sums []column) (map[int]int, error) {
	rows, columns := s.local.flat()
	apart := make([]float64, len(far)*len(far)) // squared distances of columns of the port from those of the original
	theirs := make([]float64, len(far))
	if columns > chunk {
		return nil, nil // rows that are not read whole: their columns are not held against each other
	}
	err := s.blocks(ctx, func(b *block) bool {
		for at := 0; at < len(b.local); at += columns {
			for k, x := range far {
				theirs[k] = b.original[at+x]
			}
			for k, l := range far {
				for m, x := range theirs {
					d := b.local[at+l] - x
					apart[k*len(far)+m] += d * d
				}
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	from := map[int]int{}
	for k, l := range far {
		cosine := func(m int) float64 {
			x := &sums[far[m]]
			return (sums[l].own + x.whole - apart[k*len(far)+m]) / 2 / math.Sqrt(sums[l].own*x.whole)
		}
		own, best := apart[k*len(far)+k], k
		for m := range far {
			if cosine(m) > cosine(best) {
				best = m
			}
		}
		if best != k && (own >= clearly*apart[k*len(far)+best] || rows >= minSpread && cosine(k) < unlike && cosine(best) >= otherwise) {
			from[l] = far[best]
		}
	}
	return from, nil
}

// columnsMoved puts moved columns in words; more: not all candidates were examined.
func columnsMoved(from map[int]int, first, n int, more bool) phrase {
	other := from[first]
	switch {
	case len(from) == 2 && from[other] == first && !more:
		return say(ColumnOrder, "in its columns, columns %s have changed places", both{first, other})
	case len(from) == 1 && !more:
		return say(ColumnOrder, "column %d is the original's column %d", first, other)
	}
	return say(ColumnOrder, "in its columns, %d of %d columns%s stand in another order: the first is %d, which is the original's %d", len(from), n, either(more, " or more", ""), first, other)
}

// otherColumns looks for columns that stand elsewhere.
func otherColumns(ctx context.Context, a *pair) (bool, error) {
	mine, theirs := matrices(a.local), matrices(a.original)
	for i := range min(len(mine), len(theirs)) {
		s := besides(a.r, mine[i], theirs[i])
		explained := func(from map[int]int) (bool, error) { return a.rowsRight(ctx, s, i, from) }
		if named, err := s.columnsOf(ctx, a.row, explained); named || err != nil {
			return named, err
		}
	}
	return false, nil
}

// rowsRight reports whether each row of a matrix that is wrong is right with columns from elsewhere; at is the number of the matrix in the tensor.
func (a *pair) rowsRight(ctx context.Context, s *sides, at int, from map[int]int) (bool, error) {
	rows, columns := s.local.flat()
	order := identity(columns)
	for to, at := range from {
		order[to] = int32(at)
	}
	wrong := func(yield func(part) bool) {
		for _, r := range a.t.badRows() {
			if r/rows == at && !yield(part{r % rows, r%rows + 1, 0, columns}) {
				return
			}
		}
	}
	return (&sides{s.r, s.local, view{t: s.view.t, columns: order}}).every(ctx, a.q, wrong)
}

// byColumn looks for a factor for each column: a norm, or a scale of channels, that was multiplied into the weight.
func byColumn(ctx context.Context, a *pair) (bool, error) {
	_, columns := a.local.flat()
	both, whole := make([]float64, columns), make([]float64, columns)
	err := a.blocks(ctx, func(b *block) bool {
		for i, x := range b.original {
			if y := b.local[i] * x; y-y == 0 {
				both[b.c0+i%b.columns()] += y
				whole[b.c0+i%b.columns()] += x * x
			}
		}
		return true
	})
	if err != nil {
		return false, err
	}
	least, most := math.Inf(1), math.Inf(-1)
	for c := range both {
		if whole[c] > 0 {
			both[c] /= whole[c]
			least, most = min(least, both[c]), max(most, both[c])
		}
	}
	all := true
	err = a.blocks(ctx, func(b *block) bool {
		for i, x := range b.original {
			q := rule{scale: both[b.c0+i%b.columns()], round: a.q.round}.nearly(a.local, 1)
			if all = q.holds(b.local[i], x); !all {
				break
			}
		}
		return all
	})
	if !all || err != nil {
		return false, err
	}
	a.row.wrong(Mistake, ScaledColumn, "each column is the original's times a factor of its own, %s to %s: the weight of a norm, or a scale of channels, was multiplied in", number(least), number(most))
	return true, nil
}
