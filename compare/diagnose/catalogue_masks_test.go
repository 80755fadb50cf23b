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
	{Mistake{Kind: "mask.not-causal"}, "the mask is not causal: a query sees every key", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.causal"}, "later keys are masked: the mask is causal", "mask.sliding", ""},
	{Mistake{Kind: "mask.anti-causal"}, "earlier keys are masked", "mask.sliding", ""},
	{Mistake{Kind: "mask.none"}, "nothing is masked: a query sees every key", "mask.sliding", ""},
	{Mistake{Kind: "mask.both-sides", N: 3}, "a query sees 3 keys to each side, and its own", "mask.sliding", ""},
	{Mistake{Kind: "mask.both-sides"}, "a query sees 0 keys to each side, and its own", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-ahead"}, "a query sees one key ahead of it", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.own-key-masked"}, "a query does not see its own key", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.own-key-alone"}, "a query sees its own key alone", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.reversed"}, "the mask is the wrong way round: a query sees its own key and those ahead alone", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.top-left"}, "the mask starts at the first query, not at the last key: each row sees the keys up to its own number", "mask.sliding", ""},
	{Mistake{Kind: "mask.prefix", N: 4}, "the first 4 tokens see each other: this prefix is not causal", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.chunks", N: 4}, "tokens of a chunk of 4 see each other: the mask is causal between chunks alone", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-masked"}, "key 0 is masked for every query", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-masked", N: 7}, "key 7 is masked for every query", "mask.sliding", ""},
	{Mistake{Kind: "mask.key-masked-but-own", N: 7}, "key 7 is masked for every query but its own", "mask.sliding", ""},
	{Mistake{Kind: "mask.first-keys-masked", N: 3}, "the first 3 keys are masked for every query", "mask.sliding", ""},
	{Mistake{Kind: "mask.first-keys-seen", N: 4}, "every query sees the first 4 keys, whatever the window", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.prompt-masked"}, "a decode step sees no key of the prompt", "mask.sliding", "fully-masked-row"},
	{Mistake{Kind: "mask.step-sees-prompt-alone"}, "a decode step sees the prompt and its own key alone", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.last-block-left-out", N: 8}, "the last block of 8 keys is left out where it is not full", "layers.*.attn_residual", "missing-residual"},
	{Mistake{Kind: "mask.blocks", N: 8}, "the mask has blocks of 8 tokens, whose queries see their own block alone", "mask.sliding", ""},

	{Mistake{Kind: "mask.window", X: some(511), Right: some(512)}, "the window is 511", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-left-out", X: some(0), Right: some(512)}, "the mask has no window", "mask.sliding", "window-on-the-wrong-layers"},
	{Mistake{Kind: "mask.window-added", By: literal(512)}, "the mask has a window of 512, and should have none", "mask.sliding", "window-on-the-wrong-layers"},
	{Mistake{Kind: "mask.layers-exchanged"}, "masks are exchanged: layers with a window have none, and the others have it", "mask.sliding", "window-on-the-wrong-layers"},
	{Mistake{Kind: "mask.blocks-not-window", N: 8}, "the mask has blocks of 8 tokens, not a window: queries see their own block alone", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-whole-block", N: 16}, "the window begins with a block of 16 keys: queries see all of the block in which it begins", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-next-block", N: 16}, "the window begins with the next whole block of 16 keys", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-both-sides"}, "the window reaches to both sides: keys ahead are seen", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.window-no-end"}, "the window has no end ahead: keys ahead are seen", "mask.sliding", "causal-mask"},
	{Mistake{Kind: "mask.window-moved", N: -2}, "the window is moved by -2 keys, both ends of it", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-of-first-query"}, "all queries of a pass have the window of the first: it is too long for the others", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-of-chunk", N: 4}, "the window is that of the first token of each chunk of 4: it is too long for the others", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.window-of-chunk-no-end", N: 4}, "the window is that of the first token of each chunk of 4, whose tokens see each other", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.ring", N: 8}, "a ring of 8 keys has lost keys that early queries of a pass should see: the pass is written first", "mask.sliding", "window-size"},
	{Mistake{Kind: "mask.ring-of-chunk", N: 8, M: 4}, "a ring of 8 keys has lost keys that early queries of a chunk of 4 tokens should see: the chunk is written first", "mask.sliding", "window-size"},

	{Mistake{Kind: "mask.value", X: some(-1e4)}, "masked scores are -10000", "mask.sliding", ""},
	{Mistake{Kind: "mask.multiplied", X: some(0)}, "masked scores are 0: the mask is multiplied, not added", "layers.*.self_attn.scores_masked", "attention-scale"},
	{Mistake{Kind: "mask.before-soft-cap", X: some(-50)}, "masked scores are -50: the soft cap is taken after the mask", "layers.*.self_attn.scores_masked", "attention-soft-cap"},
	{Mistake{Kind: "mask.value-small", X: some(10)}, "masked scores are lowered by 10, which is not enough", "mask.sliding", "mask-value"},
	{Mistake{Kind: "mask.after-softmax"}, "the mask is applied after the softmax: rows do not sum to 1", "mask.sliding", ""},

	{Mistake{Kind: "softmax.axis", Axis: "tokens"}, "the softmax is taken over the tokens, not the keys", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.base", X: some(2), By: literal(math.Ln2)}, "the softmax takes powers of 2, not of e: the scores are multiplied by 0.693147", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "softmax.slots-unwritten", X: some(3)}, "3 slots more, with scores of 0, take part in the softmax", "layers.*.self_attn.probs", "unwritten-cache-slots"},
	{Mistake{Kind: "softmax.slots-to-block", N: 64}, "keys are filled up to a multiple of 64, by scores of 0 that take part in the softmax", "layers.*.self_attn.probs", "unwritten-cache-slots"},
	{Mistake{Kind: "softmax.whole-blocks", N: 32}, "keys behind the last whole block of 32 take no part in the softmax", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "softmax.joined-left-out", Of: tensorTerm("layers.3.self_attn.sinks")}, "layers.*.self_attn.sinks takes no part in the softmax: it is left out", "layers.*.self_attn.probs", ""},
	{Mistake{Kind: "softmax.parts-averaged", N: 2}, "the softmax is taken in 2 parts of the keys: each has a softmax of its own, and they are averaged", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-averaged", M: 16}, "the softmax is taken in blocks of 16 of the keys: each has a softmax of its own, and they are averaged", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-added", N: 2}, "the softmax is taken in 2 parts of the keys: each has a softmax of its own, and they are added: sums are not shared", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-own-maximum", N: 3}, "the softmax is taken in 3 parts of the keys: each takes its own maximum off, and what was summed before is not rescaled", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "softmax.parts-not-rescaled", M: 64}, "the softmax is taken in blocks of 64 of the keys: each takes the largest until then off, and what was summed before is not rescaled", "layers.*.self_attn.probs", "softmax-axis"},
	{Mistake{Kind: "router.sigmoid"}, "the activation is sigmoid, not softmax", "layers.*.mlp.act_fn", "activation"},
	{Mistake{Kind: "router.softmax-over-all"}, "the softmax is over all, not over those that are chosen", "layers.*.mlp.act_fn", ""},
	{Mistake{Kind: "router.softmax-over-chosen"}, "the softmax is over those that are chosen, not over all", "layers.*.mlp.act_fn", ""},

	{Mistake{Kind: "norm.layernorm"}, "the mean is taken off the norm's input: LayerNorm, not RMSNorm", "layers.*.input_layernorm", "layernorm"},
	{Mistake{Kind: "norm.rmsnorm"}, "the mean is not taken off the norm's input: RMSNorm, not LayerNorm", "layers.*.input_layernorm", "layernorm"},
	{Mistake{Kind: "norm.about-mean"}, "the norm divides by the standard deviation, not the root mean square: the mean is taken off where squares are summed, and not off the input", "layers.*.input_layernorm", "layernorm"},
	{Mistake{Kind: "sum.terms", Of: stepTerm("rms_norm.sum of mean"), Axis: "channels", Numbers: "1*3,0"}, "the terms of step rms_norm.sum of mean are multiplied by 0 at channel 3", "layers.*.input_layernorm", ""},
	{Mistake{Kind: "norm.of-parts", N: 16, M: 64}, "each part of 16 channels, such as a head, has a norm of its own: the mean is not over all 64", "layers.*.input_layernorm", ""},
	{Mistake{Kind: "sparsity.not-shifted"}, "what passes the cutoff is not shifted by it", "layers.*.mlp.act_fn", "activation-sparsity"},

	{Mistake{Kind: "row.maximum-subtracted", Of: theResult}, "the largest number of each row is taken off the result", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.mean-subtracted", Of: tensorTerm("layers.0.in")}, "the mean of each row is taken off layers.*.in", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.over-length", Of: theResult}, "each row of the result is divided by its length", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.over-sum", Of: theResult}, "each row of the result is divided by its sum", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "row.over-root-mean-square", Of: theResult}, "each row of the result is divided by the root of its mean square", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "vector.added", Of: weightTerm("layers.0.self_attn.k_proj.bias"), By: theResult}, "layers.*.self_attn.k_proj.bias is added to the result", "layers.*.self_attn.k_rope", "missing-bias"},
	{Mistake{Kind: "order.product-last", Of: weightTerm("layers.0.input_layernorm.weight")}, "the product with layers.*.input_layernorm.weight is taken of the result, behind the rest, not before it", "layers.*.input_layernorm", ""},

	{Mistake{Kind: "heads.tiled"}, "the heads of keys and values are tiled, not repeated: query head h reads head h mod n, not h / n", "layers.*.self_attn.context", "key-heads-of-a-group"},
	{Mistake{Kind: "ids.row-after"}, "each id takes the row after its own", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "ids.row-before"}, "each id takes the row before its own", "embed_tokens.lookup", "embedding-rows"},
	{Mistake{Kind: "ids.last-row"}, "ids beyond the table take its last row", "embed_tokens.lookup", "embedding-rows"},
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
		if got := strings.TrimPrefix(c.m.Page(c.role), mistakesPage); got != c.page {
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
		if got := strings.TrimPrefix(c.m.Page(c.role), mistakesPage); got != c.page {
			t.Errorf("%s at %s has the page %q, not %q", c.m, c.role, got, c.page)
		}
	}
}
