package weights

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// rounding is how numbers of the original became those of the port. The zero value is none: they are the same.
type rounding struct {
	dtype hooks.DType // 0: none
	cut   bool        // the low bits are cut off: toward zero
	via   hooks.DType // rounded to this one before; 0: to none
	clamp bool        // what lies beyond the largest number becomes that, and not an infinity
}

// of rounds a number.
func (r rounding) of(x float64) float64 {
	if r.via != 0 {
		x = floats.Round(r.via, x)
	}
	switch {
	case r.dtype == 0:
		return x
	case r.cut:
		return truncated(r.dtype, x)
	case r.clamp && x == x:
		most := floats.Largest(r.dtype)
		x = min(max(x, -most), most)
	}
	return floats.Round(r.dtype, x)
}

// String names the rounding.
func (r rounding) String() string {
	switch {
	case r.dtype == 0:
		return ""
	case r.cut:
		return r.dtype.String() + ", low bits cut off"
	case r.via != 0:
		return r.dtype.String() + " by way of " + r.via.String()
	}
	return r.dtype.String() + ", to nearest even" // also where it is clamped: that has a name of its own
}

// truncated is the number of d nearest to x that is not further from zero.
func truncated(d hooks.DType, x float64) float64 {
	y := floats.Round(d, x)
	if y == x || y != y {
		return y
	}
	if math.IsInf(y, 0) {
		return math.Copysign(floats.Largest(d), x)
	}
	if math.Abs(y) > math.Abs(x) {
		y -= math.Copysign(spacing(d, y), y)
		if math.Abs(y) < math.Abs(x) { // below a power of two the numbers are twice as close
			if z := floats.Round(d, y+math.Copysign(spacing(d, x), x)); math.Abs(z) <= math.Abs(x) {
				y = z
			}
		}
	}
	return y
}

// spacing is the distance of the numbers of d around x: that of the last place of |x|, and below the normal numbers that of the smallest.
func spacing(d hooks.DType, x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || x != x {
		if d == hooks.F64 {
			return math.SmallestNonzeroFloat64
		}
		return math.Ldexp(1, floats.MinExponent(d)-floats.Precision(d)+1)
	}
	_, e := math.Frexp(x)
	e--
	if d == hooks.F64 {
		return math.Ldexp(1, max(e, -1022)-52)
	}
	return math.Ldexp(1, max(e, floats.MinExponent(d))-floats.Precision(d)+1)
}

// same is equality of two numbers: NaN is NaN, and both zeros are one.
func same(a, b float64) bool { return a == b || a != a && b != b }

// roundings are those that may lie between two dtypes: none first. Formats wider than the original's change nothing, and those
// wider than the port's cannot be told from none. A format of eight bits counts only where the port stores it: stored wider, it may be a
// tensor that was never loaded.
func roundings(original, local hooks.DType) []rounding {
	list := []rounding{{}}
	if !original.Float() || !local.Float() {
		return list
	}
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16, hooks.F8E4M3, hooks.F8E5M2} {
		if holds(original, d) || !holds(d, local) || d.Size() == 1 && d != local {
			continue
		}
		list = append(list, rounding{dtype: d})
		if d == hooks.F16 || d == hooks.F8E5M2 {
			list = append(list, rounding{dtype: d, clamp: true})
		}
		if d == hooks.BF16 || d == hooks.F16 || d == hooks.F32 {
			list = append(list, rounding{dtype: d, cut: true})
		}
	}
	for _, via := range []hooks.DType{hooks.BF16, hooks.F16} {
		if !holds(original, via) && !holds(via, local) && !holds(local, via) {
			list = append(list, rounding{dtype: local, via: via})
		}
	}
	return list
}

// holds reports whether every number of the float type a is one of b.
func holds(a, b hooks.DType) bool {
	return floats.Precision(a) <= floats.Precision(b) && floats.Largest(a) <= floats.Largest(b) && (a == b || b == hooks.F64 || a != hooks.F64 && floats.MinExponent(a)-floats.Precision(a) >= floats.MinExponent(b)-floats.Precision(b))
}

// largestOf is the largest number that a rounding leaves finite and as it was, to half a step.
func largestOf(r rounding) float64 {
	most := floats.Largest(r.dtype)
	return most + spacing(r.dtype, most)/2
}
