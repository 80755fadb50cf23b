package order

import (
	"math"

	"github.com/tracediff/tracediff/order/op"
)

func readGemma3(f *fields) *Config {
	c := common(f, "gemma3_text", sizes{262208, 2304, 9216, 26, 8, 4, 256, 131072, "hidden_activation"})
	c.Rope = f.ropeByType(c.MaxPositions)
	pattern := f.int("sliding_window_pattern", 6)
	if pattern < 1 {
		f.fail("sliding_window_pattern is %d, want 1 or more", pattern)
		pattern = 1
	}
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return (i+1)%pattern == 0 })
	c.SlidingWindow = f.int("sliding_window", 4096)
	c.QueryPreAttnScalar = f.float("query_pre_attn_scalar", 256)
	// attn_logit_softcapping is in the class and never reaches the attention call. The final cap is applied by
	// Gemma3ForCausalLM; Gemma3ForConditionalGeneration, which runs files of the outer type, gives the head's logits
	// whatever its text settings say.
	if f.outerType != "gemma3" {
		c.FinalSoftcap = f.softcap("final_logit_softcapping", 0)
	}
	if f.bool("use_bidirectional_attention", false) {
		f.fail("use_bidirectional_attention is true: embedding models with bidirectional masks are %w", errSetting)
	}
	return c
}

// gemma3 lists the text decoder of Gemma 3 (modeling_gemma3): two rotary embeddings, by layer type, and norms of
// queries and keys, which transformers calls after it has put the heads first.
func gemma3(c *Config) *List {
	return decoder{
		gain: op.OnePlus, normInput: "x", scaled: true, postNorms: true,
		attention: attention{headNorms: true, headsFirst: true, scale: 1 / math.Sqrt(c.QueryPreAttnScalar)},
	}.list(c)
}
