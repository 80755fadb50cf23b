package compare

import (
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// floorOf returns the floor of an entry from those of its operands that the reference trace has and that have the
// entry's shape: both terms of a sum, the streams that something is added to, the input of an activation. It is nil where
// the operation has none, and for masked scores, whose mask would be a floor above everything. Its norms are times scale, as
// those of the entry are.
func (w *walker) floorOf(e *order.Entry, pass int, out measure.View, c *measure.Cut, scale float64) (*measure.Floor, error) {
	o, cancels := e.Op.(op.Cancelling)
	if !cancels || e.Compare != order.All {
		return nil, nil
	}
	f := &measure.Floor{}
	if f.Fraction, f.From = o.OperandScale(); f.Fraction == 0 {
		return nil, nil
	}
	for _, ref := range e.Inputs {
		trace := w.sides[reference].trace
		rec, ok := trace.Lookup(pass, ref.Name)
		if !ok || !rec.DType.Float() || !slices.Equal(rec.Shape, out.Rec.Shape) {
			continue
		}
		p, err := w.meter.Alone(measure.Whole(trace, rec).Cut(c), scale)
		if err != nil {
			return nil, err
		}
		f.Add(p)
	}
	if f.Square == 0 {
		return nil, nil
	}
	return f, nil
}
