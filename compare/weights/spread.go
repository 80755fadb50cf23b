package weights

import (
	"context"
	"math"
	"slices"
)

// A format that moves errors spreads that of one code over the codes after it. What it may do to a code has no bound of its own: GPTQ takes
// from the number of a column what the columns before it have lost, times factors that its inputs alone decide, and they are large where
// inputs nearly depend on each other. So the size of such errors accuses nobody. What names a relation is that the codes are far nearer to
// the numbers it says than to those of their own place, whatever GPTQ made of either.
//
// The null hypothesis is that the codes are those of their own place. The statistic is the ratio of both sums of squared errors over n
// elements that a relation moves, and the threshold is [clearly]. Errors in the own place are at most twice the numbers' own squares for
// numbers of anywhere, so that the relation errs by half of them at most: a cosine of 0.7, which n = 64 unrelated numbers have once in 10^9.
const (
	minSpread = 64 // elements that such evidence needs; fewer have to be right codes, too
	eachRow   = 2  // so many times the squared error of the relation, in each row that it moves, and in each such piece of one
)

// moves reports codes of a format that moves errors.
func (a *attempt) moves() bool { return a.local.Coding != nil && a.local.Coding.Moves }

// fits reports whether a relation explains a tensor of a format that moves errors.
func (a *attempt) fits(ctx context.Context, r *reader, local *Tensor, v view, q rule) (bool, error) {
	rows, columns := local.flat()
	if vr, vc := v.size(); vr != rows || vc != columns {
		return false, nil
	}
	own, other := make([]float64, rows), make([]float64, rows)
	moved := make([]bool, rows)
	look := func(p part) error {
		b, err := r.read(ctx, local, v, p)
		if err != nil {
			return err
		}
		x := room(&a.far, p.size())
		if err := a.second().values(x, a.original, p); err != nil {
			return inTensor(a.original, err)
		}
		for i, l := range b.local {
			at := p.r0 + i/p.columns()
			mine, theirs := a.q.makes(x[i]), q.makes(b.original[i])
			moved[at] = moved[at] || mine != theirs
			d, e := mine-l, theirs-l
			own[at], other[at] = own[at]+float64(d*d), other[at]+float64(e*e)
		}
		return nil
	}
	for _, p := range samplesOf(local) {
		if err := look(p); err != nil {
			return false, err
		}
	}
	if e := sumOf(own, other, moved); e.rows >= 4 && !(2*e.other < e.own) {
		return false, nil
	}
	clear(own)
	clear(other)
	clear(moved)
	for p := range v.parts {
		if err := look(p); err != nil {
			return false, err
		}
	}
	for _, r := range a.t.badRows() {
		if !moved[r] { // wrong where it stands, of which the relation says nothing
			return false, nil
		}
	}
	e := sumOf(own, other, moved)
	return e.rows*columns >= minSpread && e.own >= clearly*e.other && e.better == e.rows, nil
}

// spreadSum is the evidence of the rows that a relation moves.
type spreadSum struct {
	own, other   float64
	rows, better int // rows, and those that are much nearer to the relation
}

func sumOf(own, other []float64, moved []bool) spreadSum {
	var s spreadSum
	for i := range own {
		if !moved[i] {
			continue
		}
		s.rows++
		s.own, s.other = s.own+own[i], s.other+other[i]
		if eachRow*other[i] < own[i] {
			s.better++
		}
	}
	return s
}

// apart judges the elements of a block from one to another by groups whose elements stand apart, as GPTQ has them that takes its inputs in the order
// of their activations.
func (q *rule) apart(b *block, bad []bool, from, to int) {
	type group struct{ step, low float64 }
	at := map[group]int{}
	var places [][]int
	for i := from; i < to; i++ {
		g := group{b.Step[i], b.Low[i]}
		n, known := at[g]
		if !known {
			n = len(places)
			at[g] = n
			places = append(places, nil)
		}
		places[n] = append(places[n], i)
	}
	for _, list := range places {
		one := block{part: part{b.r0, b.r0 + 1, 0, len(list)}, coding: b.coding}
		for _, i := range list {
			one.local, one.original = append(one.local, b.local[i]), append(one.original, b.original[i])
			one.Bounds.Add(&b.Bounds, i)
		}
		wrong := make([]bool, len(list))
		right := q.run(&one, wrong, 0, len(list))
		for k, i := range list {
			bad[i] = wrong[k] || !right
		}
	}
}

// likeSpread compares the sample with that of another tensor of the original, for a format that moves errors.
func (a *attempt) likeSpread(values [][]float64, q rule) bool {
	var own, other float64
	for i, b := range a.sample {
		for k, l := range b.local {
			d, e := a.q.makes(b.original[k])-l, q.makes(values[i][k])-l
			own, other = own+float64(d*d), other+float64(e*e)
		}
	}
	return 2*other < own
}

// otherColumns looks for columns that stand elsewhere.
func (a *attempt) otherColumns(ctx context.Context) (bool, error) {
	if !a.moves() {
		return false, nil
	}
	mine, theirs := matrices(a.local), matrices(a.original)
	for i := range min(len(mine), len(theirs)) {
		explained := func(from map[int]int) (bool, error) { return a.rowsRight(ctx, mine[i], theirs[i], i, from) }
		if named, err := a.columnsOf(ctx, a.r, a.row, mine[i], theirs[i], explained); named || err != nil {
			return named, err
		}
	}
	return false, nil
}

// rowsRight reports whether each row of a matrix that is wrong is right with columns from elsewhere; at is the number of the matrix in the tensor.
func (a *attempt) rowsRight(ctx context.Context, local, original *Tensor, at int, from map[int]int) (bool, error) {
	rows, columns := local.flat()
	order := make([]int32, columns)
	for i := range order {
		order[i] = int32(i)
		if x, moved := from[i]; moved {
			order[i] = int32(x)
		}
	}
	bad := make([]bool, columns)
	for _, r := range a.t.badRows() {
		if r/rows != at {
			continue
		}
		b, err := a.r.read(ctx, local, view{t: original, columns: order}, part{r % rows, r%rows + 1, 0, columns})
		if err != nil {
			return false, err
		}
		if a.q.judge(&b, bad); slices.Contains(bad, true) {
			return false, nil
		}
	}
	return true, nil
}

// zeroPoints looks for codes that are all some whole steps too large or too small, as where zero points are stored less one and read as they
// are, or the other way round. The errors of a row have a mean of zero, whatever moved them: each of 16 rows or more has to have one that is nearer
// to the number of steps.
func (a *attempt) zeroPoints(ctx context.Context) (bool, error) {
	const least, near = 16, 0.25
	rows, columns := a.local.flat()
	mean := a.t.codes.signed / float64(max(a.t.codes.n, 1))
	steps := math.Round(mean)
	if !a.moves() || rows < least || columns < minMean || steps == 0 || !(math.Abs(mean-steps) <= near) {
		return false, nil
	}
	for r := range rows {
		b, err := a.r.read(ctx, a.local, view{t: a.original}, part{r, r + 1, 0, columns})
		if err != nil {
			return false, err
		}
		sum, n := 0.0, 0
		for i, l := range b.local {
			if d := (l - a.q.makes(b.original[i])) / b.Step[i]; d-d == 0 {
				sum, n = sum+d, n+1
			}
		}
		if !(math.Abs(sum/float64(n)-steps) < math.Abs(sum/float64(n))) {
			return false, nil
		}
	}
	a.row.wrong(Mistake, ZeroPoint, "every zero point is %s too %s", number(math.Abs(steps)), either(steps > 0, "low", "high"))
	return true, nil
}

// unidentified says how large the errors of a format that moves them are, where nothing names them.
func (a *attempt) unidentified() {
	groups, first := 0, -1
	_, columns := a.local.flat()
	group := min(max(1, a.local.Coding.Group), max(columns, 1))
	for r, n := range a.t.inRow {
		if n > 0 {
			groups += (int(n) + group - 1) / group
			if first < 0 {
				first = r
			}
		}
	}
	from := int(a.t.left[first]) / group * group
	a.row.wrong(Unidentified, LargeErrors, "the errors of %s are larger than a format that moves them makes as a rule, the first in row %d, columns %d to %d; a writer can make them, and so can a mistake that no known relation explains",
		count(groups, "group", "groups"), first, from, min(from+group, columns)-1)
}

// spreads reports whether codes that are not all the nearest may be those of a writer that moves errors, in a format that others write with the
// nearest codes: nearly every row has some of them, and they are neither too large nor too small on average, nor nearer to zero. A mistake in
// some rows does not do that; cutting off makes half a step, and a zero point that is off makes one.
func (t *tally) spreads() bool {
	e := &t.codes
	if e.n < minTensor {
		return false
	}
	far := func(sum float64) bool { return !(math.Abs(sum) <= tensorMean*float64(e.n)) }
	if far(e.signed) || far(e.outward) {
		return false
	}
	rows := 0
	for _, n := range t.besideIn {
		if n > 0 {
			rows++
		}
	}
	return 4*rows >= 3*len(t.besideIn)
}

// moving is a tensor of codes held to what a format that moves errors makes.
func moving(t *Tensor) *Tensor {
	moved := *t
	moved.Coding = t.Coding.Moving()
	return &moved
}
