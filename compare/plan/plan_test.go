package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

const golden = "golden/gemma3-tiny/decode.float32.safetensors"

// planned is the plan of a golden and a copy without some tensors.
func planned(t *testing.T, o plan.Options, change func(*capture.Manifest), without func(hooks.Event) bool) *plan.Plan {
	t.Helper()
	right := testengine.OpenGolden(t, golden)
	port := testengine.Rewritten(t, right, change, func(_ string, e hooks.Event) []hooks.Event {
		if without != nil && without(e) {
			return nil
		}
		return []hooks.Event{e}
	})
	_, o.Order = ordertest.Embedded(t, "gemma3-tiny")
	p, err := plan.New(sides.New(port, right, sides.Parity), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The walk begins with the ids, and has every entry of the order once.
func TestPlanIsTheOrder(t *testing.T) {
	p := planned(t, plan.Options{}, nil, nil)
	if p.Entries[0].Name != order.InputIDs || len(p.Entries) != len(p.List.Entries) {
		t.Errorf("%d entries, the first %s", len(p.Entries), p.Entries[0].Name)
	}
	if n := p.Index("layers.0.self_attn.q_proj"); n < 0 || p.Early(n) || p.Behind(n) || !p.Early(p.Index("embed_tokens")) || !p.Behind(p.Index("logits")) {
		t.Errorf("layer 0 is at %d", n)
	}
	if p.Index("nothing") >= 0 {
		t.Error("an unknown name has a place")
	}
	if first, last := p.Ends(0); p.Entries[first].Name != order.InputIDs || p.Entries[last].Name != "logits" {
		t.Errorf("a pass goes from %d to %d", first, last)
	}
}

// Passes that one side lacks are not common, and a scope leaves out what was not asked for.
func TestScopeAndPasses(t *testing.T) {
	p := planned(t, plan.Options{Scope: capture.Scope{Level: 2}}, func(m *capture.Manifest) { m.Passes = 2 }, func(e hooks.Event) bool { return e.Pass > 1 })
	if common := p.Common(); !slices.Equal(common, []int{0, 1}) || p.Passes < 3 {
		t.Errorf("common passes %v of %d", common, p.Passes)
	}
	if p.Covered(p.Index("layers.0.self_attn.scores")) || !p.Covered(p.Index("layers.0.self_attn.q_proj")) {
		t.Error("level 2 has the outputs of modules, without what is inside")
	}
	if asked, _ := p.Narrowings(); len(asked) > 0 {
		t.Errorf("a level is no gap: %q", asked)
	}
	layers, err := capture.ParseRanges("1")
	if err != nil {
		t.Fatal(err)
	}
	if asked, _ := planned(t, plan.Options{Scope: capture.Scope{Layers: layers}}, nil, nil).Narrowings(); len(asked) != 1 || !strings.Contains(asked[0], "layers") {
		t.Errorf("one layer of several is a gap: %q", asked)
	}
}

// A side that declares an entry and lacks its tensor is to blame, and nobody is where neither promises the entry.
func TestMissing(t *testing.T) {
	p := planned(t, plan.Options{}, nil, nil)
	n := p.Index("layers.0.mlp.up_proj")
	for has, want := range map[[2]bool]string{{false, true}: "local", {true, false}: "reference", {false, false}: "both"} {
		if got := p.Missing(n, has); got != want {
			t.Errorf("%v: %q, want %q", has, got, want)
		}
	}
	silent := planned(t, plan.Options{}, func(m *capture.Manifest) { m.Entries, m.Scope.Level = []string{"embed_tokens"}, 0 }, func(e hooks.Event) bool { return e.Name != "embed_tokens" && e.Name != order.InputIDs })
	if got := silent.Missing(silent.Index("layers.0.mlp.up_proj"), [2]bool{false, true}); got != "" {
		t.Errorf("a port with one hook promises nothing else: %q", got)
	}
}

// A tensor has the shape of the order and the ids, or the plan says which shape it should have.
func TestShape(t *testing.T) {
	p := planned(t, plan.Options{}, nil, nil)
	e, _ := p.Entry("layers.0.input_layernorm")
	rec, ok := p.Sides[sides.Local].Trace.Lookup(0, e.Name)
	if !ok {
		t.Fatal("no tensor")
	}
	if why := p.Shape(sides.Local, 0, e, rec); why != "" {
		t.Errorf("the golden's shape: %q", why)
	}
	rec.Shape = append(slices.Clone(rec.Shape[:2]), rec.Shape[2]+1)
	if why := p.Shape(sides.Local, 0, e, rec); why == "" {
		t.Error("a channel too many is no other shape")
	}
}

// Without an order the walk has the tensors of the reference, as they were first fired.
func TestPlanOfNames(t *testing.T) {
	trace := testengine.Build(t, testengine.Manifest("local", hooks.F32), testengine.Fire("b", hooks.F32, []int{1}, 1), testengine.Fire("a", hooks.F32, []int{1}, 2))
	p, err := plan.New(sides.New(trace, trace, sides.Parity), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range p.Entries {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"b", "a"}) {
		t.Errorf("%v", names)
	}
}

// A trace that claims far more passes than its tensors can fill is refused, by a plan as by a look at the trace before anything runs.
func TestClaimedPasses(t *testing.T) {
	right := testengine.OpenGolden(t, "golden/gemma3n-tiny/hello.bfloat16.safetensors")
	_, list := ordertest.Embedded(t, "gemma3n-tiny")
	if err := plan.Walkable(right, list); err != nil {
		t.Error(err)
	}
	claims := testengine.Rewritten(t, right, func(m *capture.Manifest) { m.Passes = 1 << 16 }, nil)
	const want = "65536 passes of 422 entries are claimed"
	if err := plan.Walkable(claims, list); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("before anything runs: %v", err)
	}
	if _, err := plan.New(sides.New(claims, right, sides.Parity), plan.Options{Order: list}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the plan: %v", err)
	}
}
