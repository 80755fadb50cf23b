package measure

import (
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// Metrics is what one pass over a pair of tensors measures, l the local one and r the reference. docs/verdict.md has each
// number with three lines of Python that compute it from the traces.
//
// An element counts if it is finite on both sides and not masked; Σ, max and means are over these elements only. NaN and infinities have
// their own counts (NonFinite, NaNBoth, Stats). Masked are the elements that order.Allowed excludes and, under every rule, two equal numbers
// below half of the lowest finite number of their dtypes, which would outweigh all other elements. −0 equals 0. An undefined quantity is
// NaN: in an empty tensor all but Elements, the counts and MaxAbs.
//
// Sums are of float64, in the order that package lanes lays down, of products that are rounded first: the same to the bit on
// every machine and with any number of workers. float64 tensors whose squares would overflow or vanish are measured scaled
// by a power of two.
type Metrics struct {
	Elements int64 `json:"elements"`         // of the tensor, or of the part of it that is in scope
	Compared int64 `json:"compared"`         // of those, the ones that count; all, where there is no tolerance
	Masked   int64 `json:"masked,omitempty"` // neither compared nor NaN or infinite

	// MaxAbs is max |l − r|, the largest difference in the tensor's own units, rounded once; Worst is where it is first
	// reached, in the reference's indexes, and LocalAt and ReferenceAt are the values there. Where nothing differs Worst is
	// nil and the others are 0. An integer and NaN differ by no amount: MaxAbs is that of the others.
	MaxAbs      Number `json:"max_abs"`
	Worst       []int  `json:"worst,omitempty"`
	LocalAt     Number `json:"local_at"`
	ReferenceAt Number `json:"reference_at"`

	// RMS is √(Σ(l − r)² / Compared); NaN where nothing counts, and for what has no tolerance: integers, booleans, masks.
	RMS Number `json:"rms"`

	// RelL2 is ‖l − r‖ / max(‖r‖, Floor), ‖x‖ being √Σx²: 0 where nothing differs, infinite for a difference over zero, NaN
	// for what has no tolerance.
	RelL2 Number `json:"rel_l2"`
	// Floor is the scale of the operands, in the units of r, for operations that cancel or saturate; 0 for others and
	// where the operands were not captured. See package compare.
	Floor     Number `json:"floor,omitempty"`
	FloorFrom string `json:"floor_from,omitempty"`
	Norm      Number `json:"norm"` // ‖r‖

	// Cosine is Σl·r / (‖l‖·‖r‖), within ±1 and exactly 1 for equal tensors; NaN where either is zero. It is the same for l
	// and 2l: no verdict rests on it.
	Cosine Number `json:"cosine"`
	// Scale is Σl·r / Σr², the factor s for which s·r comes nearest to l; NaN where r is zero.
	Scale Number `json:"scale"`

	// Unequal counts the elements whose values differ after rounding both to the coarser dtype; MaxULP is the largest distance in steps of that
	// dtype, counting zero once. Of integers Unequal counts differing values, beyond 2^53 too; of integers against floats, different numbers,
	// without NaN.
	Unequal int64  `json:"unequal"`
	MaxULP  uint64 `json:"max_ulp"`

	Axes []AxisError `json:"axes,omitempty"` // of every axis with more than one index
	// OneRow: the tensors have the row of one token, by the roles of their axes.
	OneRow bool `json:"-"`

	NonFinite   int64    `json:"non_finite,omitempty"`    // elements where one side is NaN or infinite and the other is not so
	NonFiniteAt []int    `json:"non_finite_at,omitempty"` // the first of them
	NaNBoth     int64    `json:"nan_both,omitempty"`      // elements that are NaN, or +Inf, on both sides
	Pattern     *Pattern `json:"pattern,omitempty"`       // of masks and masked scores

	Local     Stats `json:"local"`
	Reference Stats `json:"reference"`
}

// AxisError is the worst index of one axis, the first with the largest relative L2 of all elements at that index:
//
//	e(i) = ‖l(i) − r(i)‖ / max(‖r(i)‖, floor(i), median of ‖r(j)‖ over the j with r(j) ≠ 0)
//
// of an even number of norms the lower median, floor(i) being that of the index's operands (see [Metrics]). 0 for equal
// slices, infinite for others where the denominator is zero.
type AxisError struct {
	Axis   string `json:"axis"`   // what it is: "token", "key", "channel", "head" ..., "axis 2" where that is unknown
	Number int    `json:"number"` // which axis of the tensor
	Size   int    `json:"size"`
	Worst  int    `json:"worst"` // an index of the reference's axis
	RelL2  Number `json:"rel_l2"`
	// Position is the place in the sequence of a worst token, where position_ids says so.
	Position *int `json:"position,omitempty"`

	// Elements is how many compared elements one slice has, on average.
	Elements float64 `json:"-"`
}

// where says what the indexes of an element count, "token 4, channel 10": of the axes with more than one index. It is empty where
// the role of one is not known.
func (m *Metrics) where(at []int) string {
	var of []string
	for _, a := range m.Axes {
		if a.Number >= len(at) || strings.HasPrefix(a.Axis, "axis ") {
			return ""
		}
		of = append(of, fmt.Sprintf("%s %d", a.Axis, at[a.Number]))
	}
	return strings.Join(of, ", ")
}

// Spell is the indexes of an element with what they count: "[0 4 10] (token 4, channel 10)".
func (m *Metrics) Spell(at []int) string {
	if where := m.where(at); where != "" {
		return fmt.Sprintf("%v (%s)", at, where)
	}
	return fmt.Sprint(at)
}

// Metrics are those of a finished pass; floor may be nil. place translates an element of the view to the indexes of the
// reference's tensor.
func (p *Sums) Metrics(floor *Floor, place func(int64) []int) *Metrics {
	m := &Metrics{
		Elements: int64(Elements(p.shape)), Compared: p.Compared, Masked: p.Masked, MaxAbs: Number(p.most.by),
		RMS: Nan, Cosine: Nan, Scale: Nan, Norm: Number(math.Sqrt(p.sum.Ref) / p.Scale), Unequal: p.unequal, MaxULP: p.maxULP,
		NonFinite: p.specials.one, NaNBoth: p.specials.both, Local: StatsOf(&p.Side[0], p.Scale), Reference: StatsOf(&p.Side[1], p.Scale),
	}
	if d := p.most; d.at >= 0 {
		m.Worst, m.LocalAt, m.ReferenceAt = place(d.at), Number(d.l), Number(d.r)
	}
	if at := p.specials.at; at >= 0 {
		m.NonFiniteAt = place(at)
	}
	if p.Exact {
		m.RelL2, m.Norm = Nan, Nan
		return m
	}
	den := math.Sqrt(p.sum.Ref)
	if floor != nil {
		f := floor.tensor(den)
		m.Floor, m.FloorFrom = Number(f/p.Scale), floor.From
		den = max(den, f)
	}
	m.RelL2 = Number(Ratio(math.Sqrt(p.sum.Diff), den))
	if p.Compared > 0 {
		m.RMS = Number(math.Sqrt(p.sum.Diff/float64(p.Compared)) / p.Scale)
	}
	if p.sum.Ref > 0 {
		m.Scale = Number(p.sum.Cross / p.sum.Ref)
		m.Cosine = Number(p.sum.Cosine())
	}
	for _, a := range p.axes {
		m.Axes = append(m.Axes, p.axisError(a, floor))
	}
	return m
}

func (p *Sums) axisError(a axis, floor *Floor) AxisError {
	index, err := a.worst(floor.slices(a))
	return AxisError{Number: a.number, Size: a.size, Worst: index, RelL2: Number(err), Elements: float64(p.Compared) / float64(a.size)}
}

// exact reports whether a pair is compared element by element, without a tolerance.
func exact(l, r hooks.DType) bool { return !l.Float() || !r.Float() }
