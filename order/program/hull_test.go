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
var inHull = []program.Rounding{program.Plain, program.Model, program.Single, program.None}

func waysInHull(s *program.Step) int {
	if s.Prim == program.Sum || s.Prim == program.Dot || s.Prim == program.Affine && len(s.Args) == 2 {
		return 1
	}
	if s.Prim == program.Affine {
		return int(program.WayBiasAfterRounding) + 1
	}
	return s.Ways()
}

// The hull has the result of every definite arithmetic, in any order of summation, for any inputs within their bounds: a hull
// that is too small would accuse an engine that is right.
func testHull(t *testing.T, what func(d drawer) (op.Op, program.Call)) {
	orders := program.Summations()
	rapid.Check(t, func(t *rapid.T) {
		for range checksEach {
			d := newDrawer(t, hooks.BF16)
			o, c := what(d)
			p, err := programOf(o, c)
			if err != nil {
				t.Fatal(err)
			}
			c.Arith = bounded(brain)
			moved := c
			moved.Bounds, moved.In = false, d.move(c.In)
			c.Hull, c.HullLast = true, true
			hull, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				moved.Sum = nil
				if k := rapid.IntRange(-1, len(orders)-1).Draw(t, "order"); k >= 0 {
					moved.Sum = &orders[k]
				}
				moved.Choices = d.choices(p, inHull, waysInHull)
				v, err := p.Eval(moved)
				if err != nil {
					t.Fatal(err)
				}
				holds(t, p, moved.Choices, v, hull)
			}
		}
	})
}

func TestHullOfOperations(t *testing.T) { testHull(t, drawer.operation) }

func TestHullOfFormulas(t *testing.T) { testHull(t, drawer.mixture) }

// A term that float32 loses beside a larger one is still there in double precision, where it decides a tie.
func TestHullOfALostTerm(t *testing.T) {
	o := of(func(b *program.Builder, in []program.Var) program.Var { return b.Add("sum", in[0], in[1]) })
	c := program.Call{Arith: bounded(brain), In: []program.Value{tensor([]float64{1, 0x1p-30}, 1, 2), tensor([]float64{0x1p-30, 1}, 1, 2)}, Shape: []int{1, 2}}
	c.Hull, c.HullLast = true, true
	hull := eval(t, o, c)
	for i, e := range hull.Bound {
		if far := math.Abs(1 + 0x1p-30 - hull.Data[i]); !(far <= e) {
			t.Errorf("double precision is %g from the middle of the hull, which reaches %g", far, e)
		}
	}
	masked := program.Call{Arith: c.Arith, In: []program.Value{tensor([]float64{3, 5}, 1, 2), tensor([]float64{-0x1.fep127, -0x1.fep127}, 1, 2)}, Shape: []int{1, 2}}
	sameBits(t, "masked scores are equal", eval(t, o, masked).Bound, []float64{0, 0})
}

// The hull of a single quotient or reciprocal root has every way to it, rounded or not: nothing that follows makes it wider.
func TestHullOfWays(t *testing.T) {
	const n = 2000
	c := program.Call{Arith: bounded(brain), In: []program.Value{tensor(numbers(n, 70, f32), 2, n/2), tensor(numbers(n, 71, f32), 2, n/2)}, Shape: []int{2, n / 2}}
	for _, e := range elements {
		o := of(e.steps)
		p, err := programOf(o, c)
		if err != nil {
			t.Fatal(err)
		}
		c.Hull, c.HullLast, c.Choices = true, true, nil
		hull := eval(t, o, c)
		c.Hull, c.HullLast = false, false
		last := len(p.Steps) - 1
		for way := range p.Steps[last].Ways() {
			for _, round := range inHull {
				c.Choices = p.Own()
				if !p.Steps[last].Prim.Computes() {
					round = program.Plain
				}
				c.Choices[last] = program.Choice{Way: uint8(way), Round: round}
				v, err := p.Eval(c)
				if err != nil {
					t.Fatal(err)
				}
				for i, y := range v.Data {
					if far := math.Abs(y - hull.Data[i]); !(far <= hull.Bound[i]) {
						t.Fatalf("%s, way %d, %s: %v is %g from %v, the hull reaches %g", e.name, way, round, y, far, hull.Data[i], hull.Bound[i])
					}
				}
			}
		}
	}
}

// The hull of a root that may be of nearly nothing has its reciprocal rounded there, too, where it is many times as large.
func TestHullOfALargeReciprocal(t *testing.T) {
	const root = 258.9999 * 0x1p-13 // nearly between two numbers of bfloat16: it is rounded by as much as any
	x := program.Value{Shape: []int{1, 1}, Data: []float64{0.0113}, Bound: []float64{0.0113 - root*root}}
	o := of(func(b *program.Builder, in []program.Var) program.Var { return b.Rsqrt("rsqrt", in[0]) })
	c := program.Call{Arith: bounded(brain), In: []program.Value{x}, Shape: x.Shape}
	c.Hull, c.HullLast = true, true
	hull := eval(t, o, c)
	if y := 1 / bf16(root*(1+0x1p-40)); math.Abs(y-hull.Data[0]) > hull.Bound[0] {
		t.Errorf("%v is %g from %v, the bound is %g", y, math.Abs(y-hull.Data[0]), hull.Data[0], hull.Bound[0])
	}
}
