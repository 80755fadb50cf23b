package certify_test

import (
	"path/filepath"
	"testing"
)

// A program that was recorded on nine tokens and two decode steps gives transformers' own trace of another prompt, of twelve tokens
// and three steps: with causal masks, a window that ends before the prompt does, experts, and a scan with a state. Of the same prompt
// with a mistake in the model it names the entry of the mistake.
func TestRecordedProgramsOnOtherLengths(t *testing.T) {
	for _, c := range []struct{ model, wrong string }{
		{"llama", "layers.1.post_attention_layernorm"},
		{"mistral", "mask.full"},
		{"qwen3_moe", "layers.1.mlp.gate.1"},
		{"mamba2", "layers.1.mixer.norm.in"},
	} {
		folder := filepath.Join("../../fixtures/lengths", c.model)
		for _, trace := range []string{"recorded", "other"} {
			r, err := certified(folder, "recorded", filepath.Join(folder, trace+".safetensors"), 0)
			if err != nil {
				t.Fatalf("%s %s: %v", c.model, trace, err)
			}
			if len(r.wrong)+len(r.open)+len(r.unverified) > 0 || r.outside > 0 || r.exact < 70 || r.exact+r.rounding != r.entries {
				t.Errorf("%s %s: %+v", c.model, trace, r)
			}
		}
		r, err := certified(folder, "recorded", filepath.Join(folder, "wrong.safetensors"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.wrong) == 0 || r.wrong[0] != c.wrong || len(r.wrong) > 2*2 {
			t.Errorf("%s: wrong are %v, want %s first", c.model, r.wrong, c.wrong)
		}
	}
}
