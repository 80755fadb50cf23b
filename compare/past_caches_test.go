package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// comparedWithout compares a golden with itself, the local side without the attention tensors of some names.
func comparedWithout(t *testing.T, from string, words ...string) *compare.Result {
	t.Helper()
	golden := testengine.OpenGolden(t, from)
	local := testengine.Rewritten(t, golden, nil, func(_ string, e hooks.Event) []hooks.Event {
		if slices.ContainsFunc(words, func(word string) bool { return strings.HasSuffix(e.Name, "self_attn."+word) }) {
			return nil
		}
		return []hooks.Event{e}
	})
	return isolated(t, "gemma3-tiny", local, golden)
}

// A decode step of a dump without caches is computed from the new keys and values of all passes.
func TestCachesAreComputedFromNewKeys(t *testing.T) {
	res := comparedWithout(t, "golden/gemma3-tiny/decode.bfloat16.safetensors", "keys", "values", "scores", "scores_capped", "scores_masked", "probs", "probs_f32", "context")
	const key = "pass3/layers.1.self_attn.o_proj"
	r := rowOfKey(t, res, key)
	if r.Isolated == nil || !r.Isolated.Good() {
		t.Fatalf("%s is not verified: %+v, %q", key, r.Isolated, r.NotIsolated)
	}
	for _, want := range []string{"layers.1.self_attn.k_rope", "pass2/layers.1.self_attn.k_rope", "layers.1.self_attn.v_proj", "pass3/layers.1.self_attn.v_proj"} {
		if !slices.Contains(r.Isolated.From, want) {
			t.Errorf("%s is computed from %v, without %s", key, r.Isolated.From, want)
		}
	}
}

// Cached keys of a pass that are no tensor of the order's kind are a mismatch of their own. The caches of later passes are right all the same where the
// new keys of all passes give them, and where these do not they are not accused.
func TestCachesBehindAMisfit(t *testing.T) {
	const misfit, behind, reader = "pass1/layers.1.self_attn.keys", "pass2/layers.1.self_attn.keys", "pass1/layers.1.self_attn.scores"
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	local := replaced(t, golden, []string{misfit}, func(x hooks.Tensor) hooks.Tensor {
		return hooks.Tensor{DType: x.DType, Shape: x.Shape[1:], Data: x.Data}
	})
	res := isolated(t, "gemma3-tiny", local, golden)
	if r := rowOfKey(t, res, behind); r.Isolated == nil || r.Isolated.Outcome != isolate.Exact || !slices.Contains(r.Isolated.From, "pass1/layers.1.self_attn.k_rope") {
		t.Errorf("%s: %+v, not isolated: %q", behind, r.Isolated, r.NotIsolated)
	}
	if r := rowOfKey(t, res, reader); r.Isolated != nil || !strings.Contains(r.NotIsolated, "computed from "+misfit) {
		t.Errorf("%s: %+v, not isolated: %q", reader, r.Isolated, r.NotIsolated)
	}
	wrong := replaced(t, local, []string{behind}, byFactor(1.01))
	if r := rowOfKey(t, isolated(t, "gemma3-tiny", wrong, golden), behind); r.Isolated != nil || r.Verdict != compare.Mismatch || r.Decided == compare.ByIsolation {
		t.Errorf("%s, wrong: %s, %+v", behind, r.Verdict, r.Isolated)
	}
}
