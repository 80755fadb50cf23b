package arithmetic_test

import (
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// numpy has no bfloat16, so that a port may save its tensors in float16. Numbers below 2⁻¹⁴ lose digits there: no entry is wrong for that, neither the tensor
// that lost them nor what was computed from it.
func TestBfloat16SavedAsFloat16(t *testing.T) {
	changed := 0
	for _, dir := range []string{"qwen3-tiny", "llama-tiny", "gemma3-tiny", "gemma2-tiny"} {
		ck, list := ordertest.Embedded(t, dir)
		golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
		saved := testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Derived = nil }, func(_ string, e hooks.Event) []hooks.Event {
			if e.Tensor.DType != hooks.BF16 {
				return []hooks.Event{e}
			}
			x := testengine.ValuesOf(e.Tensor)
			for i := range x {
				was := x[i]
				if x[i] = floats.Round(hooks.F16, was); x[i] != was {
					changed++
				}
			}
			return []hooks.Event{{Name: e.Name, Pass: e.Pass, Tensor: testengine.Fire(e.Name, hooks.F16, e.Tensor.Shape, x...).Tensor}}
		})
		i, err := compare.NewIsolator(saved, list, reference.Weights(ck, hooks.BF16), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range saved.Records() {
			if e, ok := list.Lookup(r.Name); !ok || e.Op == nil || e.Level > 3 || !r.DType.Float() {
				continue
			}
			z, err := i.Certify(t.Context(), r.Name, r.Pass)
			if err != nil {
				t.Errorf("%s: %s: %v", dir, r.Key, err)
			} else if z.Outcome == isolate.Bug {
				t.Errorf("%s: %s: %s", dir, r.Key, z.Detail())
			}
		}
	}
	if changed == 0 {
		t.Error("no number lost a digit")
	}
}
