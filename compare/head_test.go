package compare_test

import (
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A dump that ends with lm_head reaches the output where the logits are the same numbers, and not where a soft cap stands between the two.
func TestDumpThatEndsWithTheHead(t *testing.T) {
	for _, tt := range []struct {
		model string
		ends  []string
		exit  int
	}{
		{"llama-tiny", []string{"input_ids", "embed_tokens", "out", "norm", "lm_head"}, 0},
		{"gemma3-multimodal", []string{"input_ids", "embed_tokens", "out", "norm", "lm_head"}, 0},
		{"gemma3-tiny", []string{"input_ids", "embed_tokens", "out", "norm", "lm_head"}, 1},
		{"llama-tiny", []string{"input_ids", "embed_tokens", "out", "norm"}, 1},
		{"llama-tiny", []string{"embed_tokens", "out", "norm", "lm_head"}, 1},
	} {
		_, list := ordertest.Embedded(t, tt.model)
		golden := open(t, "../fixtures/golden/"+tt.model+"/prefill.float32.safetensors")
		res := run(t, testengine.Only(t, golden, tt.ends), golden, compare.Options{Order: list})
		if res.ExitCode() != tt.exit || (len(res.Incomplete) > 0) != (tt.exit > 0) || res.Divergence != nil {
			t.Errorf("%s, %v: exit code %d, incomplete %q", tt.model, tt.ends, res.ExitCode(), res.Incomplete)
		}
	}
}
