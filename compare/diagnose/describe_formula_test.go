package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// coarse holds programs to a tensor in float32, and says that the tensor is of bfloat16: no program gives all elements, as where the engine's arithmetic is not known.
type coarse struct{ honest }

func (c *coarse) Target() (y, half []float64) {
	for _, v := range c.y {
		half = append(half, math.Abs(v)*0x1p-9)
	}
	return c.y, half
}

// A factor that is a number of the formula, or its reciprocal, is said to be that, and another factor is not.
func TestDescriptionsByNumbersOfTheFormula(t *testing.T) {
	for _, c := range []struct {
		by   float64
		want string
	}{
		{1, "the result is 1.41421 times the right value; this is the reciprocal of the factor of the formula, 0.707107, which may be missing"},
		{0.5, "the result is 0.707107 times the right value; this equals the factor of the formula, which may be applied twice"},
		{0.9, "the result is 1.273 times the right value"},
	} {
		m, e := computed(t, scaledBy{math.Sqrt(0.5)}, func(x float64) float64 { return floats.Round(hooks.BF16, x*c.by) })
		h := e.Judge.(*honest)
		e.Judge = &coarse{*h}
		f := named(t, m, e)
		if f.Named() || f.Description == nil || f.Description.String() != c.want {
			t.Errorf("%q, %v, want %q", f.What, f.Description, c.want)
		}
	}
}
