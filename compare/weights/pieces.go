package weights

import (
	"context"
	"math"
	"slices"
)

// rowElsewhere is the row of the original that a row of codes is; −1 for none, and where it may be one of several that are not equal.
func (a *pair) rowElsewhere(ctx context.Context, b *block) (int, error) {
	rows, columns := a.local.flat()
	if rows < 2 {
		return -1, nil
	}
	if a.rows == nil {
		theirs, err := a.second().prints(ctx, a.original, false)
		if err != nil {
			return -1, err
		}
		if a.mine, err = a.second().prints(ctx, a.local, false); err != nil {
			return -1, err
		}
		a.rows = newCatalogue(theirs)
	}
	var is places
	for _, at := range a.rows.near(&a.mine[b.r0]) {
		x := room(&a.far, columns)
		if err := a.second().values(x, a.original, part{int(at), int(at) + 1, 0, columns}); err != nil {
			return -1, inTensor(a.original, err)
		}
		if b.is(&a.q, x, 0, columns) {
			is.add(int(at), 0, abs(int(at)-b.r0), x)
		}
	}
	if !is.some || is.differ {
		return -1, nil
	}
	return is.row, nil
}

// places are those of the original that a part of a row is.
type places struct {
	some, differ bool // whether there is one, and whether they are not all the same numbers
	row, column  int  // of the nearest one
	far          int
	numbers      []float64
}

// add takes a place, so far away, with what the original has there.
func (p *places) add(row, column, far int, x []float64) {
	switch {
	case !p.some:
		p.numbers = slices.Clone(x)
	case !slices.EqualFunc(p.numbers, x, same):
		p.differ = true
	}
	if !p.some || far < p.far {
		p.row, p.column, p.far = row, column, far
	}
	p.some = true
}

// mostPieces is for how many wrong parts of rows the whole original is searched.
const mostPieces = 16

// piece is the wrong part of a row, and where the original has it.
type piece struct {
	b      block // of the part alone
	limit  float64
	into   *finding
	places places
}

// minPiece is how many different numbers the part has that is found elsewhere: fewer are there by chance.
const minPiece = 8

// different reports whether so many of some numbers differ from each other.
func different(x []float64, least int) bool {
	var seen []float64
	for _, v := range x {
		if !slices.Contains(seen, v) {
			if seen = append(seen, v); len(seen) == least {
				return true
			}
		}
	}
	return false
}

func newPiece(b *block, f finding, into *finding) *piece {
	s := b.some(f.from, f.to+1)
	p := &piece{b: s.clone(), into: into}
	for i, step := range p.b.Step { // squared errors that rounding to codes may make
		most := 1.5*step + p.b.Slack[i]
		if p.b.coding.Moves {
			most = math.Abs(p.b.local[i]-p.b.original[i]) / math.Sqrt(clearly)
		}
		p.limit += float64(most * most)
	}
	return p
}

// may reports whether a piece may be some numbers, before it is looked at closely.
func (p *piece) may(q *rule, x []float64) bool {
	sum := 0.0
	for i, l := range p.b.local {
		if p.b.coding == nil {
			if !q.holds(l, x[i]) {
				return false
			}
			continue
		}
		d := q.makes(x[i]) - l
		if p.b.Last(i, l) { // the last code stands for what lies beyond it
			continue
		}
		if sum += d * d; !(sum <= p.limit) {
			return false
		}
	}
	return true
}

// piecesElsewhere looks for parts of rows in all of the original: at their own columns, and at every multiple of their width or of the
// groups of codes.
func (a *pair) piecesElsewhere(ctx context.Context, left []*piece) error {
	_, columns := a.local.flat()
	for p := range (view{t: a.original}).parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := room(&a.far, p.size())
		if err := a.second().values(x, a.original, p); err != nil {
			return inTensor(a.original, err)
		}
		for r := p.r0; r < p.r1; r++ {
			row := x[(r-p.r0)*p.columns():][:p.columns()]
			for _, w := range left {
				w.search(&a.q, row, r, p.c0, columns)
			}
		}
	}
	for _, w := range left {
		if w.places.some && !w.places.differ {
			w.into.kind, w.into.shift, w.into.aside = OtherBlock, w.places.row-w.b.r0, w.places.column-w.b.c0
		}
	}
	return nil
}

// search looks at a row of the original, of which some columns from first on are given.
func (p *piece) search(q *rule, row []float64, r, first, columns int) {
	n := len(p.b.local)
	unit := n
	if p.b.coding != nil {
		unit = max(1, p.b.coding.Group)
	}
	try := func(c int) {
		if at := c - first; at >= 0 && at+n <= len(row) && (r != p.b.r0 || c != p.b.c0) && p.may(q, row[at:at+n]) && different(row[at:at+n], minPiece) && p.b.is(q, row[at:at+n], 0, n) {
			p.places.add(r, c, abs(r-p.b.r0)*columns+abs(c-p.b.c0), row[at:at+n])
		}
	}
	if columns%unit != 0 || p.b.c0%unit != 0 {
		try(p.b.c0)
		return
	}
	for c := (first + unit - 1) / unit * unit; c+n <= first+len(row); c += unit {
		try(c)
	}
}

// shiftedRow looks for a row whose elements stand some places on. What comes in at the end may be anything that a shift brings: the
// other end of the row, zeros, or what was there.
func (a *pair) shiftedRow(b *block, f finding) finding {
	columns := b.columns()
	if columns < 8 {
		return f
	}
	x := room(&a.far, columns)
	for _, s := range []int{1, -1, 2, -2, 3, -3, 4, -4} {
		ok := true
		for c, l := range b.local {
			at := c + s
			if at >= 0 && at < columns {
				x[c] = b.original[at]
			} else {
				x[c] = nearest(&a.q, l, b.original[(at+columns)%columns], b.original[c])
			}
			if b.coding == nil && !a.q.holds(l, x[c]) && (l != 0 || at >= 0 && at < columns) {
				ok = false
				break
			}
		}
		if ok && (b.coding == nil || b.is(&a.q, x, 0, columns)) {
			return finding{kind: Shifted, shift: s, from: 0, to: columns - 1}
		}
	}
	return f
}

// nearest is what of two numbers of the original, and of zero, a number of the port is nearest to.
func nearest(q *rule, l, x, y float64) float64 {
	best := x
	for _, z := range []float64{y, 0} {
		if math.Abs(q.makes(z)-l) < math.Abs(q.makes(best)-l) {
			best = z
		}
	}
	return best
}
