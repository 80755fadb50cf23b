package compare_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

var decode = [][]float64{{2, 500, 501, 502, 503, 504}, {7}, {8}}

func twice(_ int, v float64) float64 { return 2 * v }

func TestEqualTracesMatchFromEndToEnd(t *testing.T) {
	list := tiny(t)
	res := run(t, model{list: list, passes: decode}.trace(t, "local"), model{list: list, passes: decode}.trace(t, "reference"),
		compare.Options{Order: list})
	var rows []string
	for i := range res.Rows {
		rows = append(rows, res.Rows[i].Key())
	}
	if got := res.ExitCode(); got != 0 || res.Divergence != nil || res.Incomplete != nil || res.Missing != nil {
		t.Fatalf("exit code %d, %+v %v %v", got, res.Divergence, res.Incomplete, res.Missing)
	}
	want := compare.Coverage{
		Compared: 3 * 389, Tested: 3 * 387, Entries: 3 * 389, Derived: 3 * 33, DerivedEntries: 3 * 33, Layers: 7, LayersComplete: 7, Passes: 3,
	}
	if diff := cmp.Diff(want, res.Coverage); diff != "" {
		t.Error(diff)
	}
	var keys []string
	for pass := range 3 {
		for _, name := range list.Names() {
			keys = append(keys, capture.Key(pass, name, 0))
		}
	}
	if diff := cmp.Diff(keys, rows); diff != "" {
		t.Errorf("rows in another order than the entries\n%s", diff)
	}
	// In the decode passes nothing is masked, as the order has it from the positions.
	var confirmed []string
	for i := range res.Rows {
		if r := &res.Rows[i]; r.Facts.Content == compare.Confirmed {
			confirmed = append(confirmed, r.Key())
		}
	}
	if want := []string{"pass1/mask.sliding", "pass1/mask.full", "pass2/mask.sliding", "pass2/mask.full"}; !slices.Equal(confirmed, want) || res.Untested != nil {
		t.Errorf("confirmed %q, want %q; untested %q", confirmed, want, res.Untested)
	}
}

func TestStopsAtTheFirstDivergence(t *testing.T) {
	list := tiny(t)
	bad := func(e *order.Entry, ev *hooks.Event) bool {
		if e.Name == "layers.2.mlp.down_proj" || e.Name == "layers.4.mlp.down_proj" {
			*ev = edited(*ev, twice)
		}
		return true
	}
	l, r := model{list: list, change: bad}.trace(t, "local"), model{list: list}.trace(t, "reference")
	res := run(t, l, r, compare.Options{Order: list})
	d := res.Divergence
	if d == nil || d.Row.Name != "layers.2.mlp.down_proj" || res.Mismatches != 1 || res.ExitCode() != 1 {
		t.Fatalf("divergence %+v, %d mismatches", d, res.Mismatches)
	}
	if last := res.Rows[len(res.Rows)-1]; last.Name != d.Row.Name {
		t.Errorf("the walk went on to %s", last.Name)
	}
	if d.LastMatch != "layers.2.mlp.gated" {
		t.Errorf("last match %q", d.LastMatch)
	}
	if diff := cmp.Diff([]compare.Parent{{Key: "layers.2.mlp.gated", Verdict: compare.Match}}, d.Parents); diff != "" {
		t.Error(diff)
	}
	if len(d.Weights) != 1 || d.Weights[0].Name != "layers.2.mlp.down_proj.weight" {
		t.Errorf("weights %+v", d.Weights)
	}
	hints := strings.Join(d.Hints, "\n")
	for _, want := range []string{"2 times the reference", "all its inputs match"} {
		if !strings.Contains(hints, want) {
			t.Errorf("no hint with %q in\n%s", want, hints)
		}
	}
	all := run(t, l, r, compare.Options{Order: list, All: true})
	if all.Mismatches != 2 || all.Divergence.Row.Name != d.Row.Name || len(all.Rows) != 422 || all.ExitCode() != 1 {
		t.Errorf("with All: %d mismatches in %d rows, first %s", all.Mismatches, len(all.Rows), all.Divergence.Row.Name)
	}
}

func TestDivergenceBetweenCapturedTensors(t *testing.T) {
	list := tiny(t)
	scope := capture.Scope{Level: 1}
	l := model{list: list, scope: scope, change: changing("layers.1.self_attn.o_proj", 0, twice)}.trace(t, "local")
	res := run(t, l, model{list: list}.trace(t, "reference"), compare.Options{Order: list})
	d := res.Divergence
	if d == nil || d.Row.Name != "layers.1.self_attn.o_proj" {
		t.Fatalf("divergence %+v", d)
	}
	var parents []string
	for _, p := range d.Parents {
		parents = append(parents, p.Key)
	}
	if !slices.Contains(parents, "layers.1.altup.predict") || !slices.Contains(d.Between, "layers.1.self_attn.scores") {
		t.Errorf("parents %q, between %q", parents, d.Between)
	}
	if !strings.Contains(strings.Join(d.Hints, "\n"), "--level 3") {
		t.Errorf("hints %q", d.Hints)
	}
}

func TestDivergenceOnlyInDecode(t *testing.T) {
	list := tiny(t)
	l := model{list: list, passes: decode, change: changing("layers.5.self_attn.q_rope", 1, twice)}.trace(t, "local")
	res := run(t, l, model{list: list, passes: decode}.trace(t, "reference"), compare.Options{Order: list})
	d := res.Divergence
	if d == nil || d.Row.Key() != "pass1/layers.5.self_attn.q_rope" {
		t.Fatalf("divergence %+v", d)
	}
	if !strings.Contains(strings.Join(d.Hints, "\n"), "decode step") {
		t.Errorf("hints %q", d.Hints)
	}
	// One token: the worst token is no choice, but the worst channel and head are.
	for _, a := range d.Row.Metrics.Axes {
		if a.Axis == "token" {
			t.Errorf("an axis of one index has a worst one: %+v", a)
		}
	}
}

func TestWorstPlacesAreNamed(t *testing.T) {
	list := tiny(t)
	const name = "layers.1.mlp.up_proj" // [1, 6, 64]
	l := model{list: list, change: changing(name, 0, func(i int, v float64) float64 {
		if i == 4*64+17 {
			return 100
		}
		return v
	})}.trace(t, "local")
	res := run(t, l, model{list: list}.trace(t, "reference"), compare.Options{Order: list})
	m := res.Divergence.Row.Metrics
	if !slices.Equal(m.Worst, []int{0, 4, 17}) || m.LocalAt != 100 {
		t.Errorf("worst at %v, local %g", m.Worst, m.LocalAt)
	}
	got := map[string]int{}
	for _, a := range m.Axes {
		got[a.Axis] = a.Worst
		if a.Axis == "token" && (a.Position == nil || *a.Position != 4) {
			t.Errorf("position of the worst token: %v", a.Position)
		}
	}
	if diff := cmp.Diff(map[string]int{"token": 4, "channel": 17}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDerivedNeverGates(t *testing.T) {
	list := tiny(t)
	const derived = "layers.0.attn_gated"
	wrong := model{list: list, change: changing(derived, 0, twice)}.trace(t, "local")
	absent := model{list: list, change: without(derived)}.trace(t, "local")
	r := model{list: list}.trace(t, "reference")
	res := run(t, wrong, r, compare.Options{Order: list})
	if res.ExitCode() != 0 || res.Mismatches != 0 || res.Divergence != nil {
		t.Errorf("a wrong derived entry: exit code %d, %d mismatches", res.ExitCode(), res.Mismatches)
	}
	i := slices.IndexFunc(res.Rows, func(r compare.Row) bool { return r.Name == derived })
	if i < 0 || !res.Rows[i].Derived || res.Rows[i].Verdict != compare.Mismatch {
		t.Errorf("the derived row is %+v", res.Rows[i])
	}
	res = run(t, absent, r, compare.Options{Order: list})
	if res.ExitCode() != 0 || res.Missing != nil || res.Coverage.Derived != 32 || res.Coverage.DerivedEntries != 33 {
		t.Errorf("an absent derived entry: exit code %d, missing %v, coverage %+v", res.ExitCode(), res.Missing, res.Coverage)
	}
}

func TestOnlyDerivedEntriesIsNoComparison(t *testing.T) {
	list := names(t, "a", "b")
	edit := func(m capture.Manifest) capture.Manifest { m.Derived = []string{"a", "b"}; return m }
	l := build(t, manifest("local", 0), fire("a", hooks.F32, []int{8}, some...), fire("b", hooks.F32, []int{8}, some...))
	r := build(t, edit(manifest("reference", 0)), fire("a", hooks.F32, []int{8}, some...), fire("b", hooks.F32, []int{8}, some...))
	if res := run(t, l, r, compare.Options{Order: list}); res.ExitCode() != 1 || res.Coverage.Derived != 2 || res.Coverage.Compared != 0 {
		t.Errorf("exit code %d, coverage %+v", res.ExitCode(), res.Coverage)
	}
}

func TestRepeatedFirings(t *testing.T) {
	list := names(t, "x")
	x := fire("x", hooks.F32, []int{8}, some...)
	wrong := fire("x", hooks.F32, []int{8}, times(some, 2)...)
	tests := []struct {
		why     string
		l, r    []hooks.Event
		rows    int
		missing string
		exit    int
	}{
		{"as often on both sides", []hooks.Event{x, x}, []hooks.Event{x, x}, 2, "", 0},
		{"the second differs", []hooks.Event{x, wrong}, []hooks.Event{x, x}, 2, "", 1},
		{"once more on the reference side", []hooks.Event{x}, []hooks.Event{x, x}, 1, "x#1", 1},
		{"once more on your port", []hooks.Event{x, x, x}, []hooks.Event{x, x}, 2, "x#2", 1},
	}
	for _, tt := range tests {
		res := run(t, build(t, manifest("local", 0), tt.l...), build(t, manifest("reference", 0), tt.r...), compare.Options{Order: list})
		missing := ""
		if len(res.Missing) > 0 {
			missing = res.Missing[0].Name
		}
		if len(res.Rows) != tt.rows || missing != tt.missing || res.ExitCode() != tt.exit {
			t.Errorf("%s: %d rows, missing %q, exit code %d", tt.why, len(res.Rows), missing, res.ExitCode())
		}
	}
}

func TestOrderOfTheReference(t *testing.T) {
	// Names in an order that no sorting makes.
	fires := func(by float64) []hooks.Event {
		return []hooks.Event{
			fire("wte", hooks.F32, []int{8}, some...), fire("block.10", hooks.F32, []int{8}, times(some, by)...),
			fire("block.9", hooks.F32, []int{8}, times(some, by)...),
		}
	}
	l, r := build(t, capture.Manifest{Side: "local"}, fires(2)...), build(t, capture.Manifest{Side: "reference"}, fires(1)...)
	res := run(t, l, r, compare.Options{})
	if res.Divergence == nil || res.Divergence.Row.Name != "block.10" {
		t.Errorf("first divergence %+v, want block.10, which was computed first", res.Divergence)
	}
	less := build(t, capture.Manifest{Side: "local"}, fires(1)[:2]...)
	if res := run(t, less, r, compare.Options{All: true}); res.ExitCode() != 1 || len(res.Missing) != 1 || res.Missing[0].Name != "block.9" {
		t.Errorf("a tensor that only the reference has: missing %v", res.Missing)
	}
	res = run(t, r, less, compare.Options{All: true})
	if res.Coverage.Unknown != 1 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "block.9") {
		t.Errorf("a tensor that only your port has: %+v, notes %q", res.Coverage, res.Notes)
	}
}

// TestATraceExcusesNothing has a trace that declares what it got wrong as derived, on either side: the order says what
// is derived.
func TestATraceExcusesNothing(t *testing.T) {
	list := tiny(t)
	wrong := model{list: list, change: changing("logits", 0, twice), edit: func(m *capture.Manifest) { m.Derived = []string{"logits"} }}
	right := model{list: list}
	for _, sides := range [][2]model{{wrong, right}, {right, wrong}} {
		res := run(t, sides[0].trace(t, "local"), sides[1].trace(t, "reference"), compare.Options{Order: list})
		if res.ExitCode() != 1 || res.Divergence == nil || res.Divergence.Row.Name != "logits" || res.Coverage.Entries != 389 {
			t.Errorf("exit code %d, divergence %+v, coverage %+v", res.ExitCode(), res.Divergence, res.Coverage)
		}
	}
}

// TestADeclaredDTypeHasToBeHeld has a trace of float32 tensors that declares bfloat16, whose limits are wider.
func TestADeclaredDTypeHasToBeHeld(t *testing.T) {
	list := tiny(t)
	local := model{list: list, dtype: hooks.F32, edit: func(m *capture.Manifest) { m.DType = hooks.BF16 }}
	_, err := compare.Traces(context.Background(), local.trace(t, "local"), model{list: list, dtype: hooks.F32}.trace(t, "reference"), compare.Options{Order: list})
	var unsuitable *compare.UnsuitableError
	if !errors.As(err, &unsuitable) || unsuitable.What != "manifest" || !strings.Contains(err.Error(), "bfloat16") {
		t.Errorf("error %v", err)
	}
}
