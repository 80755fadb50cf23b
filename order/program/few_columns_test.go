package program_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// linear is a linear operation on tokens of n numbers, with a weight of so many rows.
func linear(t *testing.T, tokens, n, rows int) (*program.Program, program.Call) {
	t.Helper()
	call := program.Call{
		Arith: bounded(brain), In: []program.Value{tensor(numbers(tokens*n, 7, bf16), 1, tokens, n)},
		W: []program.Rows{matrix{rows, n, numbers(rows*n, 8, bf16)}}, Shape: []int{1, tokens, rows},
	}
	p, err := program.Of(op.Linear{}, op.Form, 0, call.Shape, [][]int{{1, tokens, n}}, [][2]int{{rows, n}})
	if err != nil {
		t.Fatal(err)
	}
	return p, call
}

// A few columns of a linear operation are computed from as few rows of its weight, also where the result has its columns in another order, in blocks or by
// turns, or is a function of them. They have the bits of all columns.
func TestFewColumnsTakeFewRows(t *testing.T) {
	const n, rows, tokens = 16, 1536, 5
	p, call := linear(t, tokens, n, rows)
	some := &program.Some{Axis: 1, Keep: []int{4, 2}, Columns: []int{1, 700, 701, rows - 1}}
	for name, m := range map[string]edit.Map{
		"in reverse": {Kind: edit.Reverse, Axis: 2}, "blocks in reverse": {Kind: edit.Reverse, Axis: 2, By: 64}, "blocks turned": {Kind: edit.Flip, Axis: 2, By: 64},
		"by turns": {Kind: edit.Weave, Axis: 2, N: 4}, "rolled": {Kind: edit.Roll, Axis: 2, By: 3}, "as it is": {Axis: -1},
	} {
		edited := func() *program.Edited {
			ed := edit.NewEditor(p)
			in := ed.OtherInput // the product is computed anew
			in(slices.IndexFunc(p.Steps, func(s program.Step) bool { return s.Prim == program.Input }), tensor(numbers(tokens*n, 9, bf16), 1, tokens, n))
			out := p.Out
			if m.Axis >= 0 {
				w, ok := ed.Mapped(out, m)
				if !ok {
					t.Fatalf("%s: no such order", name)
				}
				out = w
			}
			ed.Return(ed.Tanh("tanh", out))
			d, err := ed.End()
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		k, err := p.Keep(call, nil)
		if err != nil {
			t.Fatal(err)
		}
		value := func(some *program.Some) (program.Value, int) {
			before := k.Work
			v, err := k.EvalSome(edited(), some)
			if err != nil {
				t.Fatal(err)
			}
			return v, k.Work - before
		}
		all, most := value(nil)
		for range 2 { // and once more in room that was used
			few, work := value(some)
			if !slices.Equal(few.Shape, []int{1, len(some.Keep), len(some.Columns)}) {
				t.Fatalf("%s: shape %v", name, few.Shape)
			}
			for i, v := range few.Data {
				at := some.Keep[i/len(some.Columns)]*rows + some.Columns[i%len(some.Columns)]
				if math.Float64bits(v) != math.Float64bits(all.Data[at]) || math.Float64bits(few.Bound[i]) != math.Float64bits(all.Bound[at]) {
					t.Fatalf("%s: element %d is %x within %x, want %x within %x", name, i, v, few.Bound[i], all.Data[at], all.Bound[at])
				}
			}
			if work > most/10 {
				t.Errorf("%s: it takes %d, all of it %d", name, work, most)
			}
		}
	}
}
