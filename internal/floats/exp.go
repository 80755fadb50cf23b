package floats

import "math"

// ln 2 in two parts, the first with so few digits that its products with exponents are exact, and 1/ln 2.
const (
	ln2High = 0x1.62e42fefa3p-1
	ln2Low  = 0x1.3de6af278ece6p-42
	perLn2  = 1.4426950408889634
)

// Exp is e^x, to about one unit in the last place, by the same operations on every machine: [math.Exp] has other last digits on a processor
// that does not multiply and add at once. Here that is software where there is no instruction. NaN gives NaN, +Inf gives +Inf, and so does
// what is too large; −Inf gives 0, and so does what is below half of the smallest number.
//
// With n = x/ln 2, rounded, it is 2^n·e^(16r), |r| < 0.022: e^r − 1 is a series of eight terms, and four times y becomes (1+y)² − 1.
func Exp(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	n := math.RoundToEven(float64(x * perLn2))
	r := math.FMA(-n, ln2Low, math.FMA(-n, ln2High, x)) / 16
	series := math.FMA(1./40320, r, 1./5040)
	series = math.FMA(series, r, 1./720)
	series = math.FMA(series, r, 1./120)
	series = math.FMA(series, r, 1./24)
	series = math.FMA(series, r, 1./6)
	series = math.FMA(series, r, 1./2)
	series = math.FMA(series, r, 1)
	y := float64(r * series)
	for range 3 {
		y = float64(y * (y + 2))
	}
	y = math.FMA(y, y+2, 1)
	switch {
	case n < -1022: // the result may be subnormal, and is rounded once
		return float64(y*math.Ldexp(1, int(n)+1022)) * 0x1p-1022
	case n == -1022 || n > 1023:
		return math.Ldexp(y, int(n))
	}
	return y * math.Float64frombits(uint64(int(n)+1023)<<52) // exact: y is nearly 1
}

// Tanh is the hyperbolic tangent, by [Exp] where [math.Tanh] is by [math.Exp].
func Tanh(x float64) float64 {
	if z := math.Abs(x); z >= 0.625 && z <= 44 {
		return math.Copysign(1-2/(Exp(2*z)+1), x)
	}
	return math.Tanh(x)
}
