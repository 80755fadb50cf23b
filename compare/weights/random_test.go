package weights_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// change is one thing that happens to a tensor.
var changes = map[string]func(*rapid.T, *tensor){
	"add to an element": func(t *rapid.T, x *tensor) {
		x.values[rapid.IntRange(0, len(x.values)-1).Draw(t, "at")] += 0.25
	},
	"next number": func(t *rapid.T, x *tensor) {
		at := rapid.IntRange(0, len(x.values)-1).Draw(t, "at")
		x.values[at] = float64(math.Nextafter32(float32(x.values[at]), 9))
	},
	"swap rows": func(t *rapid.T, x *tensor) {
		rows, _ := x.size()
		a, b := rapid.IntRange(0, rows-1).Draw(t, "a"), rapid.IntRange(0, rows-1).Draw(t, "b")
		x.reorder(func(i int) int {
			switch i {
			case a:
				return b
			case b:
				return a
			}
			return i
		})
	},
	"transpose": func(_ *rapid.T, x *tensor) { shape := slices.Clone(x.shape); x.transpose(); x.shape = shape },
	"scale": func(t *rapid.T, x *tensor) {
		by := rapid.SampledFrom([]float64{2, 0.5, -1, 3}).Draw(t, "by")
		x.each(func(v float64) float64 { return v * by })
	},
	"fold": func(_ *rapid.T, x *tensor) { x.each(func(v float64) float64 { return float64(float32(v + 1)) }) },
	"clear a row": func(t *rapid.T, x *tensor) {
		rows, _ := x.size()
		clear(x.row(rapid.IntRange(0, rows-1).Draw(t, "row")))
	},
	"interleave": func(_ *rapid.T, x *tensor) {
		rows, _ := x.size()
		x.reorder(func(i int) int { return i%2*(rows/2) + i/2 })
	},
	"float16":  func(_ *rapid.T, x *tensor) { x.cast(hooks.F16) },
	"bfloat16": func(_ *rapid.T, x *tensor) { x.cast(hooks.BF16) },
	"cut off": func(_ *rapid.T, x *tensor) {
		x.each(func(v float64) float64 { return float64(math.Float32frombits(math.Float32bits(float32(v)) &^ 0xffff)) })
	},
	"shift": func(_ *rapid.T, x *tensor) { copy(x.values, slices.Clone(x.values[1:])) },
	"NaN":   func(t *rapid.T, x *tensor) { x.values[rapid.IntRange(0, len(x.values)-1).Draw(t, "at")] = math.NaN() },
}

// TestNoElementThatDiffersIsCalledRight draws tensors and what happens to them. EQUAL is said where every element is the original's and
// nowhere else; CAST where every element is the original's to nearest even in the one format that it names.
func TestNoElementThatDiffersIsCalledRight(t *testing.T) {
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range changes {
			if !yield(n) {
				return
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := 2*rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "columns")
		if rapid.Bool().Draw(t, "square") {
			columns = rows
		}
		values := rapid.SliceOfN(rapid.Float32Range(-4, 4), rows*columns, rows*columns).Draw(t, "values")
		x := &tensor{shape: []int{rows, columns}, dtype: hooks.F32}
		for _, v := range values {
			x.values = append(x.values, float64(v))
		}
		original := slices.Clone(x.values)
		raw := encode(hooks.F32, original)
		for _, n := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "changes") {
			changes[n](t, x)
		}
		stored := make([]float64, len(x.values)) // what a file of the dtype has
		if err := floats.Decode(stored, x.dtype, encode(x.dtype, x.values)); err != nil {
			t.Fatal(err)
		}
		side := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: []int{rows, columns}, DType: hooks.F32, Data: bytes.NewReader(raw)}}}
		r, err := weights.Compare(context.Background(), checkpoint{"w": x}.side(), side, weights.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		row := r.Tensors[0]
		differ := 0
		for i, v := range stored {
			if v != original[i] && (v == v || original[i] == original[i]) {
				differ++
			}
		}
		allowed := func(d hooks.DType) bool {
			for i, v := range stored {
				y := &tensor{values: []float64{original[i]}}
				if y.cast(d); y.values[0] != v {
					return false
				}
			}
			return true
		}
		switch {
		case (row.Class == weights.Equal) != (differ == 0):
			t.Fatalf("%d elements differ: %s %s", differ, row.Class, row.What)
		case row.Class == weights.Cast:
			ok := false
			for _, d := range []hooks.DType{hooks.F16, hooks.BF16} {
				ok = ok || row.Rounding == d.String()+", to nearest even" && allowed(d)
			}
			if !ok && (row.Rounding == "bfloat16, to nearest even" || row.Rounding == "float16, to nearest even") {
				t.Fatalf("CAST %s, and an element is not", row.Rounding)
			}
		case row.Class != weights.Equal && (row.What == "" || row.Kind == ""):
			t.Fatalf("%s without a name: %+v", row.Class, row)
		}
		if row.Class != weights.Equal && row.Class != weights.Cast && r.Right() {
			t.Fatal(fmt.Sprint("right: ", row.Class))
		}
	})
}
