package edit_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// rowsOf is a call of one input of some rows in float32, whose result has as many rows of last elements.
func rowsOf(t *rapid.T, rows, cols, last int) program.Call {
	data := rapid.SliceOfN(rapid.Float64Range(-2, 2), rows*cols, rows*cols).Draw(t, "x")
	for i, x := range data {
		data[i] = float64(float32(x))
	}
	return program.Call{
		Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{programtest.Tensor(data, 1, rows, cols)}, Shape: []int{1, rows, last},
	}
}

// byRow holds an edit to what a computation of each row of the input gives: within a millionth, or that part of a large number.
func byRow(t *rapid.T, what string, d *program.Edited, c program.Call, want func(x []float64) []float64) {
	t.Helper()
	if d == nil {
		t.Fatalf("%s: the edit does not go with the program", what)
	}
	p, call := d.Whole(c)
	v, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	rows := c.In[0].Shape[1]
	n := len(c.In[0].Data) / rows
	for row := range rows {
		all = append(all, want(c.In[0].Data[n*row:][:n])...)
	}
	if len(all) != len(v.Data) {
		t.Fatalf("%s: %d elements, not %d", what, len(v.Data), len(all))
	}
	for i, x := range all {
		if math.Abs(v.Data[i]-x) > 1e-6*max(1, math.Abs(x)) {
			t.Fatalf("%s: element %d is %v, not %v", what, i, v.Data[i], x)
		}
	}
}

// The blocks of a row that are read as a table come column by column; the inverse puts them back, and sizes that do not go with the row
// are no edit.
func TestBlocksComeColumnByColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, across, down := rapid.IntRange(1, 3).Draw(t, "size"), rapid.IntRange(2, 4).Draw(t, "across"), rapid.IntRange(2, 4).Draw(t, "down")
		n := size * across * down
		c := rowsOf(t, rapid.IntRange(1, 3).Draw(t, "rows"), n, n)
		p, err := programtest.Program(programtest.Of(func(b *program.Builder, in []program.Var) program.Var { return b.Neg(in[0]) }), c)
		if err != nil {
			t.Fatal(err)
		}
		parts := edit.NewStepIndex(p, nameless)
		result := edit.Place{Step: parts.PlaceOf(edit.StepsOf(p, program.Neg)[0]).Step, Arg: edit.Returned}
		d := edit.Edit{Class: edit.Mapped, At: []edit.Place{result}, Map: edit.Map{Kind: edit.Blocks, Axis: 2, By: size, N: across}}
		if !slices.ContainsFunc(parts.Edits().Maps([]int{size, across, down}), func(o edit.Edit) bool { return o.At[0].Arg == edit.Returned && o.Map == d.Map }) {
			t.Fatalf("%+v is not tried", d.Map)
		}
		byRow(t, "blocks", d.Apply(parts), c, func(x []float64) (y []float64) {
			for col := range across {
				for row := range down {
					for k := range size {
						y = append(y, -x[(row*across+col)*size+k])
					}
				}
			}
			return y
		})
		back := d
		back.Map = d.Map.Inverse(c.Shape)
		byRow(t, "inverse", back.Apply(parts), c, func(x []float64) []float64 {
			y := make([]float64, n)
			for i := range x {
				block := i / size
				y[(block%down*across+block/down)*size+i%size] = -x[i]
			}
			return y
		})
		for _, m := range []edit.Map{{By: size, N: across * down}, {By: size, N: 1}, {By: size, N: across*down + 1}, {By: n, N: 2}} {
			m.Kind, m.Axis = edit.Blocks, 2
			d.Map = m
			if d.Apply(parts) != nil {
				t.Errorf("%+v is an edit of rows of %d", m, n)
			}
		}
	})
}

// Parts of a row that are read apart are each another, so many parts on.
func TestPartsAreEachAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(2, 3).Draw(t, "parts"), rapid.IntRange(2, 5).Draw(t, "size")
		c := rowsOf(t, rapid.IntRange(1, 3).Draw(t, "rows"), n*size, size)
		p, err := programtest.Program(programtest.Of(func(b *program.Builder, in []program.Var) program.Var {
			y := b.Slice(in[0], 2, 0, size)
			for k := 1; k < n; k++ {
				y = b.Sub("", b.Mul("", y, b.Scalar(fmt.Sprint("by ", k), 0.25)), b.Slice(in[0], 2, k*size, (k+1)*size))
			}
			return y
		}), c)
		if err != nil {
			t.Fatal(err)
		}
		parts := edit.NewStepIndex(p, nameless)
		all := parts.Edits().Crossed()
		if len(all) != n-1 {
			t.Fatalf("%d edits of %d parts", len(all), n)
		}
		for k, d := range all {
			byRow(t, fmt.Sprint(k+1, " parts on"), d.Apply(parts), c, func(x []float64) []float64 {
				y := slices.Clone(x[(k+1)*size:][:size])
				for j := 1; j < n; j++ {
					for i := range y {
						y[i] = 0.25*y[i] - x[(j+k+1)%n*size+i]
					}
				}
				return y
			})
		}
	})
}

// link is one function of a chain of them.
type link struct {
	of    func(x float64) float64
	steps func(b *program.Builder, name string, x program.Var) program.Var
}

var links = []link{
	{math.Tanh, func(b *program.Builder, name string, x program.Var) program.Var { return b.Tanh(name, x) }},
	{math.Erf, func(b *program.Builder, name string, x program.Var) program.Var { return b.Erf(name, x) }},
	{func(x float64) float64 { return 1.5 * x }, func(b *program.Builder, name string, x program.Var) program.Var {
		return b.Mul(name, x, b.Scalar("factor", 1.5))
	}},
	{func(x float64) float64 { return x / 3 }, func(b *program.Builder, name string, x program.Var) program.Var {
		return b.Div(name, x, b.Scalar("divisor", 3))
	}},
	{func(x float64) float64 { return x + 0.75 }, func(b *program.Builder, name string, x program.Var) program.Var {
		return b.Add(name, x, b.Scalar("bias", 0.75))
	}},
	{func(x float64) float64 { return 0.5 - x }, func(b *program.Builder, name string, x program.Var) program.Var {
		return b.Sub(name, b.Scalar("minuend", 0.5), x)
	}},
}

// Each function of a chain is tried at each other place of it, and the chain is computed in that order.
func TestStepsAreTakenEarlierAndLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chain := rapid.SliceOfN(rapid.IntRange(0, len(links)-1), 2, 5).Draw(t, "chain")
		c := rowsOf(t, 2, 3, 3)
		p, err := programtest.Program(programtest.Of(func(b *program.Builder, in []program.Var) program.Var {
			y := in[0]
			for k, l := range chain {
				y = links[l].steps(b, fmt.Sprint("f", k), y)
			}
			return y
		}), c)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for k := range chain {
			names = append(names, fmt.Sprint("f", k))
		}
		parts := edit.NewStepIndex(p, nameless)
		place := func(at edit.Place) int { // of the chain; −1 for the input
			step := parts.Copies(at)[0]
			return slices.IndexFunc(names, func(name string) bool { return p.Steps[step].Site == name })
		}
		seen := map[[2]int]bool{}
		for _, d := range parts.Edits().Shifted() {
			from, to := place(d.At[0]), place(d.From) // it is taken of the result of the second
			seen[[2]int{from, to}] = true
			var order []int
			if to < 0 {
				order = append(order, chain[from])
			}
			for k, l := range chain {
				if k != from {
					order = append(order, l)
				}
				if k == to {
					order = append(order, chain[from])
				}
			}
			byRow(t, fmt.Sprintf("%d behind %d of %v", from, to, chain), d.Apply(parts), c, func(x []float64) (y []float64) {
				for _, v := range x {
					for _, l := range order {
						v = links[l].of(v)
					}
					y = append(y, v)
				}
				return y
			})
		}
		if n := len(chain); len(seen) != n*(n-1) {
			t.Errorf("%d places are tried in a chain of %d", len(seen), n)
		}
	})
}

// An activation with one of its steps changed is computed so, in the place of another function.
func TestVariantsOfActivations(t *testing.T) {
	const root, cubic = 0.7978845608028654, 0.044715
	inner := func(x float64) float64 { return root * (x + cubic*x*x*x) }
	gelu := func(x, tanh float64) float64 { return x / 2 * (1 + tanh) }
	for _, c := range []struct {
		of     program.Op
		change edit.Change
		want   func(x float64) float64
	}{
		{op.GELUTanh{}, edit.Change{Kind: edit.StepAs, Step: "tanh", As: "x(27+x²)/(27+9x²)"}, func(x float64) float64 {
			y := inner(x)
			return gelu(x, y*(27+y*y)/(27+9*y*y))
		}},
		{op.GELUTanh{}, edit.Change{Kind: edit.StepAs, Step: "tanh", As: "x(15+x²)/(15+6x²)"}, func(x float64) float64 {
			y := inner(x)
			return gelu(x, y*(15+y*y)/(15+6*y*y))
		}},
		{op.GELUTanh{}, edit.Change{Kind: edit.StepAs, Step: "tanh", As: "x/(1+|x|)"}, func(x float64) float64 { return gelu(x, inner(x)/(1+math.Abs(inner(x)))) }},
		{op.GELUTanh{}, edit.Change{Kind: edit.StepAs, Step: "tanh", As: "erf(x)"}, func(x float64) float64 { return gelu(x, math.Erf(inner(x))) }},
		{op.GELUTanh{}, edit.Change{Kind: edit.NumberAs, Step: "√(2/π)", Function: edit.Squared, Value: root * root, Right: root}, func(x float64) float64 { return gelu(x, math.Tanh(root*inner(x))) }},
		{op.GELUTanh{}, edit.Change{Kind: edit.NumberAs, Function: edit.Negated, Value: -cubic, Right: cubic}, func(x float64) float64 { return gelu(x, math.Tanh(root*(x-cubic*x*x*x))) }},
		{op.GELUTanh{}, edit.Change{Kind: edit.StepLeftOut, Step: "tanh"}, func(x float64) float64 { return gelu(x, inner(x)) }},
		{op.GELUTanh{}, edit.Change{Kind: edit.StepAs, Step: "sum", As: "sub"}, func(x float64) float64 { return gelu(x, math.Tanh(root*(x-cubic*x*x*x))) }},
		{op.GELU{}, edit.Change{Kind: edit.StepLeftOut, Step: "x/√2"}, func(x float64) float64 { return gelu(x, math.Erf(x)) }},
		{op.GELU{}, edit.Change{Kind: edit.NumberAs, Step: "1/√2", Function: edit.Halved, Value: 1 / math.Sqrt(2) / 2, Right: 1 / math.Sqrt(2)}, func(x float64) float64 { return gelu(x, math.Erf(x/math.Sqrt(8))) }},
		{op.SiLU{}, edit.Change{Kind: edit.StepLeftOut, Step: "neg"}, func(x float64) float64 { return x / (1 + math.Exp(x)) }},
		{op.SiLU{}, edit.Change{Kind: edit.StepAs, Step: "1+exp", As: "sub"}, func(x float64) float64 { return x / (1 - math.Exp(-x)) }},
	} {
		all := edit.Variants(c.of)
		k := slices.IndexFunc(all, func(v edit.Variant) bool { return v.Change == c.change })
		if k < 0 {
			t.Errorf("%s: no variant has %+v", c.of.Kind(), c.change)
			continue
		}
		p, call := formulaOf(t, []int{1, 2, 8}, func(b *program.Builder, in []program.Var) program.Var { return b.Neg(b.Tanh("tanh", in[0])) })
		tanh := edit.StepsOf(p, program.Tanh)[0]
		e := edit.NewEditor(p)
		e.Pass(tanh, edit.InsertVariant(e, all[k], p.Steps[tanh].Args[0]))
		d, err := e.End()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%s %+v", c.of.Kind(), c.change), func(t *testing.T) {
			gives(t, d, call, func(x []float64) (y []float64) {
				for _, v := range x {
					y = append(y, -c.want(v))
				}
				return y
			})
		})
	}
}
