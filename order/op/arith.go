package op

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Arith is the arithmetic in which operations are evaluated.
//
// Exact, the zero Emulated: float64 throughout, no rounding anywhere. Rotary angles alone are float32 in every arithmetic:
// they do not depend on the model's dtype, and at position 30000 their rounding is a thousandth of a radian, which is the
// reference's definition and not its noise.
//
// Emulated: as the reference computes. Every elementary step of a formula is rounded to float32, as torch computes
// bfloat16 and float16 too, and every R to DType. A sum is accumulated in float64 and rounded once, since no order of
// summation is the reference's; functions are rounded to float32 from their exact value. Inner says where other engines
// than the reference round, and Sum in which order they add.
//
// With Bounds every value carries how far a correct float32 implementation of the same formula may be from it, by
// running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3): each step whose
// result float32 does not have adds u·|result|, u = 2⁻²⁴, and the rounding of the value itself to what its inputs' bounds
// become. A bound may be infinite.
type Arith struct {
	DType    hooks.DType // of the model: float32, bfloat16 or float16
	Emulated bool
	Bounds   bool
	Inner    Inner
	Narrow   hooks.DType // another dtype that Free allows inside beside the model's; the zero DType is none
	Rigorous bool        // bounds that hold for every order of summation, in place of nearly every
	Sum      *Summation  // nil: no order, in float64
}

// Inner says where the steps inside an operation are rounded to the model's dtype.
type Inner uint8

// The inner roundings.
const (
	AsReference Inner = iota // at every R and nowhere else
	Wide                     // nowhere: float32 is kept until the end
	Every                    // after every elementary step
	Free                     // after any step or none: values are not rounded, and bounds allow half a unit at each
)

// Num is one number and its bound: a correct computation lies in [V−E, V+E]. Without [Arith.Bounds] E is 0.
type Num struct {
	V, E float64
	// inner: the result of a step within an operation. Whoever uses it may have rounded it first.
	inner bool
}

const (
	unit32   = 0x1p-24  // unit roundoff of float32
	normal32 = 0x1p-126 // its least normal number: vector units and GPUs take what is smaller for zero, and so do libraries
	// Vectorised exp, tanh, erf and pow are within an ulp of float32 (SLEEF states 1.0 ulp, that is two units, for the
	// variants torch uses); one more unit is for other libraries.
	unitsOfFunction = 3
	// λ of the random-walk bound on sums (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).
	lambda = 3
)

// step finishes one elementary float32 operation whose exact result on V is v and whose inputs' bounds make e.
func (a Arith) step(v, e float64) Num {
	n := Num{V: v, inner: true}
	if a.Emulated {
		n.V = float64(float32(v))
	}
	if a.Bounds {
		// What float32 has exactly is not rounded, by no engine. One whose operands differ has something else to round, and
		// may round it the other way than V was: both roundings count.
		if n.E = e; n.V != v || e != 0 || !a.Emulated {
			n.E += unit32*(math.Abs(v)+e) + math.Abs(n.V-v)
		}
		if math.Abs(v) < normal32 && v != 0 { // below the normal numbers: flushed to zero, or off by units of 2⁻¹⁴⁹
			n.E += math.Abs(v) + 0x1p-149
		}
		if n.E != n.E { // 0·∞: nothing is known
			n.E = math.Inf(1)
		}
	}
	if a.Inner == Every && a.Emulated {
		n = roundTo(a.DType, n)
	}
	return n
}

// use is a number as the next step sees it: one that a free engine may have rounded on the way. Rounding changes nothing of
// what the dtype has exactly.
func (a Arith) use(n Num) Num {
	if n.inner && a.Inner == Free && a.Bounds {
		e := n.rounded(a.DType)
		if a.Narrow.Valid() {
			e = max(e, n.rounded(a.Narrow))
		}
		n.E += e
	}
	n.inner = false
	return n
}

// rounded is what rounding to d may change n by, wherever in its bounds it lies.
func (n Num) rounded(d hooks.DType) float64 {
	if n.E == 0 && floats.Round(d, n.V) == n.V {
		return 0
	}
	return halfUnit(d, math.Abs(n.V)+n.E)
}

// halfUnit is half the distance of d's numbers just below x, or above where x is a power of two: what rounding changes a
// number of that size by at most.
func halfUnit(d hooks.DType, x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e, floats.MinExponent(d)+1)-floats.Precision(d)-1)
}

// R is a rounding point within a formula. In bounds, the numbers in [V−E, V+E] become those that they round to: most
// often one, two when a midpoint lies among them.
func (a Arith) R(n Num) Num {
	if !a.Emulated || a.Inner != AsReference {
		return n
	}
	return roundTo(a.DType, n)
}

func roundTo(d hooks.DType, n Num) Num {
	v := floats.Round(d, n.V)
	if n.E == 0 {
		return Num{V: v}
	}
	return Num{V: v, E: max(floats.Round(d, n.V+n.E)-v, v-floats.Round(d, n.V-n.E))}
}

// Round applies the last R of an entry's operation, to d, in place. It does nothing in exact arithmetic. A free engine
// that hands the value on inside may have rounded it or not.
func (a Arith) Round(v Value, d hooks.DType) {
	if !a.Emulated || !d.Float() || a.Inner == Wide {
		return
	}
	for i := range v.Data {
		n := v.at(i)
		if a.Inner == Free {
			n.inner = true
			v.set(i, a.use(n))
		} else {
			v.set(i, roundTo(d, n))
		}
	}
}

// scalar is a Python number in an operation: float32.
func (a Arith) scalar(x float64) Num {
	if a.Emulated {
		x = float64(float32(x))
	}
	return Num{V: x}
}

// castConst is a Python number made a tensor of the model's dtype, by way of float32. Its rounding is part of the model,
// so it is never free.
func (a Arith) castConst(x float64) Num {
	if a.Emulated {
		x = floats.Round(a.DType, float64(float32(x)))
	}
	return Num{V: x}
}

func (a Arith) add(x, y Num) Num {
	x, y = a.use(x), a.use(y)
	switch {
	case a.absorbs(x, y):
		return x
	case a.absorbs(y, x):
		return y
	}
	return a.step(x.V+y.V, x.E+y.E)
}

func (a Arith) sub(x, y Num) Num { return a.add(x, Num{V: -y.V, E: y.E, inner: y.inner}) }

// absorbs reports whether y is so small beside x that their sum is x in every arithmetic, as a score is beside a mask. A
// bound of u·|x| would be far larger than anything that is not masked.
func (a Arith) absorbs(x, y Num) bool {
	return a.Emulated && math.Abs(y.V)+y.E < unit32/4*math.Abs(x.V)
}

func (a Arith) mul(x, y Num) Num {
	x, y = a.use(x), a.use(y)
	return a.step(x.V*y.V, spread(x.V, x.E, y.V, y.E))
}

// spread is how far the product of x and y moves when they move by up to xe and ye. Products are converted so that no
// compiler fuses them with the additions: results are the same on every processor.
func spread(x, xe, y, ye float64) float64 {
	return float64(math.Abs(x)*ye) + float64(math.Abs(y)*xe) + float64(xe*ye)
}

// div: the quotient changes by E_x/|y| and by |x|·E_y/y², the divisor taken at its nearest to zero.
func (a Arith) div(x, y Num) Num {
	x, y = a.use(x), a.use(y)
	q := x.V / y.V
	var e float64
	if x.E > 0 || y.E > 0 {
		e = (x.E + math.Abs(q)*y.E) / max(math.Abs(y.V)-y.E, 0)
	}
	return a.step(q, e)
}

// sqrt: what the root changes by over [V−E, V+E], most at the near end, which is not below zero.
func (a Arith) sqrt(x Num) Num {
	x = a.use(x)
	r := math.Sqrt(x.V)
	var e float64
	if x.E > 0 {
		e = max(r-math.Sqrt(max(x.V-x.E, 0)), math.Sqrt(x.V+x.E)-r)
	}
	return a.step(r, e)
}

// larger is max(x, y), which rounds nothing: where one lies below the other with its whole bound, that bound is gone.
func larger(x, y Num) Num {
	v := math.Max(x.V, y.V)
	e := max(math.Max(x.V+x.E, y.V+y.E)-v, v-math.Max(x.V-x.E, y.V-y.E))
	return Num{V: v, E: e, inner: x.inner || y.inner}
}

// function applies a monotone function of a library: its bound is its change over [V−E, V+E], and the library's error.
func (a Arith) function(f func(float64) float64, x Num) Num {
	x = a.use(x)
	y := f(x.V)
	var e float64
	if a.Bounds {
		if x.E > 0 {
			e = max(math.Abs(f(x.V+x.E)-y), math.Abs(y-f(x.V-x.E)))
		}
		e += (unitsOfFunction - 1) * unit32 * math.Abs(y)
	}
	return a.step(y, e)
}

// sum adds n numbers in no particular order; see [Arith.total] for its bound.
func (a Arith) sum(n int, term func(i int) Num) Num {
	if a.Sum != nil {
		return a.replay(n, func(i int) (Num, Num) { return term(i), Num{V: 1} })
	}
	var s partial
	for i := range n {
		s.add(a.use(term(i)), a.Bounds)
	}
	return a.total(s, n)
}

// products is the sum of n products, whose roundings its bound counts.
func (a Arith) products(n int, factors func(i int) (x, y Num)) Num {
	if a.Sum != nil {
		return a.replay(n, factors)
	}
	var s partial
	for i := range n {
		x, y := factors(i)
		x, y = a.use(x), a.use(y)
		s.add(Num{V: x.V * y.V, E: spread(x.V, x.E, y.V, y.E)}, a.Bounds)
	}
	return a.total(s, n)
}

// partial is a sum being taken: its value and, for its bound, that of its terms.
type partial struct{ sum, squares, abs, e float64 }

func (p *partial) add(t Num, bounds bool) {
	p.sum += t.V
	if bounds {
		p.squares += float64(t.V * t.V)
		p.abs += math.Abs(t.V)
		p.e += t.E
	}
}

// total finishes a sum of n terms. In float32 it is off by
//
//	n·u·Σ|t|                        in any order, fused or not, products included (Jeannerod and Rump, Improved error
//	                                bounds for inner products in floating-point arithmetic, 2013), and by
//	λ·√n·u·(‖t‖₂ + |Σt|), λ = 3     in nearly every: roundings are as good as independent and of mean zero, so they add
//	                                as a random walk (Higham and Mary, 2019), and partial sums of terms whose signs vary
//	                                stay near the line from 0 to Σt and within ‖t‖₂ of it.
//
// The second is what is used unless Rigorous. It is no theorem for structured data: of rows of one or few values added one
// after the other the errors were up to ten times as large at n = 16384. That is what [Summation] is for.
func (a Arith) total(p partial, n int) Num {
	switch {
	case !a.Bounds:
	case a.Rigorous:
		p.e += float64(n) * unit32 * p.abs
	default:
		p.e += lambda * math.Sqrt(float64(n)) * unit32 * (math.Sqrt(p.squares) + math.Abs(p.sum))
	}
	return a.step(p.sum, p.e)
}

// mean is sum / n.
func (a Arith) mean(n int, term func(i int) Num) Num {
	return a.div(a.sum(n, term), Num{V: float64(n)})
}
