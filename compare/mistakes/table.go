package mistakes

import (
	"slices"

	"github.com/tracediff/tracediff/order"
)

// table has the usual mistakes, in the order of docs/mistakes.md. What one is: the entries, the steps, the change. A mistake that no
// field of a configuration rules out is one in every model whose order has such entries.
var table = slices.Concat(embeddings, norms, projections, rotary, attentions, caches, layers, only(isGemma3n, gemma3n), weights, heads)

// only has these mistakes in models that are so: others may have entries with the same names.
func only(is func(*order.Config) bool, all []Mistake) []Mistake {
	all = slices.Clone(all)
	for i := range all {
		also := all[i].when
		all[i].when = func(c *order.Config) bool { return is(c) && (also == nil || also(c)) }
	}
	return all
}

// What a model has.

func isGemma3n(c *order.Config) bool { return c.Gemma3n != nil }

func not(is func(c *order.Config) bool) func(*order.Config) bool {
	return func(c *order.Config) bool { return !is(c) }
}

func isScaled(c *order.Config) bool {
	switch c.ModelType {
	case "llama", "qwen2", "qwen3":
		return false
	}
	return true
}

// hasPostNorms: what attention and MLP give is normed before it is added.
func hasPostNorms(c *order.Config) bool { return isScaled(c) && c.ModelType != "gemma" }

func epsilonIsNot(x float64) func(*order.Config) bool {
	return func(c *order.Config) bool { return c.RMSNormEps != x }
}

func manyHeads(c *order.Config) bool  { return c.NumHeads > 1 }
func manyLayers(c *order.Config) bool { return c.NumLayers > 1 }
func isGrouped(c *order.Config) bool  { return c.NumHeads > c.NumKVHeads }
func isCapped(c *order.Config) bool   { return c.AttnSoftcap > 0 }
func isFinalCapped(c *order.Config) bool {
	return c.FinalSoftcap > 0
}

func slides(c *order.Config) bool { return slices.Contains(c.LayerTypes, order.Sliding) }

func slidesInPart(c *order.Config) bool {
	return slides(c) && slices.Contains(c.LayerTypes, order.Full)
}

// anyRope reports whether a rotary embedding of a model is of a kind.
func anyRope(is func(r order.Rope) bool) func(*order.Config) bool {
	return func(c *order.Config) bool {
		for _, t := range c.Types() {
			if is(c.Rope[t]) {
				return true
			}
		}
		return is(c.Rope[order.Full]) && c.Rope[order.Full].Theta > 0
	}
}

func isScaledRope(r order.Rope) bool { return r.Theta > 0 && r.Type != "default" }

func twoRopes(c *order.Config) bool {
	a, b := c.Rope[order.Sliding], c.Rope[order.Full]
	return a.Theta > 0 && b.Theta > 0
}

// What shows a mistake.

func tokens(n int) func(*order.Config) Needs {
	return func(*order.Config) Needs { return Needs{Tokens: n} }
}

func aStep(*order.Config) Needs { return Needs{Steps: 1} }

// window is a prompt of as many tokens as the window has keys, and some more.
func window(more int) func(*order.Config) Needs {
	return func(c *order.Config) Needs { return Needs{Tokens: c.SlidingWindow + more} }
}

func twoKeyHeads(c *order.Config) Needs {
	if c.NumKVHeads < 2 {
		return Needs{Never: "more than one key head"}
	}
	return Needs{}
}
