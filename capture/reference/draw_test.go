package reference_test

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order"
)

// randomFamilies are those that the local model runs, by model_type.
var randomFamilies = []string{"gemma3n_text", "gemma3_text", "gemma2", "gemma"}

// randomSeeds is how many configurations are drawn of each family. They are the same in every run.
const randomSeeds = 20

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

// config draws a configuration of a family, as its config.json would say it.
func (d drawer) config(family string) map[string]any {
	layers, kv := pick(d, 1, 2, 3, 4, 6), pick(d, 1, 1, 2, 3)
	c := map[string]any{
		"model_type": family, "num_hidden_layers": layers, "num_key_value_heads": kv, "num_attention_heads": kv * pick(d, 1, 1, 2, 3),
		"head_dim": pick(d, 2, 4, 6, 10, 16), "hidden_size": pick(d, 3, 5, 12, 17, 23, 32), "vocab_size": d.between(20, 50),
		"intermediate_size": times(layers, func() int { return d.between(1, 37) }), "rms_norm_eps": pick(d, 1e-6, 1e-5, 1e-2),
		"max_position_embeddings": 64, "tie_word_embeddings": d.bool(), "attention_bias": d.bool(),
	}
	switch family {
	case "gemma":
		c["hidden_act"] = pick(d, "gelu_pytorch_tanh", "gelu", "silu")
		c["rope_parameters"] = d.rope()
		return c
	case "gemma2":
		c["rope_parameters"] = d.rope()
		c["attn_logit_softcapping"] = pick[any](d, nil, 0.5, 50.0)
	default:
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

// sharable reports whether each of the last n layers has another of its type before them.
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

// applies reports whether a family can have a shape: one that starts with a model type is that family's alone, and one
// with sliding layers is of all but Gemma 1.
func applies(shape, family string) bool {
	of, _, restricted := strings.Cut(shape, ": ")
	return !restricted || of == family || of == "sliding" && family != "gemma"
}

// awkward are the shapes that the drawn configurations have to contain.
var awkward = map[string]func(c *order.Config, passes []int) bool{
	"one layer":                        func(c *order.Config, _ []int) bool { return c.NumLayers == 1 },
	"one KV head for several heads":    func(c *order.Config, _ []int) bool { return c.NumKVHeads == 1 && c.NumHeads > 1 },
	"as many KV heads as heads":        func(c *order.Config, _ []int) bool { return c.NumKVHeads == c.NumHeads && c.NumHeads > 1 },
	"a single head":                    func(c *order.Config, _ []int) bool { return c.NumHeads == 1 },
	"heads wider than the stream":      func(c *order.Config, _ []int) bool { return c.NumHeads*c.HeadDim > c.HiddenSize },
	"heads narrower than the stream":   func(c *order.Config, _ []int) bool { return c.NumHeads*c.HeadDim < c.HiddenSize },
	"an odd width":                     func(c *order.Config, _ []int) bool { return c.HiddenSize%2 == 1 },
	"one pair a head":                  func(c *order.Config, _ []int) bool { return c.HeadDim == 2 },
	"intermediate sizes by layer":      func(c *order.Config, _ []int) bool { return len(slices.Compact(slices.Clone(c.IntermediateSize))) > 1 },
	"biases":                           func(c *order.Config, _ []int) bool { return c.AttentionBias },
	"no biases":                        func(c *order.Config, _ []int) bool { return !c.AttentionBias },
	"a head of its own":                func(c *order.Config, _ []int) bool { return !c.Tied },
	"a tied head":                      func(c *order.Config, _ []int) bool { return c.Tied },
	"a prompt of one token":            func(_ *order.Config, p []int) bool { return p[0] == 1 },
	"one pass":                         func(_ *order.Config, p []int) bool { return len(p) == 1 },
	"decode":                           func(_ *order.Config, p []int) bool { return slices.Contains(p[1:], 1) },
	"a later pass of several tokens":   func(_ *order.Config, p []int) bool { return slices.Contains(p[1:], 3) },
	"a linear rotary embedding":        func(c *order.Config, _ []int) bool { return c.Rope[order.Full].Type == "linear" },
	"a llama3 rotary embedding":        func(c *order.Config, _ []int) bool { return c.Rope[order.Full].Type == "llama3" },
	"an unscaled rotary embedding":     func(c *order.Config, _ []int) bool { return c.Rope[order.Full].Type == "default" },
	"sliding: a window of 2":           func(c *order.Config, p []int) bool { return c.SlidingWindow == 2 && sum(p) > 2 },
	"sliding: a window never left":     func(c *order.Config, p []int) bool { return c.SlidingWindow > sum(p) },
	"sliding: left during decode":      func(c *order.Config, p []int) bool { return p[0] < c.SlidingWindow && c.SlidingWindow < sum(p) },
	"sliding: all layers":              func(c *order.Config, _ []int) bool { return !slices.Contains(c.LayerTypes, order.Full) },
	"sliding: a cap on the logits":     func(c *order.Config, _ []int) bool { return c.FinalSoftcap > 0 },
	"sliding: no cap on the logits":    func(c *order.Config, _ []int) bool { return c.FinalSoftcap == 0 },
	"gemma2: a cap on the scores":      func(c *order.Config, _ []int) bool { return c.AttnSoftcap > 0 },
	"gemma2: no cap on the scores":     func(c *order.Config, _ []int) bool { return c.AttnSoftcap == 0 },
	"gemma3n_text: two streams":        func(c *order.Config, _ []int) bool { return c.Gemma3n.AltUpStreams == 2 },
	"gemma3n_text: five streams":       func(c *order.Config, _ []int) bool { return c.Gemma3n.AltUpStreams == 5 },
	"gemma3n_text: the last is active": func(c *order.Config, _ []int) bool { return c.Gemma3n.AltUpActive == c.Gemma3n.AltUpStreams-1 },
	"gemma3n_text: no shared layers":   func(c *order.Config, _ []int) bool { return c.Gemma3n.SharedLayers == 0 },
	"gemma3n_text: shared of each type": func(c *order.Config, _ []int) bool {
		shared := c.LayerTypes[c.FirstShared():]
		return slices.Contains(shared, order.Sliding) && slices.Contains(shared, order.Full)
	},
	"gemma3n_text: all share":           func(c *order.Config, _ []int) bool { return c.Gemma3n.SharedLayers == c.NumLayers },
	"gemma3n_text: one layer is source": func(c *order.Config, _ []int) bool { return c.NumLayers > 2 && c.FirstShared() == 1 },
	"gemma3n_text: sparse and dense": func(c *order.Config, _ []int) bool {
		return slices.Max(c.Gemma3n.Sparsity) > 0 && slices.Min(c.Gemma3n.Sparsity) == 0
	},
	"gemma3n_text: a shorter per-layer table": func(c *order.Config, _ []int) bool { return c.Gemma3n.PerLayerVocab < c.VocabSize },
	"gemma3n_text: a longer per-layer table":  func(c *order.Config, _ []int) bool { return c.Gemma3n.PerLayerVocab > c.VocabSize },
	"gemma3n_text: no output scale":           func(c *order.Config, _ []int) bool { return !c.Gemma3n.AltUpCorrectScale },
}

func sum(n []int) int {
	total := 0
	for _, v := range n {
		total += v
	}
	return total
}

// What is drawn contains every awkward shape, in each family that can have it.
func TestRandomConfigurationsAreAwkward(t *testing.T) {
	for _, family := range randomFamilies {
		found := map[string]bool{}
		for seed := range randomSeeds {
			r := drawCase(t, family, seed)
			for name, has := range awkward {
				if applies(name, family) && has(r.list.Config, r.tokens()) {
					found[name] = true
				}
			}
		}
		for name := range awkward {
			if applies(name, family) && !found[name] {
				t.Errorf("%s: none of %d configurations has: %s", family, randomSeeds, name)
			}
		}
	}
}
