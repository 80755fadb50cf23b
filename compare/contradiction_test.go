package compare_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// Letters of axes that the order does not know hide no shape.
func TestUnknownAxesHideNoShape(t *testing.T) {
	list := tiny(t)
	cut := model{list: list, edit: func(m *capture.Manifest) { m.Axes = map[string]string{"logits": "b t z"} }, change: func(e *order.Entry, ev *hooks.Event) bool {
		if e.Name == "logits" {
			shape := []int{1, ev.Tensor.Shape[1], 7}
			n, _ := hooks.Elements(shape)
			ev.Tensor = hooks.Tensor{DType: ev.Tensor.DType, Shape: shape, Data: ev.Tensor.Data[:n*ev.Tensor.DType.Size()]}
		}
		return true
	}}
	res := run(t, cut.trace(t, "local"), cut.trace(t, "reference"), compare.Options{Order: list, All: true})
	if r := rowOfKey(t, res, "logits"); r.Class != gate.Shape || res.ExitCode() != 1 {
		t.Errorf("%s %s, exit %d", r.Verdict, r.Class, res.ExitCode())
	}
}

// Keys of later passes in a file that does not say that its keys have passes are not compared, and that is no success. Nor is a
// declared name that is fired and that the order does not know.
func TestUnknownTensorsThatShouldBeCompared(t *testing.T) {
	list := tiny(t)
	right := model{list: list}
	later := func(side string) *capture.Trace {
		return testengine.Rewritten(t, right.trace(t, side), nil, func(_ string, e hooks.Event) []hooks.Event { return []hooks.Event{e} })
	}
	extra := func(declared bool) model {
		return model{list: list, edit: func(m *capture.Manifest) {
			if m.Entries = list.Names(); declared {
				m.Entries = append(m.Entries, "layers.0.mlp.phantom")
			}
		}}
	}
	add := func(m model, side string) *capture.Trace {
		return testengine.Rewritten(t, m.trace(t, side), nil, func(key string, e hooks.Event) []hooks.Event {
			if key != "logits" {
				return []hooks.Event{e}
			}
			return []hooks.Event{e, fire("layers.0.mlp.phantom", hooks.F32, []int{8}, some...)}
		})
	}
	for _, declared := range []bool{true, false} {
		res := run(t, add(extra(declared), "local"), later("reference"), compare.Options{Order: list})
		if (res.ExitCode() == 1) != declared {
			t.Errorf("declared %t: exit %d, incomplete %q", declared, res.ExitCode(), res.Incomplete)
		}
	}
	res := run(t, foreign(t, "x", "pass1/x"), foreign(t, "x", "pass1/x"), compare.Options{Order: names(t, "x")})
	if res.ExitCode() != 1 || len(res.Incomplete) != 2 || !strings.Contains(res.Incomplete[0], `"pass1/x"`) {
		t.Errorf("keys of a later pass: exit %d, incomplete %q", res.ExitCode(), res.Incomplete)
	}
}

// A trace is refused that has tensors which its own scope leaves out, or a pass without tokens; in an A/B comparison of one
// configuration as anywhere.
func TestTracesThatContradictThemselves(t *testing.T) {
	list := tiny(t)
	right := model{list: list}
	narrow := model{list: list, edit: func(m *capture.Manifest) { m.Scope = capture.Scope{Level: 1} }}
	empty := model{list: list, change: func(e *order.Entry, ev *hooks.Event) bool {
		if e.Name == order.InputIDs {
			ev.Tensor = hooks.Tensor{DType: hooks.I64, Shape: []int{1, 0}, Data: []byte{}}
		}
		return true
	}}
	negative := model{list: list, change: func(e *order.Entry, ev *hooks.Event) bool {
		if e.Name == order.InputIDs {
			n, _ := hooks.Elements(ev.Tensor.Shape)
			ev.Tensor.Data = nil
			for range n {
				ev.Tensor.Data = binary.LittleEndian.AppendUint64(ev.Tensor.Data, ^uint64(0))
			}
		}
		return true
	}}
	for what, m := range map[string]model{"scope": narrow, "no tokens": empty, "the id -1": negative} {
		for ab, compared := range map[bool]func(context.Context, *capture.Trace, *capture.Trace, compare.Options) (*compare.Result, error){false: compare.Traces, true: compare.AB} {
			_, err := compared(context.Background(), right.trace(t, "local"), m.trace(t, "reference"), compare.Options{Order: list})
			var unsuitable *compare.UnsuitableError
			if !errors.As(err, &unsuitable) || unsuitable.What != "manifest" || !strings.Contains(err.Error(), what) {
				t.Errorf("%s, A/B %t: error %v", what, ab, err)
			}
		}
	}
}

// What is out of scope is no gap in a chain: the arguments are compared where they have no row.
func TestScopeBreaksNoChain(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	isolatorOf := func(tr *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(tr, list, reference.Weights(ck, tr.Manifest().DType), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	local, ref := testengine.OpenGolden(t, fmt.Sprintf("golden/%s/decode.float32.safetensors", dir)), testengine.OpenGolden(t, fmt.Sprintf("golden/%s/decode.bfloat16.safetensors", dir))
	for _, scope := range []capture.Scope{{Level: 1}, {Level: 3, Tensors: []string{"logits"}}, {Level: 3, Passes: ranges(t, "1-3")}} {
		o := compare.Options{Order: list, All: true, Scope: scope, Certification: compare.Certification{Isolator: isolatorOf(local), ReferenceIsolator: isolatorOf(ref)}}
		if res := run(t, local, ref, o); res.Mismatches != 0 || res.Isolation.Drift == 0 {
			t.Errorf("%+v: %d mismatches, %d drifted: %+v", scope, res.Mismatches, res.Isolation.Drift, res.Divergence)
		}
	}
}

// The only entries that a trace has may be constant, as the probabilities of one token are: they follow from what was not
// captured, too.
func TestConstantsFollowFromTheIDs(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3n-tiny/what.float32.safetensors")
	_, list := ordertest.Embedded(t, "gemma3n-tiny")
	few := testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Entries, m.Scope = nil, capture.Scope{} }, func(key string, e hooks.Event) []hooks.Event {
		if key != order.InputIDs && !strings.Contains(key, "rotary") {
			return nil
		}
		return []hooks.Event{e}
	})
	res := run(t, few, golden, compare.Options{Order: list})
	if len(res.Untested) > 0 || res.Coverage.Tested == 0 {
		t.Errorf("untested %q, tested %d, incomplete %q", res.Untested, res.Coverage.Tested, res.Incomplete)
	}
}

// Inputs of the model may stand anywhere in a file that promises the order of execution, and in what a manifest lists. What is computed may not.
func TestInputsStandAnywhere(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	for _, c := range []struct {
		name  string
		moved func(name string) bool
		right bool
	}{
		{"positions", func(name string) bool { return name == order.PositionIDs }, true},
		{"ids", func(name string) bool { return name == order.InputIDs }, true},
		{"masks", func(name string) bool { return strings.HasPrefix(name, "mask.") }, true},
		{"tables", func(name string) bool { return strings.HasPrefix(name, "rotary.") }, false},
	} {
		var front, behind []capture.Source
		for _, s := range golden.Sources() {
			if c.moved(s.Name) {
				behind = append(behind, s)
			} else {
				front = append(front, s)
			}
		}
		if len(behind) == 0 {
			t.Fatalf("the golden has no %s", c.name)
		}
		m := golden.Manifest()
		if m.Entries = nil; c.right {
			for _, s := range slices.Concat(front, behind) {
				m.Entries = append(m.Entries, s.Name)
			}
		}
		moved, err := capture.Assemble("moved", slices.Concat(front, behind), m, true, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := compare.Traces(t.Context(), moved, golden, compare.Options{Order: list})
		var unsuitable *compare.UnsuitableError
		switch {
		case !c.right && !errors.As(err, &unsuitable):
			t.Errorf("%s behind what is computed from them: error %v", c.name, err)
		case c.right && (err != nil || res.Mismatches > 0 || len(res.Missing) > 0):
			t.Errorf("%s at the end: error %v, %+v", c.name, err, res)
		}
	}
}
