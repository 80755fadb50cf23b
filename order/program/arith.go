package program

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Arith is the arithmetic in which programs are evaluated.
//
// Exact, the zero Emulated: float64 throughout, without rounding. Only rotary angles are float32 in every arithmetic:
// angles do not depend on the model's dtype, and at position 30000 the rounding of an angle is a thousandth of a
// radian, which belongs to the reference's definition and not to its noise.
//
// Emulated: as an engine computes. Every step is rounded to float32, as torch computes bfloat16 and float16 too, and
// then as its [Choice] says. A sum is accumulated in float64 and rounded once, since no order of summation is the
// reference's; functions are rounded to float32 from their exact value. Sum says in which order sums are added.
//
// A model of float64 is evaluated as a model of float32 without the last rounding: an engine with more digits lies
// within the bounds of an engine with fewer. A constant may have all digits of a float64 there.
//
// With Bounds every value carries how far a correct float32 implementation of the same steps may be from the value,
// by running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3): each step whose
// result float32 does not have adds u·|result|, u = 2⁻²⁴, and the rounding of the value itself to what its inputs'
// bounds become. A bound may be infinite.
type Arith struct {
	DType    hooks.DType // of the model: float64, float32, bfloat16 or float16
	Emulated bool
	Bounds   bool
	Rigorous bool       // bounds that hold for every order of summation, in place of nearly every
	Sum      *Summation // nil: no order, in float64
	Choices  []Choice   // by step; nil: the program's own
	// Together: an engine may add the terms of an input, and what a step adds to that input, in any order; see [Terms].
	Together bool
	// Hull: every step may round its result to the model's dtype or not, element by element, and may compute by any
	// of its ways. Values are not rounded, and bounds allow for all these choices. The caller rounds the last step,
	// see Arith.Round; with HullLast the last step may have been rounded before, too.
	Hull, HullLast bool
}

// Rounding is what is done to the result of a step.
type Rounding uint8

// The roundings. All but None and Welford first round to float32.
const (
	Plain   Rounding = iota // to float32 and no further, as torch computes inside a kernel
	Model                   // then to the model's dtype: an R in the formulas
	Single                  // an R to float32, whatever the model's dtype is
	Half                    // then to float16
	Table                   // then to float16 where |x| < 10: what a table of an activation is indexed by, and gives
	Shifted                 // then to the model's dtype after a factor that is not known: the value stays, and has a bound
	None                    // not at all: double precision, or a product that is fused with the next sum
	Welford                 // not at all, with the bound of float32: a statistic that is updated step by step
)

var roundingWords = [...]string{"float32", "model", "float32 R", "float16", "float16 table", "model, scaled", "float64", "float64, bound as float32"}

// String names a rounding.
func (r Rounding) String() string { return roundingWords[r] }

// Choice is an engine's choice at one site: how the engine rounds, and by which of the ways with the same result in
// exact arithmetic the engine computes, see package rewrite.
type Choice struct {
	Way   uint8
	Round Rounding
}

const (
	unit32     = 0x1p-24  // unit roundoff of float32
	unit64     = 0x1p-53  // and of float64
	overflow32 = 0x1p128  // what float32 has as an infinity
	normal32   = 0x1p-126 // least normal number of float32: vector units, GPUs and libraries take smaller numbers for zero
	// λ of the random-walk bound on sums (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).
	lambda = 3
)

// halfUnit is half the distance of d's numbers just below x, or above where x is a power of two: what rounding changes a
// number of that size by at most.
func halfUnit(d hooks.DType, x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e, floats.MinExponent(d)+1)-floats.Precision(d)-1)
}

// rounded is what rounding to d may change a number within e of v by, wherever it lies.
func rounded(d hooks.DType, v, e float64) float64 {
	if e == 0 && floats.Round(d, v) == v {
		return 0
	}
	return halfUnit(d, math.Abs(v)+e)
}

// roundTo is a rounding point. The numbers in [v−e, v+e] round to one number in most cases, and to two if a midpoint
// lies in the interval. roundTo returns v rounded, and a bound that covers the rounded interval.
func roundTo(d hooks.DType, v, e float64) (float64, float64) {
	r := floats.Round(d, v)
	if e == 0 || plainly(d, v, r, e) {
		return r, 0
	}
	lo, hi := floats.Round(d, v-e), floats.Round(d, v+e)
	if lo == hi { // an infinity, too, that every engine has
		return r, 0
	}
	return r, known(max(hi-r, r-lo))
}

// plainly reports that v and all numbers in [v−e, v+e] round to r: no number of the interval is near a midpoint. A
// false answer may be wrong where r is a power of two, whose two neighbours have different distances, and below the
// normal numbers.
func plainly(d hooks.DType, v, r, e float64) bool {
	const bias, digits = 1023, 52 // of a float64
	exponent := int(math.Float64bits(v)>>digits&(2*bias+1)) - bias
	if math.Float64bits(r)<<(64-digits) == 0 || exponent < floats.MinExponent(d) {
		return false
	}
	half := math.Float64frombits(uint64(exponent-floats.Precision(d)+bias) << digits)
	// v+e is itself rounded, by less than the margin of 2⁻²⁰.
	return math.Abs(v-r)+e <= half*(1-0x1p-20)
}

// known returns the bound e, or +∞ for NaN: the difference ∞ − ∞, next to an overflow, and the product 0·∞ bound
// nothing.
func known(e float64) float64 {
	if e != e {
		return math.Inf(1)
	}
	return e
}

// Round applies a last rounding to d, in place. It does nothing in exact arithmetic, nor to what is no fraction.
func (a Arith) Round(v Value, d hooks.DType) {
	if !a.Emulated || !d.Float() {
		return
	}
	for i, x := range v.Data {
		if v.Bound != nil {
			v.Data[i], v.Bound[i] = roundTo(d, x, v.Bound[i])
		} else {
			v.Data[i] = floats.Round(d, x)
		}
	}
}

// Lowest is the lowest finite number of the dtype, in exact arithmetic of float64.
func (a Arith) Lowest() float64 {
	switch {
	case !a.Emulated:
		return -math.MaxFloat64
	case a.DType == hooks.BF16:
		return -0x1.fep127
	case a.DType == hooks.F16:
		return -65504
	}
	return -math.MaxFloat32
}

// finisher rounds the results of a step.
type finisher struct {
	*Arith
	round Rounding
	last  bool // the caller rounds it
	// definite: it is rounded to the nearest, by all engines
	definite bool
}

func (a *Arith) finisher(r Rounding) finisher {
	if !a.Emulated && r != None {
		r = Welford
	}
	return finisher{Arith: a, round: r}
}

// at is the finisher of a step.
func (r *run) at(i int, to Rounding) finisher {
	f := r.a.finisher(to)
	f.last = r.p.Steps[i].final && !r.a.HullLast
	f.definite = r.p.Steps[i].Is(Definite) && !f.Hull
	return f
}

// one finishes the exact result v of a step; e is the bound that follows from the operands' bounds.
func (f finisher) one(v, e float64) (float64, float64) {
	if v == 0 && e == 0 && !f.Hull { // as of padding
		return v, 0
	}
	if f.Bounds {
		if r, bound, ok := f.usual(v, e); ok {
			return r, bound
		}
	}
	n := v
	if f.round < None {
		n = float64(float32(v))
	}
	if !f.Bounds {
		return f.narrow(n), 0
	}
	return f.narrowBound(n, f.bound(n, v, e))
}

// bound returns the bound of the result n of one elementary operation. v is the exact result, and e the part of the
// bound that comes from the operands.
func (f finisher) bound(n, v, e float64) float64 {
	switch {
	case !f.Hull && math.Abs(v)-e >= overflow32 && f.round < None, math.IsInf(v, 0) && e < math.Inf(1):
		return 0 // every engine has an infinity
	case f.round == None:
		return known(e + 2*unit64*(math.Abs(v)+e))
	case f.definite && e == 0 && f.round != Welford:
	// What float32 has exactly is not rounded, by no engine. One whose operands differ has something else to round, and
	// may round it the other way than v was: both roundings count.
	case n != v || e != 0 || f.round == Welford:
		e += unit32*(math.Abs(v)+e) + math.Abs(n-v)
	}
	// It may lie below the normal numbers: then it is off by half a unit of 2⁻¹⁴⁹, or flushed to zero.
	if math.Abs(v)-e < normal32 && (v != 0 || e > 0) {
		e = max(e, math.Abs(v)) + 0x1p-149
	}
	return known(e)
}

// to is the dtype of the rounding point at v, if there is one.
func (f finisher) to(v float64) (hooks.DType, bool) {
	switch f.round {
	case Model:
		return f.DType, true
	case Single:
		return hooks.F32, true
	case Half:
		return hooks.F16, true
	case Table:
		return hooks.F16, math.Abs(v) < tableEnd
	}
	return 0, false
}

// tableEnd is where a table of an activation ends: beyond it is a straight line.
const tableEnd = 10

// narrow is the rounding point after a step.
func (f finisher) narrow(v float64) float64 {
	if f.Hull {
		return v
	}
	if d, ok := f.to(v); ok {
		return floats.Round(d, v)
	}
	return v
}

// narrowBound is narrow with bounds.
func (f finisher) narrowBound(v, e float64) (float64, float64) {
	if f.Hull {
		if f.last {
			return v, e
		}
		return v, e + rounded(f.DType, v, e)
	}
	if f.round == Shifted && f.Emulated {
		return v, e + unitOf(f.DType)*(math.Abs(v)+e)
	}
	if d, ok := f.to(v); ok {
		return roundTo(d, v, e)
	}
	return v, e
}

// points applies only the rounding points: for a step that only moves rounded values.
func (f finisher) points(o operand) {
	if !f.Emulated {
		return
	}
	for i, v := range o.v {
		if o.e != nil {
			o.v[i], o.e[i] = f.narrowBound(v, o.e[i])
		} else {
			o.v[i] = f.narrow(v)
		}
	}
}

// all finishes a block of results. A result marked in kept is an operand that absorbed the other operand, and is
// already rounded to float32.
func (f finisher) all(o operand, kept []bool) {
	if o.e == nil {
		if f.round < None {
			for i, v := range o.v {
				o.v[i] = float64(float32(v))
			}
		}
		f.values(o.v)
		return
	}
	for i, v := range o.v {
		if kept != nil && kept[i] {
			o.v[i], o.e[i] = f.narrowBound(v, o.e[i])
		} else {
			o.v[i], o.e[i] = f.one(v, o.e[i])
		}
	}
}

// values applies the rounding points to values without bounds.
func (f finisher) values(x []float64) {
	switch {
	case f.Hull || !f.Emulated || f.round == Plain || f.round >= Shifted:
	case f.round == Table:
		for i, v := range x {
			x[i] = f.narrow(v)
		}
	default:
		d, _ := f.to(0)
		floats.RoundAll(d, x)
	}
}

// usual is [finisher.one] with bounds, to the bit, for the result of a step that rounds to float32, or to a model's dtype with the exponents of float32, far
// from the ends of float32. ok reports that it is one, as nearly all results are.
func (f finisher) usual(v, e float64) (r, bound float64, ok bool) {
	if f.round > Model || f.Hull {
		return 0, 0, false
	}
	n, size := float64(float32(v)), math.Abs(v)
	if e != 0 || n != v && !f.definite {
		e += unit32*(size+e) + math.Abs(n-v)
	}
	switch {
	case !(size-e >= normal32 && size+e < overflow32/2):
		return 0, 0, false
	case f.round == Plain:
		return n, e, true
	case f.DType == hooks.F32:
		return n, max(float64(float32(n+e))-n, n-float64(float32(n-e))), true
	case f.DType == hooks.BF16:
		r = toBF16(n)
		return r, max(toBF16(n+e)-r, r-toBF16(n-e)), true
	}
	return 0, 0, false
}

// toBF16 rounds to bfloat16, to the nearest, ties to even. |x| is between the least and half of the largest normal number of float32.
func toBF16(x float64) float64 {
	const drop = 53 - 8
	b := math.Float64bits(x)
	return math.Float64frombits((b + (1<<(drop-1) - 1 + b>>drop&1)) &^ (1<<drop - 1))
}
