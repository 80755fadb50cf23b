package capture_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// narrow rounds to bfloat16 by the bits, ties to even.
func narrow(x float32) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// In whatever order ranks' results are added, each step rounded, the sum is within the bound of the one that is rounded once, and the sum
// of results that were rounded before within the bound of that more: among subnormal numbers, too, whether the engine keeps them or not.
func TestSummedHoldsForEveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]hooks.DType{hooks.F32, hooks.BF16}).Draw(t, "dtype")
		flushes := rapid.Bool().Draw(t, "flushes")
		round := func(x float32) float32 {
			if d == hooks.BF16 {
				x = narrow(x)
			}
			if flushes && math.Abs(float64(x)) < 0x1p-126 {
				return 0
			}
			return x
		}
		n := rapid.IntRange(1, 9).Draw(t, "ranks")
		exact, parts := 0.0, []float32{}
		var terms []io.ReaderAt
		for range n {
			x := rapid.Float64Range(-4, 4).Draw(t, "x") * rapid.SampledFrom([]float64{0, 1, 1, 0x1p-9, 0x1p-120, 0x1p-128, 0x1p-140}).Draw(t, "scale")
			part := float32(x)
			if d == hooks.BF16 {
				part = narrow(part)
			}
			exact, parts = exact+x, append(parts, part)
			data := binary.LittleEndian.AppendUint32(nil, math.Float32bits(part))
			terms = append(terms, bytes.NewReader(data[4-d.Size():]))
		}
		whole := 0.0
		for _, p := range parts {
			whole += float64(p)
		}
		sum := floats.Round(d, whole)
		trace, err := capture.Assemble("dump", []capture.Source{{Name: "x", DType: d, Data: bytes.NewReader(make([]byte, d.Size())), Terms: terms}}, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := trace.Lookup(0, "x")
		s, err := trace.Summed(r)
		if err != nil {
			t.Fatal(err)
		}
		for len(parts) > 1 { // any two become their sum
			i := rapid.IntRange(1, len(parts)-1).Draw(t, "i")
			j := rapid.IntRange(0, i-1).Draw(t, "j")
			parts[j] = round(parts[i] + parts[j])
			parts = append(parts[:i], parts[i+1:]...)
		}
		got := float64(parts[0])
		if math.Abs(got-sum) > s.Order[0] {
			t.Fatalf("%s: %g of %d ranks in another order, %g rounded once, bound %g", d, got, n, sum, s.Order[0])
		}
		// Whether one element is of a narrower dtype, written in a wider one, nothing tells: then u is of that.
		u := s.Unit
		if u < floats.Unit(d) {
			t.Fatalf("%s: u is %g", d, u)
		}
		last := floats.RoundingError(s.Held, math.Abs(sum))
		if n > 1 && math.Abs(got-exact) > s.Order[0]+s.Rounded[0]*(1+2*u)+last+math.Abs(exact)*0x1p-50 && s.Magnitude[0] > 0 {
			t.Fatalf("%s: %g of %d ranks, %g of what was not rounded, bounds %g and %g", d, got, n, exact, s.Order[0], s.Rounded[0])
		}
	})
}

// Two results that were rounded below the normal numbers of float32 are off by half a unit of 2^−149 each, whatever their size.
func TestSummedOfSubnormalResults(t *testing.T) {
	exact := 1.504632769052528e-36*0x1p-9 + 3.761592684603526e-37*0x1p-9
	var terms []io.ReaderAt
	sum := float32(0)
	for _, x := range []float64{1.504632769052528e-36 * 0x1p-9, 3.761592684603526e-37 * 0x1p-9} {
		sum += float32(x)
		terms = append(terms, bytes.NewReader(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))))
	}
	trace, err := capture.Assemble("dump", []capture.Source{{Name: "x", DType: hooks.F32, Data: bytes.NewReader(make([]byte, 4)), Terms: terms}}, capture.Manifest{}, false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := trace.Lookup(0, "x")
	s, err := trace.Summed(r)
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(float64(sum) - exact); off == 0 || off > s.Order[0]+s.Rounded[0] {
		t.Errorf("%g, which is %g from %g: the bounds are %g and %g", sum, off, exact, s.Order[0], s.Rounded[0])
	}
}
