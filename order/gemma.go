package order

import "github.com/tracediff/tracediff/order/op"

func readGemma(f *fields) *Config {
	c := common(f, "gemma", sizes{256000, 3072, 24576, 28, 16, 16, 256, 8192, "hidden_act"})
	// Published files say "gelu", but the models were trained with the tanh form, and transformers loads the tanh
	// form.
	if c.Activation == "gelu" {
		c.Activation = "gelu_pytorch_tanh"
	}
	c.Rope = f.ropeSingle(c.MaxPositions)
	c.LayerTypes = f.layerTypes(c.NumLayers, allFull)
	return c
}

// gemma lists the decoder of Gemma 1 (modeling_gemma): the layer of Llama with Gemma's norms and scaled embedding.
func gemma(c *Config) *List {
	return decoder{gain: op.OnePlus, normInput: "x", scaled: true, attention: attention{scale: byHeadDim(c)}}.list(c)
}
