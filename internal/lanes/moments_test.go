package lanes_test

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/lanes"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// TestMoments draws tensors with holes, several strips long, and compares with the two passes of a textbook.
func TestMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3*lanes.Strip).Draw(t, "n")
		center := rapid.SampledFrom([]float64{0, 1, -1e6}).Draw(t, "center")
		holes := rapid.MapOf(rapid.IntRange(0, max(n-1, 0)), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)})).Draw(t, "holes")
		var data []byte
		var finite []float64
		var nan, up, down int64
		for i := range n {
			x, hole := holes[i]
			switch {
			case !hole:
				x = center + math.Sin(float64(i*i))
				finite = append(finite, x)
			case x != x:
				nan++
			case x > 0:
				up++
			default:
				down++
			}
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
		}
		var m lanes.Moments
		if err := m.Tensor(hooks.Tensor{DType: hooks.F64, Shape: []int{n}, Data: data}); err != nil {
			t.Fatal(err)
		}
		if m.N != int64(len(finite)) || m.NaN != nan || m.PosInf != up || m.NegInf != down {
			t.Fatalf("%d finite, %d NaN, %d and %d infinite; got %d, %d, %d and %d", len(finite), nan, up, down, m.N, m.NaN, m.PosInf, m.NegInf)
		}
		near(t, m.Summary(1), textbook(finite))
	})
}

func textbook(x []float64) lanes.Summary {
	s := lanes.Summary{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, y := range x {
		s.Min, s.Max = min(s.Min, y), max(s.Max, y)
		s.Mean += y / float64(len(x))
	}
	for _, y := range x {
		s.Std += (y - s.Mean) * (y - s.Mean) / float64(len(x))
	}
	s.Std = math.Sqrt(s.Std)
	if len(x) == 0 {
		s = lanes.Summary{Min: math.NaN(), Max: math.NaN(), Mean: math.NaN(), Std: math.NaN()}
	}
	return s
}

func near(t *rapid.T, got, want lanes.Summary) {
	close := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*max(1, math.Abs(b))
	}
	if got.Min != want.Min && !math.IsNaN(want.Min) || got.Max != want.Max && !math.IsNaN(want.Max) || !close(got.Mean, want.Mean) || !close(got.Std, want.Std) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

// TestMomentsRefuse has tensors that are none.
func TestMomentsRefuse(t *testing.T) {
	for _, bad := range []hooks.Tensor{{}, {DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 7)}, {DType: hooks.F32, Shape: []int{-1}}} {
		var m lanes.Moments
		if err := m.Tensor(bad); err == nil || m != (lanes.Moments{}) {
			t.Errorf("%v: %v, %+v", bad, err, m)
		}
	}
}

func BenchmarkMoments(b *testing.B) {
	data := make([]byte, 4<<20)
	for i := range len(data) / 4 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(math.Sin(float64(i)))))
	}
	t := hooks.Tensor{DType: hooks.F32, Shape: []int{len(data) / 4}, Data: data}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var m lanes.Moments
		if err := m.Tensor(t); err != nil {
			b.Fatal(err)
		}
	}
}
