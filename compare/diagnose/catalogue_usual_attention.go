package diagnose

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

var usualRotary = []Usual{
	{
		Name: "neighbours", Page: "rotary-pairs", What: "interleaved RoPE: pairs (2j, 2j+1) instead of (j, j + d/2)", at: []string{"*.self_attn.[qk]_rope"},
		needs: tokens(2), is: inputMapped(0, true, pairs),
	},
	{
		Name: "angles-of-neighbours", Page: "rotary-pairs", What: "the angles are laid out for interleaved RoPE", at: []string{"rotary.*"},
		when:  manyChannels,
		needs: tokens(2),
		is:    resultMapped(func(c *order.Config) edit.Map { return edit.Map{Kind: edit.Weave, Axis: 2, N: c.HeadDim / 2} }),
	},
	{
		Name: "keys-permuted", Page: "permuted-query-and-key-rows", What: "the rows of k_proj are in the other RoPE layout", at: []string{"*.self_attn.k_proj"},
		when: manyChannels, is: weightHas(otherPairs),
	},
	{
		Name: "queries-permuted", Page: "permuted-query-and-key-rows", What: "the rows of q_proj are in the other RoPE layout", at: []string{"*.self_attn.q_proj"},
		when: manyChannels, is: weightHas(otherPairs),
	},
	{
		Name: "theta-10000", Page: "rotary-base", What: "theta is 10000", at: []string{"rotary.*"},
		when: anyRope(isUnusualRope), needs: tokens(2), is: thetaIs(func(*order.Config) float64 { return 1e4 }),
	},
	{
		Name: "theta-1000000", Page: "rotary-base", What: "theta is 1000000", at: []string{"rotary.*"},
		when: not(anyRope(isUnusualRope)), needs: tokens(2), is: thetaIs(func(*order.Config) float64 { return 1e6 }),
	},
	{
		Name: "one-theta", Page: "rotary-base", What: "sliding layers have the theta of full ones", at: []string{"rotary.sliding.*"},
		when: func(c *order.Config) bool {
			return twoRopes(c) && c.Rope[order.Sliding].Theta != c.Rope[order.Full].Theta
		},
		needs: tokens(2),
		is:    thetaIs(fullTheta),
	},
	{
		Name: "unscaled", Page: "rotary-scaling", What: "RoPE scaling is missing", at: []string{"rotary.*"},
		when: anyRope(isScaledRope), needs: tokens(2), is: frequencyIs(unscaledTurns),
	},
	{
		Name: "scaled-everywhere", Page: "rotary-scaling", What: "sliding layers are scaled as full ones", at: []string{"rotary.sliding.*"},
		when: func(c *order.Config) bool {
			return twoRopes(c) && c.Rope[order.Sliding].Type != c.Rope[order.Full].Type && isScaledRope(c.Rope[order.Full])
		},
		needs: tokens(2),
		is:    frequencyIs(scaledAsFull),
	},
	{
		Name: "llama3-as-linear", Page: "rotary-scaling", What: "all frequencies are divided by the factor", at: []string{"rotary.*"},
		when: anyRope(isLlama3Rope), needs: tokens(2), is: frequencyIs(allScaled),
	},
	{
		Name: "attention-factor", Page: "rotary-scaling", What: "cosines and sines have the factor of YaRN", at: []string{"rotary.*"},
		when: anyRope(isScaledRope), is: insertedIs("factor.inserted", attentionFactor),
	},
	{
		Name: "frequencies-bfloat16", Page: "rotary-precision", What: "rotary frequencies are rounded to bfloat16", at: []string{"rotary.*"},
		needs: tokens(2), is: frequencyIs(func(*order.Config, *frequencies) Mistake {
			return Mistake{Kind: "rope.frequencies-rounded", DType: hooks.BF16}
		}),
	},
	{
		Name: "positions-bfloat16", Page: "rotary-precision", What: "positions are rounded to bfloat16", at: []string{"rotary.*"},
		when:  func(c *order.Config) bool { return c.MaxPositions >= exactPositions+2 },
		needs: func(*order.Config) Needs { return Needs{Total: exactPositions + 2} },
		is:    positionIs(Mistake{Kind: "position.rounded", DType: hooks.BF16}),
	},
	{
		Name: "queries-ahead", Page: "position-offset", What: "queries are rotated by one position more than keys", at: []string{"rotary.*"}, seen: "*.self_attn.q_rope",
		is: positionIs(Mistake{Kind: "position.first-at", N: 1}),
	},
	{
		Name: "positions-from-0", Page: "positions-of-decode-steps", What: "positions restart at 0 in each pass", at: []string{"rotary.*"},
		needs: aStep, is: decoding(positionIs(Mistake{Kind: "position.from-zero"})),
	},
	{Name: "rotation-missing", Page: "missing-rotation", What: "queries and keys are not rotated", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2), is: leftOut(0)},
	{
		Name: "rotation-direction", Page: "direction-of-rotation", What: "the rotation has the wrong direction", at: []string{"*.self_attn.[qk]_rope"},
		needs: tokens(2), is: stepIs("sum", program.Add, program.Sub),
	},
	{
		Name: "rotation-partial", Page: "partial-rotation", What: "the last half of each head is not rotated", at: []string{"*.self_attn.[qk]_rope"},
		needs: tokens(2), is: firstHalf,
	},
	{
		Name: "rotation-before-norm", Page: "rotary-before-norm", What: "queries and keys are rotated before their norms", at: []string{"*.self_attn.[qk]_rope"},
		when: hasHeadNorms, needs: tokens(2), is: leftOut(0),
	},
}

var usualAttention = []Usual{
	{
		Name: "scale-of-head", Page: "attention-scale", What: "scores are scaled by 1/√head_dim", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scaleOfScores(c) != byHead(c) }, is: numberIs("scale", ofConfig(byHead)),
	},
	{
		Name: "scale-missing", Page: "attention-scale", What: "scores are not scaled", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scaleOfScores(c) != 1 }, is: numberIs("scale", just(1)),
	},
	{
		Name: "scale-of-width", Page: "attention-scale", What: "scores are scaled by 1/√hidden_size", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scaleOfScores(c) != byWidth(c) }, is: numberIs("scale", ofConfig(byWidth)),
	},
	{
		Name: "scale-twice", Page: "attention-scale", What: "scores are scaled twice", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scaleOfScores(c) != 1 }, is: numberIs("scale", squared),
	},
	{Name: "scores-uncapped", Page: "attention-soft-cap", What: "the soft cap on scores is missing", at: []string{"*.self_attn.scores_softcap"}, is: leftOut(0)},
	{
		Name: "scores-cap-final", Page: "attention-soft-cap", What: "scores have the cap of logits", at: []string{"*.self_attn.scores_softcap"},
		when: func(c *order.Config) bool { return c.FinalSoftcap > 0 && c.FinalSoftcap != c.AttnSoftcap },
		is:   numberIs("cap", ofConfig(finalCap)),
	},
	{Name: "scores-clipped", Page: "attention-soft-cap", What: "scores are clipped at the soft cap, not passed through tanh", at: []string{"*.self_attn.scores_softcap"}, is: tanhIs("tanh.clip")},
	{
		Name: "scores-capped", Page: "attention-soft-cap", What: "scores are capped at 50", at: []string{"*.self_attn.scores"},
		when: not(isCapped), is: insertedIs("soft-cap.inserted", byNumber(50)),
	},
	{
		Name: "window+1", Page: "window-size", What: "the window is one key too wide", at: []string{"mask.sliding"},
		needs: aWindow(1), is: maskIs("mask.window", wider(1)),
	},
	{
		Name: "window-1", Page: "window-size", What: "the window is one key too narrow", at: []string{"mask.sliding"},
		when:  func(c *order.Config) bool { return c.SlidingWindow > 1 },
		needs: aWindow(0),
		is:    maskIs("mask.window", wider(-1)),
	},
	{
		Name: "window-missing", Page: "window-on-the-wrong-layers", What: "sliding layers have no window", at: []string{"mask.sliding"},
		needs: aWindow(1), is: maskIs("mask.window-left-out", just(0)),
	},
	{
		Name: "window-everywhere", Page: "window-on-the-wrong-layers", What: "full layers have the window", at: []string{"mask.full"},
		when: slidesInPart, needs: pastWindow, is: maskIs("mask.window-added", ofConfig(slidingSize)),
	},
	{
		Name: "not-causal", Page: "causal-mask", What: "queries attend to future keys", at: []string{"mask.*"},
		needs: tokens(2), is: always(Mistake{Kind: "mask.not-causal", Place: maskSite}),
	},
	{
		Name: "without-itself", Page: "causal-mask", What: "causal mask without its diagonal: queries do not attend to their own key", at: []string{"mask.*"},
		is: always(Mistake{Kind: "mask.own-key-masked", Place: maskSite}),
	},
	{
		Name: "mask-of-5", Page: "mask-value", What: "the mask adds -5, not the lowest value", at: []string{"*.self_attn.scores_masked"},
		needs: tokens(2), is: always(Mistake{Kind: "mask.value-small", Place: maskSite, X: some(5)}),
	},
	{
		Name: "softmax-axis", Page: "softmax-axis", What: "the softmax runs over the queries, not the keys", at: []string{"*=softmax"},
		needs: tokens(2), is: softmaxIs(Mistake{Kind: "softmax.axis", Axis: "tokens"}, 1),
	},
	{
		Name: "softmax-unwritten", Page: "unwritten-cache-slots", What: "the softmax counts an unwritten cache slot", at: []string{"*=softmax"},
		is: softmaxIs(Mistake{Kind: "softmax.slots-unwritten", X: some(1)}, 0),
	},
}

var usualCaches = []Usual{
	{
		Name: "stale-slot", Page: "stale-cache-slot", What: "the last cache slot still holds the previous step", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"},
		needs: aStep, is: slotsAre(Mistake{Kind: "cache.slot-repeated"}, lastStale),
	},
	{
		Name: "values-moved", Page: "stale-cache-slot", What: "cached values are one slot off their keys", at: []string{"*.self_attn.values=cache"},
		needs: func(*order.Config) Needs { return Needs{Total: 2} },
		is:    resultMapped(rolled(2)),
	},
	{
		Name: "zero-slot", Page: "zero-cache-slot", What: "a cache slot is not written", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"},
		needs: aStep, is: slotsAre(Mistake{Kind: "cache.slot-unwritten"}, firstZero),
	},
	{
		Name: "oldest-kept", Page: "evicted-keys", What: "a full sliding cache drops the newest key", at: []string{"*.self_attn.keys=cache(window)", "*.self_attn.values=cache(transpose, window)"},
		when:  func(c *order.Config) bool { return c.SlidingWindow > 1 },
		needs: fullWindow,
		is:    slotsAre(Mistake{Kind: "cache.oldest-kept"}, nil),
	},
	{
		Name: "cached-unturned", Page: "keys-cached-before-rotation", What: "keys are cached before the rotation", at: []string{"*.self_attn.keys=cache"},
		needs: func(*order.Config) Needs { return Needs{Tokens: 2, Steps: 1} }, edit: cachedUnturned,
	},
	{
		Name: "cache-8-bits", Page: "quantised-cache", What: "earlier keys and values are quantised to 8 bits", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"},
		needs: aStep, is: slotsAre(Mistake{Kind: "cache.rounded", N: 8, By: Term{Kind: ScalesOfTokensAndHeads}}, nil),
	},
	{
		Name: "keys-of-first", Page: "shared-keys-and-values", What: "layers that share keys and values take them from the wrong layer", at: []string{"*.self_attn.keys=identity", "*.self_attn.values=identity"},
		when: func(c *order.Config) bool { return otherSource(c, c.FirstShared()) >= 0 }, is: keysOfAnother,
	},
}
