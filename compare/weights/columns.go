package weights

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// A format that moves errors hides a wrong column from the groups of its rows: it is one code of each. Down the column the errors of a right
// one have little to do with its numbers, and a wrong one has nothing else.
const (
	minColumn  = 32  // rows that a column needs
	minSteps   = 1.0 // root mean square of its numbers, in steps: else rounding alone makes zeros of them
	otherwise  = 0.7 // below this cosine it may be another column of the original
	unlike     = 0.3 // below this it is not the original's, whatever else it is
	maxColumns = 64  // so many are held against each other
)

// column is what one pass has found out about a column of both sides.
type column struct{ own, given, both, steps float64 }

// cosine is that of the two as vectors; 0 where one is zero.
func (k *column) cosine() float64 {
	if k.own == 0 || k.given == 0 {
		return 0
	}
	return k.both / math.Sqrt(k.own) / math.Sqrt(k.given)
}

// columns holds the columns of a tensor to the original's, of a format that moves errors and whose groups are right.
func (c *comparison) columns(ctx context.Context, r *reader, row *Row, local, original *Tensor) error {
	mine, theirs := matrices(local), matrices(original)
	for i := range min(len(mine), len(theirs)) {
		if named, err := c.columnsOf(ctx, r, row, mine[i], theirs[i], nil); err != nil || named {
			return err
		}
	}
	return nil
}

// columnsOf looks for columns that are others of the original, and reports whether it has found some. explained says whether that explains what
// is known to be wrong; where nothing is, it is nil, and columns that are none of the original's are accused.
func (c *comparison) columnsOf(ctx context.Context, r *reader, row *Row, local, original *Tensor, explained func(from map[int]int) (bool, error)) (bool, error) {
	rows, n := local.flat()
	accuse := explained == nil
	if rows < minColumn {
		return false, nil
	}
	sums := make([]column, n)
	err := c.beside(ctx, r, local, original, func(b *block, i, at int) {
		l, x := b.local[i], b.original[i]
		k := &sums[at]
		k.own, k.given, k.both = k.own+l*l, k.given+x*x, k.both+l*x
		if s := x / b.Step[i]; s-s == 0 {
			k.steps += s * s
		}
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
	from, err := c.columnsElsewhere(ctx, r, local, original, far[:min(len(far), maxColumns)], sums)
	if err != nil {
		return false, err
	}
	first, wrong := movedColumns(from, n), len(from)
	if first >= 0 && !accuse && len(far) <= maxColumns { // of more it is not said where each comes from
		if ok, err := explained(from); !ok || err != nil {
			return false, err
		}
	}
	if first >= 0 {
		row.wrong(Mistake, ColumnOrder, "%s", columnsMoved(from, first, n, len(far) > maxColumns))
	} else if !accuse {
		return false, nil
	} else {
		far = slices.DeleteFunc(far, func(at int) bool { return sums[at].cosine() >= unlike })
		if wrong = len(far); wrong == 0 {
			return false, nil
		}
		first = far[0]
		row.wrong(Different, Values, "%s not the original's: the cosine of column %d is %.2f over %d rows", count(wrong, "column is", "columns are"), first, sums[first].cosine(), rows)
	}
	b, err := r.read(ctx, local, view{t: original}, part{0, 1, first, first + 1})
	if err != nil {
		return false, err
	}
	row.At, row.Unequal = newElement(local, original, 0, first, b.local[0], b.original[0]), rows*wrong
	return true, nil
}

// beside visits every element of both, with its column.
func (c *comparison) beside(ctx context.Context, r *reader, local, original *Tensor, visit func(b *block, i, column int)) error {
	for p := range (view{t: original}).parts {
		b, err := r.read(ctx, local, view{t: original}, p)
		if err != nil {
			return err
		}
		for i := range b.local {
			visit(&b, i, p.c0+i%p.columns())
		}
	}
	return nil
}

// columnsElsewhere says which of some columns are another one of them in the original: with the squared error that a relation of a format
// that moves errors has to have; or, of [minSpread] rows or more, with a cosine that unrelated columns do not have, where the codes alone have
// changed places and not their scales.
func (c *comparison) columnsElsewhere(ctx context.Context, r *reader, local, original *Tensor, far []int, sums []column) (map[int]int, error) {
	rows, _ := local.flat()
	apart := make([]float64, len(far)*len(far)) // squared distances of columns of the port from those of the original
	theirs := make([]float64, len(far))
	for p := range (view{t: original}).parts {
		b, err := r.read(ctx, local, view{t: original}, p)
		if err != nil {
			return nil, err
		}
		if p.columns() < local.Shape[len(local.Shape)-1] {
			return nil, nil // rows that are not read whole: their columns are not held against each other
		}
		for at := 0; at < len(b.local); at += p.columns() {
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
	}
	from := map[int]int{}
	for k, l := range far {
		cosine := func(m int) float64 {
			x := &sums[far[m]]
			return (sums[l].own + x.given - apart[k*len(far)+m]) / 2 / math.Sqrt(sums[l].own*x.given)
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

// movedColumns is the first column that is another one; -1 for none.
func movedColumns(from map[int]int, n int) int {
	for at := range n {
		if _, moved := from[at]; moved {
			return at
		}
	}
	return -1
}

// columnsMoved says it in words; more: not all that may have moved were looked at.
func columnsMoved(from map[int]int, first, n int, more bool) string {
	other := from[first]
	switch {
	case more:
		return fmt.Sprintf("in its columns, %d of %d columns or more stand in another order: the first is %d, which is the original's %d", len(from), n, first, other)
	case len(from) == 2 && from[other] == first:
		return fmt.Sprintf("in its columns, columns %d and %d have changed places", first, other)
	case len(from) == 1:
		return fmt.Sprintf("column %d is the original's column %d", first, other)
	}
	return fmt.Sprintf("in its columns, %d of %d columns stand in another order: the first is %d, which is the original's %d", len(from), n, first, other)
}
