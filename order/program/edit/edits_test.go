package edit_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// edited is a formula with a norm, a mask, a softmax and products: every class of edits has something to do in it.
func edited(b *program.Builder, in []program.Var) program.Var {
	x := in[0] // [1, T, 4]
	y := b.Mul("product", x, b.Rsqrt("rsqrt", b.Add("+eps", b.Mean("mean", b.Mul("square", x, x)), b.Scalar("eps", 1e-3))))
	scores := b.ScaledDot("scores", "btd,bsd->bts", y, x, b.Scalar("scale", 0.5))
	exp := b.Exp("exp", b.Sub("difference", scores, b.RowMax(scores)))
	probs := b.Div("quotient", exp, b.Sum("sum", exp))
	mixed := b.R(b.Dot("mixed", "bts,bsd->btd", probs, x))
	turned := b.Cat(2, b.Neg(b.Slice(mixed, 2, 2, 4)), b.Slice(mixed, 2, 0, 2))
	return b.Max(b.Literal(0), b.Sub("last", b.Add("total", mixed, turned), b.Tanh("tanh", y)))
}

func editedProgram(t interface{ Fatal(...any) }, data []float64) (*program.Program, program.Call) {
	c := program.Call{
		Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true},
		In:    []program.Value{programtest.Tensor(data, 1, len(data)/4, 4)}, Shape: []int{1, len(data) / 4, 4},
	}
	p, err := programtest.Program(programtest.Of(edited), c)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// allEdits are those of a program.
func allEdits(t *edit.StepIndex) []edit.Edit {
	of := t.Edits()
	var all []edit.Edit
	for _, some := range [][]edit.Edit{
		of.LeftOut(), of.Exchanged(), of.Swapped(), of.Twice(), of.Wholes(), of.Axes(), of.Operands(), of.Counts(), of.Turns(), of.Maps([]int{2}),
		of.Apart(), of.Alone(), of.Fewer(), of.AllWider(), of.Repeated(), of.IndexesOfOne(), of.Behind(),
	} {
		all = append(all, some...)
	}
	for _, i := range t.Numbers() {
		all = append(all, edit.Edit{Class: edit.Constant, At: []edit.Place{t.PlaceOf(i)}, Value: 2})
	}
	return all
}

func nameless(program.Prim, int) string { return "" }

// What an edit changes is computed again and nothing else, with the result of a whole evaluation: to the bit, with its bounds.
func TestEditedValuesAreThoseOfAWholeEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 4).Draw(t, "rows")
		data := rapid.SliceOfN(rapid.Float64Range(-4, 4), 4*rows, 4*rows).Draw(t, "x")
		p, c := editedProgram(t, data)
		parts := edit.NewStepIndex(p, nameless)
		kept, err := p.Keep(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		own, err := kept.Own()
		if err != nil {
			t.Fatal(err)
		}
		want, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
		sameValue(t, "the program itself", own, want)
		applied := map[edit.Class]bool{}
		all := allEdits(parts)
		skip := rapid.IntRange(0, 7).Draw(t, "skip")
		for k, d := range all {
			if applied[d.Class] && k%8 != skip {
				continue
			}
			e := d.Apply(parts)
			if e == nil {
				continue
			}
			applied[d.Class] = true
			got, err := kept.Eval(e)
			if err != nil {
				t.Fatal(err)
			}
			q, qc := e.Whole(c)
			want, err := q.Eval(qc)
			if err != nil {
				t.Fatal(err)
			}
			sameValue(t, d.Class.String(), got, want)
		}
		for _, class := range []edit.Class{edit.LeftOut, edit.Exchanged, edit.Swapped, edit.Twice, edit.Count, edit.Constant, edit.Operand} {
			if !applied[class] {
				t.Fatalf("no edit of the class %q", class)
			}
		}
	})
}

func sameValue(t *rapid.T, what string, got, want program.Value) {
	t.Helper()
	if len(got.Data) != len(want.Data) {
		t.Fatalf("%s: %d elements, not %d", what, len(got.Data), len(want.Data))
	}
	for i := range got.Data {
		if math.Float64bits(got.Data[i]) != math.Float64bits(want.Data[i]) && got.Data[i] == got.Data[i] {
			t.Fatalf("%s: element %d is %v, not %v", what, i, got.Data[i], want.Data[i])
		}
		if got.Bound[i] != want.Bound[i] && got.Bound[i] == got.Bound[i] {
			t.Fatalf("%s: the bound of element %d is %v, not %v", what, i, got.Bound[i], want.Bound[i])
		}
	}
}

// An edit is made in one program and moved to another of the same structure: it changes the same step there, whatever the sizes.
func TestAnEditIsMovedToOtherSizes(t *testing.T) {
	small, _ := editedProgram(t, []float64{1, 2, 3, 4, 4, 3, 2, 1, -1, 1, 5, 2})
	large, c := editedProgram(t, []float64{1, -2, 3, 0.5, 2, 1, -1, 4, 0.25, 3, -3, 2, 1, 1, 0.5, 0.25, -4, 2, -1, 3})
	from, to := edit.NewStepIndex(small, nameless), edit.NewStepIndex(large, nameless)
	for _, d := range from.Edits().LeftOut() {
		own, moved := d.Apply(from), d.Apply(to)
		if own == nil {
			continue
		}
		if moved == nil {
			t.Fatalf("an edit at the step %q does not apply to more rows", small.Steps[from.Copies(d.At[0])[0]].Name)
		}
		if a, b := own.Text(), moved.Text(); a != b {
			t.Fatalf("an edit at the step %q gives other steps in more rows:\n%s\n%s", small.Steps[from.Copies(d.At[0])[0]].Name, a, b)
		}
		p, call := moved.Whole(c)
		if _, err := p.Eval(call); err != nil {
			t.Fatal(err)
		}
	}
}

// A map and its inverse put every element where it was.
func TestMapsHaveInverses(t *testing.T) {
	data := make([]float64, 2*4*6)
	for i := range data {
		data[i] = float64(i)
	}
	o := programtest.Of(func(b *program.Builder, in []program.Var) program.Var { return b.Mul("twice", in[0], b.Literal(2)) })
	c := program.Call{In: []program.Value{programtest.Tensor(data, 2, 4, 6)}, Shape: []int{2, 4, 6}}
	p, err := programtest.Program(o, c)
	if err != nil {
		t.Fatal(err)
	}
	parts := edit.NewStepIndex(p, nameless)
	want, err := p.Eval(c)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range parts.Edits().Maps([]int{2, 3}) {
		if !d.Back {
			continue
		}
		if d.Map.Kind == edit.Reread && d.Map.By > 0 {
			continue
		}
		e := d.Apply(parts)
		if e == nil {
			t.Fatalf("the map %+v does not apply", d.Map)
		}
		q, qc := e.Whole(c)
		got, err := q.Eval(qc)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Data {
			if got.Data[i] != want.Data[i] {
				t.Fatalf("%+v and back: element %d is %v, not %v", d.Map, i, got.Data[i], want.Data[i])
			}
		}
		n++
	}
	if n < 10 {
		t.Errorf("%d maps", n)
	}
}
