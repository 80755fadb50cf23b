package suitable_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/compare/suitable"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

const golden = "golden/gemma3-tiny/decode.float32.safetensors"

// otherEpsilon gives a trace the configuration of another model.
func otherEpsilon(m *capture.Manifest) {
	m.Config = bytes.Replace(m.Config, []byte(`"rms_norm_eps":0.000001`), []byte(`"rms_norm_eps":0.00001`), 1)
}

// A copy of a golden suits the golden. A copy with one change does not, and the error says which kind of change it is.
func TestTracesThatDoNotGoTogether(t *testing.T) {
	right := testengine.OpenGolden(t, golden)
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	twice := func(e hooks.Event) hooks.Event { // two sequences
		shape := append([]int{2}, e.Tensor.Shape[1:]...)
		e.Tensor = hooks.Tensor{DType: e.Tensor.DType, Shape: shape, Data: append(append([]byte{}, e.Tensor.Data...), e.Tensor.Data...)}
		return e
	}
	for _, c := range []struct {
		name, what string
		manifest   func(*capture.Manifest)
		event      func(key string, e hooks.Event) hooks.Event
	}{
		{name: "a copy"},
		{name: "other weights", what: "weights", manifest: func(m *capture.Manifest) { m.Weights = "sha256:" + strings.Repeat("0", 64) }},
		{name: "another configuration", what: "config", manifest: otherEpsilon},
		{name: "two sequences", what: "rows", event: func(key string, e hooks.Event) hooks.Event {
			if key == order.InputIDs {
				return twice(e)
			}
			return e
		}},
		{name: "a scope without what the trace has", what: "manifest", manifest: func(m *capture.Manifest) { m.Scope.Level = 1 }},
	} {
		port := testengine.Rewritten(t, right, c.manifest, func(key string, e hooks.Event) []hooks.Event {
			if c.event != nil {
				e = c.event(key, e)
			}
			return []hooks.Event{e}
		})
		_, err := suitable.Check([2]*capture.Trace{port, right}, suitable.Options{Order: list})
		var unsuitable *sides.UnsuitableError
		switch {
		case c.what == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.what != "" && (!errors.As(err, &unsuitable) || unsuitable.What != c.what || unsuitable.Hint == ""):
			t.Errorf("%s: %#v, want an error of the %s with a hint", c.name, err, c.what)
		}
	}
}

// Runs of different configurations go together where neither is the reference, and the differences are returned.
func TestDifferentConfigurationsInAB(t *testing.T) {
	right := testengine.OpenGolden(t, golden)
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	other := testengine.Rewritten(t, right, otherEpsilon, nil)
	differences, err := suitable.Check([2]*capture.Trace{other, right}, suitable.Options{Order: list, Mode: sides.AB})
	if err != nil || len(differences) != 1 || !strings.Contains(differences[0], "rms_norm_eps") {
		t.Errorf("%q, %v", differences, err)
	}
}
