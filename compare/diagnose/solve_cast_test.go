package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// A number has the dtype of the model, and three products are rounded down: the number that fits the values best is not rounded to the port's number. The numbers that
// give all elements, with these roundings, are those around the port's.
func TestCastNumbersAreFoundThroughRoundings(t *testing.T) {
	cubed := madeOf2(func(b *program.Builder, in, _ []program.Var) program.Var {
		first := b.R(b.Mul("first", in[0], b.Tensor("by", 0.37)))
		third := b.R(b.Mul("third", in[1], b.R(b.Mul("second", in[1], first))))
		return b.R(b.Sub("rest", third, b.Literal(1)))
	})
	r := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	by := r(1.22)
	x, y := cubed.in[0].Data, cubed.in[1].Data
	for i := range x { // every product is a bit below 1.99609, where it would be rounded up
		x[i] = math.Ldexp((1.9945+1e-5*float64(i))/by, i%5-2) * float64(1-2*(i%2))
		y[i] = 1.9950 / r(1.9950)
	}
	m := model(t)
	e := cubed.made(t, m, func(in [][]float64, out []float64) {
		for i := range out {
			out[i] = r(r(in[1][i]*r(in[1][i]*r(in[0][i]*by))) - 1)
		}
	})
	e.Call.DType, e.Judge = hooks.BF16, inBF16{e.Judge}
	right, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	if e.Left, err = e.Leaves(right, len(right.Data)); err != nil {
		t.Fatal(err)
	}
	if is := named(t, m, e).Mistake.String(); is != "the factor is 1.22" {
		t.Errorf("%q", is)
	}
}

// inBF16 judges values that were rounded to bfloat16.
type inBF16 struct{ diagnose.Judge }

func (j inBF16) Target() (y, half []float64) {
	y, _ = j.Judge.Target()
	for _, v := range y {
		half = append(half, floats.RoundingError(hooks.BF16, math.Abs(v)))
	}
	return y, half
}
