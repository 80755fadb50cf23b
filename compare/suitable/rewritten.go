package suitable

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
)

// rewritten returns an [*sides.UnsuitableError] for a trace rewritten by another program with the run's old
// metadata: the tensors are sorted as the safetensors library sorts, instead of in execution order, or have fewer
// digits than the run computed.
func rewritten(name string, t *capture.Trace, list *order.List) error {
	disorder, err := outOfOrder(t, list)
	if err != nil {
		return err
	}
	d, stored := t.Manifest().DType, narrowed(t, list)
	words, sorted := t.SortedByName()
	what := ""
	switch {
	case disorder != "" && sorted:
		what = fmt.Sprintf("%s was written again by another program: its %s are %s", name, amount.Of(len(t.Records()), "tensor"), words)
		if stored != 0 {
			what += fmt.Sprintf(", and they are %s, not %s", stored, d)
		}
	case stored != 0:
		what = fmt.Sprintf("%s contradicts itself: it says that it was computed in %s, and its tensors are %s: another program wrote it again, or its writer says the wrong dtype", name, d, stored)
	default:
		return nil
	}
	return &sides.UnsuitableError{What: "manifest", Reason: what, Hint: capture.WrittenAgain}
}

// narrowed returns the 16-bit dtype of a trace's tensors if the trace says that the model was computed in float32 or float64. Entries that the order
// computes in a fixed dtype are left out. It returns 0 if the tensors have several dtypes, or more than 16 bits.
func narrowed(t *capture.Trace, list *order.List) hooks.DType {
	if d := t.Manifest().DType; d != hooks.F32 && d != hooks.F64 {
		return 0
	}
	var stored hooks.DType
	n := 0
	for _, r := range t.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok || e.DType != "" || r.Size == 0 {
			continue
		}
		if r.DType != hooks.F16 && r.DType != hooks.BF16 || n > 0 && r.DType != stored {
			return 0
		}
		stored = r.DType
		n++
	}
	if n < 2 {
		return 0
	}
	return stored
}
