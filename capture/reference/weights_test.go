package reference_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Rows that are read from the file several at once are those that are read one at a time through the mapping, in whatever dtype and
// pieces; and a file that was cut short is an error.
func TestRowsReadTogether(t *testing.T) {
	const rows, cols = 40, 3000 // a row is no whole part of what is read at once
	for _, stored := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
		weights := checkpointtest.Random([]checkpoint.Want{{Name: "w", Shape: []int{rows, cols}}, {Name: "embed_tokens.weight", Shape: []int{2, 2}}}, stored, "model.", 5)
		dir := checkpointtest.Write(t, t.TempDir(), []byte("{}"), weights, 1)
		ck, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ck.Close()
		for _, model := range []hooks.DType{hooks.F32, hooks.BF16} {
			w, err := reference.Weights(ck, model)(order.Weight{Name: "none", Fallback: "w", Shape: []int{rows, cols}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range [][2]int{{0, rows}, {3, 1}, {7, 20}, {rows - 1, 1}, {5, 0}} {
				got := make([]float64, c[1]*cols)
				if err := w.(program.Spanner).Span(got, c[0], c[1]); err != nil {
					t.Fatal(err)
				}
				want := make([]float64, cols)
				for r := range c[1] {
					if err := w.Row(want, c[0]+r); err != nil {
						t.Fatal(err)
					}
					for k, v := range want {
						if math.Float64bits(got[r*cols+k]) != math.Float64bits(v) {
							t.Fatalf("%s in a model of %s: row %d, column %d is %v, want %v", stored, model, c[0]+r, k, got[r*cols+k], v)
						}
					}
				}
			}
		}
		w, err := reference.Weights(ck, stored)(order.Weight{Name: "w", Shape: []int{rows, cols}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 4096); err != nil {
			t.Fatal(err)
		}
		if err := w.(program.Spanner).Span(make([]float64, rows*cols), 0, rows); err == nil {
			t.Error("rows of a file that was cut short were read")
		}
	}
}

// Spare vectors are the vectors of the text model that no entry reads: no matrix, no vector of another tower, and none that an entry reads.
func TestSpareVectors(t *testing.T) {
	var wants []checkpoint.Want
	for name, shape := range map[string][]int{
		"embed_tokens.weight": {4, 2}, "layers.0.read.weight": {2}, "layers.0.other.weight": {2, 2}, "layers.0.scale": {2}, "layers.0.other.bias": {3}, "vision_tower.bias": {2},
	} {
		wants = append(wants, checkpoint.Want{Name: name, Shape: shape})
	}
	dir := checkpointtest.Write(t, t.TempDir(), []byte("{}"), checkpointtest.Random(wants, hooks.F32, "model.", 5), 1)
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	list := &order.List{Entries: []order.Entry{{Weights: []order.Weight{{Name: "layers.0.read.weight", Shape: []int{2}}}}}}
	want := []order.Weight{{Name: "layers.0.other.bias", Shape: []int{3}}, {Name: "layers.0.scale", Shape: []int{2}}}
	if got := reference.SpareVectors(ck, list); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
