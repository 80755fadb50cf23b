package isolate

import (
	"context"
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// A search computes an entry hundreds of times. In a large entry, a few tokens and a few columns of a final linear
// operation are enough: the ones with elements unexplained by transformers' arithmetic. An explanation is then
// tested on all tokens and columns.
const (
	FocusWork    = 1 << 21 // elements, or products, that one evaluation may compute before it is worth it
	FocusTokens  = 4
	FocusColumns = 32
)

// Focus is the entry with fewer tokens and columns, where it is large; else the entry.
func (e *Evidence) Focus() *Evidence { return e.FocusAbove(FocusWork, FocusTokens, FocusColumns, true) }

// FocusAbove is focus for an entry that takes more than some work, with so many tokens and columns. asIs tells that the formula is not edited. Then attention has
// fewer queries, too, and a linear operation has fewer columns if other steps follow it. An edit may move columns.
func (e *Evidence) FocusAbove(work, tokens, columns int, asIs bool) *Evidence {
	if e.focused || e.Formula.Work() <= work {
		return e
	}
	t := *e.Trial
	t.focused = true
	t.other, t.Call.In, t.Call.W = map[program.Rewrite]*order.Formula{}, slices.Clone(t.Call.In), slices.Clone(t.Call.W)
	f := &Evidence{&t, e.Left}
	f.someTokens(tokens)
	if under := stepsFromLinear(&t); asIs || len(under) == 1 {
		f.someColumns(columns, under)
	}
	if asIs && t.part.whole() {
		f.someQueries(tokens)
	}
	formula, err := t.formulaOf(0)
	if err != nil || len(formula.Inputs) != len(t.Call.In) {
		return e
	}
	t.Formula, t.other[0], t.Call.Shape = formula, formula, formula.Out.Shape
	return f
}

// someTokens keeps the tokens with the most unexplained elements, if every tensor of the cut has one row per token
// and no key axis. A recorded program keeps all tokens, since it holds for a fixed number.
func (e *Evidence) someTokens(most int) {
	t := e.Trial
	n := t.Isolator.env.Passes[t.Node.Pass].Tokens
	if n <= most || !t.part.whole() || t.Y.Shape == nil || t.Isolator.list.IsRecorded() || !byRows(t.Isolator, t.Node, t.Cut) {
		return
	}
	at := TokenAxis(t.Entry)
	keep := MostLeft(e.Left, t.Y.Shape, at, most)
	keepRows(t, keep)
	e.take(at, keep)
}

// someQueries keeps the tokens with the most unexplained elements. Unlike someTokens it keeps all inputs: attention
// of a few queries reads all keys.
func (e *Evidence) someQueries(most int) {
	t := e.Trial
	n, at := t.Isolator.env.Passes[t.Node.Pass].Tokens, TokenAxis(t.Entry)
	if n <= most || t.Call.Some != nil || at < 0 || at >= len(t.Y.Shape)-1 || t.Y.Shape[at] != n || t.Chooses() || t.Y.Terms != nil {
		return
	}
	t.Call.Some = &program.Some{Axis: at, Keep: MostLeft(e.Left, t.Y.Shape, at, most)}
	e.take(at, t.Call.Some.Keep)
}

// FewQueries is the entry with some tokens, computed from all of the inputs; the entry where someQueries keeps all tokens.
func (e *Evidence) FewQueries(most int) *Evidence {
	t := *e.Trial
	f := &Evidence{&t, e.Left}
	f.someQueries(most)
	return f
}

// FirstQueries is a trial of the first tokens of an entry, computed from all inputs. It is nil if someQueries keeps all tokens.
func FirstQueries(ctx context.Context, t *Trial, most int) (*Trial, error) {
	if err := t.Prepare(ctx); err != nil || t.Formula == nil {
		return nil, err
	}
	if f := (&Evidence{t, nil}).FewQueries(most).Trial; f.Call.Some != nil {
		return f, nil
	}
	return nil, nil
}

// fewColumns is how many columns a search looks at first of an entry whose rows are longer than manyColumns: logits of a large vocabulary.
const fewColumns, manyColumns = 256, 1 << 14

// Few returns evidence with fewer queries, and fewer columns of long rows, for a large entry. It returns nil for
// every other entry.
func (e *Evidence) Few() *Evidence {
	if e.Formula.Work() <= FocusWork || e.Chooses() || e.Y.Terms != nil {
		return nil
	}
	t := *e.Trial
	f := &Evidence{&t, e.Left}
	at, last := TokenAxis(t.Entry), len(t.Y.Shape)-1
	switch long := last > 0 && t.Y.Shape[last] > manyColumns && at >= 0 && at < last; {
	case long:
		t.Call.Some = &program.Some{Axis: at, Keep: MostLeft(e.Left, t.Y.Shape, at, FocusTokens)}
		f.take(at, t.Call.Some.Keep)
		t.Call.Some.Columns = MostLeft(f.Left, t.Y.Shape, last, fewColumns)
		f.take(last, t.Call.Some.Columns)
	default:
		f.someQueries(FocusTokens)
	}
	if t.Call.Some == nil {
		return nil
	}
	return f
}

// someColumns keeps the columns in which most elements are left. The first of some steps is the linear operation that has these columns.
func (e *Evidence) someColumns(most int, under []order.Node) {
	t := e.Trial
	if len(under) == 0 {
		return
	}
	linear := t.Isolator.list.At(under[0])
	rows := linear.Weights[0].Shape[0]
	if rows <= most {
		return
	}
	shape := t.Y.Shape
	t.Y.Shape = []int{len(t.Y.Data) / rows, rows}
	keep := MostLeft(e.Left, t.Y.Shape, 1, most)
	t.part.columns = keep
	e.take(1, keep)
	if last := len(shape) - 1; shape[last] == rows {
		t.Y.Shape = append(slices.Clone(shape[:last]), len(keep))
	}
	for _, n := range under {
		entry := withColumns(t.Isolator.list.At(n), len(keep))
		t.Cut = t.Cut.With(n, entry)
	}
	for k, w := range t.Formula.Weights {
		if w.Name == linear.Weights[0].Name {
			t.Call.W[k] = program.SomeRows{Rows: t.Call.W[k], Keep: keep}
		} else if len(linear.Weights) > 1 && w.Name == linear.Weights[1].Name {
			t.Call.W[k] = someElements{t.Call.W[k], keep}
		}
	}
}

// stepsFromLinear lists the steps from a linear operation with a weight to the entry, where each of them reads the one before and nothing else, and computes each
// element from one. It is empty if the entry has no such steps.
func stepsFromLinear(t *Trial) []order.Node {
	for first := len(t.Cut.Steps) - 1; first >= 0; first-- {
		e := t.Isolator.list.At(t.Cut.Steps[first])
		if o, linear := e.Op.(op.Linear); linear {
			if o.Heads || o.Turned || len(e.Weights) == 0 { // its columns lie otherwise
				return nil
			}
			return t.Cut.Steps[first:]
		}
		switch e.Op.(type) {
		case op.Identity, op.Softcap, op.Scale:
		default:
			return nil
		}
		if before := first - 1; before < 0 || len(e.Inputs) != 1 || e.Inputs[0].Name != t.Isolator.list.At(t.Cut.Steps[before]).Name || e.Inputs[0].Index != nil || e.Inputs[0].Prev {
			return nil
		}
	}
	return nil
}

// withColumns is an entry, computed from a linear operation, with fewer columns.
func withColumns(e *order.Entry, columns int) *order.Entry {
	few := *e
	few.Weights = slices.Clone(e.Weights)
	for k, w := range few.Weights {
		few.Weights[k].Shape = slices.Clone(w.Shape)
		few.Weights[k].Shape[0] = columns
	}
	tokens := 0
	for a, d := range e.Shape {
		if d == order.T {
			tokens = a
		}
	}
	few.Shape = append(slices.Clone(e.Shape[:tokens+1]), order.Dim(columns))
	return &few
}

// take keeps some indexes of an axis of the entry's tensor.
func (e *Evidence) take(axis int, keep []int) {
	e.Y, e.Left = rowsOf(e.Y, axis, keep), Kept(e.Left, e.Y.Shape, axis, keep)
}

// Kept returns the elements of left in the kept indexes of an axis, renumbered for the smaller shape.
func Kept(left, shape []int, axis int, keep []int) []int {
	place := make([]int, shape[axis]) // 0 for one that is not kept
	for at, k := range keep {
		place[k] = at + 1
	}
	some := make([]int, 0, len(left)/shape[axis]*len(keep))
	for at, run := range runsOf(left, shape, axis) {
		if to := place[at.index]; to > 0 {
			for _, i := range run {
				some = append(some, (at.outer*len(keep)+to-1)*at.inner+i-at.first)
			}
		}
	}
	return some
}

// MostLeft returns, in ascending order, the n indexes of an axis with the most unexplained elements.
func MostLeft(left, shape []int, axis, n int) []int {
	count := make([]int, shape[axis])
	for at, run := range runsOf(left, shape, axis) {
		count[at.index] += len(run)
	}
	var most []int // those with most first; of as many, the first index
	for k, left := range count {
		if len(most) == n && (n == 0 || left <= count[most[n-1]]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(most, left, func(k, left int) int {
			if count[k] >= left {
				return -1
			}
			return 1
		})
		most = slices.Insert(most[:min(len(most), n-1)], at, k)
	}
	slices.Sort(most)
	return most
}

// placed is an index of an axis. outer numbers the indexes of the axes before, inner is the count of elements of one index, and first is its first element.
type placed struct{ outer, index, inner, first int }

// runsOf yields the elements of each index of an axis, of some elements that ascend.
func runsOf(some, shape []int, axis int) iter.Seq2[placed, []int] {
	inner, n := program.Size(shape[axis+1:]), shape[axis]
	return func(yield func(placed, []int) bool) {
		for len(some) > 0 {
			index := some[0] / inner
			end, _ := slices.BinarySearch(some[:min(inner, len(some))], (index+1)*inner)
			if !yield(placed{index / n, index % n, inner, index * inner}, some[:end]) {
				return
			}
			some = some[end:]
		}
	}
}

// someElements are some elements of a vector.
type someElements struct {
	program.Rows
	keep []int
}

func (w someElements) Size() (rows, cols int) { return 1, len(w.keep) }

// All is the whole vector.
func (w someElements) All() program.Rows { return w.Rows }

// Of are the same elements of another vector.
func (w someElements) Of(all program.Rows) program.Rows { return someElements{all, w.keep} }

func (w someElements) Row(dst []float64, _ int) error {
	_, n := w.Rows.Size()
	all := make([]float64, n)
	err := w.Rows.Row(all, 0)
	for at, k := range w.keep {
		dst[at] = all[k]
	}
	return err
}

// QueriesOf is the entry with some tokens, indexes of an axis, computed from all of the inputs.
func (e *Evidence) QueriesOf(axis int, keep []int) *Evidence {
	t := *e.Trial
	t.Call.Some = &program.Some{Axis: axis, Keep: keep}
	some := &Evidence{&t, e.Left}
	some.take(axis, keep)
	return some
}
