package floats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/x448/float16"
	"pgregory.net/rapid"
)

// narrow is a float format by its definition: sign, exponent and fraction fields, and what the topmost codes mean.
// Everything the package does is checked against this and nothing shared with it.
type narrow struct {
	dtype          hooks.DType
	bits, fraction int
	bias           int
	finite         int // codes from 0 to finite−1 are finite; the rest are infinity and NaN
	infinity       bool
	encode         func(float32) int
	decode         func(int) float32
	round          func(float32) float32
}

var formats = []narrow{
	{
		hooks.BF16, 16, 7, 127, 0x7f80, true,
		func(f float32) int { return int(floats.BF16(f)) },
		func(b int) float32 { return floats.FromBF16(uint16(b)) }, floats.RoundBF16,
	},
	{
		hooks.F16, 16, 10, 15, 0x7c00, true,
		func(f float32) int { return int(floats.F16(f)) },
		func(b int) float32 { return floats.FromF16(uint16(b)) }, floats.RoundF16,
	},
	{
		hooks.F8E4M3, 8, 3, 7, 0x7f, false,
		func(f float32) int { return int(floats.F8E4M3(f)) },
		func(b int) float32 { return floats.FromF8E4M3(uint8(b)) }, nil,
	},
	{
		hooks.F8E5M2, 8, 2, 15, 0x7c, true,
		func(f float32) int { return int(floats.F8E5M2(f)) },
		func(b int) float32 { return floats.FromF8E5M2(uint8(b)) }, nil,
	},
}

// value is what a code without sign means, for codes up to finite: the first beyond the finite ones is what the next
// number would be, the limit from which rounding overflows.
func (n narrow) value(code int) float64 {
	exp, frac := code>>n.fraction, code&(1<<n.fraction-1)
	if exp == 0 {
		return math.Ldexp(float64(frac), 1-n.bias-n.fraction)
	}
	return math.Ldexp(1+math.Ldexp(float64(frac), -n.fraction), exp-n.bias)
}

// nearest is the code of the number nearest to x ≥ 0, found among all of them; of two equally near the even code.
func (n narrow) nearest(x float64) int {
	if math.IsInf(x, 1) {
		return n.overflow()
	}
	hi := sort.Search(n.finite, func(c int) bool { return n.value(c) >= x })
	if hi == 0 {
		return 0
	}
	below, above := x-n.value(hi-1), n.value(hi)-x
	code := hi
	if below < above || below == above && (hi-1)%2 == 0 {
		code = hi - 1
	}
	if code == n.finite {
		return n.overflow()
	}
	return code
}

func (n narrow) overflow() int {
	if n.infinity {
		return n.finite
	}
	return n.finite - 1
}

func (n narrow) sign() int { return 1 << (n.bits - 1) }

func TestEveryPatternDecodesToItsDefinitionAndBack(t *testing.T) {
	for _, n := range formats {
		for code := range n.sign() {
			for _, sign := range []int{0, n.sign()} {
				got := n.decode(sign | code)
				want := n.value(code)
				switch {
				case code == n.finite && n.infinity:
					want = math.Inf(1)
				case code >= n.finite:
					want = math.NaN()
				}
				if math.IsNaN(want) {
					if got == got || math.Signbit(float64(got)) != (sign != 0) {
						t.Fatalf("%s %#x: got %v, want NaN with that sign", n.dtype, sign|code, got)
					}
					if again := n.decode(n.encode(got)); again == again {
						t.Fatalf("%s %#x: NaN comes back as %v", n.dtype, sign|code, again)
					}
					continue
				}
				if sign != 0 {
					want = -want
				}
				if math.Float64bits(float64(got)) != math.Float64bits(want) {
					t.Fatalf("%s %#x: got %v, want %v", n.dtype, sign|code, got, want)
				}
				if back := n.encode(got); back != sign|code {
					t.Fatalf("%s %#x: %v encodes as %#x", n.dtype, sign|code, got, back)
				}
			}
		}
	}
}

// around yields the float32s at and next to every number of a format and every midpoint between two of them, where a
// rounding goes wrong if it ever does.
func (n narrow) around(yield func(float32)) {
	for code := range n.finite + 1 {
		for _, x := range []float64{n.value(code), (n.value(code) + n.value(max(code-1, 0))) / 2} {
			f := float32(x)
			yield(f)
			yield(math.Nextafter32(f, 0))
			yield(math.Nextafter32(f, float32(math.Inf(1))))
		}
	}
	yield(math.MaxFloat32)
	yield(math.SmallestNonzeroFloat32)
	yield(float32(math.Inf(1)))
}

func TestRoundingIsToNearestEven(t *testing.T) {
	for _, n := range formats {
		check := func(f float32) {
			want := n.nearest(float64(f))
			if got := n.encode(f); got != want {
				t.Fatalf("%s of %g (%#x): got %#x, want %#x", n.dtype, f, math.Float32bits(f), got, want)
			}
			if got := n.encode(-f); got != want|n.sign() {
				t.Fatalf("%s of %g: got %#x, want %#x", n.dtype, -f, got, want|n.sign())
			}
			if n.round == nil {
				return
			}
			for _, x := range []float32{f, -f} {
				if got, want := n.round(x), n.decode(n.encode(x)); math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("%s: rounding %g gives %g, encoding and decoding %g", n.dtype, x, got, want)
				}
			}
		}
		n.around(check)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 200_000 {
			if f := math.Float32frombits(rng.Uint32() &^ (1 << 31)); f == f {
				check(f)
			}
		}
	}
}

func TestNaNStaysNaN(t *testing.T) {
	for _, n := range formats {
		for _, bits := range []uint32{0x7f800001, 0x7f801000, 0x7f80ffff, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffffffff} {
			f := math.Float32frombits(bits)
			if got := n.decode(n.encode(f)); got == got {
				t.Errorf("%s of NaN %#x is %v", n.dtype, bits, got)
			}
			if n.round == nil {
				continue
			}
			if got, want := math.Float32bits(n.round(f)), math.Float32bits(n.decode(n.encode(f))); got != want {
				t.Errorf("%s: rounding NaN %#x gives %#x, encoding and decoding %#x", n.dtype, bits, got, want)
			}
		}
	}
}

// TestFloat16AgainstOracle compares with an independent implementation, all halves and a stride through all float32s.
func TestFloat16AgainstOracle(t *testing.T) {
	for code := range 1 << 16 {
		want := float16.Frombits(uint16(code))
		if want.IsNaN() {
			continue
		}
		if got := floats.FromF16(uint16(code)); math.Float32bits(got) != math.Float32bits(want.Float32()) {
			t.Fatalf("%#x decodes to %v, want %v", code, got, want.Float32())
		}
	}
	for bits := uint64(0); bits < 1<<32; bits += 1021 {
		f := math.Float32frombits(uint32(bits))
		if f != f {
			continue
		}
		if got, want := floats.F16(f), float16.Fromfloat32(f).Bits(); got != want {
			t.Fatalf("%g: got %#x, want %#x", f, got, want)
		}
	}
}

// TestRoundOnce has numbers that rounding by way of float32 gets wrong: a hair beside a tie of the narrow format.
func TestRoundOnce(t *testing.T) {
	for _, n := range formats {
		for code := range n.finite {
			tie := (n.value(code) + n.value(code+1)) / 2
			if n.overflow() == code && !n.infinity {
				continue // saturates on both sides of the tie
			}
			for _, x := range []float64{tie, math.Nextafter(tie, 0), math.Nextafter(tie, math.Inf(1)), -tie} {
				want := n.nearest(math.Abs(x))
				wantValue := n.value(want)
				if want == n.finite {
					wantValue = math.Inf(1)
				}
				if got := floats.Round(n.dtype, x); got != math.Copysign(wantValue, x) {
					t.Fatalf("%s of %v: got %v, want %v", n.dtype, x, got, math.Copysign(wantValue, x))
				}
				all := []float64{x, 0, x}
				if floats.RoundAll(n.dtype, all); all[0] != math.Copysign(wantValue, x) || all[2] != all[0] || all[1] != 0 {
					t.Fatalf("%s of %v three times: got %v", n.dtype, x, all)
				}
				if got := floats.Ordinal(n.dtype, x); got != int64(math.Copysign(float64(want), x)) {
					t.Fatalf("%s ordinal of %v: got %d, want %d", n.dtype, x, got, want)
				}
			}
		}
	}
}

func TestRoundSpecialValues(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name  string
		dtype hooks.DType
		x     float64
		want  float64
	}{
		{"float64 is left alone", hooks.F64, math.Pi, math.Pi},
		{"float32 is Go's conversion", hooks.F32, math.Pi, float64(float32(math.Pi))},
		{"float32 subnormal", hooks.F32, 0x1.8p-149, 0x1p-148},
		{"float32 overflow", hooks.F32, 0x1.ffffffp127, inf},
		{"smallest float64 goes to zero", hooks.BF16, math.SmallestNonzeroFloat64, 0},
		{"largest float64 overflows", hooks.BF16, -math.MaxFloat64, -inf},
		{"infinity stays", hooks.F16, inf, inf},
		{"no infinity in e4m3", hooks.F8E4M3, -inf, -448},
		{"e4m3 overflow saturates", hooks.F8E4M3, 1e9, 448},
		{"e5m2 overflow does not", hooks.F8E5M2, 61440, inf},
	}
	for _, tt := range tests {
		if got := floats.Round(tt.dtype, tt.x); got != tt.want {
			t.Errorf("%s: %s of %g is %g, want %g", tt.name, tt.dtype, tt.x, got, tt.want)
		}
	}
	for _, d := range []hooks.DType{hooks.F64, hooks.F32, hooks.BF16, hooks.F8E4M3} {
		if got := floats.Round(d, math.NaN()); got == got {
			t.Errorf("%s of NaN is %g", d, got)
		}
		if got := floats.Round(d, math.Copysign(0, -1)); got != 0 || !math.Signbit(got) {
			t.Errorf("%s of −0 is %g", d, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("rounding to an integer type has to panic: it is a programming error")
		}
	}()
	floats.Round(hooks.I32, 1)
}

func TestDistance(t *testing.T) {
	inf, negZero := math.Inf(1), math.Copysign(0, -1)
	tests := []struct {
		dtype hooks.DType
		a, b  float64
		want  uint64
	}{
		{hooks.F64, 1, math.Nextafter(1, 2), 1},
		{hooks.F64, -math.MaxFloat64, math.MaxFloat64, 2 * 0x7fefffffffffffff},
		{hooks.F32, 1, 1 + 0x1p-23, 1},
		{hooks.F32, negZero, 0, 0},
		{hooks.F32, -0x1p-149, 0x1p-149, 2},
		{hooks.F32, math.MaxFloat32, inf, 1},
		{hooks.F32, -inf, inf, 2 * 0x7f800000},
		{hooks.BF16, 1, 1 + 0x1p-7, 1},
		{hooks.BF16, 1, 1 + 0x1p-9, 0}, // the same number of bfloat16
		{hooks.BF16, 1, 2, 128},
		{hooks.F16, 1, 2, 1024},
		{hooks.F16, 65504, inf, 1},
		{hooks.F8E4M3, 448, inf, 0}, // no infinity: both are 448
		{hooks.F8E5M2, 57344, inf, 1},
	}
	for _, tt := range tests {
		if got := floats.Distance(tt.dtype, tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %g to %g is %d steps, want %d", tt.dtype, tt.a, tt.b, got, tt.want)
		}
		if got := floats.Distance(tt.dtype, tt.b, tt.a); got != tt.want {
			t.Errorf("%s: %g to %g is %d steps, want %d", tt.dtype, tt.b, tt.a, got, tt.want)
		}
	}
}

func TestOrdinalFollowsTheNumbers(t *testing.T) {
	types := []hooks.DType{hooks.F64, hooks.F32, hooks.F16, hooks.BF16, hooks.F8E4M3, hooks.F8E5M2}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(types).Draw(t, "dtype")
		a, b := rapid.Float64().Draw(t, "a"), rapid.Float64().Draw(t, "b")
		ra, rb := floats.Round(d, a), floats.Round(d, b)
		oa, ob := floats.Ordinal(d, a), floats.Ordinal(d, b)
		if (ra < rb) != (oa < ob) || (ra == rb) != (oa == ob) {
			t.Fatalf("%s: %g and %g round to %g and %g, their places are %d and %d", d, a, b, ra, rb, oa, ob)
		}
		if again := floats.Round(d, ra); again != ra {
			t.Fatalf("%s: %g rounds to %g, and that to %g", d, a, ra, again)
		}
	})
}

func TestCoarserAndUnit(t *testing.T) {
	// From the finest to the coarsest: the order that decides in which type two sides are measured.
	types := []hooks.DType{hooks.F64, hooks.F32, hooks.F16, hooks.BF16, hooks.F8E4M3, hooks.F8E5M2}
	for i, fine := range types {
		for _, coarse := range types[i:] {
			if a, b := floats.Coarser(fine, coarse), floats.Coarser(coarse, fine); a != coarse || b != coarse {
				t.Errorf("coarser of %s and %s: got %s and %s", fine, coarse, a, b)
			}
		}
		// By its definition: the largest relative step that 1 still absorbs.
		u := floats.Unit(fine)
		if floats.Round(fine, 1+u) != 1 || floats.Round(fine, 1+2*u) != 1+2*u || fine != hooks.F64 && floats.Round(fine, 1+1.01*u) == 1 {
			t.Errorf("%s: unit roundoff %g", fine, u)
		}
	}
	if p := floats.Precision(hooks.I64); p != 0 {
		t.Errorf("an integer type has precision %d", p)
	}
}

func TestDecode(t *testing.T) {
	tests := []struct {
		dtype hooks.DType
		src   []byte
		want  []float64
	}{
		{hooks.F64, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, []float64{1}},
		{hooks.F32, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, []float64{1, -2}},
		{hooks.F16, []byte{0, 0x3c, 1, 0}, []float64{1, 0x1p-24}},
		{hooks.BF16, []byte{0x80, 0x3f, 0x80, 0xff}, []float64{1, math.Inf(-1)}},
		{hooks.F8E4M3, []byte{0x38, 0x7e, 0x01, 0x80}, []float64{1, 448, 0x1p-9, 0}},
		{hooks.F8E5M2, []byte{0x3c, 0x7b, 0x01, 0xfc}, []float64{1, 57344, 0x1p-16, math.Inf(-1)}},
		{hooks.I64, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []float64{-2}},
		{hooks.U64, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []float64{0x1p64}},
		{hooks.I32, []byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, []float64{-1, 1}},
		{hooks.U32, []byte{0xff, 0xff, 0xff, 0xff}, []float64{0xffffffff}},
		{hooks.I16, []byte{0, 0x80}, []float64{-32768}},
		{hooks.U16, []byte{0, 0x80}, []float64{32768}},
		{hooks.I8, []byte{0x80}, []float64{-128}},
		{hooks.U8, []byte{0x80, 3}, []float64{128, 3}},
		{hooks.Bool, []byte{0, 1}, []float64{0, 1}},
	}
	for _, tt := range tests {
		got := make([]float64, len(tt.want))
		if err := floats.Decode(got, tt.dtype, tt.src); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v (%v), want %v", tt.dtype, got, err, tt.want)
		}
		if err := floats.Decode(got, tt.dtype, tt.src[:len(tt.src)-1]); err == nil {
			t.Errorf("%s: no error from a source that is one byte short", tt.dtype)
		}
	}
	if err := floats.Decode(make([]float64, 1), hooks.DType(99), make([]byte, 8)); err == nil {
		t.Error("no error for an unknown dtype")
	}
}

var sink float32

// BenchmarkRoundAll rounds numbers to float16, of which some are below its normal numbers, one by one and all at once.
func BenchmarkRoundAll(b *testing.B) {
	xs, of := make([]float64, 4096), make([]float64, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range of {
		of[i] = 0.01 * rng.NormFloat64()
	}
	b.Run("one by one", func(b *testing.B) {
		for b.Loop() {
			for i, x := range of {
				xs[i] = floats.Round(hooks.F16, x)
			}
		}
	})
	b.Run("all at once", func(b *testing.B) {
		for b.Loop() {
			copy(xs, of)
			floats.RoundAll(hooks.F16, xs)
		}
	})
}

func BenchmarkRound(b *testing.B) {
	xs := make([]float32, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range xs {
		xs[i] = float32(rng.NormFloat64())
	}
	for _, n := range formats[:2] {
		b.Run(n.dtype.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(4 * int64(len(xs)))
			for b.Loop() {
				for _, x := range xs {
					if n.dtype == hooks.BF16 {
						sink = floats.RoundBF16(x)
					} else {
						sink = floats.RoundF16(x)
					}
				}
			}
		})
	}
}
