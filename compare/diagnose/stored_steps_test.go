package diagnose_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// narrowSoftmax is a softmax whose exponentials go through a function before they are divided, and through another before they are added.
func narrowSoftmax(keys int, divided, added func(x float64) float64) func(in [][]float64, y []float64) {
	return func(in [][]float64, y []float64) {
		for at := 0; at < len(y); at += keys {
			row := in[0][at:][:keys]
			top, sum := slices.Max(row), 0.0
			for i, x := range row {
				e := f32(math.Exp(x - top))
				y[at+i] = divided(e)
				sum += added(e)
			}
			for i := range row {
				y[at+i] /= sum
			}
		}
	}
}

// Exponentials of a softmax that are stored in a narrower type, for all steps that read them or for one, are named. Others with as few bits are not.
func TestStoredExponentialsInPlainLoopsAreNamed(t *testing.T) {
	in := func(d hooks.DType) func(x float64) float64 {
		return func(x float64) float64 { return floats.Round(d, x) }
	}
	wide := func(x float64) float64 { return x }
	fewer := func(x float64) float64 { // as many bits as float8 e4m3 has, for numbers of all sizes
		if x == 0 {
			return 0
		}
		by := math.Exp2(math.Floor(math.Log2(x)) - 3)
		return math.RoundToEven(x/by) * by
	}
	for _, c := range []struct {
		name           string
		divided, added func(x float64) float64
		key            string
	}{
		{"e4m3, divided", in(hooks.F8E4M3), wide, "precision.operand-stored(of=function:exp,by=step:softmax.quotient,dtype=float8_e4m3fn)"},
		{"e5m2, added", wide, in(hooks.F8E5M2), "precision.operand-stored(of=function:exp,by=step:softmax.sum,dtype=float8_e5m2)"},
		{"bfloat16, divided", in(hooks.BF16), wide, "precision.operand-stored(of=function:exp,by=step:softmax.quotient,dtype=bfloat16)"},
		{"e5m2", in(hooks.F8E5M2), in(hooks.F8E5M2), "precision.step-stored(of=function:exp,dtype=float8_e5m2)"},
		{"four bits", fewer, wide, ""},
		{"right", wide, wide, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 16
		f := named(t, m, softmaxOfKeys(20).made(t, m, narrowSoftmax(20, c.divided, c.added)))
		if key := f.Key(); key != c.key && (c.key != "" || strings.HasPrefix(key, "precision.")) {
			t.Errorf("%s: %s, not %s: %q", c.name, key, c.key, f.What)
		}
	}
}
