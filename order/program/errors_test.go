package program_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// operations are all that have steps, with constants of every kind.
var operations = []op.Op{
	op.Add{},
	op.AddScale{By: op.Const{Value: 2}, Divide: true},
	op.AddToOthers{},
	op.AltUpCorrect{Streams: 2},
	op.AltUpInit{},
	op.AltUpPredict{Streams: 2},
	op.Argument{},
	op.Cache{},
	op.Cache{Window: 3, Transpose: true},
	op.Cast{},
	op.Context{},
	op.Cutoff{},
	op.GELU{},
	op.GELUTanh{},
	op.Identity{},
	op.Linear{},
	op.Linear{Bias: true},
	op.Lookup{Rows: 3},
	op.Lookup{Rows: 2, Fallback: true},
	op.Magnitude{},
	op.Mask{},
	op.Mask{Window: 2},
	op.Mean{},
	op.Mul{},
	op.Rescale{},
	op.RMSNorm{Eps: 1e-6, Gain: op.Plain},
	op.RMSNorm{Gain: op.NoScale},
	op.RMSNorm{Gain: op.OnePlus},
	op.RMSNorm{Gain: op.After},
	op.RoPE{},
	op.Rotary{Theta: 10, Dim: 4, Scaling: "default"},
	op.Scale{By: op.Const{Value: 2, Cast: true}},
	op.ScaleChannels{},
	op.Scores{Scale: 2},
	op.Select{Axis: 1, Index: 1},
	op.Select{Axis: -1},
	op.Select{Axis: 9},
	op.ShiftedReLU{},
	op.SiLU{},
	op.Softcap{Cap: 2},
	op.Softmax{},
	op.Std{},
	op.StreamMean{},
	op.Sub{},
	op.Tanh{},
}

// Any operation on any shapes is an error or a program that evaluates: there is no panic. Half of the shapes are near what an
// operation takes: the sizes are few.
func TestAnyShapes(t *testing.T) {
	built := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 10 * checksEach {
			if anyShapes(t) {
				built++
			}
		}
	})
	if built == 0 {
		t.Error("no program was built: nothing is tested but errors")
	}
}

// anyShapes draws an operation and shapes, and reports whether they went together.
func anyShapes(t *rapid.T) bool {
	o := rapid.SampledFrom(operations).Draw(t, "operation")
	axis := rapid.SampledFrom([]int{1, 1, 1, 2, 2, 2, 4, 4, 0, 3})
	shape := rapid.SliceOfN(axis, 0, 4)
	c := program.Call{Arith: bounded(brain), Shape: shape.Draw(t, "shape")}
	same := rapid.Bool().Draw(t, "alike")
	for range rapid.IntRange(0, 4).Draw(t, "inputs") {
		s := c.Shape
		if !same || rapid.IntRange(0, 3).Draw(t, "another") == 0 {
			s = shape.Draw(t, "input")
		}
		c.In = append(c.In, tensor(numbers(size(s), 40, bf16), s...))
	}
	for range rapid.IntRange(0, 2).Draw(t, "weights") {
		rows, cols := axis.Draw(t, "rows"), axis.Draw(t, "columns")
		c.W = append(c.W, matrix{rows, cols, numbers(rows*cols, 41, bf16)})
	}
	v, err := program.Eval(o, c)
	if err == nil && (len(v.Data) != size(c.Shape) || len(v.Bound) != size(c.Shape)) {
		t.Fatalf("%d elements of %v", len(v.Data), c.Shape)
	}
	return err == nil
}

// A view that leaves the elements is none, however large its sizes are.
func TestWithin(t *testing.T) {
	const big = math.MaxInt
	for _, c := range []struct {
		shape, stride []int
		off           int
		ok            bool
	}{
		{[]int{2, 3}, []int{3, 1}, 0, true},
		{[]int{2, 3}, []int{3, 1}, 1, false},
		{[]int{3}, []int{-1}, 2, true},
		{[]int{3}, []int{-1}, 1, false},
		{[]int{6}, []int{1}, 0, true},
		{[]int{7}, []int{1}, 0, false},
		{[]int{0, big}, []int{1, 1}, 0, false},
		{[]int{0, 3}, []int{1, 1}, 6, true},
		{[]int{1}, []int{1}, 6, false},
		{[]int{1}, []int{big}, 5, true},
		{[]int{big}, []int{0}, 0, true},
		{[]int{2}, []int{big}, 1, false},
		{[]int{big, big}, []int{1, 1}, 0, false},
		{[]int{-1}, []int{1}, 0, false},
		{[]int{1}, []int{1}, -1, false},
	} {
		if got := program.Within(6, c.shape, c.stride, c.off); got != c.ok {
			t.Errorf("6 elements seen as %v by %v from %d: %t", c.shape, c.stride, c.off, got)
		}
	}
}

// Primitives that do not go together are errors that say what does not.
func TestBuilderErrors(t *testing.T) {
	type in = []program.Var
	for what, c := range map[string]struct {
		steps func(b *program.Builder, in, w in) program.Var
		err   string
	}{
		"an input that is not there":   {func(b *program.Builder, in, _ in) program.Var { return in[7] }, "too few"},
		"a weight that is not there":   {func(b *program.Builder, in, w in) program.Var { return b.Mul("p", in[0], w[3]) }, "too few"},
		"an axis that is not there":    {func(b *program.Builder, in, _ in) program.Var { return b.Mean("m", b.Slice(in[0], 3, 0, 1)) }, "axis 3"},
		"broadcasting 3 to 4":          {func(b *program.Builder, in, _ in) program.Var { return b.Add("sum", in[0], in[1]) }, "sum: [2 3] and [2 4]"},
		"a product of 3 and 4":         {func(b *program.Builder, in, _ in) program.Var { return b.Dot("p", "ik,jk->ij", in[0], in[1]) }, "p: [2 3] and [2 4]"},
		"a matrix added":               {func(b *program.Builder, in, w in) program.Var { return b.Add("sum", in[0], w[0]) }, "together"},
		"a matrix negated":             {func(b *program.Builder, in, w in) program.Var { return b.Neg(w[0]) }, "read row by row"},
		"a matrix as the result":       {func(b *program.Builder, in, w in) program.Var { return b.Reshape(b.Slice(w[0], 0, 0, 2), 2, 3) }, "read row by row"},
		"a product over nothing":       {func(b *program.Builder, in, _ in) program.Var { return b.Dot("p", "ik,ik->ik", in[0], in[0]) }, "over nothing"},
		"a product over two axes":      {func(b *program.Builder, in, _ in) program.Var { return b.Dot("p", "ik,ik->", in[0], in[0]) }, "more than one axis"},
		"an axis from nowhere":         {func(b *program.Builder, in, _ in) program.Var { return b.Dot("p", "ik,ik->iz", in[0], in[0]) }, "from nowhere"},
		"another width of a matrix":    {func(b *program.Builder, in, w in) program.Var { return b.Affine("a", in[1], w[0]) }, "a: [2 4] times the rows of [5 3]"},
		"a matrix that is an input":    {func(b *program.Builder, in, _ in) program.Var { return b.Affine("a", in[0], in[0]) }, "times the rows"},
		"a part of a matrix":           {func(b *program.Builder, in, w in) program.Var { return b.Affine("a", in[0], b.Slice(w[0], 0, 0, 2)) }, "times the rows"},
		"a bias of another width":      {func(b *program.Builder, in, w in) program.Var { return b.Affine("a", in[0], w[0], w[1]) }, "a: 5 rows and a bias of [4]"},
		"more rows than a table has":   {func(b *program.Builder, in, w in) program.Var { return b.Lookup(in[0], w[0], 6, false) }, "6 rows of [5 3]"},
		"a join of other sizes":        {func(b *program.Builder, in, _ in) program.Var { return b.Cat(0, in[0], in[1]) }, "cat: [2 3] and [2 4]"},
		"a join of nothing":            {func(b *program.Builder, in, _ in) program.Var { return b.Cat(0) }, "too few"},
		"a mask of other positions":    {func(b *program.Builder, in, _ in) program.Var { return b.Mask(in[0], 0) }, "positions [2 3]"},
		"an axis left out":             {func(b *program.Builder, in, _ in) program.Var { return b.Permute(in[0], 1) }, "axes [1] of [2 3]"},
		"an axis twice":                {func(b *program.Builder, in, _ in) program.Var { return b.Permute(in[0], 1, 1) }, "axes [1 1] of [2 3]"},
		"two pieces of three":          {func(b *program.Builder, in, _ in) program.Var { return b.Split(in[0], 1, 2) }, "in 2 pieces"},
		"a transposed view read flat":  {func(b *program.Builder, in, _ in) program.Var { return b.Reshape(b.Permute(in[0], 1, 0), 6) }, "read as [6]"},
		"another shape than is wanted": {func(b *program.Builder, in, _ in) program.Var { return b.Neg(in[1]) }, "[2 4] read as [2 3]"},
		"a result without axes":        {func(b *program.Builder, in, _ in) program.Var { return b.Neg(b.Take(b.Take(in[0], 0, 0), 0, 0)) }, "without axes"},
	} {
		c := c
		o := programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var { return c.steps(b, in, w) })
		_, err := program.Of(o, op.Op.Kind, 0, []int{2, 3}, [][]int{{2, 3}, {2, 4}}, [][2]int{{5, 3}, {1, 4}})
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", what, err, c.err)
		}
	}
	if _, err := program.Of(op.Identity{}, op.Op.Kind, 0, nil, [][]int{{1}}, nil); err == nil {
		t.Error("a result of no shape is a program")
	}
}

// A panic that is a mistake of a formula, and not of its shapes, stays one.
func TestOtherPanicsStay(t *testing.T) {
	defer func() {
		if e := recover(); e != "a mistake" {
			t.Errorf("recovered %v", e)
		}
	}()
	o := of(func(*program.Builder, []program.Var) program.Var { panic("a mistake") })
	_, err := program.Of(o, op.Op.Kind, 0, []int{1}, nil, nil)
	t.Errorf("no panic, and %v", err)
}

// Inputs and weights that are none of the program's are errors, not panics.
func TestCallsOfAnotherProgram(t *testing.T) {
	c := program.Call{
		Arith: program.Arith{DType: hooks.BF16, Emulated: true}, In: []program.Value{tensor(numbers(6, 42, bf16), 2, 3)}, Shape: []int{2, 5},
		W: []program.Rows{matrix{5, 3, numbers(15, 43, bf16)}, matrix{1, 5, numbers(5, 44, bf16)}},
	}
	p, err := programOf(op.Linear{Bias: true}, c)
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(c *program.Call){
		"no input":        func(c *program.Call) { c.In = nil },
		"a smaller input": func(c *program.Call) { c.In = []program.Value{tensor(numbers(4, 42, bf16), 2, 2)} },
		"no weights":      func(c *program.Call) { c.W = nil },
		"no bias":         func(c *program.Call) { c.W = c.W[:1] },
		"a wider weight":  func(c *program.Call) { c.W = []program.Rows{matrix{5, 4, numbers(20, 45, bf16)}, c.W[1]} },
		"fewer rows":      func(c *program.Call) { c.W = []program.Rows{matrix{4, 3, numbers(12, 45, bf16)}, c.W[1]} },
		"a longer bias":   func(c *program.Call) { c.W = []program.Rows{c.W[0], matrix{1, 6, numbers(6, 45, bf16)}} },
	} {
		bad := c
		spoil(&bad)
		if _, err := p.Eval(bad); err == nil {
			t.Errorf("%s: no error", what)
		}
		if s, err := p.Search(bad); err == nil {
			if _, err := s.Eval(p.Own()); err == nil {
				t.Errorf("%s: a search has no error", what)
			}
		}
	}
	if _, err := p.Eval(c); err != nil {
		t.Error(err)
	}
}
