package compare_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// scaled changes the entries of these names by a factor.
func scaled(by float64, entries ...string) func(*order.Entry, *hooks.Event) bool {
	return func(e *order.Entry, ev *hooks.Event) bool {
		if slices.Contains(entries, e.Name) {
			*ev = edited(*ev, func(_ int, v float64) float64 { return v * by })
		}
		return true
	}
}

// Entries that are expected to differ must, somewhere; all others must not.
func TestExpectations(t *testing.T) {
	const gated, down, norm = "layers.2.mlp.gated", "layers.2.mlp.down_proj", "layers.4.input_layernorm"
	list := tiny(t)
	tests := []struct {
		why      string
		change   func(*order.Entry, *hooks.Event) bool // in A
		expect   []string
		exit     int
		first    string // the divergence, empty for none
		met      []int  // rows that differ, by pattern
		unmet    string // the pattern that is named
		compared int    // entries
	}{
		{"what differs was expected to", scaled(2, gated, down), []string{"layers.2.mlp.*"}, 0, "", []int{2}, "", 389},
		{"each of two patterns is borne out", scaled(2, gated, norm), []string{"layers.4.*", gated}, 0, "", []int{1, 1}, "", 389},
		{"nothing differs", nil, []string{"layers.2.mlp.*"}, 1, "", []int{0}, "layers.2.mlp.*", 389},
		{"one of two patterns shows nothing", scaled(2, gated), []string{gated, norm}, 1, "", []int{1, 0}, norm, 389},
		{"a difference within the limits is none", scaled(1+1e-6, gated), []string{gated}, 1, "", []int{0}, gated, 389},
		{"something else differs", scaled(2, gated, norm), []string{"layers.2.*"}, 1, norm, []int{1}, "", 0},
		{"something else differs before", scaled(2, gated, norm), []string{norm}, 1, gated, []int{0}, "", 0},
		{"nothing was expected", scaled(2, gated), nil, 1, gated, nil, "", 0},
	}
	for _, tt := range tests {
		a, b := model{list: list, change: tt.change}.trace(t, "local"), model{list: list}.trace(t, "reference")
		res := runAB(t, a, b, compare.Options{Order: list, Judging: compare.Judging{Different: tt.expect}})
		first := ""
		if res.Divergence != nil {
			first = res.Divergence.Row.Name
		}
		if res.ExitCode() != tt.exit || first != tt.first {
			t.Errorf("%s: exit code %d, divergence %q; want %d, %q", tt.why, res.ExitCode(), first, tt.exit, tt.first)
		}
		for i, e := range res.Expected {
			if e.Differ != tt.met[i] || e.Unmet != (e.Pattern == tt.unmet) {
				t.Errorf("%s: %+v", tt.why, e)
			}
		}
		if tt.compared > 0 && res.Coverage.Compared != tt.compared {
			t.Errorf("%s: compared %d", tt.why, res.Coverage.Compared)
		}
		if tt.exit == 0 && (res.Mismatches != 0 || len(res.Roots) != 0) {
			t.Errorf("%s: %d mismatches, roots %v", tt.why, res.Mismatches, res.Roots)
		}
	}
}

// A difference that another one leads to says so.
func TestDifferenceBehindAnExpectedOne(t *testing.T) {
	const gated, down = "layers.2.mlp.gated", "layers.2.mlp.down_proj"
	list := tiny(t)
	a, b := model{list: list, change: scaled(2, gated, down)}.trace(t, "local"), model{list: list}.trace(t, "reference")
	d := runAB(t, a, b, compare.Options{Order: list, Judging: compare.Judging{Different: []string{gated}}}).Divergence
	if d == nil || d.Row.Name != down || d.Row.Blame != compare.Inherited || !strings.Contains(strings.Join(d.Hints, "\n"), gated+", which was expected to differ") {
		t.Errorf("%+v", d)
	}
}

func TestPatternsThatExpectNothing(t *testing.T) {
	tr := build(t, manifest("local", hooks.F32), ids(2, 3), fire("x", hooks.F32, []int{2}, 1, 2))
	for pattern, says := range map[string]string{"y*": "no entry of the order", "[": "syntax error", "": "no entry of the order", "input_ids": "no entry of the order"} {
		_, err := compare.AB(context.Background(), tr, tr, compare.Options{Order: names(t, "input_ids", "x"), Judging: compare.Judging{Different: []string{pattern}}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// No expectation excuses other token ids, a NaN on one side, or what one side does not have; nor is any of these the
// difference that was expected.
func TestWhatNoExpectationExcuses(t *testing.T) {
	list := names(t, "input_ids", "x", "y")
	x, y := fire("x", hooks.F32, []int{4}, 1, 2, 3, 4), fire("y", hooks.F32, []int{4}, 4, 5, 6, 8)
	b := build(t, manifest("reference", hooks.F32), ids(2, 3), x, y)
	for why, a := range map[string]*capture.Trace{
		"other ids":   build(t, manifest("local", hooks.F32), ids(2, 4), fire("x", hooks.F32, []int{4}, 2, 4, 6, 8), y),
		"a NaN":       build(t, manifest("local", hooks.F32), ids(2, 3), fire("x", hooks.F32, []int{4}, notANum, 2, 3, 4), y),
		"an infinity": build(t, manifest("local", hooks.F32), ids(2, 3), fire("x", hooks.F32, []int{4}, inf, 2, 3, 4), y),
		"missing":     build(t, manifest("local", hooks.F32), ids(2, 3), y),
	} {
		res := runAB(t, a, b, compare.Options{Order: list, Judging: compare.Judging{Different: []string{"*"}}, All: true})
		if res.ExitCode() != 1 || res.Expected[0].Differ > 0 {
			t.Errorf("%s: exit code %d, %+v", why, res.ExitCode(), res.Expected)
		}
	}
	// What is derived decides nothing, so it cannot bear out an expectation.
	derived := func(side string, by float64) *capture.Trace {
		m := manifest(side, hooks.F32)
		m.Derived = []string{"x"}
		return build(t, m, ids(2, 3), fire("x", hooks.F32, []int{2}, by, 2), y)
	}
	res := runAB(t, derived("local", 5), derived("reference", 1), compare.Options{Order: list, Judging: compare.Judging{Different: []string{"x"}}})
	if e := res.Expected[0]; res.ExitCode() != 1 || e.Compared != 0 || !e.Unmet {
		t.Errorf("derived: exit code %d, %+v", res.ExitCode(), e)
	}
}

// Configurations and orders that differ are listed and gone on with; other weights are another model.
func TestDifferencesOfAAndB(t *testing.T) {
	list := tiny(t)
	windowed := func(m *capture.Manifest) { m.Config = json.RawMessage(`{"window":4,"eps":1e-6}`) }
	other := func(m *capture.Manifest) {
		m.Config = json.RawMessage(`{"window":8,"eps":1e-6}`)
		m.Entries = slices.Clone(m.Entries)
		m.Entries[3], m.Entries[4] = m.Entries[4], m.Entries[3]
	}
	a, b := model{list: list, edit: windowed}.trace(t, "local"), model{list: list, edit: other}.trace(t, "reference")
	res := runAB(t, a, b, compare.Options{Order: list})
	want := []string{
		"config: window: A 4, B 8",
		`order: number 2 of the common names: A "embed_tokens", B "embed_tokens_per_layer.lookup"`,
	}
	if diff := cmp.Diff(want, res.Differences); diff != "" {
		t.Error(diff)
	}
	if res.ExitCode() != 0 {
		t.Errorf("equal tensors: exit code %d, %v", res.ExitCode(), res.Incomplete)
	}

	// What only one of two configurations has is compared with nothing, and so the comparison is not whole.
	extra := model{list: list, edit: windowed}.events()
	m := manifest("local", hooks.F32)
	windowed(&m)
	a = build(t, m, append(extra, fire("layers.7.new", hooks.F32, []int{2}, 1, 2))...)
	if res := runAB(t, a, b, compare.Options{Order: list}); res.ExitCode() != 1 || !strings.Contains(strings.Join(res.Incomplete, "\n"), "1 tensor of trace A") {
		t.Errorf("a tensor that only A has: exit code %d, %v", res.ExitCode(), res.Incomplete)
	}

	weights := func(sum string) func(*capture.Manifest) { return func(m *capture.Manifest) { m.Weights = sum } }
	a, b = model{list: list, edit: weights("sha256:aa")}.trace(t, "local"), model{list: list, edit: weights("sha256:bb")}.trace(t, "reference")
	if _, err := compare.AB(context.Background(), a, b, compare.Options{Order: list}); err == nil || !strings.Contains(err.Error(), `A "sha256:aa", B "sha256:bb"`) {
		t.Errorf("other weights: %v", err)
	}
}

// A certificate of A says nothing of B: none is made, whatever is given, so that none excuses or accuses.
func TestABCertifiesNothing(t *testing.T) {
	const broken = "layers.2.self_attn.o_proj"
	ck, list := ordertest.Embedded(t, "gemma3n-tiny")
	right := testengine.OpenGolden(t, "golden/gemma3n-tiny/window.float32.safetensors")
	var events []hooks.Event
	for _, r := range right.Records() {
		data := make([]byte, r.Size)
		if _, err := right.ReadAt(r, data, 0); err != nil {
			t.Fatal(err)
		}
		ev := hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: hooks.Tensor{DType: r.DType, Shape: r.Shape, Data: data}}
		if r.Name == broken {
			ev = edited(ev, func(_ int, v float64) float64 { return 1.5 * v })
		}
		events = append(events, ev)
	}
	wrong := build(t, right.Manifest(), events...)
	isolator := func(tr *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(tr, list, reference.Weights(ck, hooks.F32), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	// The same bug on both sides: they agree, which is what was asked.
	o := compare.Options{Order: list, Certification: compare.Certification{Isolator: isolator(wrong), ReferenceIsolator: isolator(wrong)}}
	if res := run(t, wrong, wrong, o); res.Divergence == nil || res.Divergence.Row.Name != broken {
		t.Fatal("a certificate should find the bug, or what follows shows nothing")
	}
	if res := runAB(t, wrong, wrong, o); res.ExitCode() != 0 || res.Isolation != nil {
		t.Errorf("A equals B: exit code %d, %+v", res.ExitCode(), res.Isolation)
	}
	if res := runAB(t, right, wrong, o); res.Divergence == nil || res.Divergence.Row.Name != broken {
		t.Errorf("B is wrong: %+v", res.Divergence)
	}
}
