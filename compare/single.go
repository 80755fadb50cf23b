package compare

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Measure measures two tensors of one shape as [Run] measures a pair, all elements and without an order: axes have numbers for
// names, and no operation declares a scale. The error is that of reading, or the context's.
func Measure(ctx context.Context, l, r *capture.Trace, left, right capture.Record) (*Metrics, error) {
	m := newMeter(ctx, 0)
	defer m.close()
	p := &pair{l: whole(l, left), r: whole(r, right)}
	s, err := m.measure(p.l, p.r, order.All, false)
	if err != nil {
		return nil, err
	}
	metrics := s.metrics(nil, p.place)
	for i := range metrics.Axes {
		a := &metrics.Axes[i]
		a.Axis = AxisName("", a.Number)
	}
	return metrics, nil
}
