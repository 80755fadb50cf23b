package program

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// The ways to the exponential of a fused attention. Of the vector function that torch has on a CPU there is one for 16 bits and one for float32;
// it takes as many columns of a block of keys as fill its lanes, and the library's function takes the rest.
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
