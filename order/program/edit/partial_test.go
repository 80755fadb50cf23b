package edit_test

import (
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// Edits of parts of a sum, of one of its terms, and of one index of an axis have the values that they say: in each row
// (a·mean(a) + b) / 4, and a quarter of the second row of a beside it.
func TestEditsInPart(t *testing.T) {
	o := programtest.Of(func(b *program.Builder, in []program.Var) program.Var {
		a := in[0]
		product := b.Mul("product", a, b.Mean("mean", a))
		return b.Add("end", b.Div("quarter", b.Add("sum", product, in[1]), b.Scalar("four", 4)), b.Mul("other", b.Slice(a, 1, 1, 2), b.Mul("second", b.Slice(a, 1, 1, 2), b.Literal(0.25))))
	})
	c := program.Call{
		Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, Shape: []int{1, 2, 4},
		In: []program.Value{programtest.Tensor([]float64{1, 2, 3, 6, 2, 2, 4, 8}, 1, 2, 4), programtest.Tensor([]float64{4, 8, 4, 8, 0, 4, 0, 4}, 1, 2, 4)},
	}
	p, err := programtest.Program(o, c)
	if err != nil {
		t.Fatal(err)
	}
	parts := edit.NewStepIndex(p, func(_ program.Prim, k int) string { return []string{"a", "b"}[k] })
	// in each row: what is a quarter, then a[1]²/4 = [1, 1, 4, 16]
	for _, c2 := range []struct {
		name  string
		edits []edit.Edit
		pick  func(d edit.Edit) bool
		want  []float64
	}{
		{
			"a mean over each half", parts.Edits().Apart(), func(d edit.Edit) bool { return d.Map.N == 2 },
			[]float64{1 + 1.5/4 + 1, 2 + 3./4 + 1, 1 + 13.5/4 + 4, 2 + 27./4 + 16, 1 + 1, 1 + 1 + 1, 6 + 4, 1 + 12 + 16},
		},
		{
			"a quarter of the product alone", parts.Edits().Alone(), func(d edit.Edit) bool { return d.Value == 0 },
			[]float64{0.75 + 4 + 1, 1.5 + 8 + 1, 2.25 + 4 + 4, 4.5 + 8 + 16, 2 + 1, 2 + 4 + 1, 4 + 4, 8 + 4 + 16},
		},
		{
			"a mean without the last", parts.Edits().Fewer(), func(d edit.Edit) bool { return d.Map.By == 1 },
			[]float64{0.5 + 1 + 1, 1 + 2 + 1, 1.5 + 1 + 4, 3 + 2 + 16, 0, 0, 0, 0},
		},
		{
			"one of the factors reads the first row", parts.Edits().IndexesOfOne(), func(d edit.Edit) bool { return slices.Equal(parts.Copies(d.From), namedSteps(p, "second")) },
			[]float64{0.75 + 1 + 0.5, 1.5 + 2 + 1, 2.25 + 1 + 3, 4.5 + 2 + 12, 2 + 0.5, 2 + 1 + 1, 4 + 3, 8 + 1 + 12},
		},
		{
			"every row reads the first", parts.Edits().Repeated(), func(d edit.Edit) bool {
				return d.Map.By == 0 && d.Map.Axis == 1 && parts.Copies(d.At[0])[0] == 0
			},
			[]float64{0.75 + 1 + 0.25, 1.5 + 2 + 1, 2.25 + 1 + 2.25, 4.5 + 2 + 9, 0.75 + 0.25, 1.5 + 1 + 1, 2.25 + 2.25, 4.5 + 1 + 9},
		},
	} {
		at := slices.IndexFunc(c2.edits, c2.pick)
		if at < 0 {
			t.Errorf("%s: no such edit among %d", c2.name, len(c2.edits))
			continue
		}
		e := c2.edits[at].Apply(parts)
		if e == nil {
			t.Errorf("%s: it does not apply", c2.name)
			continue
		}
		q, qc := e.Whole(c)
		got, err := q.Eval(qc)
		if err != nil {
			t.Fatal(err)
		}
		want := c2.want
		if c2.name == "a mean without the last" { // thirds are rounded
			got.Data, want = got.Data[:4], want[:4]
		}
		if !slices.Equal(got.Data, want) {
			t.Errorf("%s: %v, want %v", c2.name, got.Data, want)
		}
	}
}

// namedSteps are the steps of a name.
func namedSteps(p *program.Program, name string) []int {
	var all []int
	for i := range p.Steps {
		if p.Steps[i].Name == name {
			all = append(all, i)
		}
	}
	return all
}
