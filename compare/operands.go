package compare

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// saturated is the fraction for operations that cut off a part of their input. A floor may hide what is smaller than the
// tolerance times itself, so it stays below what is usual: of a Gaussian input, GELU keeps 0.65 of the norm and a shifted
// ReLU with 95 % sparsity 0.125. Only where the result is exactly zero, and has no scale at all, the input's takes its
// place whole.
const saturated = 0.125

// floorKind returns how an operation's floor is made of its operands' norm, and in which words; 0 for an operation
// that neither cancels nor saturates.
func floorKind(o op.Op) (fraction float64, from string) {
	switch o := o.(type) {
	case op.Add, op.Sub, op.AltUpPredict, op.AltUpCorrect, op.AddToOthers:
		return 1, "norm of what is added"
	case op.AddScale:
		if o.Divide {
			return 1 / math.Abs(o.By.Value), "norm of what is added, scaled"
		}
		return math.Abs(o.By.Value), "norm of what is added, scaled"
	case op.ShiftedReLU, op.GELUTanh:
		return saturated, "1/8 of the input's norm"
	}
	return 0, ""
}

// floorOf returns the floor of an entry from those of its operands that the reference trace has and that have the
// entry's shape: both terms of a sum, the streams that something is added to, the input of an activation. It is nil where
// the operation has none, and for masked scores, whose mask would be a floor above everything. Its norms are times scale, as
// those of the entry are.
func (w *walker) floorOf(e *order.Entry, pass int, out measure.View, c *measure.Cut, scale float64) (*measure.Floor, error) {
	fraction, from := floorKind(e.Op)
	if fraction == 0 || e.Compare != order.All {
		return nil, nil
	}
	f := &measure.Floor{Fraction: fraction, From: from}
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
