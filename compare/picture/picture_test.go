package picture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// drawn compares one tensor of both sides, and returns its row and picture.
func drawn(t interface {
	Fatal(...any)
	Helper()
}, dir, axes string, shape []int, l, r []float32,
) (*compare.Row, *picture.Tensor) {
	t.Helper()
	var traces [2]*capture.Trace
	for side, x := range [][]float32{l, r} {
		path := filepath.Join(dir, []string{"l", "r"}[side])
		w, err := capture.Create(path, capture.Manifest{Side: "local", Entries: []string{"x"}, Axes: map[string]string{"x": axes}, Passes: 1, DType: hooks.F32}, 1<<12)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		for _, v := range x {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		if err := w.Observe(hooks.Event{Name: "x", Tensor: hooks.Tensor{DType: hooks.F32, Shape: shape, Data: data}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		data, err = os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if traces[side], err = capture.OpenReader("x", bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
	var set picture.Set
	res, err := compare.Traces(context.Background(), traces[0], traces[1], compare.Options{All: true, Observe: set.See})
	if err != nil {
		t.Fatal(err)
	}
	row := &res.Rows[len(res.Rows)-1]
	return row, set.Of(row.Key())
}

// cell is the cell of an index, as the documentation of Map says.
func cell(i, cells, size int) int { return i * cells / size }

// One wrong element, wherever it is and however large the tensor, is the darkest cell of the map, the first of the worst, and in the
// head that it is in. Nothing else has an error.
func TestOneWrongElementIsSeen(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		tokens, heads, channels := rapid.IntRange(1, 70).Draw(t, "tokens"), rapid.IntRange(2, 5).Draw(t, "heads"), rapid.IntRange(1, 50).Draw(t, "channels")
		n := tokens * heads * channels
		r := make([]float32, n)
		for i := range r {
			r[i] = float32(i%17) - 8.5
		}
		l := slices.Clone(r)
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		l[at] += 0.25
		token, head, channel := at/(heads*channels), at/channels%heads, at%channels
		row, p := drawn(t, dir, "b t h c", []int{1, tokens, heads, channels}, l, r)

		m := p.Map
		if m.Down != "token" || m.Size != [2]int{tokens, heads * channels} || float64(m.Top) != 0.25 {
			t.Fatalf("%+v", m)
		}
		want := cell(token, m.Cells[0], tokens)*m.Cells[1] + cell(head*channels+channel, m.Cells[1], heads*channels)
		for i := range m.Codes {
			if c := m.Codes[i]; (c == '-') != (i == want) || c != '-' && c != 'B' {
				t.Fatalf("cell %d is %c; the wrong element is in cell %d", i, c, want)
			}
		}
		for h := range heads {
			if (p.Heads[h] == 'B') == (h == head) {
				t.Fatalf("heads %s; the wrong element is in head %d", p.Heads, head)
			}
		}
		if len(p.Worst) != 1 || !slices.Equal(p.Worst[0].Index, row.Metrics.Worst) || !slices.Equal(p.Worst[0].Index, []int{0, token, head, channel}) {
			t.Fatalf("worst %v, of the metrics %v", p.Worst, row.Metrics.Worst)
		}
		if p.Equal != int64(n-1) || len(p.Histogram) != 1 || p.Histogram[0] != 1 || p.Infinite != 0 {
			t.Fatalf("%d equal, histogram %v", p.Equal, p.Histogram)
		}
		rms := float64(row.Metrics.Norm) / math.Sqrt(float64(n))
		if low, high := math.Pow(10, float64(p.From)/2), math.Pow(10, float64(p.From+1)/2); 0.25/rms < low*(1-1e-12) || 0.25/rms >= high*(1+1e-12) {
			t.Fatalf("the error is %g of the root mean square, and its bin from %g to %g", 0.25/rms, low, high)
		}
	})
}

// What is not finite on one side alone is dark, whatever else differs; on both sides it does not count.
func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	_, p := drawn(t, t.TempDir(), "b t c", []int{1, 2, 4}, []float32{nan, 1, 2, 3, inf, 1, 2, nan}, []float32{1, 1, 2, 3, inf, 1, 1000, nan})
	if p.Map.Codes != "_BBBAB-A" || p.Infinite != 1 || p.Equal != 4 || float64(p.Map.Top) != 998 {
		t.Errorf("%+v", p)
	}
	if len(p.Worst) != 2 || p.Worst[0].Index[2] != 0 || p.Worst[1].Index[2] != 2 {
		t.Errorf("worst %+v", p.Worst)
	}
}

// The codes of a map are half octaves below the largest error, and what is smaller than 2^−30 of it is not zero.
func TestCodesAreHalfOctaves(t *testing.T) {
	l := []float32{1 << 20, 1 << 19, 1 << 18, 1 << 10, 1e-12, 0}
	_, p := drawn(t, t.TempDir(), "b t c", []int{1, 1, 6}, l, make([]float32, 6))
	for i, want := range []int{62, 60, 58, 42, 2, 1} {
		if got := bytes.IndexByte([]byte(alphabet), p.Map.Codes[i]); got != want {
			t.Errorf("an error of %g has code %d, not %d", l[i], got, want)
		}
	}
}

// Of many tensors those that are right are drawn small, and what is wrong with one stays to be seen; no number of tensors takes more
// than so much.
func TestManyTensorsAreSmall(t *testing.T) {
	_, large := drawn(t, t.TempDir(), "b t c", []int{1, 40, 100}, make([]float32, 4000), func() []float32 {
		r := make([]float32, 4000)
		r[39*100+99] = 1
		return r
	}())
	if large.Map.Cells != [2]int{32, 64} {
		t.Fatalf("cells %v", large.Map.Cells)
	}
	var set picture.Set
	set.Put("odd", large, true)
	plain := *large
	set.Put("plain", &plain, false)
	for i := range 6000 {
		set.Put(string(rune('a'+i)), &picture.Tensor{Map: picture.Map{Cells: [2]int{1, 1}, Codes: "B"}}, false)
	}
	if set.Of("odd").Map.Cells != [2]int{32, 64} {
		t.Error("the picture of what is wrong was made small")
	}
	m := set.Of("plain").Map
	if m.Cells != [2]int{8, 16} || m.Codes[len(m.Codes)-1] != '-' || bytes.Count([]byte(m.Codes), []byte("B")) != 127 {
		t.Errorf("%+v", m)
	}
	if set.Left() == "" || set.Of(string(rune('a'+5999))) != nil {
		t.Error("every tensor has a picture")
	}
}
