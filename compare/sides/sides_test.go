package sides_test

import (
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A pair finds a tensor on both sides or says that one lacks it, and counts the passes of each.
func TestPair(t *testing.T) {
	right := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	port := testengine.Rewritten(t, right, func(m *capture.Manifest) { m.Passes = 0 }, func(key string, e hooks.Event) []hooks.Event {
		if e.Pass > 1 || e.Name == "logits" {
			return nil
		}
		return []hooks.Event{e}
	})
	p := sides.New(port, right, sides.Parity)
	if l, r, both := p.Lookup(1, "norm"); !both || l.Name != "norm" || r.Pass != 1 {
		t.Errorf("norm: %v, %v, %t", l, r, both)
	}
	if _, _, both := p.Lookup(0, "logits"); both {
		t.Error("the port has no logits")
	}
	if p.Sides[sides.Local].Passes != 2 || p.Sides[sides.Reference].Passes != sides.Passes(right) || sides.Passes(right) < 3 {
		t.Errorf("%d and %d passes", p.Sides[sides.Local].Passes, p.Sides[sides.Reference].Passes)
	}
	if len(p.Each()) != 2 || len(sides.New(right, right, sides.Alone).Each()) != 1 {
		t.Error("a single trace is one side, a pair is two")
	}
}

// Integers are the ids of a pass. A tensor of floats has none.
func TestIntegers(t *testing.T) {
	trace := testengine.Build(t, testengine.Manifest("local", hooks.F32),
		testengine.Fire(order.InputIDs, hooks.I64, []int{1, 3}, 2, 527, 876), testengine.Fire("norm", hooks.F32, []int{1, 3, 1}, 1, 2, 3))
	if ids, ok, err := sides.Integers(trace, 0, order.InputIDs); err != nil || !ok || !slices.Equal(ids, []int64{2, 527, 876}) {
		t.Errorf("%v, %t, %v", ids, ok, err)
	}
	for _, name := range []string{"norm", "nothing"} {
		if ids, ok, err := sides.Integers(trace, 0, name); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}
}

// A scope selects by level, and always the ids.
func TestSelected(t *testing.T) {
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	all, blocks := sides.Selected(capture.Scope{}, list), sides.Selected(capture.Scope{Level: 1}, list)
	if len(all) != len(list.Entries) || len(blocks) >= len(all) || !blocks[order.InputIDs] || !blocks["layers.0.out"] || blocks["layers.0.self_attn.q_proj"] {
		t.Errorf("%d entries at level 3, %d at level 1", len(all), len(blocks))
	}
}

// The words of a pair: a single trace is on no side.
func TestNames(t *testing.T) {
	parity, alone := sides.NamesOf(sides.Parity), sides.NamesOf(sides.Alone)
	if parity.Alone() || parity.Both() != " on both sides" || !alone.Alone() || alone.Both() != "" {
		t.Errorf("%+v, %+v", parity, alone)
	}
	if text := parity.Pair("1", "2"); text != "local 1, reference 2" {
		t.Errorf("%q", text)
	}
}
