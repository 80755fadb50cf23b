package weights

import (
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
		return floats.Truncate(r.dtype, x)
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
	return most + floats.Spacing(r.dtype, most)/2
}
