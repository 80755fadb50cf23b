package isolate

import (
	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

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
