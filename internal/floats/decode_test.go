package floats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// Widening several numbers at a time gives the bits of widening each: every bfloat16, and float32 of every exponent, of any length
// and wherever they lie.
func TestDecodeByVectors(t *testing.T) {
	defer func(was bool) { vectors = was }(vectors)
	const room = 1 << 16
	narrow, single := make([]byte, 2*room), make([]byte, 4*room)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range room {
		binary.LittleEndian.PutUint16(narrow[2*i:], uint16(i))
		binary.LittleEndian.PutUint32(single[4*i:], uint32(i)<<16|rng.Uint32()>>16)
	}
	has := vectors
	check := func(d hooks.DType, src []byte, n int) {
		t.Helper()
		var sides [2][]float64
		for k := range sides {
			vectors = has && k == 1
			sides[k] = make([]float64, n)
			if err := Decode(sides[k], d, src); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range sides[0] {
			if got := sides[1][i]; math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%d elements of %s: element %d is %x, want %x", n, d, i, got, want)
			}
		}
	}
	check(hooks.BF16, narrow, room)
	check(hooks.F32, single, room)
	for n := range 200 {
		from := rng.IntN(room - n)
		check(hooks.BF16, append(make([]byte, n%5), narrow[2*from:]...)[n%5:], n)
		check(hooks.F32, append(make([]byte, n%5), single[4*from:]...)[n%5:], n)
	}
}

func BenchmarkDecode(b *testing.B) {
	const n = 1 << 13
	src, dst := make([]byte, 4*n), make([]float64, n)
	for _, d := range []hooks.DType{hooks.BF16, hooks.F32} {
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(int64(n * d.Size()))
			for b.Loop() {
				if err := Decode(dst, d, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Elements of every dtype are read back as they were appended.
func TestAppendedElementsAreDecoded(t *testing.T) {
	want := []float64{0, 1, 2, 3.5, 6}
	for d := hooks.F64; d.Valid(); d++ {
		values := slices.Clone(want)
		if !d.Float() {
			values[3] = 3 // cut off
		}
		got := make([]float64, len(want))
		if err := Decode(got, d, Append(nil, d, want...)); err != nil || !slices.Equal(got, values) {
			t.Errorf("%s: %v, want %v (%v)", d, got, values, err)
		}
	}
}
