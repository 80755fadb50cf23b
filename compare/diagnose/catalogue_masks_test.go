package diagnose

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// maskSentences are the sentences of the kinds in maskRows, each with a role of an entry and the page of the mistake there.
var maskSentences = []struct {
	m     Mistake
	words string
	role  string
	page  string // empty for none
}{
	{Mistake{Kind: "mask.not-causal"}, "the mask is not causal: every query attends to every key", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.causal"}, "the mask is causal, and should not be", "mask.sliding", ""},
	{Mistake{Kind: "mask.anti-causal"}, "earlier keys are masked", "mask.sliding", ""},
	{Mistake{Kind: "mask.none"}, "no key is masked: every query attends to every key", "mask.sliding", ""},
	{Mistake{Kind: "mask.both-sides", N: 3}, "a query attends to its own key and 3 keys on each side", "mask.sliding", ""},
	{Mistake{Kind: "mask.both-sides"}, "a query attends to its own key and 0 keys on each side", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-ahead"}, "off by one: a query attends to one future key", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.own-key-masked"}, "causal mask without its diagonal: a query does not attend to its own key", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.own-key-alone"}, "a query attends only to its own key", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.reversed"}, "the causal mask is inverted: a query attends to its own key and future keys only", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.top-left"}, "the causal mask is aligned to the first key, not the last: query i attends to keys 0 to i", "mask.sliding", ""},
	{Mistake{Kind: "mask.prefix", N: 4}, "the first 4 tokens attend to each other: a prefix that is not causal", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.chunks", N: 4}, "tokens within a chunk of 4 attend to each other: the mask is causal only between chunks", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-masked"}, "key 0 is masked for every query", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-masked", N: 7}, "key 7 is masked for every query", "mask.sliding", ""},
	{Mistake{Kind: "mask.keys-masked", N: 4, M: 7}, "keys 4 to 7 are masked for every query", "mask.full", ""},
	{Mistake{Kind: "mask.key-masked-but-own", N: 7}, "key 7 is masked for every query except its own", "mask.sliding", ""},
	{Mistake{Kind: "mask.first-keys-masked", N: 3}, "the first 3 keys are masked for every query", "mask.sliding", ""},
	{Mistake{Kind: "mask.first-keys-seen", N: 4}, "every query attends to the first 4 keys, inside or outside the window: attention sinks", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.prompt-masked"}, "a decode step does not attend to the prompt", "mask.sliding", "fully-masked-row"},
	{Mistake{Kind: "mask.step-sees-prompt-alone"}, "a decode step attends only to the prompt and its own key, not to earlier decode steps", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.last-block-left-out", N: 8}, "the last block of 8 keys is skipped if it is not full", "layers.*.attn_residual", "missing-residual"},
	{Mistake{Kind: "mask.blocks", N: 8}, "attention is block-diagonal: queries attend only within their block of 8 tokens", "mask.sliding", ""},

	{Mistake{Kind: "mask.window", X: some(511), Right: some(512)}, "the window is 511", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-left-out", X: some(0), Right: some(512)}, "the sliding window is missing: queries attend to all earlier keys", "mask.sliding", "window-on-the-wrong-layers"},
	{Mistake{Kind: "mask.window-added", By: literal(512)}, "the mask has a sliding window of 512, and should have no window", "mask.sliding", "window-on-the-wrong-layers"},
	{Mistake{Kind: "mask.layers-exchanged"}, "sliding and full layers are exchanged: the window is on the wrong layers", "mask.sliding", "window-on-the-wrong-layers"},
	{Mistake{Kind: "mask.blocks-not-window", N: 8}, "queries attend within their block of 8 tokens, not within a sliding window", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-whole-block", N: 16}, "the window starts at a block boundary: queries also attend to the rest of the block of 16 keys in which it starts", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-next-block", N: 16}, "the window starts at the next boundary of a block of 16 keys: it is too short", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-both-sides"}, "the window reaches to both sides: queries attend to future keys", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.window-no-end"}, "the window is open to the future: queries attend to all future keys", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.window-moved", N: -2}, "the window is shifted by -2 keys, at both ends", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-of-first-query"}, "all queries of a pass use the first query's window: too long for the others", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-of-chunk", N: 4}, "all queries of a chunk of 4 use its first query's window: too long for the others", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-of-chunk-no-end", N: 4}, "all queries of a chunk of 4 use its first query's window, and attend to each other", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.ring", N: 8}, "the whole pass is written to a ring buffer of 8 keys before its queries read it: early queries lose keys", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.ring-of-chunk", N: 8, M: 4}, "each chunk of 4 tokens is written to a ring buffer of 8 keys before its queries read it: early queries lose keys", "mask.sliding", "window-size"},

	{Mistake{Kind: "mask.first-key", Axis: onKeys, M: 4, N: 4, K: -2}, "the first key that a query at position p attends to is n rounded down to a multiple of 4, minus 2, with n the number of keys", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.last-key", Axis: onPosition, M: 1, N: 3}, "the last key that a query at position p attends to is p/3 rounded down", "mask.full", "causal-mask"},
	{Mistake{Kind: "mask.value", X: some(-1e4)}, "masked scores are -10000", "mask.sliding", ""},
	{Mistake{Kind: "mask.multiplied", X: some(0)}, "masked scores are 0, as where the mask is multiplied, not added", "layers.*.self_attn.scores_masked", "attention-scale"},
	{Mistake{Kind: "mask.before-soft-cap", X: some(-50)}, "masked scores are -50: the mask is applied before the soft cap, not after it", "layers.*.self_attn.scores_masked", "attention-soft-cap"},
	{Mistake{Kind: "mask.value-small", X: some(10)}, "masked scores are lowered by only 10: masked keys still get weight", "mask.sliding", "mask-value"},
	{Mistake{Kind: "mask.boolean"}, "the mask is 1 for visible keys and 0 for masked keys: a boolean mask is added to the scores", "mask.full", "mask-value"},
	{Mistake{Kind: "mask.after-softmax"}, "the mask is applied after the softmax: rows do not sum to 1", "mask.sliding", ""},

	{Mistake{Kind: "softmax.axis", Axis: "tokens"}, "the softmax runs over the tokens, not the keys", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.base", X: some(2), By: literal(math.Ln2)}, "the softmax uses powers of 2, not of e: the scores are multiplied by 0.693147", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "softmax.slots-unwritten", X: some(3)}, "the softmax counts 3 unwritten slots, with scores of 0", "layers.*.self_attn.probs", "unwritten-cache-slots"},
	{Mistake{Kind: "softmax.own-key-twice"}, "the softmax counts a query's own key twice", "layers.*.self_attn.probs", "unwritten-cache-slots"},
	{Mistake{Kind: "softmax.key-twice", N: 7}, "the softmax counts key 7 twice", "layers.*.self_attn.probs", "unwritten-cache-slots"},
	{Mistake{Kind: "softmax.slots-to-block", N: 64}, "the softmax counts padding keys, with scores of 0, up to a multiple of 64", "layers.*.self_attn.probs", "unwritten-cache-slots"},
	{Mistake{Kind: "softmax.whole-blocks", N: 32}, "the softmax ignores keys after the last whole block of 32", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "softmax.joined-left-out", Of: tensorTerm("layers.3.self_attn.sinks")}, "layers.*.self_attn.sinks is left out of the softmax", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "function.near-exponential", By: stepTerm("softmax.difference"), For: literal(-0.69), X: some(0.19), N: 2}, "a function near the exponential takes its place in the softmax: it is up to 0.19 off, where step softmax.difference is -0.69", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "function.near-exponential-above-0", Of: literal(1.25e-38), By: stepTerm("softmax.difference"), For: literal(-0.69), X: some(0.19), N: 2}, "a function near the exponential takes its place in the softmax: it is up to 0.19 off, where step softmax.difference is -0.69, and 1.25e-38 where the exponential is 0", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "softmax.parts-averaged", N: 2}, "split softmax over 2 parts of the keys: the parts are averaged with equal weights, not weighted by their sums", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-averaged", M: 16}, "split softmax over blocks of 16 of the keys: the parts are averaged with equal weights, not weighted by their sums", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-added", N: 2}, "split softmax over 2 parts of the keys: each part is divided by its own sum, not by the sum over all keys", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-own-maximum", K: 2}, "split softmax over 2 parts, with sizes rounded up, of the keys: each part subtracts its own maximum, and earlier sums are not rescaled", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-own-maximum", N: 3}, "split softmax over 3 parts of the keys: each part subtracts its own maximum, and earlier sums are not rescaled", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-not-rescaled", M: 64}, "split softmax over blocks of 64 of the keys: the running maximum is subtracted, and earlier sums are not rescaled", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "router.sigmoid"}, "the router uses sigmoid, not softmax", "layers.*.mlp.act_fn", "activation"},
	{Mistake{Kind: "router.softmax-over-all"}, "the softmax runs over all experts, not over the chosen ones", "layers.*.mlp.act_fn", ""},
	{Mistake{Kind: "router.softmax-over-chosen"}, "the softmax runs over the chosen experts, not over all", "layers.*.mlp.act_fn", ""},

	{Mistake{Kind: "norm.layernorm"}, "LayerNorm, not RMSNorm: the mean is subtracted", "layers.*.input_layernorm", "layernorm"},
	{Mistake{Kind: "norm.rmsnorm"}, "RMSNorm, not LayerNorm: the mean is not subtracted", "layers.*.input_layernorm", "layernorm"},
	{Mistake{Kind: "norm.about-mean"}, "the norm divides by the standard deviation, not by the root mean square: the mean is subtracted in the sum of squares only", "layers.*.input_layernorm", "layernorm"},
	{Mistake{Kind: "sum.terms", Of: stepTerm("rms_norm.sum of mean"), Axis: "channels", Numbers: "1*3,0"}, "the terms of step rms_norm.sum of mean are multiplied by 0 at channel 3", "layers.*.input_layernorm", ""},
	{Mistake{Kind: "norm.of-parts", N: 16, M: 64}, "each group of 16 channels, such as a head, is normalised separately: the mean should be over all 64 channels", "layers.*.input_layernorm", ""},
	{Mistake{Kind: "sparsity.not-shifted"}, "values above the cutoff are not reduced by the cutoff", "layers.*.mlp.act_fn", "activation-sparsity"},

	{Mistake{Kind: "row.maximum-subtracted", Of: theResult}, "the maximum of each row is subtracted from the result", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.mean-subtracted", Of: tensorTerm("layers.0.in")}, "the mean of each row is subtracted from layers.*.in", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.over-length", Of: theResult}, "each row of the result is divided by its L2 norm", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.over-sum", Of: theResult}, "each row of the result is divided by its sum", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.over-root-mean-square", Of: theResult}, "each row of the result is divided by its root mean square", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "vector.added", Of: weightTerm("layers.0.self_attn.k_proj.bias"), By: theResult}, "layers.*.self_attn.k_proj.bias is added to the result", "layers.*.self_attn.k_rope", "missing-bias"},
	{Mistake{Kind: "order.product-last", Of: weightTerm("layers.0.input_layernorm.weight")}, "the result is multiplied by layers.*.input_layernorm.weight at the end; the product belongs earlier", "layers.*.input_layernorm", ""},

	{Mistake{Kind: "heads.tiled"}, "KV heads are tiled, not repeated: query head h reads KV head h mod n, not h / n", "layers.*.self_attn.context", "key-heads-of-a-group"},
	{Mistake{Kind: "ids.row-after"}, "off by one: each id takes the embedding row after its own", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "ids.row-before"}, "off by one: each id takes the embedding row before its own", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "ids.last-row"}, "ids past the end of the table take its last row", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "ids.row-zero"}, "every id takes row 0", "embed_tokens.lookup", "embedding-rows"},
}

// TestMaskSentences: each kind of mistake in masks, softmaxes and routers has its sentence, and its page.
func TestMaskSentences(t *testing.T) {
	var said []Kind
	for _, c := range maskSentences {
		said = append(said, c.m.Kind)
		if got := c.m.String(); got != c.words {
			t.Errorf("%s:\n%s\nwant\n%s", c.m.Kind, got, c.words)
		}
		if got := strings.TrimPrefix(c.m.page(c.role), mistakesPage); got != c.page {
			t.Errorf("%s at %s has the page %q, not %q", c.m.Kind, c.role, got, c.page)
		}
	}
	for _, row := range maskRows() {
		if !slices.Contains(said, row.Kind) {
			t.Errorf("no sentence of %s", row.Kind)
		}
	}
}

// TestMaskPages: a mistake has other pages at entries behind the one where it is, and some pages depend on what is read.
func TestMaskPages(t *testing.T) {
	of := func(kind Kind, name string) Mistake { return Mistake{Kind: kind, Of: tensorTerm(name)} }
	for _, c := range []struct {
		m          Mistake
		role, page string
	}{
		{Mistake{Kind: "mask.not-causal"}, "layers.*.self_attn.o_proj", "causal-mask"},
		{Mistake{Kind: "mask.not-causal"}, "layers.*.attn_residual", ""},
		{Mistake{Kind: "mask.window", X: some(3)}, "layers.*.self_attn.probs", "window-size"},
		{Mistake{Kind: "mask.blocks-not-window", N: 4}, "layers.*.self_attn.context", "window-on-the-wrong-layers"},
		{Mistake{Kind: "mask.window-no-end"}, "layers.*.self_attn.context", "window-on-the-wrong-layers"},
		{Mistake{Kind: "mask.value-small", X: some(10)}, "layers.*.out", "mask-value"},
		{Mistake{Kind: "mask.multiplied", X: some(0)}, "layers.*.attn_residual", "missing-residual"},
		{Mistake{Kind: "mask.window", X: some(3)}, "layers.*.altup.predict", "altup-coefficients"},
		{Mistake{Kind: "ids.row-zero"}, "embed_tokens_per_layer", "per-layer-rows"},
		{Mistake{Kind: "ids.row-zero"}, "embed_tokens_per_layer.lookup", "per-layer-scales"},
		{Mistake{Kind: "row.over-sum", Of: theResult}, "layers.*.self_attn.scores_masked", ""},
		{of("row.over-sum", "layers.0.self_attn.scores_softcap"), "layers.*.self_attn.scores_masked", "attention-soft-cap"},
		{of("row.over-sum", "layers.0.mlp.gate_sparse"), "layers.*.mlp.act_fn", "activation-sparsity"},
		{of("order.product-last", "rotary.sin"), "layers.*.self_attn.q_rope", "direction-of-rotation"},
		{Mistake{Kind: "order.product-last", Of: stepTerm("rms_norm.1+w")}, "norm", "one-plus-the-weight"},
		{of("vector.added", "layers.0.self_attn.q_norm.weight"), "layers.*.self_attn.q_rope", ""},
		{of("vector.added", "layers.0.self_attn.o_proj.bias"), "layers.*.post_attention_layernorm", "order-of-norm-and-residual"},
		{of("vector.added", "layers.0.self_attn.o_proj.bias"), "layers.*.attn_residual", "source-of-the-residual"},
		{Mistake{Kind: "softmax.joined-left-out", Of: weightTerm("layers.0.sink.weight")}, "layers.*.self_attn.probs", "weight-not-loaded"},
	} {
		if got := strings.TrimPrefix(c.m.page(c.role), mistakesPage); got != c.page {
			t.Errorf("%s at %s has the page %q, not %q", c.m, c.role, got, c.page)
		}
	}
}
