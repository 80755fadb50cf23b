package rewrite_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/programtest"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// drawnCall is a call of inputs of given shapes in bfloat16.
func drawnCall(out []int, shapes ...[]int) program.Call {
	rng := rand.New(rand.NewPCG(5, 1))
	c := program.Call{Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true}, Shape: out}
	for _, shape := range shapes {
		x := make([]float64, program.Size(shape))
		for i := range x {
			x[i] = floats.Round(hooks.BF16, 2*rng.NormFloat64())
		}
		c.In = append(c.In, programtest.Tensor(x, shape...))
	}
	return c
}

// Queries and keys that are apart have the numbers that they had. Keys alone are computed from a table that is not rounded where their own site says so.
func TestKeysHaveSitesOfTheirOwn(t *testing.T) {
	const heads, tokens, width = 2, 9, 8
	shape := []int{heads, tokens, width}
	table := func(keysRounded bool) *programtest.Formula {
		return programtest.Of(func(b *program.Builder, in []program.Var) program.Var {
			queries := b.R(b.Mul("table", in[3], in[3]))
			keys := queries
			if !keysRounded {
				keys = b.Mul("table", in[3], in[3])
			}
			q, k := b.R(b.Mul("product", in[0], queries)), b.R(b.Mul("product", in[1], keys))
			s := b.R(b.Dot("scores", "htd,hsd->hts", q, k))
			exp := b.Exp("exp", b.Sub("difference", s, b.RowMax(s)))
			return b.Dot("context", "hts,hsd->htd", b.R(b.Div("quotient", exp, b.Sum("sum", exp))), in[2])
		})
	}
	c := drawnCall(shape, shape, shape, shape, []int{1, tokens, width})
	evaluated := func(f *programtest.Formula, r program.Rewrite, choose func(program.Site) (program.Choice, bool)) (*program.Program, program.Value) {
		t.Helper()
		own, err := programtest.Program(f, c)
		if err != nil {
			t.Fatal(err)
		}
		p, err := rewrite.Apply(own, r)
		if err != nil {
			t.Fatal(err)
		}
		call := c
		call.Choices = p.Own()
		sites, steps := p.Sites()
		for _, at := range sites {
			if choice, ok := choose(at); ok {
				for _, i := range steps[at] {
					call.Choices[i] = choice
				}
			}
		}
		v, err := p.Eval(call)
		if err != nil {
			t.Fatal(err)
		}
		return p, v
	}
	never := func(program.Site) (program.Choice, bool) { return program.Choice{}, false }
	kernel := program.Rewrite(0).InKernel(1)
	if r := kernel | program.ReadApart; !r.Apart() || r.Kernel() != 1 || kernel.Apart() {
		t.Errorf("the kernel is %d, apart %t", r.Kernel(), r.Apart())
	}
	_, together := evaluated(table(true), kernel, never)
	p, apart := evaluated(table(true), kernel|program.ReadApart, never)
	if !slices.Equal(together.Data, apart.Data) || !slices.Equal(together.Bound, apart.Bound) || rewrite.KernelOf(p) == nil {
		t.Error("queries and keys that are apart have other numbers")
	}
	_, wide := evaluated(table(true), kernel|program.ReadApart, func(at program.Site) (program.Choice, bool) {
		return program.Choice{Round: program.Plain}, at.Name == "table"+rewrite.OfKeys
	})
	_, want := evaluated(table(false), kernel, never)
	if !slices.Equal(wide.Data, want.Data) || slices.Equal(wide.Data, together.Data) {
		t.Error("keys do not read the unrounded table, or it makes no difference")
	}
	alone, _ := evaluated(table(false), kernel, never)
	if same, _ := evaluated(table(false), kernel|program.ReadApart, never); same.Text() != alone.Text() {
		t.Error("a program without a shared step has changed")
	}
}

// One of two readers of a sum gets it of a rounded operand, and the other of the unrounded one.
func TestReadRoundedThroughASum(t *testing.T) {
	c := drawnCall([]int{1, 8}, []int{1, 8})
	p, err := programtest.Program(programtest.Of(func(b *program.Builder, in []program.Var) program.Var {
		s := b.Add("sum", b.Mul("first", in[0], in[0]), in[0])
		return b.Sub("difference", b.Mul("product", s, in[0]), b.Neg(s))
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(p.Steps, func(s program.Step) bool { return s.Site == "first" })
	through := rewrite.Through(p, first)
	if len(through) != 1 || p.Steps[through[0]].Site != "sum" {
		t.Fatalf("between the first step and its readers are %v", through)
	}
	e := edit.NewEditor(p)
	rewrite.ReadRoundedThrough(e, first, through, func(reader *program.Step) bool { return reader.Site == "product" })
	d, err := e.End()
	if err != nil {
		t.Fatal(err)
	}
	q, call := d.Whole(c)
	v, err := q.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range c.In[0].Data {
		x := float32(x)
		rounded := float32(floats.Round(hooks.BF16, float64(x*x)))
		if want := float64(float32(float32(rounded+x)*x) + float32(float32(x*x)+x)); v.Data[i] != want {
			t.Errorf("element %d is %g, not %g", i, v.Data[i], want)
		}
	}
}
