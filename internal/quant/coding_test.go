package quant_test

import (
	"testing"

	"github.com/tracediff/tracediff/internal/quant"
)

// A code two steps from its number is wrong where writers take the nearest, and may be right where errors move; a zero point that is off is wrong in both.
func TestCodings(t *testing.T) {
	const n = 32
	run := func(off func(i int) float64) *quant.Run {
		r := &quant.Run{}
		for i := range n {
			x := float64(i - n/2)
			r.Numbers, r.Values = append(r.Numbers, x), append(r.Values, x+off(i))
			r.Step, r.Low, r.High, r.Slack = append(r.Step, 1), append(r.Low, -n), append(r.High, n), append(r.Slack, 0)
		}
		return r
	}
	one := run(func(i int) float64 { return []float64{0, 2}[max(0, i-n+2)] })
	all := run(func(int) float64 { return 1 })
	for name, tt := range map[string]struct {
		scheme             quant.Scheme
		moves, mayMove     bool
		wrong              int // codes of one
		rightOne, rightAll bool
	}{
		"nearest": {quant.Scheme{}, false, false, 1, true, false},
		"mixed":   {quant.Scheme{Mixed: true}, false, true, 1, true, false},
		"moving":  {quant.Scheme{Moves: true}, true, true, 0, true, false},
	} {
		c := tt.scheme.Coding(&quant.Grid{Group: n})
		bad, wrong := make([]bool, n), 0
		right := c.Judge(one, bad)
		for _, b := range bad {
			if b {
				wrong++
			}
		}
		if c.Moves() != tt.moves || c.MayMove() != tt.mayMove || wrong != tt.wrong || right != tt.rightOne || c.Judge(all, bad) != tt.rightAll || !c.Moving().Moves() {
			t.Errorf("%s: moves %t, %t; %d codes are wrong, and the rest is %t", name, c.Moves(), c.MayMove(), wrong, right)
		}
	}
}
