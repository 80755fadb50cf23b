package isolate

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// holdTo takes a tensor that was captured in a dtype. If every number of it is one of the order's narrower dtype, the engine has rounded to that dtype,
// and the tensor was saved in a wider one. Numbers of bfloat16 below the normal numbers of float16 lose digits where they are saved in float16.
func holdTo(t *Trial, y program.Value, dtype hooks.DType) {
	t.Y, t.DType, t.saved = y, heldTo(t.Isolator, dtype), 0
	own := t.Entry.DTypeOf(t.Isolator.env.DType)
	if !t.Wider() {
		return
	}
	sure, lost := false, false
	for _, x := range y.Data {
		switch {
		case losesDigits(own, t.DType, x):
			lost = lost || x != 0
		case x == x && floats.Round(own, x) != x:
			return
		default:
			sure = true
		}
	}
	if lost && !sure {
		return
	}
	if lost {
		t.saved = t.DType
	}
	t.DType = own
}

// losesDigits reports whether a number may have lost digits when saved in another dtype: it is subnormal there, and
// its own dtype has smaller normal numbers.
func losesDigits(own, saved hooks.DType, x float64) bool {
	return floats.MinExponent(own) < floats.MinExponent(saved) && math.Abs(x) < math.Ldexp(1, floats.MinExponent(saved))
}

// withLost gives a bound to the numbers of a captured tensor that lost digits when the tensor was saved: half a unit of the dtype in which it was saved.
func withLost(i *Isolator, n order.Node, v program.Value) program.Value {
	rec, ok := i.trace.Lookup(n.Pass, i.list.At(n).Name)
	own := i.list.At(n).DTypeOf(i.env.DType)
	if !ok || !rec.DType.Float() || v.Bound != nil || !own.Float() || floats.MinExponent(own) >= floats.MinExponent(rec.DType) || floats.Precision(own) >= floats.Precision(rec.DType) {
		return v
	}
	for k, x := range v.Data {
		if !losesDigits(own, rec.DType, x) {
			continue
		}
		if v.Bound == nil {
			v.Bound = make([]float64, len(v.Data))
		}
		v.Bound[k] = LastPlace(rec.DType, x) / 2
	}
	return v
}
