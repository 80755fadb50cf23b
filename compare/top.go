package compare

import "math"

// topTokens follows, along the last axis of the logits, which token each side would choose.
type topTokens struct {
	l, r          float64 // largest so far in this row
	atL, atR      int
	rAtL          float64 // the reference's value of the local choice
	started       bool
	rows, flipped int
	gap           float64 // largest of r − rAtL over the flipped rows
}

// run takes the elements of a row from col on. A NaN is never chosen.
func (t *topTokens) run(l, r []float64, col int) {
	if !t.started {
		t.l, t.r, t.atL, t.atR, t.started = math.Inf(-1), math.Inf(-1), -1, -1, true
	}
	for i, a := range l {
		if a > t.l {
			t.l, t.atL, t.rAtL = a, col+i, r[i]
		}
		if r[i] > t.r {
			t.r, t.atR = r[i], col+i
		}
	}
}

func (t *topTokens) endRow() {
	t.rows++
	if t.atL != t.atR {
		t.flipped++
		t.gap = max(t.gap, t.r-t.rAtL)
	}
	t.started = false
}
