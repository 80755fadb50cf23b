package ordertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// seeds is how many configurations of each family have to contain all awkward shapes among them.
const seeds = 20

// applies reports whether a family can have a shape: one that starts with a model type is that family's alone, and one
// with sliding layers is of all but Gemma 1 and Llama.
func applies(shape, family string) bool {
	of, _, restricted := strings.Cut(shape, ": ")
	switch gemma := slices.Contains(ordertest.Gemma, family); of {
	case "sliding":
		return family != "gemma" && family != "llama"
	case "Gemma":
		return gemma
	case "capped":
		return gemma && family != "gemma"
	case "biased by choice":
		return family != "qwen2"
	}
	return !restricted || of == family
}

// awkward are the shapes that the drawn configurations have to contain.
var awkward = map[string]func(c *order.Config, passes []int) bool{
	"one layer":                          func(c *order.Config, _ []int) bool { return c.NumLayers == 1 },
	"one KV head for several heads":      func(c *order.Config, _ []int) bool { return c.NumKVHeads == 1 && c.NumHeads > 1 },
	"as many KV heads as heads":          func(c *order.Config, _ []int) bool { return c.NumKVHeads == c.NumHeads && c.NumHeads > 1 },
	"a single head":                      func(c *order.Config, _ []int) bool { return c.NumHeads == 1 },
	"heads wider than the stream":        func(c *order.Config, _ []int) bool { return c.NumHeads*c.HeadDim > c.HiddenSize },
	"heads narrower than the stream":     func(c *order.Config, _ []int) bool { return c.NumHeads*c.HeadDim < c.HiddenSize },
	"an odd width":                       func(c *order.Config, _ []int) bool { return c.HiddenSize%2 == 1 },
	"one pair a head":                    func(c *order.Config, _ []int) bool { return c.HeadDim == 2 },
	"Gemma: intermediate sizes by layer": func(c *order.Config, _ []int) bool { return len(slices.Compact(slices.Clone(c.IntermediateSize))) > 1 },
	"biases":                             func(c *order.Config, _ []int) bool { return c.AttentionBias },
	"biased by choice: no biases":        func(c *order.Config, _ []int) bool { return !c.AttentionBias },
	"a head of its own":                  func(c *order.Config, _ []int) bool { return !c.Tied },
	"a tied head":                        func(c *order.Config, _ []int) bool { return c.Tied },
	"a prompt of one token":              func(_ *order.Config, p []int) bool { return p[0] == 1 },
	"one pass":                           func(_ *order.Config, p []int) bool { return len(p) == 1 },
	"decode":                             func(_ *order.Config, p []int) bool { return slices.Contains(p[1:], 1) },
	"a later pass of several tokens":     func(_ *order.Config, p []int) bool { return slices.Contains(p[1:], 3) },
	"a linear rotary embedding":          func(c *order.Config, _ []int) bool { return c.Rope[order.Full].Type == "linear" },
	"a llama3 rotary embedding":          func(c *order.Config, _ []int) bool { return c.Rope[order.Full].Type == "llama3" },
	"an unscaled rotary embedding":       func(c *order.Config, _ []int) bool { return c.Rope[order.Full].Type == "default" },
	"sliding: a window of 2":             func(c *order.Config, p []int) bool { return c.SlidingWindow == 2 && sum(p) > 2 },
	"sliding: a window never left":       func(c *order.Config, p []int) bool { return c.SlidingWindow > sum(p) },
	"sliding: left during decode":        func(c *order.Config, p []int) bool { return p[0] < c.SlidingWindow && c.SlidingWindow < sum(p) },
	"sliding: all layers":                func(c *order.Config, _ []int) bool { return !slices.Contains(c.LayerTypes, order.Full) },
	"capped: a cap on the logits":        func(c *order.Config, _ []int) bool { return c.FinalSoftcap > 0 },
	"capped: no cap on the logits":       func(c *order.Config, _ []int) bool { return c.FinalSoftcap == 0 },
	"gemma2: a cap on the scores":        func(c *order.Config, _ []int) bool { return c.AttnSoftcap > 0 },
	"gemma2: no cap on the scores":       func(c *order.Config, _ []int) bool { return c.AttnSoftcap == 0 },
	"gemma3n_text: two streams":          func(c *order.Config, _ []int) bool { return c.Gemma3n.AltUpStreams == 2 },
	"gemma3n_text: five streams":         func(c *order.Config, _ []int) bool { return c.Gemma3n.AltUpStreams == 5 },
	"gemma3n_text: the last is active":   func(c *order.Config, _ []int) bool { return c.Gemma3n.AltUpActive == c.Gemma3n.AltUpStreams-1 },
	"gemma3n_text: no shared layers":     func(c *order.Config, _ []int) bool { return c.Gemma3n.SharedLayers == 0 },
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
	for _, family := range slices.Concat(ordertest.Gemma, ordertest.Plain) {
		found := map[string]bool{}
		for seed := range seeds {
			c := ordertest.Draw(t, family, seed)
			for name, has := range awkward {
				if applies(name, family) && has(c.List.Config, c.Tokens()) {
					found[name] = true
				}
			}
		}
		for name := range awkward {
			if applies(name, family) && !found[name] {
				t.Errorf("%s: none of %d configurations has: %s", family, seeds, name)
			}
		}
	}
}
