package compare_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// again is a trace as another program saves it: sorted as the safetensors library sorts, in this dtype where it is not 0, and with the manifest.
func again(t *testing.T, from *capture.Trace, sorted bool, d hooks.DType) *capture.Trace {
	t.Helper()
	sources := from.Sources()
	for i := range sources {
		s := &sources[i]
		if d == 0 || !s.DType.Float() {
			continue
		}
		x, err := from.Value(s.Pass, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		e := fire(s.Name, d, s.Shape, x.Data...)
		s.DType, s.Data = d, bytes.NewReader(e.Tensor.Data)
	}
	if sorted {
		slices.SortStableFunc(sources, func(a, b capture.Source) int {
			return cmp.Or(-cmp.Compare(a.DType.Size(), b.DType.Size()), cmp.Compare(a.Key, b.Key))
		})
	}
	trace, err := capture.Assemble("again", sources, from.Manifest(), true, nil, from)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// A trace that another program wrote again says of itself what is no longer so: the error says what happened, and what to do.
func TestTracesThatWereWrittenAgainAreRefused(t *testing.T) {
	const dir = "llama-tiny"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/prefill.float32.safetensors")
	_, list := ordertest.Embedded(t, dir)
	for _, c := range []struct {
		what   string
		sorted bool
		dtype  hooks.DType
		why    string // empty: it is compared
	}{
		{"as it was", false, 0, ""},
		{"sorted", true, 0, "was written again by another program: its 80 tensors are sorted by dtype and name"},
		{"sorted, in float16", true, hooks.F16, ", and they are float16, not float32"},
		{"sorted, in bfloat16", true, hooks.BF16, ", and they are bfloat16, not float32"},
		{"in float16", false, hooks.F16, "it says that it was computed in float32, and its tensors are float16: another program wrote it again, or its writer says the wrong dtype"},
		{"in float64, which has all digits", false, hooks.F64, ""},
	} {
		for _, side := range []string{"local", "reference", "alone"} {
			l, r := again(t, golden, c.sorted, c.dtype), golden
			switch side {
			case "reference":
				l, r = r, l
			case "alone":
				r = nil
			}
			_, err := traces(l, r, compare.Options{Order: list})
			var bad *compare.UnsuitableError
			switch {
			case c.why == "" && err != nil:
				t.Errorf("%s, %s: %v", c.what, side, err)
			case c.why != "" && (!errors.As(err, &bad) || !strings.Contains(bad.Reason, c.why) || !strings.Contains(bad.Hint, "leave the metadata out")):
				t.Errorf("%s, %s: %v", c.what, side, err)
			}
		}
	}
}

// A few tensors in another dtype than the manifest's are the engine's own, and one that is before another which it is computed from is no
// file of the safetensors library.
func TestOtherContradictionsAreNoSecondWriting(t *testing.T) {
	const dir = "llama-tiny"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/prefill.float32.safetensors")
	_, list := ordertest.Embedded(t, dir)
	sources := golden.Sources()
	at := slices.IndexFunc(sources, func(s capture.Source) bool { return s.Name == "layers.0.mlp.down_proj" })
	sources[at], sources[at-1] = sources[at-1], sources[at]
	trace, err := capture.Assemble("exchanged", sources, golden.Manifest(), true, nil, golden)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compare.Traces(context.Background(), trace, golden, compare.Options{Order: list}); err == nil || !strings.Contains(err.Error(), "stands before") {
		t.Errorf("exchanged: %v", err)
	}
	half := again(t, golden, false, hooks.F16).Sources()
	for i := range half {
		if half[i].Name == order.InputIDs || half[i].Name == "logits" {
			half[i] = golden.Sources()[i]
		}
	}
	if trace, err = capture.Assemble("mixed", half, golden.Manifest(), true, nil, golden); err != nil {
		t.Fatal(err)
	}
	if _, err := compare.Traces(context.Background(), trace, golden, compare.Options{Order: list}); err != nil {
		t.Errorf("mixed: %v", err)
	}
}
