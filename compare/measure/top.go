package measure

import "math"

// pick is which token each side would choose of a row of logits, or of a part of it.
type pick struct {
	l, r     float64 // largest so far
	atL, atR int     // their places in the row, −1: only NaN and −Inf so far
	rAtL     float64 // the reference's value of the local pick
}

// noPick is that of no element.
var noPick = pick{l: math.Inf(-1), r: math.Inf(-1), atL: -1, atR: -1}

// add takes in the elements of the row from col on. A NaN is never chosen, and of equal ones the first.
func (c *pick) add(l, r []float64, col int) {
	for i, a := range l {
		if a > c.l {
			c.l, c.atL, c.rAtL = a, col+i, r[i]
		}
		if r[i] > c.r {
			c.r, c.atR = r[i], col+i
		}
	}
}

// merge takes in the next part of the row.
func (c *pick) merge(o pick) {
	if o.l > c.l {
		c.l, c.atL, c.rAtL = o.l, o.atL, o.rAtL
	}
	if o.r > c.r {
		c.r, c.atR = o.r, o.atR
	}
}

// choose follows the choices of the rows of a strip.
func (b *block) choose(m *measurement, s *strip) {
	for at := 0; at < s.n; {
		place := b.col + s.at + at
		row, col := place/m.last, place%m.last
		n := min(s.n-at, m.last-col)
		b.tops[row].add(s.l[at:at+n], s.r[at:at+n], col)
		at += n
	}
}

// topTokens compares the choices of the rows of the logits.
type topTokens struct {
	row           pick // of the row that is being read
	Rows, Flipped int
	Gap           float64 // largest of r − rAtL over the flipped rows
}

func (t *topTokens) endRow() {
	t.Rows++
	if t.row.atL != t.row.atR {
		t.Flipped++
		t.Gap = max(t.Gap, t.row.r-t.row.rAtL)
	}
	t.row = noPick
}
