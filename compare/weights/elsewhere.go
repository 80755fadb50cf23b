package weights

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// print is eight sums of the numbers of a row or a column, each number with a sign of its own in each. Of a row and of its codes they
// differ by little, of two rows by much.
type print [8]float32

// mostSum is the largest sum of a print.
const mostSum = 1e30

// signs are those of the eight sums, by a byte.
var signs = func() (all [256][8]float64) {
	for b := range all {
		for k := range 8 {
			all[b][k] = float64(b>>k&1)*2 - 1
		}
	}
	return all
}()

// signsOf are those of the number with an index.
func signsOf(i int) *[8]float64 { return &signs[mix(0, float64(i+1))>>56] }

// prints reads a whole tensor and returns the prints of its rows or of its columns. Non-finite numbers count as zero.
func (r *reader) prints(ctx context.Context, t *Tensor, byColumns bool) ([]print, error) {
	rows, columns := t.flat()
	n := rows
	if byColumns {
		n = columns
	}
	sums := make([][8]float64, n)
	err := r.whole(ctx, t, func(p part, values []float64) {
		for i, x := range values {
			at, other := p.r0+i/p.columns(), p.c0+i%p.columns()
			if byColumns {
				at, other = other, at
			}
			if x-x != 0 {
				continue
			}
			s, to := signsOf(other), &sums[at]
			for k := range to {
				to[k] += s[k] * x
			}
		}
	})
	if err != nil {
		return nil, err
	}
	list := make([]print, n)
	for i := range sums {
		for k, x := range sums[i] {
			list[i][k] = float32(min(max(x, -mostSum), mostSum)) // distances are finite
		}
	}
	return list, nil
}

// catalogue finds prints near others.
type catalogue struct {
	prints []print
	order  []int32 // by the first sum
}

func newCatalogue(list []print) *catalogue {
	c := &catalogue{prints: list, order: identity(len(list))}
	slices.SortFunc(c.order, func(a, b int32) int { return cmp.Compare(list[a][0], list[b][0]) })
	return c
}

// apart is the squared distance of two prints.
func (p *print) apart(o *print) float64 {
	sum := 0.0
	for k, x := range p {
		d := float64(x - o[k])
		sum += d * d
	}
	return sum
}

// near returns the indices of candidates for p, the nearest first: the nearest print, and prints at less than twice its distance.
func (c *catalogue) near(p *print) []int32 {
	const most = 8
	best := math.Inf(1)
	c.around(p, func() float64 { return best }, func(_ int32, d float64) bool {
		best = min(best, d)
		return best > 0
	})
	type place struct {
		at int32
		d  float64
	}
	var found []place
	c.around(p, func() float64 { return 4 * best }, func(at int32, d float64) bool {
		if d <= 4*best {
			found = append(found, place{at, d})
		}
		return len(found) < 4*most
	})
	slices.SortFunc(found, func(a, b place) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.at, b.at)) })
	var list []int32
	for _, f := range found[:min(most, len(found))] {
		list = append(list, f.at)
	}
	return list
}

// around visits prints in the order of the distance of their first sums from p's. It stops when the squared distance of the first sums
// exceeds limit, or when visit returns false.
func (c *catalogue) around(p *print, limit func() float64, visit func(at int32, d float64) bool) {
	mid, _ := slices.BinarySearchFunc(c.order, p[0], func(i int32, x float32) int { return cmp.Compare(c.prints[i][0], x) })
	for low, high := mid-1, mid; low >= 0 || high < len(c.order); {
		below, above := math.Inf(1), math.Inf(1)
		if low >= 0 {
			below = float64(p[0] - c.prints[c.order[low]][0])
		}
		if high < len(c.order) {
			above = float64(c.prints[c.order[high]][0] - p[0])
		}
		at := int32(0)
		if first := min(below, above); first*first > limit() {
			return
		}
		if below <= above {
			at = c.order[low]
			low--
		} else {
			at = c.order[high]
			high++
		}
		if !visit(at, p.apart(&c.prints[at])) {
			return
		}
	}
}

// rowElsewhere returns the row of the original that a row of codes holds; −1 without a match, and for several unequal matches.
func (a parts) rowElsewhere(ctx context.Context, b *block) (int, error) {
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
	b      block // of the part
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
		if p.b.moves() {
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
func (a parts) piecesElsewhere(ctx context.Context, left []*piece) error {
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

// search looks for the piece in row r of the original. The slice row has the columns from first on.
func (p *piece) search(q *rule, row []float64, r, first, columns int) {
	n := len(p.b.local)
	unit := n
	if p.b.coding != nil {
		unit = p.b.group()
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

// shiftedRow looks for a row with its elements shifted by up to 4 places. The elements at the open end may be any of: the other end of the
// row, zeros, or the values before the shift.
func (a parts) shiftedRow(b *block, f finding) finding {
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
