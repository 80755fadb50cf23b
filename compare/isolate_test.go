package compare_test

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
)

// Every entry of every golden, computed from transformers' own inputs: in 16 bits nearly all elements are equal bit for
// bit, in float32 within a few units in the last place of the tensor, and not one is beyond what rounding explains. Tensors
// that the capture recomputed show nothing and are no leaves.
func TestTransformersIsolated(t *testing.T) {
	limits := map[hooks.DType]struct{ equal, relL2 float64 }{
		hooks.F32: {0, 2e-6}, hooks.BF16: {0.9999, 1e-3}, hooks.F16: {0.9999, 1e-3},
	}
	for dtype, limit := range limits {
		names, err := fs.Glob(fixtures.Files, "golden/*/*."+dtype.String()+".safetensors")
		if err != nil || len(names) == 0 {
			t.Fatalf("no goldens in %s: %v", dtype, err)
		}
		var elements, unequal int64
		worst, worstAt := compare.Number(0), ""
		for _, name := range names {
			dir := path.Base(path.Dir(name))
			ck, list := openModel(t, dir)
			trace := openGolden(t, name)
			i, err := compare.NewIsolator(trace, list, reference.Weights(ck, dtype), compare.IsolateOptions{Arithmetic: compare.Strict})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range trace.Records() {
				e, _ := list.Lookup(r.Name)
				if _, argument := e.Op.(op.Argument); argument || e.Derived() {
					continue
				}
				c, err := i.Certify(context.Background(), r.Name, r.Pass)
				if err != nil {
					t.Fatal(err)
				}
				if c.Outcome == compare.Bug {
					t.Errorf("%s: %s in pass %d: %d elements beyond rounding, by %.3g of the bound", name, r.Name, r.Pass, c.Outside, float64(c.Worst))
				}
				if !strings.HasSuffix(r.Name, "probs_f32") {
					elements, unequal = elements+c.Elements, unequal+c.Unequal
				}
				if c.RelL2 > worst {
					worst, worstAt = c.RelL2, name+" "+r.Name
				}
			}
		}
		equal := 1 - float64(unequal)/float64(elements)
		t.Logf("%s: %d of %d elements differ (%.5f %% equal), worst relative L2 %.2g in %s", dtype, unequal, elements, 100*equal, float64(worst), worstAt)
		if equal < limit.equal || float64(worst) > limit.relL2 {
			t.Errorf("%s: %.5f %% equal, worst relative L2 %.3g in %s; want %.5f %% and %.3g", dtype, 100*equal, float64(worst), worstAt, 100*limit.equal, limit.relL2)
		}
	}
}

// A trace alone: every entry from its own inputs, and nothing else is needed to say that it is right, or which operations
// are wrong, however far apart.
func TestIsolateAlone(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := openModel(t, dir)
	healthy := openGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	alone := func(trace *capture.Trace) *compare.Result {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.BF16), compare.IsolateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, trace, trace, compare.Options{Order: list, All: true, Isolator: i, Alone: true})
	}
	if r := alone(healthy); r.ExitCode() != 0 || r.Isolation.Bugs != 0 || r.Isolation.Certified < 2500 {
		t.Errorf("a healthy trace: exit %d, %d bugs, %d certified, %v", r.ExitCode(), r.Isolation.Bugs, r.Isolation.Certified, r.Incomplete)
	}
}
