package isolate

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// A trace may hold a tensor in more digits than the order's dtype: float32 probabilities of a softmax in a bfloat16
// model. Either the engine computed with these digits, or the hook saw the tensor before the engine rounded it, as
// transformers does. So such an operand has two readings, and an entry is right if one reading explains every
// element.

// maxChosen bounds the operands with more digits whose readings are tried in every combination. With more operands,
// all are read as captured, or all rounded.
const maxChosen = 2

// readOperands decides for an entry how the engine read the operands that the trace has in more digits than the order gives them: as captured, or
// rounded to the order's dtype. They are rounded where transformers' arithmetic gives every element of the entry then, and not before. The
// error is that of evaluating the entry.
func readOperands(ctx context.Context, t *Trial) error {
	captured, rounded, wide := t.Call.In, slices.Clone(t.Call.In), []int(nil)
	for k := range min(len(captured), len(t.Formula.Inputs)) {
		if v, ok := roundedOperand(t, k); ok {
			rounded[k], wide = v, append(wide, k)
		}
	}
	if len(wide) == 0 || len(t.Y.Data) == 0 {
		return nil
	}
	for _, some := range readings(wide) {
		in := slices.Clone(captured)
		for _, k := range some {
			in[k] = rounded[k]
		}
		if some != nil {
			t.readings = append(t.readings, in)
		}
		t.Call.In = in
		if _, left, _, err := t.Judge(ctx, &Arithmetic{}); len(left) == 0 || err != nil {
			t.readings = nil
			return err
		}
	}
	t.Call.In = captured
	return nil
}

// StrictRead is [Trial.Judge] with the other readings of operands too, for an arithmetic that the entry's form is known to have: the first
// that gives every element stays.
func StrictRead(ctx context.Context, t *Trial, a *Arithmetic) (j *Judgement, left []int, order string, err error) {
	j, left, order, err = t.Judge(ctx, a)
	captured := t.Call.In
	for _, in := range t.readings {
		if len(left) == 0 || err != nil {
			break
		}
		t.Call.In = in
		k, rest, by, err := t.Judge(ctx, a)
		if err != nil {
			return nil, nil, "", err
		}
		if len(rest) == 0 {
			return k, rest, by, nil
		}
		t.Call.In = captured
	}
	return j, left, order, err
}

// readings lists which operands are rounded: no operand first, then all of them.
func readings(wide []int) [][]int {
	all := [][]int{nil, wide}
	if len(wide) > 1 && len(wide) <= maxChosen {
		for _, k := range wide {
			all = append(all, []int{k})
		}
	}
	return all
}

// roundedOperand returns operand k of a trial in the order's dtype; ok is false if the trace has no further digits.
func roundedOperand(t *Trial, k int) (v program.Value, ok bool) {
	n := t.Formula.Inputs[k]
	e := t.Isolator.list.At(n)
	rec, captured := t.Isolator.trace.Lookup(n.Pass, e.Name)
	own := e.DTypeOf(t.Isolator.env.DType)
	if !captured || !rec.DType.Float() || !own.Float() || e.Compare == order.Pattern || floats.Precision(rec.DType) <= floats.Precision(own) {
		return v, false
	}
	v = t.Call.In[k]
	if v.Terms != nil || v.Bound != nil { // a sum of the results of ranks is rounded where they are added
		return v, false
	}
	v.Data = slices.Clone(v.Data)
	for i, x := range v.Data {
		if y := floats.Round(own, x); y != x && x == x {
			v.Data[i], ok = y, true
		}
	}
	return v, ok
}

// keepsDigits judges an entry that the trace has in more digits than the order gives it. It reports whether every element is transformers' own
// value before the last rounding; the certificate then says so.
func keepsDigits(ctx context.Context, t *Trial, c *Certificate) (j *Judgement, all bool, err error) {
	if !t.Wider() {
		return nil, false, nil
	}
	a := &Arithmetic{Open: true}
	j, left, order, err := t.Judge(ctx, a)
	if err != nil || len(left) > 0 {
		return nil, false, err
	}
	c.Arithmetic, c.Where, c.Summation = a.Words(t.Formula.Program, t.Isolator.env.DType), a.Where(t.Formula.Program, t), order
	return j, true, nil
}
