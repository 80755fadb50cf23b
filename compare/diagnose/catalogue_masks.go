package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program/edit"
)

// maskRows are mistakes in masks, softmaxes and routers.
func maskRows() []Row {
	return []Row{
		// Which keys a query sees.
		{Kind: "mask.not-causal", Words: "the mask is not causal: a query sees every key", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known},
		{Kind: "mask.causal", Words: "later keys are masked: the mask is causal", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.anti-causal", Words: "earlier keys are masked", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.none", Words: "nothing is masked: a query sees every key", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.both-sides", Words: "a query sees {n} keys to each side, and its own", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.key-ahead", Words: "a query sees one key ahead of it", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: keyAhead, Class: edit.Known},
		{Kind: "mask.own-key-masked", Words: "a query does not see its own key", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: keyAhead, Class: edit.Known},
		{Kind: "mask.own-key-alone", Words: "a query sees its own key alone", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.reversed", Words: "the mask is the wrong way round: a query sees its own key and those ahead alone", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.top-left", Words: "the mask starts at the first query, not at the last key: each row sees the keys up to its own number", Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.prefix", Words: "the first {n} tokens see each other: this prefix is not causal", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, After: []Kind{"mask.not-causal"}},
		{Kind: "mask.chunks", Words: "tokens of a chunk of {n} see each other: the mask is causal between chunks alone", Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.key-masked", Words: "key {n} is masked for every query", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.key-masked-but-own", Words: "key {n} is masked for every query but its own", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.first-keys-masked", Words: "the first {n} keys are masked for every query", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.first-keys-seen", Words: "every query sees the first {n} keys, whatever the window", Pages: windowElsewhere, Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.prompt-masked", Words: "a decode step sees no key of the prompt", Pages: pagesOf("fully-masked-row", masks), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.step-sees-prompt-alone", Words: "a decode step sees the prompt and its own key alone", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.last-block-left-out", Words: "the last block of {n} keys is left out where it is not full", Pages: leftOutElsewhere, Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.blocks", Words: "the mask has blocks of {n} tokens, whose queries see their own block alone", Apply: otherSight, Class: edit.Known},

		// Windows.
		{Kind: "mask.window", Words: "the window is {x}", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known, Field: Window},
		{Kind: "mask.window-left-out", Words: "the mask has no window", Pages: pagesOf("window-on-the-wrong-layers", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known, Field: Window},
		{Kind: "mask.window-added", Words: "the mask has a window of {by}, and should have none", Pages: pagesOf("window-on-the-wrong-layers", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known},
		{Kind: "mask.layers-exchanged", Words: "masks are exchanged: layers with a window have none, and the others have it", Pages: []Page{{Anchor: "window-on-the-wrong-layers"}}, Apply: otherLayersWindow, Class: edit.Known, Weak: true},
		{Kind: "mask.blocks-not-window", Words: "the mask has blocks of {n} tokens, not a window: queries see their own block alone", Pages: windowElsewhere, Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.window-whole-block", Words: "the window begins with a block of {n} keys: queries see all of the block in which it begins", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.window-next-block", Words: "the window begins with the next whole block of {n} keys", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-both-sides", Words: "the window reaches to both sides: keys ahead are seen", Pages: pagesOf("causal-mask", masks, "window-on-the-wrong-layers", attendedTo), Apply: otherSight, Class: edit.Known},
		{Kind: "mask.window-no-end", Words: "the window has no end ahead: keys ahead are seen", Pages: pagesOf("causal-mask", masks, "window-on-the-wrong-layers", attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-moved", Words: "the window is moved by {n} keys, both ends of it", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-of-first-query", Words: "all queries of a pass have the window of the first: it is too long for the others", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-of-chunk", Words: "the window is that of the first token of each chunk of {n}: it is too long for the others", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-of-chunk-no-end", Words: "the window is that of the first token of each chunk of {n}, whose tokens see each other", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.ring", Words: "a ring of {n} keys has lost keys that early queries of a pass should see: the pass is written first", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.ring-of-chunk", Words: "a ring of {n} keys has lost keys that early queries of a chunk of {m} tokens should see: the chunk is written first", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},

		// What masked scores are.
		{Kind: "mask.value", Words: "masked scores are {x}", Apply: filled, Class: edit.Known},
		{Kind: "mask.multiplied", Words: "masked scores are {x}: the mask is multiplied, not added", Pages: maskMultipliedPages, Apply: filled, Class: edit.Known},
		{Kind: "mask.before-soft-cap", Words: "masked scores are {x}: the soft cap is taken after the mask", Pages: pagesOf("attention-soft-cap", scored+`|`+attendedTo, "logit-soft-cap", "^logits$"), Apply: filled, Class: edit.Known},
		{Kind: "mask.value-small", Words: "masked scores are lowered by {x}, which is not enough", Pages: []Page{{Anchor: "mask-value"}}, Apply: smallMask, Class: edit.Known},
		{Kind: "mask.after-softmax", Words: "the mask is applied after the softmax: rows do not sum to 1", Apply: maskedLast, Class: edit.Known},

		// Softmaxes and routers.
		{Kind: "softmax.axis", Words: "the softmax is taken over the {axis}, not the keys", Pages: pagesOf("softmax-axis", "probs"), Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.base", Words: "the softmax takes powers of {x}, not of e: the scores are multiplied by {by}", Pages: basePages, Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.slots-unwritten", Words: "{x} slots more, with scores of 0, take part in the softmax", Pages: pagesOf("unwritten-cache-slots", "probs"), Apply: otherSoftmax, Class: edit.Known, Solved: oneNumber},
		{Kind: "softmax.slots-to-block", Words: "keys are filled up to a multiple of {n}, by scores of 0 that take part in the softmax", Pages: pagesOf("unwritten-cache-slots", "probs"), Apply: otherSoftmax, Class: edit.Known, Solved: oneNumber},
		{Kind: "softmax.whole-blocks", Words: "keys behind the last whole block of {n} take no part in the softmax", Apply: otherSoftmax, Class: edit.Known, Solved: oneNumber},
		{Kind: "softmax.joined-left-out", Words: "{of} takes no part in the softmax: it is left out", Pages: joinedLeftOut, Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.parts-averaged", Words: "the softmax is taken in[ {n} parts][ blocks of {m}] of the keys: each has a softmax of its own, and they are averaged", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known},
		{Kind: "softmax.parts-added", Words: "the softmax is taken in[ {n} parts][ blocks of {m}] of the keys: each has a softmax of its own, and they are added: sums are not shared", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known},
		{Kind: "softmax.parts-own-maximum", Words: "the softmax is taken in[ {n} parts][ blocks of {m}] of the keys: each takes its own maximum off, and what was summed before is not rescaled", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known},
		{Kind: "softmax.parts-not-rescaled", Words: "the softmax is taken in[ {n} parts][ blocks of {m}] of the keys: each takes the largest until then off, and what was summed before is not rescaled", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known},
		{Kind: "router.sigmoid", Words: "the activation is sigmoid, not softmax", Pages: pagesOf("activation", functions), Apply: otherSoftmax, Class: edit.Known},
		{Kind: "router.softmax-over-all", Words: "the softmax is over all, not over those that are chosen", Apply: otherSoftmax, Class: edit.Known},
		{Kind: "router.softmax-over-chosen", Words: "the softmax is over those that are chosen, not over all", Apply: otherSoftmax, Class: edit.Known},

		// Norms and gates.
		{Kind: "norm.layernorm", Words: "the mean is taken off the norm's input: LayerNorm, not RMSNorm", Pages: pagesOf("layernorm", norms), Apply: otherNorm, Class: edit.Known},
		{Kind: "norm.rmsnorm", Words: "the mean is not taken off the norm's input: RMSNorm, not LayerNorm", Pages: pagesOf("layernorm", norms), Apply: otherNorm, Class: edit.Known},
		{Kind: "norm.about-mean", Words: "the norm divides by the standard deviation, not the root mean square: the mean is taken off where squares are summed, and not off the input", Pages: pagesOf("layernorm", norms), Apply: aboutMeans, Class: edit.Known},
		{Kind: "sum.terms", Words: "the terms of {of} are multiplied by {numbers}", Apply: countedTerms, Class: edit.Known, Solved: fittedOf},
		{Kind: "norm.of-parts", Words: "each part of {n} channels, such as a head, has a norm of its own: the mean is not over all {m}", Apply: otherNorm, Class: edit.Known},
		{Kind: "sparsity.not-shifted", Words: "what passes the cutoff is not shifted by it", Pages: pagesOf("activation-sparsity", "act_fn"), Apply: otherNorm, Class: edit.Known},

		// What is done beside the operation.
		{Kind: "row.maximum-subtracted", Words: "the largest number of each row is taken off {of}", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.mean-subtracted", Words: "the mean of each row is taken off {of}", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.over-length", Words: "each row of {of} is divided by its length", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.over-sum", Words: "each row of {of} is divided by its sum", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.over-root-mean-square", Words: "each row of {of} is divided by the root of its mean square", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "vector.added", Words: "{of} is added to {by}", Pages: vectorPages, Apply: withVector, Class: edit.Inserted},
		{Kind: "order.product-last", Words: "the product with {of} is taken of the result, behind the rest, not before it", Pages: productPages, Apply: productLast, Class: edit.Order},

		// Heads and ids.
		{Kind: "heads.tiled", Words: "the heads of keys and values are tiled, not repeated: query head h reads head h mod n, not h / n", Pages: tiledPages, Apply: tiledAttention, Class: edit.Known},
		{Kind: "ids.row-after", Words: "each id takes the row after its own", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
		{Kind: "ids.row-before", Words: "each id takes the row before its own", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
		{Kind: "ids.last-row", Words: "ids beyond the table take its last row", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
		{Kind: "ids.row-zero", Words: "every id takes row 0", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
	}
}

// Pages of several kinds of mistakes in masks and softmaxes.
var (
	windowElsewhere  = pagesOf("window-size", masks, "window-on-the-wrong-layers", attendedTo)
	leftOutElsewhere = pagesOf("missing-rotation", rotated, "missing-norm", norms, "missing-residual", stream, "logit-soft-cap", "^logits$")
	joinedLeftOut    = slices.Concat(
		[]Page{ofNames("direction-of-rotation", rotated, "sin")},
		leftOutElsewhere,
		[]Page{ofNames("weight-not-loaded", "", "weight$")},
	)
	basePages           = pagesOf("scale-moved-to-the-queries", rotated, "attention-scale", scored, "logit-scale", heads)
	maskMultipliedPages = slices.Concat([]Page{{Anchor: "missing-residual", Roles: stream}}, basePages)
	tiledPages          = pagesOf(
		"crossed-projections", caches, "key-heads-of-a-group", `scores|context|o_proj`, "gate-and-up", `mlp\.(act_fn|gated)$`, "source-of-the-residual", stream,
	)
	idPages = pagesOf("per-layer-rows", `^embed_tokens_per_layer$`, "per-layer-scales", `^embed_tokens_per_layer|^per_layer_`, "embedding-rows", `^embed_tokens`)

	rowTakenPages = pagesWithNames(nil, idPages)
	productPages  = pagesWithNames(nil, nil)
	vectorPages   = pagesWithNames([]Page{
		{Anchor: "stale-cache-slot", Roles: rotated, If: func(m Mistake) bool { return m.By.Before }},
		{Anchor: "missing-bias", Roles: rotated, If: func(m Mistake) bool { return strings.HasSuffix(m.Of.Name, "bias") }},
	}, nil, onRoles("order-of-norm-and-residual", "layernorm$"), onRoles("source-of-the-residual", stream))
)
