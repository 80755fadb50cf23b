package floats_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"pgregory.net/rapid"
)

// TestStepsIsDistance compares every kind of number with every other: steps on the bits are steps between the values.
func TestStepsIsDistance(t *testing.T) {
	for _, d := range []hooks.DType{hooks.F64, hooks.F32, hooks.F16, hooks.BF16, hooks.F8E4M3, hooks.F8E5M2} {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(0, 9).Draw(t, "n")
			l, r := rapid.SliceOfN(rapid.Byte(), 8*n, 8*n).Draw(t, "l"), rapid.SliceOfN(rapid.Byte(), 8*n, 8*n).Draw(t, "r")
			a, b := make([]float64, n), make([]float64, n)
			size := d.Size()
			decode := func() {
				if err := errors.Join(floats.Decode(a, d, l), floats.Decode(b, d, r)); err != nil {
					t.Fatal(err)
				}
			}
			decode()
			for i := range n {
				if a[i] != a[i] || b[i] != b[i] || rapid.Bool().Draw(t, "alike") {
					clear(l[i*size : (i+1)*size])
					clear(r[i*size : (i+1)*size])
					l[(i+1)*size-1] = rapid.SampledFrom([]byte{0, 0x80}).Draw(t, "sign") // a zero of either sign
				}
			}
			decode()
			var unequal int64
			var most uint64
			for i := range n {
				if steps := floats.Distance(d, a[i], b[i]); steps > 0 {
					unequal++
					most = max(most, steps)
				}
			}
			if u, m := floats.Steps(d, l, r, n); u != unequal || m != most {
				t.Fatalf("%s: %d unequal, %d steps at most; want %d and %d (%v, %v)", d, u, m, unequal, most, a, b)
			}
		})
	}
}

// TestDecodeAnyLength has numbers at every place of what is decoded several at a time, and of what is left over.
func TestDecodeAnyLength(t *testing.T) {
	for d, value := range map[hooks.DType]func([]byte) float32{
		hooks.F32:  func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) },
		hooks.BF16: func(b []byte) float32 { return floats.FromBF16(binary.LittleEndian.Uint16(b)) },
		hooks.F16:  func(b []byte) float32 { return floats.FromF16(binary.LittleEndian.Uint16(b)) },
	} {
		rapid.Check(t, func(t *rapid.T) {
			src := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "bytes")
			got := make([]float64, len(src)/d.Size())
			if err := floats.Decode(got, d, src); err != nil {
				t.Fatal(err)
			}
			for i, x := range got {
				if want := float64(value(src[i*d.Size():])); x != want && (x == x || want == want) {
					t.Fatalf("%s: element %d of %d is %g, want %g", d, i, len(got), x, want)
				}
			}
		})
	}
}
