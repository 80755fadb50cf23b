package isolate_test

import (
	"context"
	"io/fs"
	"math"
	"path"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// Every entry of every golden, computed from transformers' own inputs: in 16 bits nearly all elements are equal bit for
// bit, in float32 within a few units in the last place of the tensor, and not one is beyond what rounding explains. Tensors
// that the capture recomputed show nothing and are no leaves.
func TestTransformersIsolated(t *testing.T) {
	limits := map[hooks.DType]struct{ equal, relL2 float64 }{
		hooks.F32: {0, 2e-6}, hooks.BF16: {0.9999, 1e-3}, hooks.F16: {0.9999, 1e-3},
	}
	for dtype, limit := range limits {
		names, err := fs.Glob(ondisk.Files(), "golden/*/*."+dtype.String()+".safetensors")
		if err != nil || len(names) == 0 {
			t.Fatalf("no goldens in %s: %v", dtype, err)
		}
		var elements, unequal int64
		worst, worstAt := measure.Number(0), ""
		for _, name := range names {
			dir := path.Base(path.Dir(name))
			ck, list := ordertest.Embedded(t, dir)
			trace := testengine.OpenGolden(t, name)
			i, err := compare.NewIsolator(trace, list, reference.Weights(ck, dtype), isolate.Options{Arithmetic: isolate.Strict})
			if err != nil {
				t.Fatal(err)
			}
			beforeElements, beforeUnequal := elements, unequal
			for _, r := range trace.Records() {
				e, _ := list.Lookup(r.Name)
				if _, argument := e.Op.(op.Given); argument || e.Derived() {
					continue
				}
				c, err := i.Certify(context.Background(), r.Name, r.Pass)
				if err != nil {
					t.Fatal(err)
				}
				if c.Outcome == isolate.Bug {
					t.Errorf("%s: %s in pass %d: %d elements beyond rounding, by %.3g of the bound", name, r.Name, r.Pass, c.Outside, float64(c.Worst))
				}
				if !strings.HasSuffix(r.Name, "probs_f32") {
					elements, unequal = elements+c.Elements, unequal+c.Unequal
				}
				if math.IsNaN(float64(c.RelL2)) {
					t.Errorf("%s: %s in pass %d has no relative L2", name, r.Name, r.Pass)
				}
				if c.RelL2 > worst {
					worst, worstAt = c.RelL2, name+" "+r.Name
				}
			}
			// Each golden by itself, since one family that is off would drown among the others.
			if share := 1 - float64(unequal-beforeUnequal)/float64(elements-beforeElements); !(share >= limit.equal) {
				t.Errorf("%s: %.5f %% of the elements equal, want %.5f %%", name, 100*share, 100*limit.equal)
			}
		}
		equal := 1 - float64(unequal)/float64(elements)
		t.Logf("%s: %d of %d elements differ (%.5f %% equal), worst relative L2 %.2g in %s", dtype, unequal, elements, 100*equal, float64(worst), worstAt)
		if !(equal >= limit.equal) || !(float64(worst) <= limit.relL2) {
			t.Errorf("%s: %.5f %% equal, worst relative L2 %.3g in %s; want %.5f %% and %.3g", dtype, 100*equal, float64(worst), worstAt, 100*limit.equal, limit.relL2)
		}
	}
}
