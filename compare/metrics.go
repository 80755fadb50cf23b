package compare

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// Metrics is what one pass over a pair of tensors measures, l the local one and r the reference. Elements that are NaN
// or infinite on either side take part in the counts alone; masked ones (see order.Allowed) in none; nor do elements
// that hold the same mask value on both sides, whatever the rule, since one of them would outweigh all others. −0 equals
// 0. Sums are accumulated in float64 in row-major order. A quantity that is not defined is NaN.
type Metrics struct {
	Elements int64 `json:"elements"` // of the tensor, or of the part of it that is in scope
	Compared int64 `json:"compared"` // of those, in the sums below
	Masked   int64 `json:"masked,omitempty"`

	// MaxAbs is max |l − r|, the largest difference in the tensor's own units; Worst is where it is first reached, in
	// the reference's indexes, and LocalAt and ReferenceAt are the values there. Worst is nil where nothing differs.
	MaxAbs      Number `json:"max_abs"`
	Worst       []int  `json:"worst,omitempty"`
	LocalAt     Number `json:"local_at"`
	ReferenceAt Number `json:"reference_at"`

	RMS Number `json:"rms"` // √(Σ(l − r)² / Compared); NaN when nothing is compared

	// RelL2 is ‖l − r‖ / max(‖r‖, Floor): 0 when nothing differs, infinite for a difference over zero, NaN for integers,
	// booleans and masks, which have no tolerance.
	RelL2 Number `json:"rel_l2"`
	// Floor is the scale of the operands, in the units of r, for operations that cancel or saturate; 0 for others and
	// where the operands were not captured. See [Run].
	Floor     Number `json:"floor,omitempty"`
	FloorFrom string `json:"floor_from,omitempty"`
	Norm      Number `json:"norm"` // ‖r‖

	// Cosine is ⟨l,r⟩ / (‖l‖·‖r‖), NaN where either is zero. It is the same for l and 2l: no verdict rests on it.
	Cosine Number `json:"cosine"`
	// Scale is ⟨l,r⟩ / ⟨r,r⟩, the factor s for which s·r comes nearest to l; NaN where r is zero.
	Scale Number `json:"scale"`

	// Unequal counts the elements whose values differ after rounding both to the coarser of the two dtypes, and
	// MaxULP is the most steps of that dtype between two of them. For integers Unequal counts those that differ.
	Unequal int64  `json:"unequal"`
	MaxULP  uint64 `json:"max_ulp"`

	Axes []AxisError `json:"axes,omitempty"` // of every axis with more than one index

	NonFinite   int64    `json:"non_finite,omitempty"`    // elements where one side is NaN or infinite and the other is not so
	NonFiniteAt []int    `json:"non_finite_at,omitempty"` // the first of them
	NaNBoth     int64    `json:"nan_both,omitempty"`      // elements that are NaN, or +Inf, on both sides
	Pattern     *Pattern `json:"pattern,omitempty"`       // of masks and masked scores

	Local     Stats `json:"local"`
	Reference Stats `json:"reference"`
}

// AxisError is the worst index of one axis: the one whose elements have the largest relative L2. A slice's denominator
// is the norm of its own reference, of the median slice of the axis, or of its operands, whichever is largest; slices
// that are zero are left out of the median.
type AxisError struct {
	Axis   string `json:"axis"`   // what it is: "token", "key", "channel", "head" ..., "axis 2" where that is unknown
	Number int    `json:"number"` // which axis of the tensor
	Size   int    `json:"size"`
	Worst  int    `json:"worst"` // an index of the reference's axis
	RelL2  Number `json:"rel_l2"`
	// Position is the place in the sequence of a worst token, where position_ids says so.
	Position *int `json:"position,omitempty"`

	elements float64 // compared elements of one slice, on average
}

// metrics are those of a finished pass; floor may be nil. place translates an element of the view to the indexes of the
// reference's tensor.
func (p *sums) metrics(floor *floor, place func(int64) []int) *Metrics {
	m := &Metrics{
		Elements: int64(elements(p.shape)), Compared: p.compared, Masked: p.masked, MaxAbs: Number(p.maxAbs),
		RMS: nan, Cosine: nan, Scale: nan, Norm: Number(math.Sqrt(p.sum.ref) / p.scale), Unequal: p.unequal, MaxULP: p.maxULP,
		NonFinite: p.nonFinite, NaNBoth: p.nanBoth, Local: p.side[0].stats(p.scale), Reference: p.side[1].stats(p.scale),
	}
	if p.maxAt >= 0 {
		m.Worst, m.LocalAt, m.ReferenceAt = place(p.maxAt), Number(p.maxL), Number(p.maxR)
	}
	if p.nonFiniteAt >= 0 {
		m.NonFiniteAt = place(p.nonFiniteAt)
	}
	if p.exact {
		m.RelL2, m.Norm = nan, nan
		return m
	}
	den := math.Sqrt(p.sum.ref)
	if floor != nil {
		f := floor.tensor(den)
		m.Floor, m.FloorFrom = Number(f/p.scale), floor.from
		den = max(den, f)
	}
	m.RelL2 = Number(ratio(math.Sqrt(p.sum.diff), den))
	if p.compared > 0 {
		m.RMS = Number(math.Sqrt(p.sum.diff/float64(p.compared)) / p.scale)
	}
	if p.sum.ref > 0 {
		m.Scale = Number(p.sum.cross / p.sum.ref)
		m.Cosine = Number(p.sum.cosine())
	}
	for _, a := range p.axes {
		m.Axes = append(m.Axes, p.axisError(a, floor))
	}
	return m
}

func (p *sums) axisError(a axis, floor *floor) AxisError {
	index, err := a.worst(floor.slices(a))
	return AxisError{Number: a.number, Size: a.size, Worst: index, RelL2: Number(err), elements: float64(p.compared) / float64(a.size)}
}

// exact reports whether a pair is compared element by element, without a tolerance.
func exact(l, r hooks.DType) bool { return !l.Float() || !r.Float() }
