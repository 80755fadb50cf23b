package program

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Summation is an order in which an engine may add n products in float32. A sum that no bound explains is replayed in the
// orders that engines use: on structured rows, constant or few-valued, errors add up in one direction, and the usual
// random-walk bound is broken by arithmetic that is right.
type Summation struct {
	Lanes    int  // partial sums, term k going to lane k mod Lanes, which are then added in pairs; 1 is one after the other
	Pairwise bool // halves, recursively: Lanes is not used
	Reversed bool // from the last term to the first
	Fused    bool // the product is not rounded before it is added
}

// String names the order, such as "16 lanes, fused".
func (s Summation) String() string {
	name := fmt.Sprintf("%d lanes", s.Lanes)
	switch {
	case s.Pairwise:
		name = "pairwise"
	case s.Lanes == 1 && s.Reversed:
		name = "reversed"
	case s.Lanes == 1:
		name = "sequential"
	}
	if s.Fused {
		name += ", fused"
	}
	return name
}

// Summations are the orders that are tried, the plainest first.
func Summations() []Summation {
	var all []Summation
	for _, fused := range []bool{false, true} {
		all = append(all, Summation{Lanes: 1, Fused: fused}, Summation{Lanes: 1, Reversed: true, Fused: fused}, Summation{Pairwise: true, Fused: fused})
		for lanes := 4; lanes <= 64; lanes *= 2 {
			all = append(all, Summation{Lanes: lanes, Fused: fused})
		}
	}
	return all
}

// replay adds products in the order of a.Sum, in float32: each is of a number and its bound, and another. What the terms' own
// bounds make is all the bound there is: the order's rounding is in the value.
func (a *Arith) replay(n int, product func(i int) (x, xe, y, ye float64)) (v, e float64) {
	v = a.Sum.add(n, func(i int) (float64, float64) {
		x, xe, y, ye := product(i)
		e += spread(x, xe, y, ye)
		return x, y
	})
	return v, e
}

// add is the sum of n products, each read once.
func (s *Summation) add(n int, product func(i int) (x, y float64)) float64 {
	if s.Pairwise {
		return s.halves(0, n, product)
	}
	lanes := make([]float64, s.Lanes)
	for k := range n {
		i := k
		if s.Reversed {
			i = n - 1 - k
		}
		lanes[k%s.Lanes] = s.step(lanes[k%s.Lanes], i, product)
	}
	return joined(lanes)
}

// dot is the sum of the products of x and y: add without a call for each, since a replay takes all products of a tensor
// again in every order.
func (s *Summation) dot(x, y []float64) float64 {
	n := len(x)
	if s.Pairwise || s.Reversed {
		return s.add(n, func(i int) (float64, float64) { return x[i], y[i] })
	}
	lanes := make([]float64, s.Lanes)
	y = y[:n]
	for from := 0; from < n; from += s.Lanes {
		for i := range min(s.Lanes, n-from) {
			a, b := x[from+i], y[from+i]
			if s.Fused {
				lanes[i] = f32(math.FMA(a, b, lanes[i]))
			} else {
				lanes[i] = f32(lanes[i] + f32(a*b))
			}
		}
	}
	return joined(lanes)
}

// four returns the sums of the products of x with four rows, each in the order of [Summation.dot]. An addition waits
// for the previous addition in its lane, and never for an addition of another row.
func (s *Summation) four(x []float64, y [4][]float64) (sums [4]float64) {
	n := len(x)
	if n == 0 || s.Pairwise { // halves are many sums that wait for none
		for i := range y {
			sums[i] = s.dot(x, y[i])
		}
		return sums
	}
	a, b, c, d := y[0][:n], y[1][:n], y[2][:n], y[3][:n]
	lanes := make([][4]float64, s.Lanes)
	for from := 0; from < n; from += s.Lanes {
		for lane := range min(s.Lanes, n-from) {
			i, l := from+lane, &lanes[lane]
			if s.Reversed {
				i = n - 1 - i
			}
			v := x[i]
			l[0], l[1], l[2], l[3] = s.plus(l[0], v, a[i]), s.plus(l[1], v, b[i]), s.plus(l[2], v, c[i]), s.plus(l[3], v, d[i])
		}
	}
	for width := s.Lanes; width > 1; width /= 2 {
		for i := range width / 2 {
			for k := range sums {
				lanes[i][k] = f32(lanes[i][k] + lanes[i+width/2][k])
			}
		}
	}
	return lanes[0]
}

// plus adds a product to a partial sum; see [Summation.step].
func (s *Summation) plus(sum, x, y float64) float64 {
	if s.Fused { // the product is exact in float64; rounding the sum to float64 on its way is seen in one case of 2^29
		return f32(math.FMA(x, y, sum))
	}
	return f32(sum + f32(x*y))
}

// joined adds partial sums in pairs.
func joined(lanes []float64) float64 {
	for width := len(lanes); width > 1; width /= 2 {
		for i := range width / 2 {
			lanes[i] = f32(lanes[i] + lanes[i+width/2])
		}
	}
	return lanes[0]
}

// step adds term i to a partial sum: rounded to float32 once if fused, else the product first.
func (s *Summation) step(sum float64, i int, product func(i int) (x, y float64)) float64 {
	x, y := product(i)
	return s.plus(sum, x, y)
}

func (s *Summation) halves(from, n int, product func(i int) (x, y float64)) float64 {
	if n <= 1 {
		return s.step(0, from, product)
	}
	return f32(s.halves(from, n/2, product) + s.halves(from+n/2, n-n/2, product))
}

// f32 rounds to float32.
func f32(x float64) float64 { return float64(float32(x)) }

// The ways to the exponential of a fused attention. torch on a CPU has one vector function for 16-bit numbers and one
// for float32. The vector function takes the columns of a block of keys that fill its lanes; the library's function
// takes the rest.
const (
	WayLibrary     uint8 = iota
	WayEightLanes        // torch on a CPU with AVX2
	WaySixteen           // torch on a CPU with AVX-512
	WayStatedError       // a function that is off by no more than statedError of its result
	waysOfFusedExp
)

// statedError is what the exponential of a fused attention whose kernel is not known may be off by, as a part of the result: torch's vector
// function for 16 bits is off by −1.12e-4 to +1.04e-4, which is the most that is known of any.
const statedError = 1.2e-4

// lanesOf is how many lanes the vector function has, by way; 0 for the ways that do not take it.
func lanesOf(way uint8) int {
	switch way {
	case WayEightLanes:
		return 8
	case WaySixteen:
		return 16
	}
	return 0
}

// fma32 is a·b + c of three float32, rounded once to float32.
func fma32(a, b, c float64) float64 {
	p := float64(a * b) // 48 binary digits at most: exact
	s := p + c
	t := s - p
	// e is what rounding to float64 took from the sum. Where it is not 0 the last digit is made odd, so that the second rounding is right (round to odd).
	if e := (p - (s - t)) + (c - t); e != 0 && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return f32(s)
}

// Constants of torch's vector functions: log2 e, the logarithms of the smallest normal number and of the largest, ln 2.
var (
	log2E      = float64(math.Float32frombits(0x3fb8aa3b))
	lnSmallest = float64(math.Float32frombits(0xc2aeac50))
	lnLargest  = float64(math.Float32frombits(0x42b17218))
	ln2Float   = float64(math.Float32frombits(0x3f317218))
	cubic      = [...]float64{f32(-0.079204240219773236), f32(-0.22433836478672356), f32(0.30354260500649682), f32(0.00010703434948458272)}
	quintic    = [...]float64{f32(0.00828929059), f32(0.0418978221), f32(0.166676521), f32(0.499991506), f32(0.999999701), 1}
)

// exp16 is torch's exponential of bfloat16 and float16 operands (fexp_u20 of ATen's vector classes), to the bit: with s = x·log2 e and f = s − ⌊s⌋,
// 2^s is read off the bits of a number whose exponent is ⌊s⌋ and whose digits are f less a cubic in f. Its relative error is −1.12e-4 to 1.04e-4:
// exp16(0) = 0.9999466. x is a float32.
func exp16(x float64) float64 {
	switch {
	case x < lnSmallest:
		return 0
	case !(x <= lnLargest):
		return floats.Exp(x)
	}
	s := f32(float64(x * log2E))
	f := f32(s - math.Floor(s))
	r := fma32(f, cubic[0], cubic[1])
	r = fma32(f, r, cubic[2])
	r = fma32(f, r, cubic[3])
	bits := fma32(1<<23, f32(s-r), 127<<23)
	return float64(math.Float32frombits(uint32(int32(bits))))
}

// exp32 is torch's exponential of float32 operands in fused attention (exp_u20), to the bit: a quintic in x − n·ln 2, times 2ⁿ. Its relative error
// is −1.5e-7 to 4.5e-7. x is a float32.
func exp32(x float64) float64 {
	switch {
	case x < lnSmallest:
		return 0
	case !(x <= lnLargest):
		return floats.Exp(x)
	}
	n := math.Floor(fma32(x, log2E, 0.5))
	f := fma32(-n, ln2Float, x)
	r := quintic[0]
	for _, c := range quintic[1:] {
		r = fma32(f, r, c)
	}
	return f32(math.Ldexp(r, int(n)))
}

// fusedExp computes a block of an exponential of a fused attention, by its way; a row has width columns. What an operand within its bound makes of
// the result is looked for at both ends: a vector function is not monotone, but it has no more than one step there. Its result is definite.
func (r *run) fusedExp(c Choice, f finisher, width int, out, x operand) {
	vector, full := exp32, 0
	if f.DType != hooks.F32 {
		vector = exp16
	}
	if lanes := lanesOf(c.Way); lanes > 0 && f.Emulated && !f.Hull {
		full = width / lanes * lanes
	}
	for i, v := range x.v {
		xe := 0.0
		if out.e != nil {
			xe = x.e[i]
		}
		if i%width < full {
			out.v[i] = vector(v)
			if out.e != nil {
				e := max(math.Abs(vector(f32(v+xe))-out.v[i]), math.Abs(out.v[i]-vector(f32(v-xe))))
				if xe > 0 {
					e += 2 * unit32 * out.v[i]
				}
				out.v[i], out.e[i] = f.narrowBound(out.v[i], e)
			} else {
				out.v[i] = f.narrow(out.v[i])
			}
			continue
		}
		if out.e == nil {
			out.v[i], _ = f.one(floats.Exp(v), 0)
			continue
		}
		v, e := function(monotone[Exp], v, xe)
		if c.Way == WayStatedError {
			e += statedError * v
		}
		out.v[i], out.e[i] = f.one(v, e)
	}
}
