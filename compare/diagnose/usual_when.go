package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program/edit"
)

// usuals lists the usual mistakes, in the order of docs/mistakes.md. A mistake without a condition on the configuration is possible in every model
// that has its entries.
var usuals = slices.Concat(usualEmbeddings, usualNorms, usualProjections, usualRotary, usualAttention, usualCaches, usualLayers, only(isGemma3n, usualGemma3n), usualWeights, usualHeads)

// only limits mistakes to models for which a condition holds, since other models may have entries with the same names.
func only(is func(*order.Config) bool, all []Usual) []Usual {
	all = slices.Clone(all)
	for i := range all {
		also := all[i].when
		all[i].when = func(c *order.Config) bool { return is(c) && (also == nil || also(c)) }
	}
	return all
}

// Conditions on the configuration of a model.

func isGemma3n(c *order.Config) bool { return c.Gemma3n != nil }

func not(is func(c *order.Config) bool) func(*order.Config) bool {
	return func(c *order.Config) bool { return !is(c) }
}

// hasPostNorms reports whether the outputs of attention and MLP are normed before the sum.
func hasPostNorms(c *order.Config) bool {
	return !slices.Contains([]string{"llama", "qwen2", "qwen3", "gemma"}, c.ModelType)
}

func hasHeadNorms(c *order.Config) bool {
	return c.Gemma3n != nil || c.ModelType == "gemma3_text" || c.ModelType == "qwen3"
}

func epsilonIsNot(x float64) func(*order.Config) bool {
	return func(c *order.Config) bool { return c.RMSNormEps != x }
}

func manyHeads(c *order.Config) bool     { return c.NumHeads > 1 }
func manyLayers(c *order.Config) bool    { return c.NumLayers > 1 }
func manyChannels(c *order.Config) bool  { return c.HeadDim > 2 }
func isGrouped(c *order.Config) bool     { return c.NumHeads > c.NumKVHeads }
func isCapped(c *order.Config) bool      { return c.AttnSoftcap > 0 }
func isFinalCapped(c *order.Config) bool { return c.FinalSoftcap > 0 }

func hasSquare(c *order.Config) bool {
	return c.NumHeads*c.HeadDim == c.HiddenSize || c.NumKVHeads*c.HeadDim == c.HiddenSize
}

func slidesInPart(c *order.Config) bool {
	return slices.Contains(c.LayerTypes, order.Sliding) && slices.Contains(c.LayerTypes, order.Full)
}

// anyRope reports whether a model has a rotary embedding of a kind.
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
func isLlama3Rope(r order.Rope) bool { return r.Type == "llama3" }
func isUnusualRope(r order.Rope) bool {
	return r.Theta > 0 && r.Theta != 1e4
}

func twoRopes(c *order.Config) bool {
	a, b := c.Rope[order.Sliding], c.Rope[order.Full]
	return a.Theta > 0 && b.Theta > 0
}

// Numbers of a configuration.

func byHead(c *order.Config) float64      { return 1 / math.Sqrt(float64(c.HeadDim)) }
func byWidth(c *order.Config) float64     { return 1 / math.Sqrt(float64(c.HiddenSize)) }
func rootWidth(c *order.Config) float64   { return math.Sqrt(float64(c.HiddenSize)) }
func finalCap(c *order.Config) float64    { return c.FinalSoftcap }
func slidingSize(c *order.Config) float64 { return float64(c.SlidingWindow) }
func fullTheta(c *order.Config) float64   { return c.Rope[order.Full].Theta }

// scaleOfScores is the factor of attention scores.
func scaleOfScores(c *order.Config) float64 {
	switch {
	case c.Gemma3n != nil:
		return 1
	case c.QueryPreAttnScalar > 0:
		return 1 / math.Sqrt(c.QueryPreAttnScalar)
	}
	return byHead(c)
}

// pairs reads neighbouring channels as halves. A value with three axes has all heads in the last axis, so the map needs the head size.
func pairs(c *order.Config, axes int) edit.Map {
	m := edit.Map{Kind: edit.Weave, Axis: axes - 1, N: 2}
	if axes == 3 {
		m.By = c.HeadDim
	}
	return m
}

func rolled(axis int) func(*order.Config) edit.Map {
	return func(*order.Config) edit.Map { return edit.Map{Kind: edit.Roll, Axis: axis, By: 1} }
}

func firstHead(*order.Config, int) edit.Map { return edit.Map{Kind: edit.First, Axis: 1} }
