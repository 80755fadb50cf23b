package isolate

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
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

// holdTo takes a tensor that was captured in a dtype. If every number of it is one of the order's narrower dtype, the engine has rounded to that dtype,
// and the tensor was saved in a wider one. Numbers of bfloat16 below the normal numbers of float16 lose digits where they are saved in float16.
func holdTo(t *Trial, y program.Value, dtype hooks.DType) {
	t.Y, t.DType, t.saved = y, heldTo(t.Isolator, dtype), 0
	own := t.Entry.DTypeOf(t.Isolator.env.DType)
	if !t.Wider() {
		return
	}
	sure, lost := false, false
	for _, x := range y.Data {
		switch {
		case losesDigits(own, t.DType, x):
			lost = lost || x != 0
		case x == x && floats.Round(own, x) != x:
			return
		default:
			sure = true
		}
	}
	if lost && !sure {
		return
	}
	if lost {
		t.saved = t.DType
	}
	t.DType = own
}

// losesDigits reports whether a number may have lost digits when saved in another dtype: it is subnormal there, and
// its own dtype has smaller normal numbers.
func losesDigits(own, saved hooks.DType, x float64) bool {
	return floats.MinExponent(own) < floats.MinExponent(saved) && math.Abs(x) < math.Ldexp(1, floats.MinExponent(saved))
}

// withLost gives a bound to the numbers of a captured tensor that lost digits when the tensor was saved: half a unit of the dtype in which it was saved.
func withLost(i *Isolator, n order.Node, v program.Value) program.Value {
	rec, ok := i.trace.Lookup(n.Pass, i.list.At(n).Name)
	own := i.list.At(n).DTypeOf(i.env.DType)
	if !ok || !rec.DType.Float() || v.Bound != nil || !own.Float() || floats.MinExponent(own) >= floats.MinExponent(rec.DType) || floats.Precision(own) >= floats.Precision(rec.DType) {
		return v
	}
	for k, x := range v.Data {
		if !losesDigits(own, rec.DType, x) {
			continue
		}
		if v.Bound == nil {
			v.Bound = make([]float64, len(v.Data))
		}
		v.Bound[k] = LastPlace(rec.DType, x) / 2
	}
	return v
}

// ModelDType returns the dtype in which the model of a trace computed: the one that the trace declares; else the narrowest of bfloat16, float16,
// float32 and float64 that holds more than half of the tensors that the order has in the model's dtype, since many ports write float32, or
// float64 as NumPy does, whatever they compute in; else the one that other declares, a trace of the same model. A tensor of another dtype says something of its own entry only.
// The result is 0 where nothing tells the dtype. The error is that of reading the tensors.
func ModelDType(list *order.List, t, other *capture.Trace) (hooks.DType, error) {
	if d := t.Manifest().DType; d != 0 || list == nil || list.Config == nil {
		return d, nil
	}
	computed, copied, err := shownDTypes(list, t)
	if err != nil {
		return 0, err
	}
	if d, shown := computed.most(); shown {
		return d, nil
	}
	if d, shown := copied.most(); shown {
		return d, nil
	}
	return other.Manifest().DType, nil
}

// maxShown bounds what is read to find a dtype out, in bytes: tensors that are bfloat16 written as float32 have to be read whole.
const maxShown = 64 << 20

// shownDTypes counts the tensors of a trace in entries of the model's dtype. It counts copies separately, such as
// rows of the embedding, because they may have the dtype of the weights.
func shownDTypes(list *order.List, t *capture.Trace) (computed, copied tensorDTypes, err error) {
	read := int64(0)
	for _, r := range t.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok || e.DType != "" || e.Compare != order.All || r.Firing > 0 || r.Size == 0 || !r.DType.Float() {
			continue
		}
		if read += r.Size; read > maxShown && computed.tensors > 0 {
			break
		}
		into := &computed
		if _, exact := e.Op.(op.Exact); exact {
			into = &copied
		}
		if err := into.add(t, r); err != nil {
			return computed, copied, err
		}
	}
	return computed, copied, nil
}

// tensorDTypes counts tensors by the float types that hold all their elements.
type tensorDTypes struct {
	tensors        int
	bf16, f16, f32 int // one tensor may count for several; float64 holds all
}

// add counts a tensor. It does not count a tensor of 32 or 64 bits without a finite number other than 0, which every dtype holds. The error is that of reading.
func (c *tensorDTypes) add(t *capture.Trace, r capture.Record) error {
	if r.DType == hooks.F32 || r.DType == hooks.F64 {
		if tells, err := measure.Tells(t, r); !tells || err != nil {
			return err
		}
	}
	c.tensors++
	for _, of := range []struct {
		d     hooks.DType
		count *int
	}{{hooks.BF16, &c.bf16}, {hooks.F16, &c.f16}, {hooks.F32, &c.f32}} {
		holds, err := measure.Holds(t, r, of.d)
		if err != nil {
			return err
		}
		if holds {
			*of.count++
		}
	}
	return nil
}

// most returns the narrowest dtype able to hold more than half of the tensors, or float64. Between bfloat16 and
// float16 the dtype of more tensors wins, and bfloat16 if equal. ok is false without tensors.
func (c *tensorDTypes) most() (d hooks.DType, ok bool) {
	switch half := max(c.bf16, c.f16); {
	case 2*half > c.tensors && c.bf16 == half:
		return hooks.BF16, true
	case 2*half > c.tensors:
		return hooks.F16, true
	case 2*c.f32 > c.tensors:
		return hooks.F32, true
	}
	return hooks.F64, c.tensors > 0
}
