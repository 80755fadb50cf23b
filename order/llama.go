package order

import "github.com/tracediff/tracediff/order/op"

func readLlama(f *fields) *Config {
	c := common(f, "llama", sizes{32000, 4096, 11008, 32, 32, 0, 0, 2048, "hidden_act"})
	untied(f, c)
	c.MLPBias = f.bool("mlp_bias", false)
	c.LayerTypes = f.layerTypes(c.NumLayers, allFull)
	return c
}

// llama lists the decoder of Llama (modeling_llama).
func llama(c *Config) *List {
	return decoder{gain: op.After, normInput: "hidden_states", attention: attention{scale: byHeadDim(c)}}.list(c)
}
