package main

import (
	"bytes"
	"strings"
	"testing"
)

// A run of transformers with its default attention in bfloat16 shows nothing between the projections and o_proj: what the fused kernel does is found
// and said once, and a mistake in what it is given is a bug of o_proj with a name. So it is where a compiler has fused the rotation in front of the kernel, too. fixtures/fused_runs.py has recorded the runs.
func TestFusedAttentionIsJudged(t *testing.T) {
	t.Parallel()
	const form = "rounds differently, no bug: attention: probabilities rounded to bfloat16 before they are divided, as fused kernels do"
	for _, tt := range []struct {
		model, run string
		want       []string
	}{
		{"llama-tiny", "healthy", []string{"99 EXACT, 9 ROUNDING\n", form}},
		{"llama-tiny", "rotated", []string{"99 EXACT, 9 ROUNDING\n", "as fused kernels do; keeps rope.x·cos, rope.turned·sin in float32, which transformers rounds"}},
		{"qwen2-tiny", "healthy", []string{"99 EXACT, 9 ROUNDING\n", form}},
		{"llama-tiny", "scale", []string{"bug in self_attn.o_proj, layers 0 to 2: the factor is 1; config.json: 1/√head_dim 0.353553 (9 entries)"}},
		{"llama-tiny", "mask", []string{"bug in self_attn.o_proj, layers 0 to 2: the mask is not added (3 entries)", "reproduces all 1152 elements of 3 entries", form}},
		{"llama-tiny", "base", []string{"bug in self_attn.o_proj, layers 0 to 2: theta is 10000", "reproduces all 1248 elements of 9 entries"}},
		{"qwen2-tiny", "tiled", []string{"bug in self_attn.o_proj, layers 0 to 2: KV heads are tiled, not repeated", "reproduces all 1728 elements of 3 entries"}},
	} {
		t.Run(tt.model+" "+tt.run, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			run([]string{"tracediff", "compare", "--isolate", "../../fixtures/fused/" + tt.model + "." + tt.run + ".safetensors", "--model", "../../fixtures/" + tt.model}, nil, &out, &errOut)
			text := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range tt.want {
				if want = strings.Join(strings.Fields(want), " "); !strings.Contains(text, want) {
					t.Errorf("the report has no %q:\n%s%s", want, out.String(), errOut.String())
				}
			}
			if strings.Contains(text, "UNIDENTIFIED") || (tt.run == "healthy" || tt.run == "rotated") == strings.Contains(text, "BUG") {
				t.Errorf("a %s run:\n%s", tt.run, out.String())
			}
		})
	}
}
