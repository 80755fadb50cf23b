package foreign_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/ggmltext"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// row is the text of eval-callback of a tensor of one row.
func row(values []float32) string {
	var items []string
	sum := float32(0)
	for i, v := range values {
		sum += v
		if len(values) > 6 && i == 3 {
			items = append(items, "...")
		}
		if len(values) <= 6 || i < 3 || i >= len(values)-3 {
			items = append(items, fmt.Sprintf("%.4f", v))
		}
	}
	return fmt.Sprintf("common_debug_cb_eval: x = (f32) MUL(a{1, 1, 1, 1}, }) = {%d, 1, 1, 1}\n[\n[\n[ %s ],\n],\n]\nsum = %f\n", len(values), strings.Join(items, ", "), sum)
}

func float32s(values []float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

// filled is the tensor nearest to r that would be printed like v.
func filled(t *rapid.T, v, r []float32, sums bool) []float32 {
	f := &container.File{}
	text := row(v)
	if err := ggmltext.Read(strings.NewReader(text), int64(len(text)), f); err != nil {
		t.Fatal(err)
	}
	x := &f.Tensors[0]
	open := func(s capture.Source) *capture.Trace {
		trace, err := capture.Assemble("dump", []capture.Source{s}, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	shape := []int{1, 1, 1, len(r)}
	local := open(capture.Source{Name: "x", DType: x.DType, Shape: x.Shape, Data: x, Printed: x.Printed})
	trace, err := foreign.Nearest(local, open(capture.Source{Name: "x", DType: hooks.F32, Shape: shape, Data: bytes.NewReader(float32s(r))}), sums)
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := trace.Lookup(0, "x")
	got, err := trace.Read(rec)
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, len(got.Data)-1)
	if _, err := trace.ReadAt(rec, part, 1); err != nil || !bytes.Equal(part, got.Data[1:]) {
		t.Fatalf("a part of it is other than in the whole: %v", err)
	}
	out := make([]float32, len(r))
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(got.Data[4*i:]))
	}
	return out
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// No tensor that is printed like the text is nearer to the reference than the one that stands for it: what is called a mismatch is one.
// Without sums this is so for every element.
func TestNearestIsNoFartherThanTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		scale := math.Ldexp(1, rapid.IntRange(-20, 12).Draw(t, "scale"))
		apart := math.Ldexp(scale, -rapid.IntRange(0, 24).Draw(t, "apart"))
		offset := rapid.Float64Range(-1, 1).Draw(t, "offset")
		unit := rapid.Float64Range(-1, 1)
		v, r := make([]float32, n), make([]float32, n)
		for i := range r {
			r[i] = float32(scale * unit.Draw(t, "r"))
			v[i] = float32(float64(r[i]) + apart*(offset+unit.Draw(t, "d")))
		}
		// One rounding to float32 an element is allowed for.
		roundings := distance(r, make([]float32, n)) * 0x1p-23
		if got, truth := distance(filled(t, v, r, true), r), distance(v, r); got > truth+roundings {
			t.Fatalf("the distance is %g, that of the tensor %g", got, truth)
		}
		for i, x := range filled(t, v, r, false) {
			if d, truth := math.Abs(float64(x)-float64(r[i])), math.Abs(float64(v[i])-float64(r[i])); d > truth+math.Abs(float64(r[i]))*0x1p-23 {
				t.Fatalf("element %d is off by %g, in the tensor by %g", i, d, truth)
			}
		}
	})
}

// A difference in what is not printed shows in the sum; one in what is printed in the elements.
func TestNearestSeesDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(8, 40).Draw(t, "n")
		r := make([]float32, n)
		for i := range r {
			r[i] = float32(rapid.Float64Range(-2, 2).Draw(t, "r"))
		}
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		v := append([]float32(nil), r...)
		v[at] += 0.25
		got := filled(t, v, r, true)
		want := 0.249 / math.Sqrt(float64(n)) // what the sum says of it
		if at < 3 || at >= n-3 {
			want = 0.249
		}
		if d := distance(got, r); d < want {
			t.Fatalf("element %d of %d is 0.25 off, and the distance is %g, not %g", at, n, d, want)
		}
		if same := filled(t, r, r, true); distance(same, r) != 0 {
			t.Fatalf("the same tensor is %g away", distance(same, r))
		}
	})
}
