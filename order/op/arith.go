package op

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Arith is the arithmetic in which operations are evaluated.
//
// Exact, the zero Emulated: float64 throughout, no rounding anywhere. Rotary angles alone are float32 in every arithmetic: they do not depend on the model's dtype, and at position
// 30000 their rounding is a thousandth of a radian, which is the reference's definition and not its noise.
//
// Emulated: as the reference computes. Every elementary step of a formula is rounded to float32, as torch computes
// bfloat16 and float16 too, and every R to DType. A sum is accumulated in float64 and rounded once, since no order of
// summation is the reference's; functions are rounded to float32 from their exact value.
//
// With Bounds every value carries how far a correct float32 implementation of the same formula may be from it, by
// running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3): each step adds u·|result|,
// u = 2⁻²⁴, to what its inputs' bounds become.
type Arith struct {
	DType    hooks.DType // of the model: float32, bfloat16 or float16
	Emulated bool
	Bounds   bool
}

// Num is one number and its bound: a correct computation lies in [V−E, V+E]. Without [Arith.Bounds] E is 0.
type Num struct{ V, E float64 }

const (
	unit32 = 0x1p-24 // unit roundoff of float32
	// Vectorised exp, tanh, erf and pow are within an ulp of float32 (SLEEF states 1.0 ulp, that is two units, for the
	// variants torch uses); one more unit is for other libraries.
	unitsOfFunction = 3
	// λ of the random-walk bound on sums (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).
	lambda = 3
)

// step finishes one elementary float32 operation whose exact result on V is v and whose inputs' bounds make e.
func (a Arith) step(v, e float64) Num {
	if a.Emulated {
		v = float64(float32(v))
	}
	if a.Bounds {
		return Num{v, e + unit32*math.Abs(v)}
	}
	return Num{V: v}
}

// R is a rounding point within a formula. In bounds, the numbers in [V−E, V+E] become those that they round to: most
// often one, two when a midpoint lies among them.
func (a Arith) R(n Num) Num {
	if !a.Emulated {
		return n
	}
	return roundTo(a.DType, n)
}

func roundTo(d hooks.DType, n Num) Num {
	v := floats.Round(d, n.V)
	if n.E == 0 {
		return Num{V: v}
	}
	return Num{v, max(floats.Round(d, n.V+n.E)-v, v-floats.Round(d, n.V-n.E))}
}

// Round applies the last R of an entry's operation, to d, in place. It does nothing in exact arithmetic.
func (a Arith) Round(v Value, d hooks.DType) {
	if !a.Emulated || !d.Float() {
		return
	}
	for i := range v.Data {
		v.set(i, roundTo(d, v.at(i)))
	}
}

// scalar is a Python number in an operation: float32.
func (a Arith) scalar(x float64) Num {
	if a.Emulated {
		x = float64(float32(x))
	}
	return Num{V: x}
}

// castConst is a Python number made a tensor of the model's dtype, by way of float32.
func (a Arith) castConst(x float64) Num {
	if a.Emulated {
		x = floats.Round(a.DType, float64(float32(x)))
	}
	return Num{V: x}
}

// exactProduct is x·y as a term of a sum, whose rounding counts it.
func exactProduct(x, y Num) Num {
	return Num{x.V * y.V, spread(x.V, x.E, y.V, y.E)}
}

// spread is how far the product of x and y moves when they move by up to xe and ye. Products are converted so that no
// compiler fuses them with the additions: results are the same on every processor.
func spread(x, xe, y, ye float64) float64 {
	return float64(math.Abs(x)*ye) + float64(math.Abs(y)*xe) + float64(xe*ye)
}

func (a Arith) add(x, y Num) Num { return a.step(x.V+y.V, x.E+y.E) }

func (a Arith) sub(x, y Num) Num { return a.step(x.V-y.V, x.E+y.E) }

func (a Arith) mul(x, y Num) Num {
	return a.step(x.V*y.V, spread(x.V, x.E, y.V, y.E))
}

// div: the quotient changes by E_x/|y| and by |x|·E_y/y², the divisor taken at its nearest to zero.
func (a Arith) div(x, y Num) Num {
	q := x.V / y.V
	var e float64
	if x.E > 0 || y.E > 0 {
		e = (x.E + math.Abs(q)*y.E) / max(math.Abs(y.V)-y.E, 0)
	}
	return a.step(q, e)
}

// sqrt: half the relative change of x, the derivative at the near end.
func (a Arith) sqrt(x Num) Num {
	r := math.Sqrt(x.V)
	var e float64
	if x.E > 0 {
		e = r - math.Sqrt(max(x.V-x.E, 0))
	}
	return a.step(r, e)
}

// larger is max(x, y), which rounds nothing.
func larger(x, y Num) Num { return Num{math.Max(x.V, y.V), max(x.E, y.E)} }

// function applies a monotone function of a library: its bound is its change over [V−E, V+E], and the library's error.
func (a Arith) function(f func(float64) float64, x Num) Num {
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

// sum adds n numbers in no particular order: λ·√n·u·(‖terms‖₂ + |Σ|) beside the terms' own bounds.
func (a Arith) sum(n int, term func(i int) Num) Num {
	var s, squares, e float64
	for i := range n {
		t := term(i)
		s += t.V
		if a.Bounds {
			squares += float64(t.V * t.V)
			e += t.E
		}
	}
	return a.total(s, squares, e, n)
}

// total finishes a sum of n terms: s, the sum of their squares, and their own bounds together.
func (a Arith) total(s, squares, e float64, n int) Num {
	if a.Bounds {
		e += lambda * math.Sqrt(float64(n)) * unit32 * (math.Sqrt(squares) + math.Abs(s))
	}
	return a.step(s, e)
}

// mean is sum / n.
func (a Arith) mean(n int, term func(i int) Num) Num {
	return a.div(a.sum(n, term), Num{V: float64(n)})
}
