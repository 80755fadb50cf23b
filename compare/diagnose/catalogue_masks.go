package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program/edit"
)

// ofSizesRoundedUp reports whether a softmax is in parts whose sizes are rounded up, which may be blocks of a size.
func ofSizesRoundedUp(m Mistake) bool { return m.K > 0 }

// maskRows are mistakes in masks, softmaxes and routers.
func maskRows() []Row {
	return []Row{
		// Which keys a query sees.
		{Kind: "mask.not-causal", Words: "the mask is not causal: every query attends to every key", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known},
		{Kind: "mask.causal", Words: "the mask is causal, and should not be", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.anti-causal", Words: "earlier keys are masked", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.none", Words: "no key is masked: every query attends to every key", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.both-sides", Words: "a query attends to its own key and {n} keys on each side", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.key-ahead", Words: "off by one: a query attends to one future key", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: keyAhead, Class: edit.Known},
		{Kind: "mask.own-key-masked", Words: "causal mask without its diagonal: a query does not attend to its own key", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: keyAhead, Class: edit.Known},
		{Kind: "mask.own-key-alone", Words: "a query attends only to its own key", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.reversed", Words: "the causal mask is inverted: a query attends to its own key and future keys only", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.top-left", Words: "the causal mask is aligned to the first key, not the last: query i attends to keys 0 to i", Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.prefix", Words: "the first {n} tokens attend to each other: a prefix that is not causal", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, After: []Kind{"mask.not-causal"}},
		{Kind: "mask.chunks", Words: "tokens within a chunk of {n} attend to each other: the mask is causal only between chunks", Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.key-masked", Words: "key {n} is masked for every query", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.keys-masked", Words: "keys {n} to {m} are masked for every query", Apply: otherEdge, Class: edit.Known, After: []Kind{firstKeyRule, lastKeyRule}, Solved: firstAndLast},
		{Kind: "mask.key-masked-but-own", Words: "key {n} is masked for every query except its own", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.first-keys-masked", Words: "the first {n} keys are masked for every query", Apply: otherSight, Class: edit.Known},
		{Kind: "mask.first-keys-seen", Words: "every query attends to the first {n} keys, inside or outside the window: attention sinks", Pages: windowElsewhere, Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.prompt-masked", Words: "a decode step does not attend to the prompt", Pages: pagesOf("fully-masked-row", masks), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.step-sees-prompt-alone", Words: "a decode step attends only to the prompt and its own key, not to earlier decode steps", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.last-block-left-out", Words: "the last block of {n} keys is skipped if it is not full", Pages: leftOutElsewhere, Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: firstKeyRule, Words: "the first key that a query at position p attends to is {edge}", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherEdge, Class: edit.Known, Solved: numbersOfRule},
		{Kind: lastKeyRule, Words: "the last key that a query at position p attends to is {edge}", Pages: pagesOf("causal-mask", masks+`|`+attendedTo), Apply: otherEdge, Class: edit.Known, Solved: numbersOfRule},
		{Kind: "mask.blocks", Words: "attention is block-diagonal: queries attend only within their block of {n} tokens", Apply: otherSight, Class: edit.Known},

		// Windows.
		{Kind: "mask.window", Words: "the window is {x}", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known, Field: Window},
		{Kind: "mask.window-left-out", Words: "the sliding window is missing: queries attend to all earlier keys", Pages: pagesOf("window-on-the-wrong-layers", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known, Field: Window},
		{Kind: "mask.window-added", Words: "the mask has a sliding window of {by}, and should have no window", Pages: pagesOf("window-on-the-wrong-layers", masks+`|`+attendedTo), Apply: otherWindow, Class: edit.Known},
		{Kind: "mask.layers-exchanged", Words: "sliding and full layers are exchanged: the window is on the wrong layers", Pages: []Page{{Anchor: "window-on-the-wrong-layers"}}, Apply: otherLayersWindow, Class: edit.Known, Weak: true},
		{Kind: "mask.blocks-not-window", Words: "queries attend within their block of {n} tokens, not within a sliding window", Pages: windowElsewhere, Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.window-whole-block", Words: "the window starts at a block boundary: queries also attend to the rest of the block of {n} keys in which it starts", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, After: []Kind{"mask.window-left-out"}},
		{Kind: "mask.window-next-block", Words: "the window starts at the next boundary of a block of {n} keys: it is too short", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-both-sides", Words: "the window reaches to both sides: queries attend to future keys", Pages: pagesOf("causal-mask", masks, "window-on-the-wrong-layers", attendedTo), Apply: otherSight, Class: edit.Known},
		{Kind: "mask.window-no-end", Words: "the window is open to the future: queries attend to all future keys", Pages: pagesOf("causal-mask", masks, "window-on-the-wrong-layers", attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-moved", Words: "the window is shifted by {n} keys, at both ends", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-of-first-query", Words: "all queries of a pass use the first query's window: too long for the others", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-of-chunk", Words: "all queries of a chunk of {n} use its first query's window: too long for the others", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.window-of-chunk-no-end", Words: "all queries of a chunk of {n} use its first query's window, and attend to each other", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.ring", Words: "the whole pass is written to a ring buffer of {n} keys before its queries read it: early queries lose keys", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},
		{Kind: "mask.ring-of-chunk", Words: "each chunk of {m} tokens is written to a ring buffer of {n} keys before its queries read it: early queries lose keys", Pages: pagesOf("window-size", masks+`|`+attendedTo), Apply: otherSight, Class: edit.Known, Weak: true},

		// What masked scores are.
		{Kind: "mask.value", Words: "masked scores are {x}", Apply: filled, Class: edit.Known},
		{Kind: "mask.multiplied", Words: "masked scores are {x}, as where the mask is multiplied, not added", Pages: maskMultipliedPages, Apply: filled, Class: edit.Known},
		{Kind: "mask.before-soft-cap", Words: "masked scores are {x}: the mask is applied before the soft cap, not after it", Pages: pagesOf("attention-soft-cap", scored+`|`+attendedTo, "logit-soft-cap", "^logits$"), Apply: filled, Class: edit.Known},
		{Kind: "mask.value-small", Words: "masked scores are lowered by only {x}: masked keys still get weight", Pages: []Page{{Anchor: "mask-value"}}, Apply: smallMask, Class: edit.Known},
		{Kind: "mask.boolean", Words: "the mask is 1 for visible keys and 0 for masked keys: a boolean mask is added to the scores", Pages: []Page{{Anchor: "mask-value"}}, Apply: booleanMask, Class: edit.Known},
		{Kind: "mask.after-softmax", Words: "the mask is applied after the softmax: rows do not sum to 1", Apply: maskedLast, Class: edit.Known},

		// Softmaxes and routers.
		{Kind: "softmax.axis", Words: "the softmax runs over the {axis}, not the keys", Pages: pagesOf("softmax-axis", "probs"), Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.base", Words: "the softmax uses powers of {x}, not of e: the scores are multiplied by {by}", Pages: basePages, Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.slots-unwritten", Words: "the softmax counts {x} unwritten slots, with scores of 0", Pages: pagesOf("unwritten-cache-slots", "probs"), Apply: otherSoftmax, Class: edit.Known, Solved: oneNumber},
		{Kind: "softmax.own-key-twice", Words: "the softmax counts a query's own key twice", Pages: pagesOf("unwritten-cache-slots", "probs"), Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.key-twice", Words: "the softmax counts key {n} twice", Pages: pagesOf("unwritten-cache-slots", "probs"), Apply: otherSoftmax, Class: edit.Known},
		{Kind: "softmax.slots-to-block", Words: "the softmax counts padding keys, with scores of 0, up to a multiple of {n}", Pages: pagesOf("unwritten-cache-slots", "probs"), Apply: otherSoftmax, Class: edit.Known, Solved: oneNumber},
		{Kind: "softmax.whole-blocks", Words: "the softmax ignores keys after the last whole block of {n}", Apply: otherSoftmax, Class: edit.Known, Solved: oneNumber},
		{Kind: "softmax.joined-left-out", Words: "{of} is left out of the softmax", Pages: joinedLeftOut, Apply: otherSoftmax, Class: edit.Known},
		{Kind: "function.near-exponential", Words: "a function near the exponential takes its place in the softmax: it is up to {x} off, where {by} is {for}", Apply: byExponentialCurve, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "function.near-exponential-above-0", Words: "a function near the exponential takes its place in the softmax: it is up to {x} off, where {by} is {for}, and {of} where the exponential is 0", Apply: byExponentialCurve, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "softmax.parts-averaged", Words: "split softmax over[ {n} parts][ blocks of {m}][ {k} parts, with sizes rounded up,] of the keys: the parts are averaged with equal weights, not weighted by their sums", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known, WeakIf: ofSizesRoundedUp},
		{Kind: "softmax.parts-added", Words: "split softmax over[ {n} parts][ blocks of {m}][ {k} parts, with sizes rounded up,] of the keys: each part is divided by its own sum, not by the sum over all keys", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known, WeakIf: ofSizesRoundedUp},
		{Kind: "softmax.parts-own-maximum", Words: "split softmax over[ {n} parts][ blocks of {m}][ {k} parts, with sizes rounded up,] of the keys: each part subtracts its own maximum, and earlier sums are not rescaled", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known, WeakIf: ofSizesRoundedUp},
		{Kind: "softmax.parts-not-rescaled", Words: "split softmax over[ {n} parts][ blocks of {m}][ {k} parts, with sizes rounded up,] of the keys: the running maximum is subtracted, and earlier sums are not rescaled", Pages: []Page{{Anchor: "softmax-axis"}}, Apply: softmaxInParts, Class: edit.Known, WeakIf: ofSizesRoundedUp},
		{Kind: "router.sigmoid", Words: "the router uses sigmoid, not softmax", Pages: pagesOf("activation", functions), Apply: otherSoftmax, Class: edit.Known},
		{Kind: "router.softmax-over-all", Words: "the softmax runs over all experts, not over the chosen ones", Apply: otherSoftmax, Class: edit.Known},
		{Kind: "router.softmax-over-chosen", Words: "the softmax runs over the chosen experts, not over all", Apply: otherSoftmax, Class: edit.Known},

		// Norms and gates.
		{Kind: "norm.layernorm", Words: "LayerNorm, not RMSNorm: the mean is subtracted", Pages: pagesOf("layernorm", norms), Apply: otherNorm, Class: edit.Known},
		{Kind: "norm.rmsnorm", Words: "RMSNorm, not LayerNorm: the mean is not subtracted", Pages: pagesOf("layernorm", norms), Apply: otherNorm, Class: edit.Known},
		{Kind: "norm.about-mean", Words: "the norm divides by the standard deviation, not by the root mean square: the mean is subtracted in the sum of squares only", Pages: pagesOf("layernorm", norms), Apply: aboutMeans, Class: edit.Known},
		{Kind: "sum.terms", Words: "the terms of {of} are multiplied by {numbers}", Apply: countedTerms, Class: edit.Known, Solved: fittedOf},
		{Kind: "norm.of-parts", Words: "each group of {n} channels, such as a head, is normalised separately: the mean should be over all {m} channels", Apply: otherNorm, Class: edit.Known},
		{Kind: "sparsity.not-shifted", Words: "values above the cutoff are not reduced by the cutoff", Pages: pagesOf("activation-sparsity", "act_fn"), Apply: otherNorm, Class: edit.Known},

		// Extra steps.
		{Kind: "row.maximum-subtracted", Words: "the maximum of each row is subtracted from {of}", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.mean-subtracted", Words: "the mean of each row is subtracted from {of}", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.over-length", Words: "each row of {of} is divided by its L2 norm", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.over-sum", Words: "each row of {of} is divided by its sum", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "row.over-root-mean-square", Words: "each row of {of} is divided by its root mean square", Pages: rowTakenPages, Apply: ofRows, Class: edit.Inserted},
		{Kind: "vector.added", Words: "{of} is added to {by}", Pages: vectorPages, Apply: withVector, Class: edit.Inserted},
		{Kind: "order.product-last", Words: "the result is multiplied by {of} at the end; the product belongs earlier", Pages: productPages, Apply: productLast, Class: edit.Order},

		// Heads and ids.
		{Kind: "heads.tiled", Words: "KV heads are tiled, not repeated: query head h reads KV head h mod n, not h / n", Pages: tiledPages, Apply: tiledAttention, Class: edit.Known},
		{Kind: "ids.row-after", Words: "off by one: each id takes the embedding row after its own", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
		{Kind: "ids.row-before", Words: "off by one: each id takes the embedding row before its own", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
		{Kind: "ids.last-row", Words: "ids past the end of the table take its last row", Pages: idPages, Apply: rowsOfOtherIDs, Class: edit.Known},
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

// edgeWords is the rule of a mistake for the first or the last key of a query at position p.
func (m Mistake) edgeWords() string {
	if m.N == 0 {
		return strconv.Itoa(m.K)
	}
	base, ends := "p", ""
	if m.Axis == onKeys {
		base, ends = "n", ", with n the number of keys"
	}
	switch {
	case m.N == 1:
	case m.M == 1:
		base = fmt.Sprintf("%s/%d rounded down", base, m.N)
	default:
		base = fmt.Sprintf("%s rounded down to a multiple of %d", base, m.N)
	}
	switch {
	case m.K < 0:
		base += fmt.Sprintf(", minus %d", -m.K)
	case m.K > 0:
		base += fmt.Sprintf(", plus %d", m.K)
	}
	return base + ends
}
