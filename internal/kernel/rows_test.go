package kernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// number draws a float32: usual ones, whose sums round, and those at which arithmetic is special.
func number(t *rapid.T) float32 {
	special := []float32{
		0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1, -1,
		math.SmallestNonzeroFloat32, -math.MaxFloat32, 0x1p-126, 0x1.8p-130, 0x1p-24, 65504, 0x1.fep127,
	}
	if rapid.IntRange(0, 40).Draw(t, "kind") == 0 {
		return rapid.SampledFrom(special).Draw(t, "special")
	}
	return float32(math.Ldexp(float64(rapid.Int64Range(-1<<24, 1<<24).Draw(t, "digits")), rapid.IntRange(-34, -14).Draw(t, "exponent")))
}

// Products have the same bits with registers of either width and without: in every format, for every number of rows, columns and
// tokens, wherever the weights lie in memory or in a file, with NaN, infinities, subnormals and zeros of both signs.
func TestVectorsChangeNoBit(t *testing.T) {
	best := widest
	t.Cleanup(func() { widest = best })
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]hooks.DType{hooks.BF16, hooks.F16, hooks.F32})
		format, a := of.Draw(t, "format"), Arith{DType: of.Draw(t, "dtype")}
		rows, cols := rapid.IntRange(1, 19).Draw(t, "rows"), rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(depth-40, 4*depth+40)).Draw(t, "cols")
		tokens := rapid.IntRange(1, 2*most+1).Draw(t, "tokens")
		few := rapid.SliceOfN(rapid.Custom(number), 1, 80).Draw(t, "numbers")
		b := make([]byte, rapid.IntRange(0, 9).Draw(t, "offset"))
		offset := len(b)
		for i := range rows * cols {
			v := few[i*7919%len(few)]
			switch format {
			case hooks.BF16:
				b = binary.LittleEndian.AppendUint16(b, floats.BF16(v))
			case hooks.F16:
				b = binary.LittleEndian.AppendUint16(b, floats.F16(v))
			default:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		m, err := NewMatrix(hooks.Tensor{DType: format, Shape: []int{rows, cols}, Data: b[offset:]}, a)
		if err != nil {
			t.Fatal(err)
		}
		x, bias := make([]float32, tokens*cols), make([]float32, rows)
		for i := range x {
			x[i] = a.R(few[i*104729%len(few)])
		}
		if rapid.Bool().Draw(t, "bias") {
			copy(bias, few)
		} else {
			bias = nil
		}
		want, got := make([]float32, tokens*rows), make([]float32, tokens*rows)
		widest = 0
		mul := func(to []float32) {
			if err := m.Mul(to, x, tokens, bias); err != nil {
				t.Fatal(err)
			}
		}
		mul(want)
		if rapid.Bool().Draw(t, "from a file") {
			m.In(bytes.NewReader(b), int64(offset))
		}
		for _, widest = range []int{256, 512} {
			mul(got)
			for i := range want {
				if w, g := want[i], got[i]; math.Float32bits(g) != math.Float32bits(w) && (w == w || g == g) {
					t.Fatalf("registers of %d bits: row %d, token %d is %x, want %x", widest, i%rows, i/rows, g, w)
				}
			}
		}
	})
}
