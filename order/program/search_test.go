package program_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

var everyRounding = []program.Rounding{
	program.Plain, program.Model, program.Single, program.Half, program.Table, program.None, program.Welford,
}

// drawCall draws an operation or a formula, for a model of some dtype, with bounds or without.
func drawCall(t *rapid.T) (drawer, *program.Program, program.Call) {
	dtype := rapid.SampledFrom([]hooks.DType{hooks.BF16, hooks.F32}).Draw(t, "dtype")
	d := newDrawer(t, dtype)
	draw := rapid.SampledFrom([]func() (op.Op, program.Call){d.operation, d.mixture}).Draw(t, "what")
	o, c := draw()
	c.Arith = program.Arith{DType: dtype, Emulated: true, Bounds: rapid.Bool().Draw(t, "bounds")}
	p, err := programOf(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return d, p, c
}

// A search gives what an evaluation gives, to the bit, values and bounds, whatever the choices and whatever it has kept.
func TestSearchIsEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, p, c := drawCall(t)
		s, err := p.Search(c)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(t, "evaluations") {
			c.Choices = d.choices(p, everyRounding, (*program.Step).Ways)
			got, err := s.Eval(c.Choices)
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Shape, want.Shape) {
				t.Fatalf("the result is %v, not %v", got.Shape, want.Shape)
			}
			sameBits(t, "value", got.Data, want.Data)
			sameBits(t, "bound", got.Bound, want.Bound)
		}
	})
}

// A search computes no step twice on equal operands: less than every step of every evaluation.
func TestSearchShares(t *testing.T) {
	o := op.RMSNorm{Eps: 1e-6, Gain: op.Plain}
	const n = 256
	c := program.Call{
		Arith: bounded(brain), Shape: []int{1, 4, n},
		In: []program.Value{tensor(numbers(4*n, 30, bf16), 1, 4, n)}, W: []program.Rows{matrix{1, n, numbers(n, 31, bf16)}},
	}
	p, err := programOf(o, c)
	if err != nil {
		t.Fatal(err)
	}
	computed := 0
	sites, steps := p.Sites()
	for i := range p.Steps {
		if p.Steps[i].Prim.Computes() {
			computed++
		}
	}
	s, err := p.Search(c)
	if err != nil {
		t.Fatal(err)
	}
	const masks = 1 << 7
	for mask := range masks {
		choices := p.Own()
		for k, at := range sites {
			if mask>>k&1 == 1 {
				choices[steps[at][0]].Round = program.Model
			}
		}
		if _, err := s.Eval(choices); err != nil {
			t.Fatal(err)
		}
	}
	if s.Evaluations != masks || s.Steps*2 > masks*computed || s.Steps < computed {
		t.Errorf("%d evaluations of %d steps computed %d", s.Evaluations, computed, s.Steps)
	}
	before := s.Steps
	if _, err := s.Eval(p.Own()); err != nil || s.Steps != before {
		t.Errorf("the same choices again computed %d steps more (%v)", s.Steps-before, err)
	}
}

// A search keeps apart what differs only by what was done elsewhere: the bound of the largest of a row, by whether a step of the
// operation is rounded, and the least operand of a root, by what is done to epsilon.
func TestSearchTellsApart(t *testing.T) {
	// Either of two may be the largest of a row, and bounds reach below epsilon where it is lost beside the square.
	x := tensor([]float64{1, 1.0625, -3, 4, 4.25, 2}, 2, 3)
	x.Bound = []float64{0.5, 0.25, 4, 0.5, 0.5, 4}
	for name, o := range map[string]op.Op{
		"softmax": of(func(b *program.Builder, in []program.Var) program.Var {
			e := b.Exp("exp", b.Sub("shifted", in[0], b.RowMax(in[0])))
			return b.Div("share", e, b.Sum("sum", e))
		}),
		"root": of(func(b *program.Builder, in []program.Var) program.Var {
			return b.Rsqrt("rsqrt", b.Add("+eps", b.Mul("square", in[0], in[0]), b.Scalar("eps", 1.1e-8)))
		}),
	} {
		c := program.Call{Arith: bounded(brain), In: []program.Value{x}, Shape: x.Shape}
		p, err := programOf(o, c)
		if err != nil {
			t.Fatal(err)
		}
		sites, steps := p.Sites()
		for mask := range 1 << len(sites) {
			s, err := p.Search(c)
			if err != nil {
				t.Fatal(err)
			}
			chosen := p.Own()
			for k, at := range sites {
				if mask>>k&1 == 1 {
					chosen[steps[at][0]].Round = program.Model
				}
			}
			for _, c.Choices = range [][]program.Choice{p.Own(), chosen, p.Own()} {
				got, err := s.Eval(c.Choices)
				if err != nil {
					t.Fatal(err)
				}
				want := eval(t, o, c)
				sameBits(t, name, got.Data, want.Data)
				sameBits(t, name+": bound", got.Bound, want.Bound)
			}
		}
	}
}

// A root's operand is not below epsilon as it was rounded, rather than epsilon.
func TestLeastOperandIsRounded(t *testing.T) {
	below := 0
	for _, eps := range []float64{1e-6, 1e-5, 1e-3, 3e-6, 7e-4} {
		o := of(func(b *program.Builder, in []program.Var) program.Var {
			return b.Rsqrt("rsqrt", b.Add("+eps", b.Mul("square", in[0], in[0]), b.Scalar("eps", eps)))
		})
		for _, a := range []program.Arith{brain, bounded(brain)} {
			c := program.Call{Arith: a, In: []program.Value{tensor([]float64{0}, 1, 1)}, Shape: []int{1, 1}}
			p, err := programOf(o, c)
			if err != nil {
				t.Fatal(err)
			}
			c.Choices = p.Own()
			sites, steps := p.Sites()
			at := slices.IndexFunc(sites, func(s program.Site) bool { return s.Name == "+eps" })
			c.Choices[steps[sites[at]][0]].Round = program.Model
			sameBits(t, "1/√eps", eval(t, o, c).Data, []float64{f32(1 / math.Sqrt(bf16(eps)))})
		}
		if bf16(eps) < f32(eps) {
			below++
		}
	}
	if below == 0 {
		t.Error("no epsilon is rounded down")
	}
}

// A literal is part of the formula: no engine rounds it, and no mistake is another number for it.
func TestLiteralIsNoSite(t *testing.T) {
	o := of(func(b *program.Builder, in []program.Var) program.Var {
		return b.Add("1+x", b.Mul("scaled", in[0], b.Scalar("scale", 0.3)), b.Literal(1))
	})
	p, err := programOf(o, program.Call{In: []program.Value{tensor(make([]float64, 4), 1, 4)}, Shape: []int{1, 4}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	sites, _ := p.Sites()
	for _, at := range sites {
		names = append(names, at.Name)
	}
	if want := []string{"scale", "scaled", "1+x"}; !slices.Equal(names, want) {
		t.Errorf("the sites are %q, not %q", names, want)
	}
	parts := edit.NewStepIndex(p, func(program.Prim, int) string { return "" })
	if numbers := parts.Numbers(); len(numbers) != 1 || p.Steps[numbers[0]].Name != "scale" {
		t.Errorf("the numbers that an edit may change are the steps %v, not the scale alone", numbers)
	}
}
