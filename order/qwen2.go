package order

import "github.com/tracediff/tracediff/order/op"

func readQwen2(f *fields) *Config {
	c := common(f, "qwen2", sizes{151936, 4096, 22016, 32, 32, 32, 0, 32768, "hidden_act"})
	untied(f, c)
	c.AttentionBias = true // on q, k and v; the class has no field for it
	qwenWindow(f, c)
	return c
}

// qwenWindow: sliding layers exist only with use_sliding_window, and then from max_window_layers on.
func qwenWindow(f *fields, c *Config) {
	from := f.int("max_window_layers", 28)
	uses := f.bool("use_sliding_window", false)
	if uses {
		c.SlidingWindow = f.int("sliding_window", 4096)
	}
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return !uses || i < from })
}

// qwen2 lists the decoder of Qwen2 (modeling_qwen2): that of Llama with biases on q, k and v, and none on o.
func qwen2(c *Config) *List {
	return decoder{
		gain: op.After, normInput: "hidden_states", attention: attention{plainOutput: true, scale: byHeadDim(c)},
	}.list(c)
}
