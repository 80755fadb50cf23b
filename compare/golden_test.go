package compare_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

// TestHealthyPortsMatch compares the built-in model with transformers on every golden.
func TestHealthyPortsMatch(t *testing.T) {
	paths, err := fs.Glob(ondisk.Files(), "golden/gemma*/*.safetensors")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		ref := testengine.OpenGolden(t, path)
		l, list := testengine.LocalRun(t, strings.Split(path, "/")[1], ref, nil)
		res := run(t, l, ref, compare.Options{Order: list, All: true})
		if res.ExitCode() != 0 {
			t.Errorf("%s: %d mismatches, missing %v, incomplete %q", path, res.Mismatches, res.Missing, res.Incomplete)
			if d := res.Divergence; d != nil {
				t.Errorf("first %s: %s", d.Row.Key(), d.Row.Detail)
			}
		}
		if c := res.Coverage; c.Compared != c.Entries || c.LayersComplete != c.Layers {
			t.Errorf("%s: coverage %+v", path, c)
		}
	}
}

// A fault is planted at one entry of the forward pass itself, and everything behind it is computed from it.
type fault struct {
	name string
	pass int
	// do changes an element, given its index along each axis.
	do func(at []int, v float64) float64
}

var faults = []fault{
	{"embed_tokens", 0, func(_ []int, v float64) float64 { return v * 1.05 }},
	{"layers.0.mlp.gate_sparse", 0, func(_ []int, v float64) float64 { return max(0, v-0.2) }}, // another cutoff
	{"layers.1.altup.predict", 0, func(at []int, v float64) float64 { // one stream left out
		if at[0] == 2 {
			return 0
		}
		return v
	}},
	{"layers.2.self_attn.v_norm", 0, func(at []int, v float64) float64 { // one head
		if at[2] == 1 {
			return -v
		}
		return v
	}},
	{"layers.3.self_attn.scores_masked", 0, func(at []int, v float64) float64 { // the window one key too narrow
		if at[2]-at[3] == 3 {
			return -0x1.fep127
		}
		return v
	}},
	{"layers.4.self_attn.k_rope", 2, func(at []int, v float64) float64 { // a decode step alone, half of every pair
		if at[3] < 4 {
			return -v
		}
		return v
	}},
	{"layers.5.self_attn.q_rope", 0, func(at []int, v float64) float64 { return v * 1.3 }}, // a layer that shares keys
	{"layers.6.laurel", 0, func(_ []int, v float64) float64 { return v * 0.8 }},            // a constant
	{"layers.6.out", 0, func(at []int, v float64) float64 { // added to stream 0, too
		if at[0] == 0 {
			return v * 1.5
		}
		return v
	}},
	{"altup_unembed_projections.1", 0, func(at []int, v float64) float64 { return v * float64(1-2*(at[2]%2)) }},
	{"logits", 0, func(_ []int, v float64) float64 { return v * 1.2 }},
}

// TestFaultsAreFoundWhereTheyAre plants one fault at a time in the built-in model and compares with transformers, in both
// dtypes: the walk stops at exactly its entry, and with fewer tensors at the first of those that follow from it.
func TestFaultsAreFoundWhereTheyAre(t *testing.T) {
	for _, dtype := range []string{"float32", "bfloat16"} {
		ref := testengine.OpenGolden(t, fmt.Sprintf("golden/gemma3n-tiny/decode.%s.safetensors", dtype))
		for _, f := range faults {
			var reg hooks.Registry
			if err := reg.Replace(f.name, testengine.Replacer(f.pass, f.do)); err != nil {
				t.Fatal(err)
			}
			l, list := testengine.LocalRun(t, "gemma3n-tiny", ref, &reg)
			key := capture.Key(f.pass, f.name, 0)
			d := run(t, l, ref, compare.Options{Order: list}).Divergence
			if d == nil || d.Row.Key() != key {
				t.Errorf("%s, fault at %s: first divergence %+v", dtype, key, d)
				continue
			}
			d = run(t, l, ref, compare.Options{Order: list, Scope: capture.Scope{Level: 2}}).Divergence
			if want := firstAtLevel(list, f.name, 2); d == nil || d.Row.Pass != f.pass || d.Row.Name != want {
				t.Errorf("%s, fault at %s, level 2: first divergence %+v, want %s", dtype, key, d, want)
			}
		}
	}
}

// firstAtLevel is the first entry of at most this level, not derived, that is computed from an entry, or that entry.
func firstAtLevel(list *order.List, name string, level int) string {
	from := []string{name}
	for _, e := range list.Entries[list.Index(name):] {
		follows := e.Name == name || slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return slices.Contains(from, r.Name) })
		if !follows {
			continue
		}
		if e.Level <= level && !e.Derived() {
			return e.Name
		}
		from = append(from, e.Name)
	}
	return ""
}
