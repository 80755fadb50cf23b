package order

import "github.com/tracediff/tracediff/order/op"

func readQwen3(f *fields) *Config {
	c := common(f, "qwen3", sizes{151936, 4096, 22016, 32, 32, 32, 128, 32768, "hidden_act"})
	untied(f, c)
	qwenWindow(f, c)
	return c
}

// qwen3 lists the decoder of Qwen3 (modeling_qwen3): that of Llama with norms of queries and keys.
func qwen3(c *Config) *List {
	return decoder{
		gain: op.After, normInput: "hidden_states", attention: attention{headNorms: true, scale: byHeadDim(c)},
	}.list(c)
}
