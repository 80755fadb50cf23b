package certify

import (
	"context"
	"errors"
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

// computedWider reports whether a float32 trace was computed in double precision and stored as float32: where every input
// may lie within half a unit of what was captured, transformers' arithmetic gives most of the entries that it does not give
// from the captured ones, and of entries that are one step, such as a sum of two tensors, as many
// elements and rows as any arithmetic has to: there is nothing else to compute them from. It is a property of the whole trace, never of an entry: in 16 bits half a
// unit hides mistakes, and nothing is asked.
func (i *Isolator) computedWider(ctx context.Context) (bool, error) {
	if i.env.DType != hooks.F32 {
		return false, nil
	}
	w := &i.wider
	w.once.Do(func() { w.is, w.err = i.lookWider(ctx) })
	return w.is, w.err
}

func (i *Isolator) lookWider(ctx context.Context) (bool, error) {
	records := i.trace.Records()
	left, explained, looked := 0, 0, 0
	var given []*evidence
	for _, k := range scattered(len(records)) {
		if left >= widerEntries || looked >= widerLooked {
			break
		}
		r := records[k]
		n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
		if n.Entry < 0 || r.Firing != 0 || n.Pass >= len(i.env.Passes) || !i.has(n) {
			continue
		}
		t, err := i.trial(ctx, n)
		var bare *order.BareError
		var bad *misfit
		switch {
		case errors.As(err, &bare), errors.As(err, &bad):
			continue
		case err != nil:
			return false, err
		}
		looked++
		_, off, _, err := t.strict(&arithmetic{})
		if err != nil {
			return false, err
		}
		if len(off) == 0 || t.formula == nil {
			continue
		}
		left++
		_, rest, _, err := t.strict(&arithmetic{wide: true})
		if err != nil {
			return false, err
		}
		if len(rest) == 0 {
			explained++
			if t.formula.Single() {
				given = append(given, &evidence{t, off})
			}
		}
	}
	return 2*explained > left && proven(given), nil
}
