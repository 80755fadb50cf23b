package certify

import (
	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// ModelDType is the dtype in which the model of a trace computed: as it declares; else as its tensors show, of those that are in
// the model's dtype by the order: the narrowest of bfloat16, float16, float32 and float64 that holds all their elements, since
// many ports write float32, or float64 as NumPy does, whatever they compute in; else, where there are none, as other declares, which is of
// the same model.
// It is 0 where nothing says it. The error is that of reading the tensors.
func ModelDType(list *order.List, t, other *capture.Trace) (hooks.DType, error) {
	if d := t.Manifest().DType; d != 0 || list == nil || list.Config == nil {
		return d, nil
	}
	shown, err := shownDType(list, t)
	if shown != 0 || err != nil {
		return shown, err
	}
	return other.Manifest().DType, nil
}

// maxShown bounds what is read to find a dtype out, in bytes: tensors that are bfloat16 written as float32 have to be read whole.
const maxShown = 64 << 20

// shownDType is the narrowest dtype of a model that holds the tensors that are in the model's dtype by the order; 0 where there
// are none, or they are of no such dtype.
func shownDType(list *order.List, t *capture.Trace) (hooks.DType, error) {
	bf16, f16, f32, found, read := true, true, true, false, int64(0)
	for _, r := range t.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok || e.DType != "" || e.Compare != order.All || r.Firing > 0 || r.Size == 0 {
			continue
		}
		if !r.DType.Float() {
			return 0, nil
		}
		if read += r.Size; read > maxShown && found {
			break
		}
		found = true
		for d, holds := range map[hooks.DType]*bool{hooks.BF16: &bf16, hooks.F16: &f16, hooks.F32: &f32} {
			if !*holds {
				continue
			}
			var err error
			if *holds, err = measure.Holds(t, r, d); err != nil {
				return 0, err
			}
		}
	}
	switch {
	case !found:
		return 0, nil
	case bf16:
		return hooks.BF16, nil
	case f16:
		return hooks.F16, nil
	case f32:
		return hooks.F32, nil
	}
	return hooks.F64, nil
}
