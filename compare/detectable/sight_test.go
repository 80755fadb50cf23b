package detectable_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// sightFile has what some goldens would not have shown, each read against its prompt and its checkpoint.
const sightFile = "testdata/sight.txt"

// sightGoldens are the goldens that are looked at: every checkpoint in float32, and a few in bfloat16.
var sightGoldens = []string{
	"gemma-tiny/prefill.float32", "gemma-tiny/decode.float32", "gemma2-tiny/prefill.float32", "gemma2-tiny/decode.float32",
	"gemma2-variant/decode.float32", "gemma3-tiny/decode.float32", "gemma3-multimodal/decode.float32",
	"gemma3n-tiny/what.float32", "gemma3n-tiny/hello.float32", "gemma3n-tiny/decode.float32", "gemma3n-tiny/window.float32",
	"gemma3n-odd/decode.float32", "gemma3n-variant/decode.float32", "llama-tiny/prefill.float32", "llama-tiny/decode.float32",
	"qwen2-tiny/prefill.float32", "qwen2-tiny/decode.float32", "qwen3-tiny/prefill.float32", "qwen3-tiny/decode.float32",
	"gemma2-tiny/decode.bfloat16", "gemma3n-tiny/hello.bfloat16", "llama-tiny/decode.bfloat16", "qwen3-tiny/decode.bfloat16",
}

func sightOf(t *testing.T, golden string, work int, of func(name string, pass int) bool) *detectable.Sight {
	t.Helper()
	return sightWith(t, golden, work, 1, of)
}

// sightWith is sightOf with so many times the work that searches have by themselves.
func sightWith(t *testing.T, golden string, work, times int, of func(name string, pass int) bool) *detectable.Sight {
	t.Helper()
	ck, list := ordertest.Embedded(t, path.Dir(golden))
	trace := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{SearchWork: times})
	if err != nil {
		t.Fatal(err)
	}
	s, err := detectable.Find(t.Context(), i.Forms, work, of)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Seen) + len(s.Unseen) + len(s.Skipped); n != s.Known || n < 60 {
		t.Errorf("%s: %d of %d mistakes are listed", golden, n, s.Known)
	}
	return s
}

// What each golden would not have shown is what was read. What is said to show it does: float32 does, where the same prompt is there in
// float32; and what needs a longer prompt or a decode step is shown by the checkpoint's goldens together, which have these.
func TestSightOfGoldens(t *testing.T) {
	all := map[string]*detectable.Sight{}
	var text strings.Builder
	for _, golden := range sightGoldens {
		s := sightOf(t, golden, 0, nil)
		all[golden] = s
		fmt.Fprintf(&text, "%s: %d of %d\n", golden, len(s.Seen), s.Known)
		for _, u := range s.Unseen {
			fmt.Fprintf(&text, "  %s: %s\n", u.Name, u.ShownBy)
		}
		if len(s.Skipped) > 0 || s.Times != 1 {
			t.Errorf("%s: %v were not tried, with %d times the work", golden, s.Skipped, s.Times)
		}
	}
	if pagetest.Update() {
		pagetest.Write(t, sightFile, text.String())
	} else if diff := cmp.Diff(pagetest.Text(t, sightFile), text.String()); diff != "" {
		t.Errorf("not what was read (-read +now):\n%s", diff)
	}
	byDType, byPrompt := 0, 0
	for golden, s := range all {
		prompt, dtype, _ := strings.Cut(path.Base(golden), ".")
		var siblings []*detectable.Sight
		for _, other := range sightGoldens {
			if path.Dir(other) == path.Dir(golden) && strings.HasSuffix(other, "."+dtype) {
				siblings = append(siblings, all[other])
			}
		}
		together := detectable.Unite(siblings)
		for _, u := range s.Unseen {
			single := all[path.Dir(golden)+"/"+prompt+".float32"]
			switch {
			case u.ShownBy == "float32" && single != nil:
				byDType++
				if !slices.Contains(single.Seen, u.Name) {
					t.Errorf("%s: %s is said to be shown by float32, and is not", golden, u.Name)
				}
			case len(siblings) > 1 && (strings.Contains(u.ShownBy, "prompt of at least") || strings.Contains(u.ShownBy, "decode step")):
				byPrompt++
				if !slices.Contains(together.Seen, u.Name) {
					t.Errorf("%s: %s is said to be shown by %s, and %s has no run that shows it", golden, u.Name, u.ShownBy, path.Dir(golden))
				}
			}
		}
	}
	if byDType < 8 || byPrompt < 40 {
		t.Errorf("%d are said to be shown by float32 and %d by another prompt", byDType, byPrompt)
	}
}

// A search with more work says how much it had: what --search-work offers next is more than that.
func TestSightSaysItsWork(t *testing.T) {
	const golden = "gemma3n-tiny/decode.float32"
	if s := sightWith(t, golden, 0, 30, nil); s.Times != 30 {
		t.Errorf("%d times the work, want 30", s.Times)
	}
	s := sightOf(t, golden, 1<<14, nil)
	if more := s.More(); len(s.Untried) == 0 || more != "" { // no flag changes this limit
		t.Errorf("%d were not tried, and %q is offered", len(s.Untried), more)
	}
}

// A search that comes to its end says what it did not look at: what is seen with all the work is seen, or said to be skipped, and what was
// seen is not less with more work. In 16 bits some mistakes take a search of their own, which may have no work left.
func TestSightEnds(t *testing.T) {
	for _, golden := range []string{"gemma3n-tiny/decode.float32", "gemma2-tiny/decode.bfloat16"} {
		whole := sightOf(t, golden, 0, nil)
		seen := 0
		for _, work := range []int{1, 1 << 14, 1 << 17, 1 << 18, 1 << 20, 1 << 22} {
			s := sightOf(t, golden, work, nil)
			if work == 1 && len(s.Skipped) < 60 || len(s.Seen) < seen || len(s.Untried) != len(s.Skipped) || s.Times != 0 {
				t.Errorf("%s with %d: %d seen, %d skipped", golden, work, len(s.Seen), len(s.Skipped))
			}
			for k, u := range s.Untried { // as many as are skipped
				if u.Name != s.Skipped[k] || u.Mistake == "" || u.Page == "" || u.Why != detectable.UntriedWork {
					t.Errorf("%s with %d: %+v", golden, work, u)
				}
			}
			if together := detectable.Unite([]*detectable.Sight{s, s}); !slices.Equal(together.Untried, s.Untried) || !slices.Equal(together.Skipped, s.Skipped) {
				t.Errorf("%s with %d: together %+v", golden, work, together.Untried)
			}
			for _, name := range s.Seen {
				if !slices.Contains(whole.Seen, name) {
					t.Errorf("%s with %d: %s is seen, and with all the work not", golden, work, name)
				}
			}
			for _, name := range whole.Seen {
				if !slices.Contains(s.Seen, name) && !slices.Contains(s.Skipped, name) {
					t.Errorf("%s with %d: %s is said not to be shown, and with all the work it is", golden, work, name)
				}
			}
			seen = len(s.Seen)
		}
	}
}

// Entries that do not count show nothing.
func TestSightOfSomeEntries(t *testing.T) {
	const golden = "llama-tiny/decode.float32"
	s := sightOf(t, golden, 0, func(name string, _ int) bool { return !strings.Contains(name, "self_attn") })
	for _, name := range []string{"neighbours", "scale-missing", "rotation-missing", "keys-of-values"} {
		if slices.Contains(s.Seen, name) {
			t.Errorf("%s is seen without attention", name)
		}
	}
	if !slices.Contains(s.Seen, "silu-is-gelu") || slices.ContainsFunc(s.Unseen, func(u detectable.Unseen) bool { return u.Name == "neighbours" && u.ShownBy == "" }) {
		t.Errorf("seen: %v; unseen: %v", s.Seen, s.Unseen)
	}
}

// What several runs show together is what any of them shows.
func TestUnite(t *testing.T) {
	a := &detectable.Sight{Known: 4, Seen: []string{"w", "x"}, Unseen: []detectable.Unseen{{Name: "y", ShownBy: "float32"}}, Skipped: []string{"z"}}
	b := &detectable.Sight{Known: 5, Seen: []string{"y"}, Unseen: []detectable.Unseen{{Name: "x", ShownBy: "a decode step"}, {Name: "v", ShownBy: "a decode step"}, {Name: "z"}}, Skipped: []string{"w"}}
	got := detectable.Unite([]*detectable.Sight{b, nil, a})
	want := &detectable.Sight{Known: 5, Seen: []string{"w", "x", "y"}, Skipped: []string{"z"}, Unseen: []detectable.Unseen{{Name: "v", ShownBy: "a decode step"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if detectable.Unite([]*detectable.Sight{nil, nil}) != nil {
		t.Error("no run shows something")
	}
}

// Of attention over a long prompt few queries are looked at, and all keys: what a prompt shows of a window, a mask or a rotation does not depend on how long it
// is.
func TestSightOfALongPrompt(t *testing.T) {
	c := ordertest.DrawWith(t, "gemma3_text", 3, func(config map[string]any) {
		ordertest.Acceptable(config)
		config["num_hidden_layers"], config["layer_types"] = 2, []string{"sliding_attention", "full_attention"}
		config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"] = 4, 2, 16
		config["sliding_window"], config["attention_bias"], config["max_position_embeddings"] = 64, false, 1024
	})
	c.Passes = [][]int{make([]int, 512)}
	for k := range c.Passes[0] {
		c.Passes[0][k] = k * k % c.List.Config.VocabSize
	}
	trace := testengine.LocalModel(t, c, hooks.F32)
	// Between queries, keys and values, and the context nothing was captured, as in fused attention.
	fused := testengine.Rewritten(t, trace, nil, func(key string, e hooks.Event) []hooks.Event {
		_, inner, _ := strings.Cut(key, ".self_attn.")
		if slices.Contains([]string{"keys", "values", "scores", "scores_masked", "probs_f32", "probs", "q_rope", "k_rope"}, inner) {
			return nil
		}
		return []hooks.Event{e}
	})
	i, err := compare.NewIsolator(fused, c.List, reference.Weights(c.Checkpoint, hooks.F32), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := detectable.Find(t.Context(), i.Forms, 1<<28, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"window+1", "window-1", "window-missing", "not-causal", "without-itself", "scale-missing", "values-moved", "rotation-missing"} {
		if !slices.Contains(s.Seen, name) {
			t.Errorf("%s is not seen: %+v", name, s)
		}
	}
	if len(s.Skipped) > 0 { // all queries take more work than this
		t.Errorf("%v were not looked at", s.Skipped)
	}
}
