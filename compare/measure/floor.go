package measure

import (
	"math"
)

// Floor is the least denominator of a relative error: the scale of an operation's operands in the reference, for
// operations whose result can be far smaller than what it was computed from. Rounding is relative to the operands, so a
// result that has cancelled or saturated carries their error, not one of its own size.
type Floor struct {
	From     string  // in words
	Fraction float64 // of the operands' norm
	Square   float64 // of that norm
	axes     []axis  // and of every slice
}

// tensor is the floor of a whole tensor with a reference of this norm.
func (f *Floor) tensor(norm float64) float64 { return f.of(f.Square, norm) }

func (f *Floor) of(square, norm float64) float64 {
	if norm == 0 && f.Fraction < 1 {
		return math.Sqrt(square)
	}
	return f.Fraction * math.Sqrt(square)
}

// slices returns the floors along an axis: each index has its own operands' scale, so a massive activation in one index hides nothing in
// another. It is nil for a nil floor.
func (f *Floor) slices(a axis) func(i int) float64 {
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

// Add takes another operand in: norms of independent terms add as squares.
func (f *Floor) Add(p *Sums) {
	f.Square += p.sum.Ref
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
