package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A comparison that is cancelled leaves nothing in its isolators that changes the next one: its result is that of isolators nobody has used. It is
// cancelled after some rows, while the next entries are being certified, and before the first.
func TestComparisonAfterACancelledOne(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	healthy := testengine.OpenGolden(t, "golden/"+dir+"/hello.bfloat16.safetensors")
	faulty := testengine.Tampered(t, healthy, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
		if key != "layers.2.mlp.act_fn" {
			return nil, 0
		}
		return append([]float64{data[0] + 1}, data[1:]...), hooks.BF16
	})
	isolator := func(of *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(of, list, reference.Weights(ck, of.Manifest().DType), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	options := func() compare.Options {
		o := compare.Options{Order: list, All: true, Workers: 2}
		o.Isolator, o.ReferenceIsolator = isolator(faulty), isolator(healthy)
		return o
	}
	result := func(o compare.Options) string {
		res, err := compare.Traces(t.Context(), faulty, healthy, o)
		if err != nil {
			t.Fatal(err)
		}
		if res.Isolation.Bugs != 2 || res.Divergence == nil || res.Divergence.Row.Name != "layers.2.mlp.act_fn" {
			t.Fatalf("%+v does not show what is to be tested", res.Isolation)
		}
		data, err := json.MarshalIndent(res, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := result(options())
	for _, rows := range []int{0, 1, 30, 150, 380} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			o := options()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := 0
			stop := func() {
				if seen++; seen > rows {
					cancel()
				}
			}
			o.Progress = func(_, _, _, _ int) { stop() } // before an entry is certified
			if res, err := compare.Traces(ctx, faulty, healthy, o); !errors.Is(err, context.Canceled) {
				t.Fatalf("result %v, error %v", res, err)
			}
			o.Progress = nil
			if diff := cmp.Diff(want, result(o)); diff != "" {
				t.Errorf("cancelled after %d entries:\n%s", rows, diff)
			}
		})
	}
}
