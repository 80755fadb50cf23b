package compare_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// sameNumber reports whether two are equal but for rounding, or neither is a number.
func sameNumber(a, b measure.Number) bool {
	x, y := float64(a), float64(b)
	return x != x && y != y || math.Abs(x-y) <= 1e-4*math.Abs(x)
}

// doubling doubles some entries on the local side.
func doubling(names ...string) func(*order.Entry, *hooks.Event) bool {
	return func(e *order.Entry, ev *hooks.Event) bool {
		if slices.Contains(names, e.Name) {
			*ev = edited(*ev, func(_ int, v float64) float64 { return 2 * v })
		}
		return true
	}
}

// Where the error of the first divergence goes: what is computed from it in its pass is followed, and nothing else is, also
// by a walk that stops. Tensors are made up, so that an error goes where a test puts it.
func TestDownstream(t *testing.T) {
	list := tiny(t)
	whole := model{list: list}.trace(t, "reference")
	for _, c := range []struct {
		name   string
		wrong  []string
		past   int
		last   string
		vanish string
	}{
		{"nothing else is wrong", []string{"layers.6.mlp.gated"}, 0, "", "layers.6.mlp.down_proj"},
		{"it vanishes", []string{"layers.6.mlp.gated", "layers.6.mlp.down_proj"}, 1, "layers.6.mlp.down_proj", "layers.6.post_feedforward_layernorm"},
		{"it goes and comes back", []string{"layers.6.mlp.gated", "norm"}, 1, "norm", "lm_head"},
		{"it reaches the end", []string{"layers.6.mlp.gated", "norm", "lm_head", "logits"}, 3, "logits", ""},
		{"a fault before it, which is the first", []string{"layers.6.mlp.gated", "layers.6.mlp.act_fn"}, 1, "layers.6.mlp.gated", "layers.6.mlp.down_proj"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, all := range []bool{false, true} {
				r := run(t, model{list: list, change: doubling(c.wrong...)}.trace(t, "local"), whole, compare.Options{Order: list, All: all})
				if r.Divergence == nil || r.Divergence.Downstream == nil {
					t.Fatalf("no divergence, or nothing is known of what follows: %+v", r.Divergence)
				}
				got := *r.Divergence.Downstream
				want := compare.Downstream{Past: c.past, Last: c.last, Vanishes: c.vanish, LastRelL2: 1} // it is doubled
				if c.last == "" {
					want.LastRelL2 = measure.Number(math.NaN())
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(got, "Compared"), cmp.Comparer(sameNumber)); diff != "" {
					t.Errorf("all %v: -want +got:\n%s", all, diff)
				}
				if got.Compared < 10 || got.Compared > 40 {
					t.Errorf("%d entries descend from it", got.Compared)
				}
				if !all && r.Mismatches != 1 {
					t.Errorf("%d mismatches are recorded", r.Mismatches)
				}
			}
		})
	}
}

// scaling multiplies some entries on the local side.
func scaling(by map[string]float64) func(*order.Entry, *hooks.Event) bool {
	return func(e *order.Entry, ev *hooks.Event) bool {
		if s, is := by[e.Name]; is {
			*ev = edited(*ev, func(_ int, v float64) float64 { return s * v })
		}
		return true
	}
}

// Growth is the error of a mismatch over the largest of those of what it was computed from, whether these pass or not.
func TestGrowth(t *testing.T) {
	list := tiny(t)
	whole := model{list: list}.trace(t, "reference")
	const entry = "layers.2.mlp.gated" // of act_fn and up_proj
	for _, c := range []struct {
		name   string
		by     map[string]float64
		growth float64
	}{
		{"of one wrong input", map[string]float64{entry: 3, "layers.2.mlp.act_fn": 1.5}, 4},
		{"of the worse of two", map[string]float64{entry: 3, "layers.2.mlp.act_fn": 1.5, "layers.2.mlp.up_proj": 1.25}, 4},
		{"of an input within its limit", map[string]float64{entry: 3, "layers.2.mlp.up_proj": 1 + 0x1p-12}, 2 * 0x1p12},
		{"it shrinks", map[string]float64{entry: 1.25, "layers.2.mlp.act_fn": 3}, 0.125},
		{"of nothing", map[string]float64{entry: 3}, math.NaN()},
		{"of what is far away", map[string]float64{entry: 3, "layers.1.mlp.act_fn": 1.5}, math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, model{list: list, change: scaling(c.by)}.trace(t, "local"), whole, compare.Options{Order: list, All: true})
			i := slices.IndexFunc(r.Rows, func(r compare.Row) bool { return r.Name == entry })
			if i < 0 || r.Rows[i].Verdict != compare.Mismatch {
				t.Fatalf("%s is no mismatch", entry)
			}
			if got := r.Rows[i].Growth; !sameNumber(measure.Number(c.growth), got) {
				t.Errorf("%v, want %v", got, c.growth)
			}
		})
	}
}

// Nobody is to blame where the way back reaches past what was captured. The report says what would have captured it.
func TestUnknownBlameSaysWhatItNeeds(t *testing.T) {
	list := tiny(t)
	decode := capture.Ranges{{From: 1, To: 1}}
	const out, keys = "layers.3.out", "layers.3.self_attn.keys"
	everything := func(string) bool { return false }
	for _, c := range []struct {
		name, entry string
		scope       capture.Scope
		drop        func(name string) bool
		blame       compare.Blame
		needs       string
	}{
		{"all is there", keys, capture.Scope{Level: 3}, everything, compare.Inherited, ""}, // from the keys of the pass before
		{"the pass before", keys, capture.Scope{Level: 3, Passes: decode}, everything, compare.Unknown, "capture without --passes to have it"},
		{"the pass before, and all between", "layers.3.self_attn.probs", capture.Scope{Level: 2, Passes: decode}, everything, compare.Unknown, "capture with --level 3 without --passes to have it"},
		{"all but one tensor", out, capture.Scope{Level: 3, Tensors: []string{out}}, everything, compare.Unknown, "capture without --tensors to have it"},
		{
			"hooks", out,
			capture.Scope{Level: 3},
			func(name string) bool { return name != out && name != order.InputIDs },
			compare.Unknown, "add a hook that fires pass1/layers.3.altup.correct",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			double := doubling(c.entry)
			drop := func(e *order.Entry, ev *hooks.Event) bool { return !c.drop(e.Name) }
			both := func(e *order.Entry, ev *hooks.Event) bool { return double(e, ev) && drop(e, ev) }
			m := model{list: list, scope: c.scope, passes: append(slices.Clone(prompt), []float64{505}), change: drop}
			reference := m.trace(t, "reference")
			m.change = both
			r := run(t, m.trace(t, "local"), reference, compare.Options{Order: list, All: true})
			i := slices.IndexFunc(r.Rows, func(r compare.Row) bool { return r.Name == c.entry && r.Pass == 1 })
			if i < 0 {
				t.Fatalf("no row of %s", c.entry)
			}
			if got := r.Rows[i]; got.Blame != c.blame || got.Needs != c.needs {
				t.Errorf("%s, needs %q; want %s, %q", got.Blame, got.Needs, c.blame, c.needs)
			}
		})
	}
}
