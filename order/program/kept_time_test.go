package program_test

import (
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// The time of an evaluation of few rows has what is done for them alone: the keys are laid out for few queries as they are for all, and the mask that an edit
// brings has all of its elements. In a long prompt that is most of the time.
func TestTimeOfFewRowsHasWhatIsMadeForThem(t *testing.T) {
	const tokens, n = 64, 16
	call := program.Call{
		Arith: bounded(brain), Shape: []int{1, tokens, tokens},
		In: []program.Value{tensor(numbers(tokens*n, 7, bf16), 1, tokens, n), tensor(numbers(tokens*tokens, 9, bf16), 1, tokens, tokens)},
	}
	p, err := program.Of(of(func(b *program.Builder, in []program.Var) program.Var {
		q := b.Mul("queries", in[0], b.Literal(2))
		return b.Add("masked", b.Dot("scores", "btd,bsd->bts", q, in[0]), in[1])
	}), op.Form, 0, call.Shape, [][]int{{1, tokens, n}, {1, tokens, tokens}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	some := &program.Some{Axis: 1, Keep: []int{5, 40, 41, 60}}
	took := func(change func(ed *edit.Editor)) int {
		t.Helper()
		ed := edit.NewEditor(p)
		change(ed)
		d, err := ed.End()
		if err != nil {
			t.Fatal(err)
		}
		k := kept(t, p, call)
		if _, err := k.EvalSome(d, some); err != nil {
			t.Fatal(err)
		}
		return k.Time
	}
	scores := edit.StepsOf(p, program.Dot)[0]
	if time := took(func(ed *edit.Editor) { ed.Pass(scores, ed.MoveWith(scores, p.Steps[scores].Args...)) }); time < 2*tokens*n { // and as many squares, for the bounds
		t.Errorf("%d for the scores of %d queries, and %d elements of the keys are laid out", time, len(some.Keep), tokens*n)
	}
	last := edit.StepsOf(p, program.Add)[0]
	if time := took(func(ed *edit.Editor) {
		ed.Read(last, 1, ed.Other(tensor(make([]float64, tokens*tokens), 1, tokens, tokens)))
	}); time < tokens*tokens {
		t.Errorf("%d with another mask of %d elements", time, tokens*tokens)
	}
}
