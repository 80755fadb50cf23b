package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/testengine"
)

// What is computed from NaN is not isolated, and the reason is that, not what was not captured.
func TestNaNIsTheReason(t *testing.T) {
	const name = "layers.0.input_layernorm"
	c := testengine.CaseOf(t, 0)
	r := c.Start(t, c.Case, c.Strict, nil)
	r.Forward()
	e, _ := c.List.Lookup(name)
	from := e.Inputs[0].Name
	for _, ev := range r.Events {
		if ev.Pass == 0 && (ev.Name == name || ev.Name == from) {
			nan := appendValue(nil, ev.Tensor.DType, math.NaN())
			for i := 0; i < len(ev.Tensor.Data); i += len(nan) {
				copy(ev.Tensor.Data[i:], nan)
			}
		}
	}
	trace := build(t, r.Manifest(), r.Events...)
	i, err := compare.NewIsolator(trace, c.List, reference.Weights(c.Checkpoint, c.DType), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range run(t, trace, nil, compare.Options{Order: c.List, All: true, Certification: compare.Certification{Isolator: i}}).Rows {
		if row.Key() == name {
			if want := "they were computed from " + from + ", which has NaN or infinity"; !strings.Contains(row.NotIsolated, want) {
				t.Errorf("%s: %q says not %q", name, row.NotIsolated, want)
			}
			return
		}
	}
	t.Errorf("no row of %s", name)
}
