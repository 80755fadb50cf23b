package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// script compares two prompts and returns how they differ.
func script(t testing.TB, ref, loc []float64) (*compare.Result, []compare.Edit) {
	t.Helper()
	x := fire("x", hooks.F32, []int{8}, some...)
	l, r := build(t, manifest("local", 0), ids(loc...), x), build(t, manifest("reference", 0), ids(ref...), x)
	texts := func() (func(id int) string, error) {
		return func(id int) string { return fmt.Sprintf("<%d>", id) }, nil
	}
	res := run(t, l, r, compare.Options{Order: names(t, "x", "input_ids"), All: true, Reporting: compare.Reporting{TokenTexts: texts}})
	return res, res.Inputs[0].Edits
}

func TestInputsComeFirst(t *testing.T) {
	res, edits := script(t, []float64{2, 10, 11, 12}, []float64{10, 11, 13, 12})
	// The order has the ids last, All is set, and yet nothing else is compared.
	if len(res.Rows) != 1 || res.Divergence == nil || res.Divergence.Row.Name != "input_ids" || res.ExitCode() != 1 {
		t.Fatalf("rows %+v", res.Rows)
	}
	want := []compare.Edit{
		{Op: compare.Delete, IDs: []int64{2}, Texts: []string{"<2>"}},
		{Op: compare.Keep, IDs: []int64{10, 11}, Texts: []string{"<10>", "<11>"}},
		{Op: compare.Insert, IDs: []int64{13}, Texts: []string{"<13>"}},
		{Op: compare.Keep, IDs: []int64{12}, Texts: []string{"<12>"}},
	}
	if diff := cmp.Diff(want, edits); diff != "" {
		t.Error(diff)
	}
	if in := res.Inputs[0]; in.Match || !slices.Equal(in.Local, []int64{10, 11, 13, 12}) || in.Texts[2] != "<13>" {
		t.Errorf("input %+v", in)
	}
	if !strings.Contains(strings.Join(res.Divergence.Hints, "\n"), "tokenizer") {
		t.Errorf("hints %q", res.Divergence.Hints)
	}
}

func TestEqualInputsOfDifferentPromptsMatch(t *testing.T) {
	l, r := manifest("local", 0), manifest("reference", 0)
	l.Prompt, r.Prompt = "Hello", "hello"
	x := fire("x", hooks.F32, []int{8}, some...)
	res := run(t, build(t, l, ids(2, 3), x), build(t, r, ids(2, 3), x), compare.Options{Order: names(t, "input_ids", "x")})
	if res.ExitCode() != 0 || !res.Inputs[0].Match || res.Inputs[0].Edits != nil || res.Inputs[0].Texts != nil {
		t.Errorf("exit code %d, inputs %+v", res.ExitCode(), res.Inputs)
	}
}

// TestInputsThatNobodyAskedFor are compared all the same.
func TestInputsThatNobodyAskedFor(t *testing.T) {
	x := fire("x", hooks.F32, []int{8}, some...)
	l, r := build(t, manifest("local", 0), ids(2, 3), x), build(t, manifest("reference", 0), ids(2, 4), x)
	res := run(t, l, r, compare.Options{Order: names(t, "x")})
	if d := res.Divergence; d == nil || d.Row.Name != "input_ids" || len(res.Rows) != 1 {
		t.Errorf("divergence %+v", d)
	}
}

func TestInputsOfALaterPass(t *testing.T) {
	x := fire("x", hooks.F32, []int{8}, some...)
	events := func(id float64) []hooks.Event {
		return []hooks.Event{ids(2, 3), x, in(1, ids(id)), in(1, x), in(2, ids(5)), in(2, x)}
	}
	three := func(side string) capture.Manifest {
		m := manifest(side, 0)
		m.Passes = 3
		return m
	}
	l, r := build(t, three("local"), events(7)...), build(t, three("reference"), events(8)...)
	res := run(t, l, r, compare.Options{Order: names(t, "input_ids", "x"), All: true})
	if d := res.Divergence; d == nil || d.Row.Key() != "pass1/input_ids" || len(res.Inputs) != 2 {
		t.Errorf("divergence %+v, inputs %+v", d, res.Inputs)
	}
}

// apply runs a script over the reference's ids.
func apply(t *rapid.T, edits []compare.Edit, ref []int64) []int64 {
	var out []int64
	for _, e := range edits {
		if e.Op != compare.Insert {
			if len(ref) < len(e.IDs) || !slices.Equal(ref[:len(e.IDs)], e.IDs) {
				t.Fatalf("%s %v, but the reference goes on with %v", e.Op, e.IDs, ref)
			}
			ref = ref[len(e.IDs):]
		}
		if e.Op != compare.Delete {
			out = append(out, e.IDs...)
		}
	}
	if len(ref) > 0 {
		t.Fatalf("the script does not say what becomes of %v", ref)
	}
	return out
}

// common is the length of the longest common subsequence, by the textbook table.
func common(a, b []int64) int {
	table := make([][]int, len(a)+1)
	table[0] = make([]int, len(b)+1)
	for i := range a {
		table[i+1] = make([]int, len(b)+1)
		for j := range b {
			if table[i+1][j+1] = max(table[i][j+1], table[i+1][j]); a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestScriptsAreRightAndShortest(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 12)
		ref, loc := floats64(draw.Draw(t, "reference")), floats64(draw.Draw(t, "local"))
		res, edits := script(outer, ref, loc)
		if slices.Equal(ref, loc) {
			if edits != nil || !res.Inputs[0].Match {
				t.Fatalf("equal ids have the script %v", edits)
			}
			return
		}
		a, b := toInts(ref), toInts(loc)
		if got := apply(t, edits, a); !slices.Equal(got, b) {
			t.Fatalf("the script %v makes %v of %v, want %v", edits, got, a, b)
		}
		changes := 0
		for i, e := range edits {
			if e.Op != compare.Keep {
				changes += len(e.IDs)
			}
			if i > 0 && edits[i-1].Op == e.Op {
				t.Fatalf("two steps of one kind in a row: %v", edits)
			}
		}
		if want := len(a) + len(b) - 2*common(a, b); changes != want {
			t.Fatalf("%d changes, the shortest script has %d: %v", changes, want, edits)
		}
	})
}

func floats64(xs []int) []float64 {
	var out []float64
	for _, x := range xs {
		out = append(out, float64(x))
	}
	return out
}

func toInts(xs []float64) []int64 {
	var out []int64
	for _, x := range xs {
		out = append(out, int64(x))
	}
	return out
}

// TestScriptsOfLongPrompts has a change at each end of a long prompt, and two prompts with nothing in common.
func TestScriptsOfLongPrompts(t *testing.T) {
	long := make([]float64, 20_000)
	for i := range long {
		long[i] = float64(i % 1000)
	}
	missing := slices.Concat(long[1:], []float64{9999}) // without BOS, with another end
	_, edits := script(t, long, missing)
	var ops []compare.EditOp
	for _, e := range edits {
		ops = append(ops, e.Op)
	}
	if want := []compare.EditOp{compare.Delete, compare.Keep, compare.Insert}; !slices.Equal(ops, want) {
		t.Errorf("steps %q, want %q", ops, want)
	}
	other := make([]float64, 5000)
	for i := range other {
		other[i] = float64(i + 100_000)
	}
	_, edits = script(t, long, other)
	if len(edits) != 2 || len(edits[0].IDs) != len(long) || len(edits[1].IDs) != len(other) {
		t.Errorf("prompts that have nothing in common: %d steps", len(edits))
	}
}
