package certify

import (
	"context"
	"sync"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// wider is whether a trace was computed in more digits than it was stored in.
type wider struct {
	once sync.Once
	is   bool
	err  error
}

// The trace's entries are looked at until widerEntries are left by transformers' arithmetic, or widerLooked have been looked at.
const (
	widerEntries = 32
	widerLooked  = 256
)

// computedWider reports whether a float32 trace was computed in double precision and stored as float32. That is so where
// inputs within half a unit of what was captured, in transformers' arithmetic, give most of the entries that the captured
// inputs do not give; and where they give as many elements and rows as any arithmetic has to show of entries that are a single
// step, such as a sum of two tensors: these have nothing else to be computed from. It is a property of the whole trace, never of an
// entry. In 16 bits half a unit hides mistakes, and nothing is asked.
func (i *Isolator) computedWider(ctx context.Context) (bool, error) {
	if i.env.DType != hooks.F32 {
		return false, nil
	}
	w := &i.wider
	w.once.Do(func() { w.is, w.err = i.lookWider(ctx) })
	return w.is, w.err
}

func (i *Isolator) lookWider(ctx context.Context) (bool, error) {
	var nodes []order.Node
	forms := i.capturedForms()
	for _, name := range forms.names {
		nodes = append(nodes, forms.nodes[name]...)
	}
	left, explained := 0, 0
	var given []*evidence
	for looked, k := range scattered(len(nodes)) {
		if left >= widerEntries || looked >= widerLooked {
			break
		}
		e, err := i.evidence(ctx, nodes[k])
		if err != nil {
			return false, err
		}
		if e == nil || len(e.left) == 0 {
			continue
		}
		left++
		_, rest, _, err := e.strict(&arithmetic{wide: true})
		if err != nil {
			return false, err
		}
		if len(rest) == 0 {
			explained++
			if e.formula.Single() {
				given = append(given, e)
			}
		}
	}
	return 2*explained > left && proven(given), nil
}
