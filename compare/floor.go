package compare

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// floor is the least denominator of a relative error: the scale of an operation's operands in the reference, for
// operations whose result can be far smaller than what it was computed from. Rounding is relative to the operands, so a
// result that has cancelled or saturated carries their error, not one of its own size.
type floor struct {
	from     string  // in words
	fraction float64 // of the operands' norm
	square   float64 // of that norm
	axes     []axis  // and of every slice
}

// saturated is the fraction for operations that cut off a part of their input. A floor may hide what is smaller than the
// tolerance times itself, so it stays below what is usual: of a Gaussian input, GELU keeps 0.65 of the norm and a shifted
// ReLU with 95 % sparsity 0.125. Only where the result is exactly zero, and has no scale at all, the input's takes its
// place whole.
const saturated = 0.125

// tensor is the floor of a whole tensor with a reference of this norm.
func (f *floor) tensor(norm float64) float64 { return f.of(f.square, norm) }

func (f *floor) of(square, norm float64) float64 {
	if norm == 0 && f.fraction < 1 {
		return math.Sqrt(square)
	}
	return f.fraction * math.Sqrt(square)
}

// slices returns the floors along an axis: each index has the scale of its own operands, so that a massive activation
// in one of them hides nothing in another. It is nil for a nil floor.
func (f *floor) slices(a axis) func(i int) float64 {
	if f == nil {
		return nil
	}
	for _, o := range f.axes {
		if o.number == a.number {
			return func(i int) float64 { return f.of(o.ref[i], math.Sqrt(a.ref[i])) }
		}
	}
	return nil
}

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
func (w *walker) floorOf(e *order.Entry, pass int, out view, c *cut, scale float64) (*floor, error) {
	fraction, from := floorKind(e.Op)
	if fraction == 0 || e.Compare != order.All {
		return nil, nil
	}
	f := &floor{fraction: fraction, from: from}
	for _, ref := range e.Inputs {
		trace := w.sides[reference].trace
		rec, ok := trace.Lookup(pass, ref.Name)
		if !ok || !rec.DType.Float() || !slices.Equal(rec.Shape, out.rec.Shape) {
			continue
		}
		p, err := w.meter.alone(whole(trace, rec).cut(c), scale)
		if err != nil {
			return nil, err
		}
		f.add(p)
	}
	if f.square == 0 {
		return nil, nil
	}
	return f, nil
}

// add takes another operand in: norms of independent terms add as squares.
func (f *floor) add(p *sums) {
	f.square += p.sum.Ref
	if f.axes == nil {
		f.axes = p.axes
		return
	}
	for i := range f.axes {
		for j, s := range p.axes[i].ref {
			f.axes[i].ref[j] += s
		}
	}
}
