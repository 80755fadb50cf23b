package order

import (
	"math"

	"github.com/tracediff/tracediff/order/op"
)

func readGemma2(f *fields) *Config {
	c := common(f, "gemma2", sizes{256000, 2304, 9216, 26, 8, 4, 256, 8192, "hidden_activation"})
	c.Rope = f.ropeSingle(c.MaxPositions)
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return i%2 == 1 })
	c.SlidingWindow = f.int("sliding_window", 4096)
	c.QueryPreAttnScalar = f.float("query_pre_attn_scalar", 256)
	c.AttnSoftcap = f.softcap("attn_logit_softcapping", 50)
	c.FinalSoftcap = f.softcap("final_logit_softcapping", 30)
	return c
}

// gemma2 lists the decoder of Gemma 2 (modeling_gemma2): one rotary embedding for all layers, every other one sliding,
// and a cap on scores and logits.
func gemma2(c *Config) *List {
	return decoder{
		gain: op.OnePlus, normInput: "x", scaled: true, postNorms: true,
		attention: attention{scale: 1 / math.Sqrt(c.QueryPreAttnScalar)},
	}.list(c)
}
