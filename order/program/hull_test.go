package program_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// inHull are the roundings that the hull is of, and ways all but those of sums in parts.
var inHull = []program.Rounding{program.Plain, program.Model, program.Single}

func waysInHull(s *program.Step) int {
	if s.Prim == program.Sum || s.Prim == program.Dot || s.Prim == program.Affine && len(s.Args) == 2 {
		return 1
	}
	return s.Ways()
}

// The hull has the result of every definite arithmetic, with its bound: what lies outside is no rounding, so a hull that is too
// small would accuse an engine that is right.
func testHull(t *testing.T, what func(d drawer) (op.Op, program.Call)) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawer(t, hooks.BF16)
		o, c := what(d)
		p, err := programOf(o, c)
		if err != nil {
			t.Fatal(err)
		}
		c.Arith = bounded(brain)
		c.Hull = true
		hull, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Hull = false
		for range 8 {
			c.Choices = d.choices(p, inHull, waysInHull)
			v, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			for i, y := range v.Data {
				mid, reach := hull.Data[i], hull.Bound[i]
				if far := math.Abs(y - mid); y != mid && !(far <= reach) && !math.IsInf(reach, 1) {
					for k := range p.Steps {
						t.Logf("%d %s %s: own %v, chosen %v", k, p.Steps[k].Name, p.Steps[k].Prim, p.Steps[k].Round, c.Choices[k])
					}
					t.Fatalf("element %d is %v ± %g: %g from the middle of the hull, %v ± %g (%.4f)", i, y, v.Bound[i], far, mid, reach, far/reach)
				}
			}
		}
	})
}

func TestHullOfOperations(t *testing.T) { testHull(t, drawer.operation) }

func TestHullOfFormulas(t *testing.T) { testHull(t, drawer.mixture) }
