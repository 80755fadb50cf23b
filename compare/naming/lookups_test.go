package naming_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A table that is looked up within an operation has other rows for some ids: Gemma scales the rows, and the rows themselves are not dumped. Rows that are not in
// the table have no such name.
func TestRowsOfALookupWithinAnOperation(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma-tiny/decode.float32.safetensors")
	ck, list := ordertest.Embedded(t, "gemma-tiny")
	weights := reference.Weights(ck, hooks.F32)
	e, _ := list.Lookup("embed_tokens.lookup")
	table, err := weights(e.Weights[0])
	if err != nil {
		t.Fatal(err)
	}
	_, width := table.Size()
	scale := float64(float32(math.Sqrt(float64(width))))
	ids, _, err := sides.Integers(golden, 0, order.InputIDs)
	if err != nil || len(ids) < 3 {
		t.Fatal(ids, err)
	}
	for _, sign := range []float64{1, -1} {
		var want []string
		wrong := map[int64]bool{ids[1]: true, ids[2]: true}
		trace := testengine.Tampered(t, golden, func(key string, r capture.Record, data []float64) ([]float64, hooks.DType) {
			if r.Name == "embed_tokens" && r.Pass == 0 {
				for at, id := range ids {
					if !wrong[id] {
						continue
					}
					row := data[at*width:][:width]
					if err := table.Row(row, int(id)-1); err != nil {
						t.Fatal(err)
					}
					for k := range row {
						row[k] = float64(float32(sign * row[k] * scale))
					}
				}
			}
			return data, r.DType
		})
		for id := int64(0); id < 1<<12; id++ {
			if wrong[id] {
				want = append(want, fmt.Sprintf("id %d has the row of id %d", id, id-1))
			}
		}
		i, err := compare.NewIsolator(trace, list, weights, isolate.Options{DType: hooks.F32})
		if err != nil {
			t.Fatal(err)
		}
		f, err := i.Name(t.Context(), "embed_tokens")
		if err != nil {
			t.Fatal(err)
		}
		if named := strings.HasPrefix(f.Text(), strings.Join(want, "; ")); named != (sign > 0) {
			t.Errorf("rows times %g: %q", sign, f.Text())
		}
	}
}
