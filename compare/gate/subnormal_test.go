package gate_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Two sides that differ by their last rounding are within the limit of the table, however small their numbers are: in float16 those
// below 2^-14 are all 2^-24 apart. A factor of 2 is not.
func TestTableBelowTheNormalNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []hooks.DType{hooks.F16, hooks.BF16, hooks.F32} {
		for e := range 8 {
			size := 2 * floats.SmallestNormal(d) * math.Exp2(-float64(e))
			diff, norm := 0.0, 0.0
			const n = 4096
			for range n {
				x := size * (1 + r.Float64()) / 2
				l, ref := floats.Round(d, x*(1+floats.Unit(d)/2)), floats.Round(d, x*(1-floats.Unit(d)/2))
				diff, norm = diff+(l-ref)*(l-ref), norm+ref*ref
			}
			m := &measure.Metrics{RelL2: measure.Number(math.Sqrt(diff / norm)), Norm: measure.Number(math.Sqrt(norm)), Compared: n}
			for _, early := range []bool{false, true} {
				if g := gate.ByTable(m, d, early); !g.Passed() {
					t.Errorf("%s of size %g: %s", d, size, g.Worst())
				}
			}
			m.RelL2 = 1
			if g := gate.ByTable(m, d, false); g.Passed() || !strings.Contains(g.Worst(), "relative L2 of the tensor") {
				t.Errorf("%s of size %g: a factor of 2 passes", d, size)
			}
		}
	}
}
