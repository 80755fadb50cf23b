package inspect_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

var dtypes = []hooks.DType{
	hooks.F64, hooks.F32, hooks.F16, hooks.BF16, hooks.F8E4M3, hooks.F8E5M2,
	hooks.I64, hooks.I32, hooks.I16, hooks.I8, hooks.U64, hooks.U32, hooks.U16, hooks.U8, hooks.Bool,
}

// drawn is a tensor of any dtype with what a dtype has: NaN, infinities, numbers near both ends, many equal ones. With it
// come the values as they are read back.
func drawn(t *rapid.T, shape []int) (values []float64, d hooks.DType, data []byte) {
	d = rapid.SampledFrom(dtypes).Draw(t, "dtype")
	n, _ := hooks.Elements(shape)
	number := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.Float64Range(-400, 400), rapid.SampledFrom([]float64{0, 1, -1}))
	if d.Float() && d != hooks.F8E4M3 {
		number = rapid.OneOf(number, rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), -math.MaxFloat32, -65504, 60000}),
			rapid.SampledFrom([]float64{1, math.Nextafter(1, 2), math.SmallestNonzeroFloat64, 3 * math.SmallestNonzeroFloat64}))
	}
	values = rapid.SliceOfN(number, n, n).Draw(t, "values")
	for i := range values {
		switch d {
		case hooks.Bool:
			values[i] = math.Abs(math.Mod(math.Trunc(values[i]), 2))
		case hooks.U64: // of which float64 does not have every large one
			values[i] = math.Abs(values[i])
		}
	}
	x := tensor("w", d, shape, append(values, 0)...)
	if err := floats.Decode(values, d, x.Data); err != nil {
		t.Fatal(err)
	}
	return values, d, file(x)
}

// lowest has what stands for −Inf in a mask of a dtype.
var lowest = map[hooks.DType]float64{hooks.F64: -math.MaxFloat64, hooks.F32: -math.MaxFloat32, hooks.BF16: -0x1.fep127, hooks.F16: -65504}

// split returns what statistics are of, in ascending order, and how many other elements there are.
func split(values []float64, d hooks.DType) (sorted []float64, rest inspect.Stats) {
	for _, v := range values {
		low, hasMask := lowest[d]
		switch {
		case v != v:
			rest.NaN++
		case math.IsInf(v, 1):
			rest.Inf++
		case math.IsInf(v, -1):
			rest.NInf++
		case hasMask && v <= low*0.99:
			rest.Masked++
		default:
			sorted = append(sorted, v+0)
		}
		if v == 0 {
			rest.Zeros++
		}
	}
	slices.Sort(sorted)
	rest.Elements, rest.Finite = int64(len(values)), int64(len(sorted))
	return sorted, rest
}

// Statistics, percentiles and histogram are those of a sort and of sums in the plainest order.
func TestMeasuresAreThoseOfASort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := []int{rapid.IntRange(0, 4).Draw(t, "rows"), rapid.IntRange(1, 12).Draw(t, "columns")}
		values, d, data := drawn(t, shape)
		got := oneOf(t, data, inspect.Options{Name: "w"})
		sorted, want := split(values, d)
		s := *got.Line.Stats
		ignore := cmpopts.IgnoreFields(inspect.Stats{}, "Min", "Max", "Mean", "Std", "RMS", "MinAt", "MaxAt")
		if diff := cmp.Diff(want, s, ignore); diff != "" {
			t.Fatalf("counts\n%s", diff)
		}
		if len(sorted) == 0 {
			if got.Percentiles != nil || got.Histogram != nil || !math.IsNaN(float64(s.Mean)) || s.MinAt != nil {
				t.Fatalf("of nothing: %+v", got)
			}
			return
		}
		checkMoments(t, s, sorted, values, shape)
		for _, p := range got.Percentiles {
			if want := numpyPercentile(sorted, p.P); float64(p.Value) != want {
				t.Fatalf("percentile %v is %v, want %v of %v", p.P, p.Value, want, sorted)
			}
		}
		checkHistogram(t, got.Histogram, sorted)
	})
}

// numpyPercentile is numpy.percentile with method "linear", of sorted numbers.
func numpyPercentile(sorted []float64, p float64) float64 {
	at := p / 100 * float64(len(sorted)-1)
	i := int(at)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	a, b, part := sorted[i], sorted[i+1], at-float64(i)
	if part < 0.5 {
		return a + float64((b-a)*part)
	}
	return b - float64((b-a)*(1-part))
}

func checkMoments(t *rapid.T, s inspect.Stats, sorted, values []float64, shape []int) {
	n, sum, square := float64(len(sorted)), 0.0, 0.0
	for _, v := range sorted {
		sum += v / n
	}
	for _, v := range sorted {
		square += (v - sum) * (v - sum) / n
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-300+1e-9*(math.Abs(want)+math.Abs(sorted[0])+math.Abs(sorted[len(sorted)-1])) && !math.IsInf(square, 0) {
			t.Fatalf("%s is %v, want %v", what, got, want)
		}
	}
	near("mean", float64(s.Mean), sum)
	near("std", float64(s.Std), math.Sqrt(square))
	near("rms", float64(s.RMS), math.Hypot(sum, math.Sqrt(square)))
	if float64(s.Min) != sorted[0] || float64(s.Max) != sorted[len(sorted)-1] {
		t.Fatalf("extremes %v and %v, want %v and %v", s.Min, s.Max, sorted[0], sorted[len(sorted)-1])
	}
	if at := s.MinAt[0]*shape[1] + s.MinAt[1]; slices.Index(values, sorted[0]) != at {
		t.Fatalf("min at %v of %v", s.MinAt, values)
	}
	if at := s.MaxAt[0]*shape[1] + s.MaxAt[1]; slices.Index(values, sorted[len(sorted)-1]) != at {
		t.Fatalf("max at %v of %v", s.MaxAt, values)
	}
}

// sameNumbers takes what is not defined for equal.
var sameNumbers = cmp.Comparer(func(a, b measure.Number) bool { return a == b || a != a && b != b })

// Every element is in the bin whose bounds say so, and in one alone.
func checkHistogram(t *rapid.T, h *inspect.Histogram, sorted []float64) {
	last := len(h.Bins) - 1
	counted := h.Below + h.Above
	for i, b := range h.Bins {
		n := int64(0)
		for _, v := range sorted {
			if v >= float64(b.From) && (v < float64(b.To) || i == last && v == float64(b.To)) {
				n++
			}
		}
		if n != b.Count || i > 0 && b.From != h.Bins[i-1].To {
			t.Fatalf("bin %d has %d elements, %d lie in it: %+v of %v", i, b.Count, n, h, sorted)
		}
		counted += n
	}
	if counted != int64(len(sorted)) || len(h.Bins) > 16 {
		t.Fatalf("%d of %d elements, in %d bins", counted, len(sorted), len(h.Bins))
	}
}

// What is said of an index is what would be said of its elements alone.
func TestAxisIsItsSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "shape")
		values, d, data := drawn(t, shape)
		axis := rapid.IntRange(-len(shape), len(shape)-1).Draw(t, "axis")
		number := (axis + len(shape)) % len(shape)
		got := oneOf(t, data, inspect.Options{Name: "w", Axis: &axis}).ByAxis
		if len(got) != 1 || got[0].Number != number || len(got[0].Slices) != shape[number] {
			t.Fatalf("%+v", got)
		}
		stride, _ := hooks.Elements(shape[number+1:])
		for index, s := range got[0].Slices {
			var part []float64
			for i, v := range values {
				if i/stride%shape[number] == index {
					part = append(part, v)
				}
			}
			alone := oneOf(t, file(tensor("w", d, []int{len(part)}, part...)), inspect.Options{Name: "w"}).Line.Stats
			alone.MinAt, alone.MaxAt = nil, nil
			if diff := cmp.Diff(*alone, s, sameNumbers); diff != "" {
				t.Fatalf("index %d\n%s", index, diff)
			}
		}
	})
}

func oneOf(t *rapid.T, data []byte, o inspect.Options) *inspect.Tensor {
	r, err := inspect.Run(context.Background(), openRapid(t, data), o)
	if err != nil {
		t.Fatal(err)
	}
	return &r.Tensors[0]
}

// The same of tensors that are longer than a block, with rows that end anywhere in a strip.
func TestLongTensors(t *testing.T) {
	shape := []int{3, 5, 9001}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, d := range []hooks.DType{hooks.F64, hooks.F32, hooks.F16, hooks.BF16, hooks.I32} {
		values := make([]float64, 3*5*9001)
		for i := range values {
			values[i] = math.Trunc(1000 * rng.NormFloat64())
		}
		x := tensor("w", d, shape, values...)
		if err := floats.Decode(values, d, x.Data); err != nil {
			t.Fatal(err)
		}
		sorted := slices.Sorted(slices.Values(values))
		for axis, size := range shape {
			got := one(t, open(t, file(x)), inspect.Options{Name: "w", Axis: &axis, Top: size, Slice: "0,0,0"})
			if len(got.Percentiles) != 9 {
				t.Fatalf("%s: %d percentiles", d, len(got.Percentiles))
			}
			for _, p := range got.Percentiles {
				if want := numpyPercentile(sorted, p.P); float64(p.Value) != want {
					t.Errorf("%s: percentile %v is %v, want %v", d, p.P, p.Value, want)
				}
			}
			checkSquares(t, values, shape, axis, got)
			if axis == 1 {
				break // the last has more indexes than are listed
			}
		}
	}
}

// checkSquares compares the root mean squares by axis and by channel with sums in the plainest order.
func checkSquares(t *testing.T, values []float64, shape []int, axis int, got *inspect.Tensor) {
	t.Helper()
	stride, _ := hooks.Elements(shape[axis+1:])
	by, channels := make([]float64, shape[axis]), make([]float64, shape[2])
	for i, v := range values {
		by[i/stride%shape[axis]] += v * v
		channels[i%shape[2]] += v * v
	}
	near := func(what string, index int, got measure.Number, squares float64, n int) {
		if want := math.Sqrt(squares / float64(n)); math.Abs(float64(got)/want-1) > 1e-12 {
			t.Errorf("%s %d: rms %v, want %v", what, index, got, want)
		}
	}
	for i, s := range got.ByAxis[0].Slices {
		near("axis", i, s.RMS, by[i], len(values)/shape[axis])
	}
	if got.Channels == nil {
		return // integers
	}
	for _, c := range got.Channels.Top {
		near("channel", c.Index, c.RMS, channels[c.Index], len(values)/shape[2])
		if at := (c.At[0]*shape[1]+c.At[1])*shape[2] + c.At[2]; values[at] != float64(c.Peak) || c.At[2] != c.Index {
			t.Errorf("channel %d: peak %v at %v", c.Index, c.Peak, c.At)
		}
	}
}

// One element far away leaves the others their bins.
func TestOutliersDoNotFlattenTheHistogram(t *testing.T) {
	values := make([]float64, 1000)
	for i := range values {
		values[i] = float64(i) / 1000
	}
	values[3], values[4] = 1e6, -1e6
	h := one(t, open(t, file(tensor("w", hooks.F32, []int{1000}, values...))), inspect.Options{Name: "w"}).Histogram
	if h.Below != 10 || h.Above != 10 || len(h.Bins) != 16 {
		t.Fatalf("%d below, %d above, %d bins", h.Below, h.Above, len(h.Bins))
	}
	for _, b := range h.Bins {
		if b.Count < 60 || b.Count > 63 {
			t.Errorf("%d elements from %v to %v", b.Count, b.From, b.To)
		}
	}
}

// A channel that stands out is the first, with its largest element and where that is.
func TestChannels(t *testing.T) {
	values := make([]float64, 7*33)
	for i := range values {
		values[i] = float64(i%5) - 2
	}
	values[4*33+20], values[5*33+20], values[0] = -900, 800, math.NaN()
	tr := open(t, file(tensor("w", hooks.BF16, []int{7, 33}, values...)))
	c := one(t, tr, inspect.Options{Name: "w", Top: 2}).Channels
	if len(c.Top) != 2 || c.Size != 33 || c.Top[0].Index != 20 || c.Top[0].Peak != -900 || !slices.Equal(c.Top[0].At, []int{4, 20}) {
		t.Fatalf("%+v", c)
	}
	if got, want := float64(c.Top[0].RMS), math.Sqrt((900.*900+800*800+values[20]*values[20]+values[53]*values[53]+values[86]*values[86]+values[119]*values[119]+values[218]*values[218])/7); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("rms %v, want %v", got, want)
	}
	if ratio := c.Top[0].RMS / c.Median; ratio != c.Top[0].Ratio || ratio < 200 || c.Top[1].Ratio > 2 {
		t.Errorf("%+v", c)
	}
}

// Four times the elements take no more memory: exact percentiles of a float32 tensor included.
func TestMemoryDoesNotGrow(t *testing.T) {
	used := func(rows int) uint64 {
		values := make([]float64, 1024)
		for i := range values {
			values[i] = math.Sin(float64(i) * 12.9898)
		}
		row := tensor("w", hooks.F32, []int{1024}, values...).Data
		x := tensor("w", hooks.F32, []int{1}, 0)
		x.Shape, x.Data = []int{rows, 1024}, slices.Repeat(row, rows)
		tr := open(t, file(x))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		one(t, tr, inspect.Options{Name: "w"})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := used(256), used(1024)
	if large > small+1<<18 || large > 12<<20 {
		t.Errorf("%d bytes for 1 MiB of data, %d for 4 MiB", small, large)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tr := counted(t, 8)
	for _, o := range []inspect.Options{{}, {Name: "w"}} {
		if _, err := inspect.Run(ctx, tr, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := inspect.Pair(ctx, tr, tr, inspect.Options{Name: "w"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
