package program_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
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
