package program_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"

	"github.com/tracediff/tracediff/order/program"
)

// checksEach is how many cases one check of a property draws, where a case is fast.
const checksEach = 10

// Bounds hold: inputs that are moved within theirs, and sums taken in any order that engines use, give nothing outside of the
// bound of the result, whatever the roundings and ways.
func TestBoundsHold(t *testing.T) {
	orders := program.Summations()
	rapid.Check(t, func(t *rapid.T) {
		for range checksEach {
			d, p, c := drawCall(t)
			c.Bounds, c.Rigorous = true, true
			c.Choices = d.choices(p, []program.Rounding{program.Plain, program.Model, program.Single, program.Half, program.None, program.Welford}, (*program.Step).Ways)
			moved := c
			moved.Bounds = false
			if !slices.ContainsFunc(p.Steps, func(s program.Step) bool { return s.Prim == program.RowMax }) {
				moved.In = d.move(c.In)
			}
			if k := rapid.IntRange(-1, len(orders)-1).Draw(t, "order"); k >= 0 {
				moved.Sum = &orders[k]
				for i := range c.Choices { // an order is of one sum, in float32
					if s := &p.Steps[i]; s.Prim == program.Sum || s.Prim == program.Dot || s.Prim == program.Affine {
						c.Choices[i] = program.Choice{Round: program.Plain}
					}
				}
				moved.Choices = c.Choices
			}
			v, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			other, err := p.Eval(moved)
			if err != nil {
				t.Fatal(err)
			}
			holds(t, p, c.Choices, other, v)
		}
	})
}

// holds fails unless a result lies within the bounds of another.
func holds(t *rapid.T, p *program.Program, choices []program.Choice, got, want program.Value) {
	t.Helper()
	for i, y := range got.Data {
		v, e := want.Data[i], want.Bound[i]
		if far := math.Abs(y - v); y != v && (y == y || v == v) && !(far <= e) && !math.IsInf(e, 1) {
			for k, s := range p.Steps {
				t.Logf("%d %s %s: way %d, %s", k, s.Name, s.Prim, choices[k].Way, choices[k].Round)
			}
			t.Fatalf("element %d is %v, which is %g from %v: the bound is %g (%.4f)", i, y, far, v, e, far/e)
		}
	}
}

// move gives inputs bounds, and returns other inputs within them. Half of the time nothing has a bound.
func (d drawer) move(in []program.Value) []program.Value {
	moved := slices.Clone(in)
	if rapid.Bool().Draw(d.T, "exact inputs") {
		return moved
	}
	by := rapid.SampledFrom([]float64{0x1p-24, 0x1p-16, 0x1p-9, 0.5}).Draw(d.T, "by")
	for k, v := range in {
		in[k].Bound = mapped(v.Data, func(x float64) float64 { return by * math.Abs(x) })
		moved[k].Data = slices.Clone(v.Data)
		for i, u := range numbers(len(v.Data), rapid.Uint64().Draw(d.T, "moved"), f32) {
			if x := f32(v.Data[i] + in[k].Bound[i]*max(-1, min(1, u))); math.Abs(x-v.Data[i]) <= in[k].Bound[i] {
				moved[k].Data[i] = x
			}
		}
	}
	return moved
}

// Bounds are beside the values, and change none.
func TestBoundsChangeNoValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range checksEach {
			d, p, c := drawCall(t)
			c.Choices = d.choices(p, everyRounding, (*program.Step).Ways)
			for k := range c.In {
				if i := rapid.IntRange(-1, len(c.In[k].Data)-1).Draw(t, "tiny"); i >= 0 {
					c.In[k].Data[i] *= 0x1p-40
				}
			}
			c.Bounds = false
			want, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			c.Bounds = true
			got, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, "with bounds", got.Data, want.Data)
		}
	})
}

// A product that is not rounded may have become another number, which float32 has not: the sum rounds it, also where the other term
// is too small to change it.
func TestBoundOfAnAbsorbedTerm(t *testing.T) {
	const ulp = 0x1p-23
	x, y, z := tensor([]float64{1}, 1, 1), tensor([]float64{1 + 3*ulp}, 1, 1), tensor([]float64{0x1p-40}, 1, 1)
	c := program.Call{Arith: bounded(single), In: []program.Value{x, y, z}, Shape: x.Shape}
	p, err := programOf(of(func(b *program.Builder, in []program.Var) program.Var {
		return b.Add("sum", b.Mul("product", in[0], in[1]), in[2])
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Choices = p.Own()
	c.Choices[slices.IndexFunc(p.Steps, func(s program.Step) bool { return s.Prim == program.Mul })].Round = program.None
	evaluated := func(first program.Value) program.Value {
		c.In[0] = first
		v, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	x.Bound = []float64{0.25}
	want := evaluated(x)
	got := evaluated(tensor([]float64{1.25}, 1, 1)).Data[0] // its product lies between two numbers of float32, nearer to the larger
	if got != 1.25+4*ulp || !(got-want.Data[0] <= want.Bound[0]) {
		t.Errorf("%v, %g from %v: the bound is %g", got, got-want.Data[0], want.Data[0], want.Bound[0])
	}
}

// Beside an overflow nothing is known: neither of the number that may have overflowed, nor of what is computed from it.
func TestBoundBesideAnOverflow(t *testing.T) {
	half := bounded(program.Arith{DType: hooks.F16, Emulated: true})
	in := program.Value{Shape: []int{1, 1}, Data: []float64{65530}, Bound: []float64{100}} // 65504 or ∞ in float16
	for what, steps := range map[string]func(b *program.Builder, in []program.Var) program.Var{
		"rounded": func(b *program.Builder, in []program.Var) program.Var { return b.R(in[0]) },
		"largest": func(b *program.Builder, in []program.Var) program.Var { return b.Max(b.R(in[0]), b.Literal(0)) },
		"inverse": func(b *program.Builder, in []program.Var) program.Var { return b.Rsqrt("s", b.R(in[0])) },
		"divided": func(b *program.Builder, in []program.Var) program.Var { return b.Div("q", b.Literal(1), b.R(in[0])) },
		"masked":  func(b *program.Builder, in []program.Var) program.Var { return b.Exp("e", b.Neg(b.R(in[0]))) },
	} {
		if e := eval(t, of(steps), program.Call{Arith: half, In: []program.Value{in}, Shape: in.Shape}).Bound[0]; !math.IsInf(e, 1) {
			t.Errorf("%s: the bound is %v", what, e)
		}
	}
}

// A bound of a primitive holds at the ends of its operands' bounds, where it is largest, for float32 and for float64.
func TestBoundsOfElements(t *testing.T) {
	const n = 3000
	for _, e := range elements {
		for _, by := range []float64{0x1p-20, 0x1p-9, 0.25, 0.9} {
			x, y := tensor(numbers(n, 72, f32), 1, 1, n), tensor(numbers(n, 73, f32), 1, 1, n)
			x.Bound = mapped(x.Data, func(v float64) float64 { return by * math.Abs(v) })
			y.Bound = mapped(y.Data, func(v float64) float64 { return by * math.Abs(v) })
			v := eval(t, of(e.steps), program.Call{Arith: bounded(single), In: []program.Value{x, y}, Shape: x.Shape})
			round := f32
			if e.name == "neg" || e.name == "max" || e.name == "copy" {
				round = func(x float64) float64 { return x }
			}
			for i := range n {
				for _, end := range [][2]float64{{-1, -1}, {-1, 1}, {1, -1}, {1, 1}, {0, 0}} {
					px, py := x.Data[i]+end[0]*x.Bound[i], y.Data[i]+end[1]*y.Bound[i]
					for _, got := range []float64{e.wide(px, py), round(e.wide(px, py))} {
						if far := math.Abs(got - v.Data[i]); !(far <= v.Bound[i]*(1+1e-12)) { // the ends themselves are rounded
							t.Fatalf("%s of %v ± %g and %v ± %g: %v is %g from %v, the bound is %g", e.name, x.Data[i], x.Bound[i], y.Data[i], y.Bound[i], got, far, v.Data[i], v.Bound[i])
						}
					}
				}
			}
		}
	}
}
