package measure

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Tensors measures two tensors of one shape as a comparison measures a pair, all elements and without an order: axes have numbers for
// names, and no operation declares a scale. The error is that of reading, or the context's.
func Tensors(ctx context.Context, l, r *capture.Trace, left, right capture.Record) (*Metrics, error) {
	m := NewMeter(0)
	defer m.Close()
	vl, vr := Whole(l, left), Whole(r, right)
	s, err := m.Measure(ctx, vl, vr, order.All, false)
	if err != nil {
		return nil, err
	}
	metrics := s.Metrics(nil, vr.Place)
	for i := range metrics.Axes {
		a := &metrics.Axes[i]
		a.Axis = AxisName("", a.Number)
	}
	return metrics, nil
}
