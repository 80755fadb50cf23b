package certify

import (
	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// ModelDType is the dtype in which the model of a trace computed: as it declares; else that of its tensors, of those that
// are in the model's dtype by the order, where they agree on one of 16 bits; else as other declares, which is of the same
// model; else what the tensors agree on. float32 tensors alone say little: many ports write everything so, whatever they
// compute in. It is 0 where nothing says it.
func ModelDType(list *order.List, t, other *capture.Trace) hooks.DType {
	if d := t.Manifest().DType; d != 0 {
		return d
	}
	common := commonDType(list, t)
	if d := other.Manifest().DType; d != 0 && common != hooks.BF16 && common != hooks.F16 {
		return d
	}
	return common
}

// commonDType is the dtype of all tensors that are in the model's dtype by the order; 0 where they do not agree.
func commonDType(list *order.List, t *capture.Trace) hooks.DType {
	var common hooks.DType
	for _, r := range t.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok || e.DType != "" || e.Compare == order.Pattern || r.Firing > 0 {
			continue
		}
		if common != 0 && r.DType != common {
			return 0
		}
		common = r.DType
	}
	return common
}
