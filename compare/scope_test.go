package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

func ranges(t testing.TB, s string) capture.Ranges {
	t.Helper()
	r, err := capture.ParseRanges(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// forget takes a name out of those that a manifest declares.
func forget(name string) func(*capture.Manifest) {
	return func(m *capture.Manifest) {
		m.Entries = slices.DeleteFunc(m.Entries, func(s string) bool { return s == name })
	}
}

func TestMissing(t *testing.T) {
	list := tiny(t)
	const gone = "layers.3.self_attn.q_norm"
	full := func() model { return model{list: list} }
	lacks := model{list: list, change: without(gone)}
	undeclared := func(m *capture.Manifest) { m.Entries, m.Derived, m.Scope = nil, nil, capture.Scope{} }
	type missingTest struct {
		why  string
		l, r model
		want []compare.Missing
	}
	tests := []missingTest{
		{"declared and absent on your port", lacks, full(), []compare.Missing{{Name: gone, Side: "local"}}},
		{"on the reference side", full(), lacks, []compare.Missing{{Name: gone, Side: "reference"}}},
		{"on both", lacks, lacks, []compare.Missing{{Name: gone, Side: "both"}}},
		{
			"declared by the scope alone",
			model{list: list, change: without(gone), edit: func(m *capture.Manifest) { m.Entries = nil }},
			full(),
			[]compare.Missing{{Name: gone, Side: "local"}},
		},
		{
			"not among the names, and the scope that is declared has it",
			model{list: list, change: without(gone), edit: forget(gone)},
			full(),
			[]compare.Missing{{Name: gone, Side: "local"}},
		},
		{
			"not among the names of a port that declares no scope",
			model{list: list, change: without(gone), edit: func(m *capture.Manifest) { forget(gone)(m); m.Scope = capture.Scope{} }},
			full(), nil,
		},
		{"nobody declares anything, and the order was not asked for by name", model{list: list, change: without(gone), edit: undeclared}, full(), nil},
		{
			"the reference declares nothing and lacks what your port promised",
			lacks,
			model{list: list, change: without(gone), edit: undeclared},
			[]compare.Missing{{Name: gone, Side: "local"}},
		},
	}
	recorded := func(program, by string) func(*capture.Manifest) {
		return func(m *capture.Manifest) {
			m.Entries, m.Program, m.Producer = nil, "sha256:"+strings.Repeat(program, 64), capture.Producer{Name: by, Version: "1"}
		}
	}
	theirs := model{list: list, edit: recorded("a", "transformers")}
	tests = append(tests, []missingTest{
		{"recorded in a script of its own: its level says nothing of what others name", model{list: list, change: without(gone), edit: recorded("b", "torch")}, theirs, nil},
		{"the same program", model{list: list, change: without(gone), edit: recorded("a", "torch")}, theirs, []compare.Missing{{Name: gone, Side: "local"}}},
		{"a model of transformers, recorded again", model{list: list, change: without(gone), edit: recorded("b", "transformers")}, theirs, []compare.Missing{{Name: gone, Side: "local"}}},
		{"a port and a reference in PyTorch, both in scripts of their own", model{list: list, change: without(gone), edit: recorded("b", "torch")}, model{list: list, edit: recorded("a", "torch")}, nil},
		{"the reference lacks it", model{list: list, edit: recorded("b", "torch")}, model{list: list, change: without(gone), edit: recorded("a", "transformers")}, []compare.Missing{{Name: gone, Side: "reference"}}},
	}...)
	for _, tt := range tests {
		res := run(t, tt.l.trace(t, "local"), tt.r.trace(t, "reference"), compare.Options{Order: list})
		if diff := cmp.Diff(tt.want, res.Missing); diff != "" {
			t.Errorf("%s\n%s", tt.why, diff)
		}
		if len(res.Rows) != 421 {
			t.Errorf("%s: %d rows, want all but one: the walk does not stop at what is missing", tt.why, len(res.Rows))
		}
		if got, want := res.ExitCode(), min(len(tt.want), 1); got != want {
			t.Errorf("%s: exit code %d, want %d", tt.why, got, want)
		}
		if c := res.Coverage; c.Compared != 388 || c.LayersComplete != 6 {
			t.Errorf("%s: coverage %+v", tt.why, c)
		}
	}
}

func TestNamesThatWereAskedForAreMissed(t *testing.T) {
	undeclared := capture.Manifest{Side: "local"}
	l := build(t, undeclared, fire("a", hooks.F32, []int{8}, some...))
	r := build(t, manifest("reference", 0), fire("a", hooks.F32, []int{8}, some...), fire("b", hooks.F32, []int{8}, some...))
	res := run(t, l, r, compare.Options{Order: names(t, "a", "b", "c")})
	want := []compare.Missing{{Name: "b", Side: "local"}, {Name: "c", Side: "both"}}
	if diff := cmp.Diff(want, res.Missing); diff != "" || res.ExitCode() != 1 {
		t.Errorf("exit code %d\n%s", res.ExitCode(), diff)
	}
	// The same when a family's order knows the names.
	known := tiny(t).Pick(names(t, "embed_tokens", "norm", "logits"))
	x := func(name string) hooks.Event {
		e, _ := known.Lookup(name)
		return fire(name, hooks.F32, e.Size(order.Pass{Tokens: 2}, 0), some...)
	}
	l, r = build(t, undeclared, ids(2, 3), x("embed_tokens"), x("logits")), build(t, undeclared, ids(2, 3), x("embed_tokens"), x("norm"), x("logits"))
	for _, named := range []bool{true, false} {
		res := run(t, l, r, compare.Options{Order: known, Sides: compare.Sides{Named: named}})
		if got := len(res.Missing); got != btoi(named) || res.ExitCode() != btoi(named) {
			t.Errorf("asked for by name %t: %d missing, exit code %d", named, got, res.ExitCode())
		}
	}
}

// TestNarrowing has what each scope leaves out, and that it is a success only when it was asked for.
func TestNarrowing(t *testing.T) {
	list := tiny(t)
	whole := capture.Scope{Level: 3}
	tests := []struct {
		why      string
		scope    capture.Scope // of the local trace, or of the comparison
		compared int
		layers   int
		narrows  bool
	}{
		{"nothing", whole, 3 * 389, 7, false},
		{"a level reaches from end to end", capture.Scope{Level: 1}, 3 * 63, 0, false},
		{"level 2", capture.Scope{Level: 2}, 3 * 302, 0, false},
		{"layers that are all", capture.Scope{Level: 3, Layers: ranges(t, "0-6")}, 3 * 382, 7, true},
		{"two layers", capture.Scope{Level: 3, Layers: ranges(t, "0-1")}, 0, 2, true},
		{"a pattern", capture.Scope{Level: 3, Tensors: []string{"*.mlp.down_proj"}}, 3 * 8, 0, true},
		{"the prefill alone", capture.Scope{Level: 3, Passes: ranges(t, "0")}, 389, 0, true},
		{"passes that are all", capture.Scope{Level: 3, Passes: ranges(t, "0-")}, 3 * 389, 7, false},
		{"three positions, all of the prefill", capture.Scope{Level: 3, Positions: ranges(t, "0-2")}, 0, 0, true},
		{"positions that are all", capture.Scope{Level: 3, Positions: ranges(t, "0-")}, 3 * 389, 7, false},
	}
	for _, tt := range tests {
		for _, how := range []string{"at the capture", "at the comparison"} {
			local, o := model{list: list, passes: decode, scope: tt.scope}, compare.Options{Order: list}
			if how == "at the comparison" {
				local.scope, o.Scope = whole, tt.scope
			}
			l, r := local.trace(t, "local"), model{list: list, passes: decode}.trace(t, "reference")
			res := run(t, l, r, o)
			if res.Divergence != nil || res.Missing != nil {
				t.Errorf("%s %s: divergence %+v, missing %v", tt.why, how, res.Divergence, res.Missing)
			}
			unasked := tt.narrows && how == "at the capture"
			if (len(res.Incomplete) > 0) != unasked || res.ExitCode() != btoi(unasked) {
				t.Errorf("%s %s: exit code %d, incomplete %q", tt.why, how, res.ExitCode(), res.Incomplete)
			}
			if c := res.Coverage; tt.compared > 0 && c.Compared != tt.compared || c.LayersComplete != tt.layers || c.Entries != 3*389 {
				t.Errorf("%s %s: coverage %+v, want %d compared and %d layers", tt.why, how, c, tt.compared, tt.layers)
			}
			o.Scope = tt.scope
			typed := run(t, l, r, o)
			if typed.ExitCode() != 0 || typed.Coverage != res.Coverage {
				t.Errorf("%s %s, asked for: exit code %d, incomplete %q", tt.why, how, typed.ExitCode(), typed.Incomplete)
			}
			if tt.narrows && !strings.Contains(strings.Join(typed.Notes, "\n"), "as asked for") {
				t.Errorf("%s %s: the narrowing is not among the notes %q", tt.why, how, typed.Notes)
			}
		}
	}
}

// TestCapturedLessThanAskedFor has traces that leave out a part of what the comparison asks for: a narrower request does
// not excuse a still narrower trace.
func TestCapturedLessThanAskedFor(t *testing.T) {
	list := tiny(t)
	for _, tt := range []struct{ captured, asked capture.Scope }{
		{capture.Scope{Level: 3, Layers: ranges(t, "0")}, capture.Scope{Layers: ranges(t, "0-1")}},
		{capture.Scope{Level: 3, Passes: ranges(t, "0")}, capture.Scope{Passes: ranges(t, "0-1")}},
		{capture.Scope{Level: 3, Positions: ranges(t, "0-1")}, capture.Scope{Positions: ranges(t, "0-2")}},
		{capture.Scope{Level: 3, Tensors: []string{"norm"}}, capture.Scope{Layers: ranges(t, "0-1")}},
	} {
		sides := [2]model{{list: list, passes: decode, scope: tt.captured}, {list: list, passes: decode}}
		for range 2 {
			res := run(t, sides[0].trace(t, "local"), sides[1].trace(t, "reference"), compare.Options{Order: list, Scope: tt.asked})
			if res.ExitCode() != 1 || res.Incomplete == nil {
				t.Errorf("captured %+v, asked for %+v: exit code %d, incomplete %q", tt.captured, tt.asked, res.ExitCode(), res.Incomplete)
			}
			sides[0], sides[1] = sides[1], sides[0]
		}
	}
}

// TestALevelThatWasAskedFor is not excused by a trace that has less; one that nobody asked for is.
func TestALevelThatWasAskedFor(t *testing.T) {
	list := tiny(t)
	l := model{list: list, scope: capture.Scope{Level: 1}}.trace(t, "local")
	r := model{list: list}.trace(t, "reference")
	for asked, exit := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1} {
		if res := run(t, l, r, compare.Options{Order: list, Scope: capture.Scope{Level: asked}}); res.ExitCode() != exit {
			t.Errorf("level %d: exit code %d, want %d; incomplete %q", asked, res.ExitCode(), exit, res.Incomplete)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestNothingToCompareIsNoSuccess(t *testing.T) {
	list := tiny(t)
	l, r := model{list: list}.trace(t, "local"), model{list: list}.trace(t, "reference")
	tests := []struct {
		why   string
		scope capture.Scope
	}{
		{"a pattern that matches nothing leaves the token ids", capture.Scope{Tensors: []string{"nothing"}}},
		{"a malformed pattern matches nothing", capture.Scope{Tensors: []string{"[a"}}},
		{"no such pass", capture.Scope{Passes: ranges(t, "9")}},
		{"no such layer and nothing before the layers", capture.Scope{Layers: ranges(t, "9"), Tensors: []string{"layers.*"}}},
		{"no such position", capture.Scope{Positions: ranges(t, "99"), Tensors: []string{"*.mlp.*"}}},
	}
	for _, tt := range tests {
		if res := run(t, l, r, compare.Options{Order: list, Scope: tt.scope}); res.ExitCode() != 1 || res.Incomplete == nil {
			t.Errorf("%s: exit code %d, coverage %+v, incomplete %q", tt.why, res.ExitCode(), res.Coverage, res.Incomplete)
		}
	}
	if res := run(t, build(t, manifest("local", 0)), build(t, manifest("reference", 0)), compare.Options{Order: list}); res.ExitCode() != 1 {
		t.Error("two empty traces are a success")
	}
}

// TestPositions compares rows that lie at different indexes of the two sides.
func TestPositions(t *testing.T) {
	list := tiny(t)
	local := model{list: list, passes: decode, scope: capture.Scope{Level: 3, Positions: ranges(t, "3-6")}}
	r := model{list: list, passes: decode, scope: capture.Scope{Level: 3, Positions: ranges(t, "1-4,6-")}}.trace(t, "reference")
	res := run(t, local.trace(t, "local"), r, compare.Options{Order: list, Scope: capture.Scope{Positions: ranges(t, "3-4,6")}})
	if res.ExitCode() != 0 || res.Missing != nil {
		t.Fatalf("exit code %d: %v %v %v", res.ExitCode(), res.Divergence, res.Incomplete, res.Missing)
	}
	rows := map[string]*compare.Row{}
	for i := range res.Rows {
		rows[res.Rows[i].Key()] = &res.Rows[i]
	}
	const name = "layers.1.mlp.up_proj" // 64 channels
	if got := rows[name].Metrics.Elements; got != 2*64 {
		t.Errorf("%d elements of %s compared in pass 0, want those of positions 3 and 4", got, name)
	}
	if got := rows["pass1/"+name].Metrics.Elements; got != 64 {
		t.Errorf("%d elements compared in pass 1, want those of position 6", got)
	}
	if rows["pass2/"+name] != nil {
		t.Error("a row of pass 2, whose position your port does not have")
	}
	// A comparison can ask for less than both sides have.
	o := compare.Options{Order: list, Scope: capture.Scope{Positions: ranges(t, "3")}}
	for _, row := range run(t, local.trace(t, "local"), r, o).Rows {
		if row.Key() == name && row.Metrics.Elements != 64 {
			t.Errorf("%d elements of %s compared, want those of position 3", row.Metrics.Elements, name)
		}
	}
	// A wrong row is found, and its place is that in the reference and in the sequence.
	local.change = changing(name, 0, func(i int, v float64) float64 {
		if i/64 == 1 { // the second kept row: position 4
			return -v
		}
		return v
	})
	d := run(t, local.trace(t, "local"), r, compare.Options{Order: list}).Divergence
	if d == nil || d.Row.Name != name || d.Row.Metrics.Worst[1] != 3 {
		t.Fatalf("divergence %+v", d)
	}
	token := d.Row.Metrics.Axes[0]
	if token.Axis != "token" || token.Worst != 3 || token.Position == nil || *token.Position != 4 {
		t.Errorf("worst token %+v", token)
	}
}

func TestPassOfOneSide(t *testing.T) {
	list := tiny(t)
	short, long := model{list: list, passes: decode[:2]}, model{list: list, passes: decode}
	for _, sides := range [][2]model{{short, long}, {long, short}} {
		res := run(t, sides[0].trace(t, "local"), sides[1].trace(t, "reference"), compare.Options{Order: list})
		if res.ExitCode() != 1 || len(res.Incomplete) != 1 || !strings.Contains(res.Incomplete[0], "from pass 2 on") {
			t.Errorf("exit code %d, incomplete %q", res.ExitCode(), res.Incomplete)
		}
		if res.Coverage.Compared != 2*389 || res.Coverage.Entries != 3*389 {
			t.Errorf("coverage %+v", res.Coverage)
		}
	}
}

func TestPortWithFewHooks(t *testing.T) {
	list := tiny(t)
	port := func(names ...string) model {
		return model{
			list: list, change: func(e *order.Entry, _ *hooks.Event) bool { return slices.Contains(names, e.Name) },
			edit: func(m *capture.Manifest) { m.Entries, m.Scope = names, capture.Scope{} },
		}
	}
	tests := []struct {
		why   string
		names []string
		exit  int
	}{
		{"from the input to the logits", []string{"input_ids", "embed_tokens", "layers.6.out", "logits"}, 0},
		{"not to the logits", []string{"input_ids", "embed_tokens", "layers.6.out"}, 1},
		{"not from the input", []string{"embed_tokens", "layers.6.out", "logits"}, 1},
	}
	for _, tt := range tests {
		res := run(t, port(tt.names...).trace(t, "local"), model{list: list}.trace(t, "reference"), compare.Options{Order: list})
		if res.ExitCode() != tt.exit || res.Coverage.Compared != len(tt.names) || (len(res.Incomplete) > 0) != (tt.exit > 0) {
			t.Errorf("%s: exit code %d, coverage %+v, incomplete %q", tt.why, res.ExitCode(), res.Coverage, res.Incomplete)
		}
	}
}

func TestUnknownTensorsAreCounted(t *testing.T) {
	list := tiny(t)
	m := manifest("local", hooks.F32)
	events := append(model{list: list, dtype: hooks.F32, passes: prompt, scope: capture.Scope{Level: 3}}.events(), fire("layers.0.extra", hooks.F32, []int{8}, some...))
	m.Config = list.Config.Canonical()
	res := run(t, build(t, m, events...), model{list: list}.trace(t, "reference"), compare.Options{Order: list})
	if res.ExitCode() != 0 || res.Coverage.Unknown != 1 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "layers.0.extra") {
		t.Errorf("exit code %d, coverage %+v, notes %q", res.ExitCode(), res.Coverage, res.Notes)
	}
}
