package ordertest

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/tracediff/tracediff/order"
)

// drawer draws what a configuration may have, awkward things more often than a model would.
type drawer struct{ *rand.Rand }

func newDrawer(family string, seed int) drawer {
	h := fnv.New64a()
	h.Write([]byte(family))
	return drawer{rand.New(rand.NewPCG(h.Sum64(), uint64(seed)))}
}

// pick draws one of several.
func pick[T any](d drawer, from ...T) T { return from[d.IntN(len(from))] }

// times calls draw n times.
func times[T any](n int, draw func() T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = draw()
	}
	return all
}

func (d drawer) bool() bool { return d.IntN(2) == 0 }

// between draws a whole number, both ends included.
func (d drawer) between(low, high int) int { return low + d.IntN(high-low+1) }

// rope draws the settings of a rotary embedding. The original positions are few, so that llama3 divides some of the
// frequencies of a small head, blends some and keeps some.
func (d drawer) rope() map[string]any {
	r := map[string]any{"rope_type": pick(d, "default", "linear", "llama3"), "rope_theta": pick(d, 10.0, 1e3, 1e4, 1e6)}
	if r["rope_type"] != "default" {
		r["factor"] = pick(d, 2.0, 3.5, 8.0)
	}
	if r["rope_type"] == "llama3" {
		r["low_freq_factor"], r["high_freq_factor"] = 1.0, pick(d, 1.5, 4.0)
		r["original_max_position_embeddings"] = pick(d, 8, 64, 300)
	}
	return r
}

// config draws a family's configuration, in the form of its config.json.
func (d drawer) config(family string) map[string]any {
	layers, kv := pick(d, 1, 2, 3, 4, 6), pick(d, 1, 1, 2, 3)
	c := map[string]any{
		"model_type": family, "num_hidden_layers": layers, "num_key_value_heads": kv, "num_attention_heads": kv * pick(d, 1, 1, 2, 3),
		"head_dim": pick(d, 2, 4, 6, 10, 16), "hidden_size": pick(d, 3, 5, 12, 17, 23, 32), "vocab_size": d.between(20, 50),
		"intermediate_size": times(layers, func() int { return d.between(1, 37) }), "rms_norm_eps": pick(d, 1e-6, 1e-5, 1e-2),
		"max_position_embeddings": 64, "tie_word_embeddings": d.bool(), "attention_bias": d.bool(),
	}
	if slices.Contains(Plain, family) {
		d.plain(c, family, layers)
		return c
	}
	switch family {
	case "gemma":
		c["hidden_act"] = pick(d, "gelu_pytorch_tanh", "gelu", "silu")
		c["rope_parameters"] = d.rope()
		return c
	case "gemma2":
		c["rope_parameters"] = d.rope()
		c["attn_logit_softcapping"] = pick[any](d, nil, 0.5, 50.0)
	case "gemma3_text", "gemma3n_text":
		c["rope_parameters"] = map[string]any{order.Sliding: d.rope(), order.Full: d.rope()}
	}
	types := times(layers, func() string { return pick(d, order.Sliding, order.Full) })
	c["layer_types"], c["sliding_window"] = types, pick(d, 2, 3, 5, 40)
	c["final_logit_softcapping"] = pick[any](d, nil, 0.7, 30.0)
	if family == "gemma3n_text" {
		d.gemma3n(c, types)
	} else {
		c["hidden_activation"] = pick(d, "gelu_pytorch_tanh", "gelu", "silu")
		c["query_pre_attn_scalar"] = pick(d, 1, 7, 10, 168)
	}
	return c
}

// plain draws what the families outside Gemma have otherwise: one size of the MLPs, a width that is a multiple of the
// number of heads, and sliding layers only where Qwen is told to use them.
func (d drawer) plain(c map[string]any, family string, layers int) {
	c["hidden_size"] = c["num_attention_heads"].(int) * pick(d, 1, 2, 3, 5, 8)
	c["intermediate_size"] = d.between(1, 37)
	c["hidden_act"] = pick(d, "gelu_pytorch_tanh", "gelu", "silu")
	c["rope_parameters"] = d.rope()
	switch family {
	case "llama":
		c["mlp_bias"] = d.bool()
	case "qwen2", "qwen3":
		if c["use_sliding_window"] = d.IntN(4) > 0; c["use_sliding_window"].(bool) {
			c["layer_types"] = times(layers, func() string { return pick(d, order.Sliding, order.Full) })
			c["sliding_window"] = pick(d, 2, 3, 5, 40)
		}
	}
}

// gemma3n draws what only Gemma 3n has.
func (d drawer) gemma3n(c map[string]any, types []string) {
	streams, layers := d.between(2, 5), len(types)
	c["altup_num_inputs"], c["altup_active_idx"], c["altup_correct_scale"] = streams, pick(d, 0, d.IntN(streams), streams-1), d.bool()
	c["laurel_rank"], c["hidden_size_per_layer_input"] = d.between(1, 5), d.between(1, 9)
	c["vocab_size_per_layer_input"] = d.between(5, 50) // ids outside read row 0
	c["activation_sparsity_pattern"] = times(layers, func() float64 { return pick(d, 0, 0.3, 0.5, 0.95) })
	most := 0
	for most+1 < layers && sharable(types, most+1) {
		most++
	}
	c["num_kv_shared_layers"] = pick(d, 0, most, most, layers) // where all are said to share, none does
}

// sharable reports whether each of the last n layers has an earlier layer of its type.
func sharable(types []string, n int) bool {
	own := types[:len(types)-n]
	return !slices.ContainsFunc(types[len(own):], func(t string) bool { return !slices.Contains(own, t) })
}

// passes draws the ids of a prompt and of what follows it: steps of one token, and now and then of several.
func (d drawer) passes(vocabulary, window int) [][]int {
	tokens := []int{pick(d, 1, 2, min(window+1, 12), 11)}
	for range d.IntN(5) {
		tokens = append(tokens, pick(d, 1, 1, 3))
	}
	var all [][]int
	for _, n := range tokens {
		all = append(all, times(n, func() int { return d.IntN(vocabulary) }))
	}
	return all
}
