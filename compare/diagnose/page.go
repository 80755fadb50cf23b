package diagnose

import (
	"fmt"
	"regexp"
	"sync"
)

// mistakesPage is where the usual mistakes are explained.
const mistakesPage = "docs/mistakes.md#"

// QuantisedPage is where weights that are codes are explained.
const QuantisedPage = mistakesPage + "quantised-weight"

// page is a mistake of the page by what a finding's role and words have in them.
type page struct {
	anchor     string
	role, what func() *regexp.Regexp
}

// on makes a rule of two patterns, of which an empty one is met by all.
func on(anchor, role, what string) page { return page{anchor, pattern(role), pattern(what)} }

// pattern is compiled when it is first asked for: most runs find no mistake.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Roles by what they are.
const (
	norms     = `norm$`
	tables    = `^rotary\.`
	rotated   = `_rope$`
	masks     = `^mask\.|scores_masked$`
	caches    = `self_attn\.(keys|values)$`
	heads     = `^lm_head$|^logits$`
	projected = `_proj(ection)?$|lm_head$`
	functions = `act_fn$|gated$`
	stream    = `attn_residual$|attn_gated$|attn_laurel$|laurel_gated$|\.out$`
)

// codes is a pattern for the name of a weight that was rounded to codes.
const codes = `rounded to \d+ bits|weight is rounded to (4-bit|float8)`

// coded is codes as a pattern.
var coded = pattern(codes)

// Quantised reports whether a finding says that weights were rounded to codes. Many ports do so on purpose. A mistake in the codes, such as the order in which
// they are packed, is a finding of another kind.
func (f *Finding) Quantised() bool {
	return f != nil && f.Page == QuantisedPage && (f.Likely != "" || coded().MatchString(f.What))
}

// pages are the rules; the first that a finding meets is its page. What is said of a step, such as that it is left out, is explained
// by what the step is for, so that most rules are of a role, which is a name of the order.
var pages = []page{
	// Whatever the entry is.
	on("not-finite", "", `\bare (NaN|infinite)\b`),
	on("quantised-cache", caches, `rounded to \d+ bits`),
	on("quantised-cache", "", `the cached .* rounded to`),
	on("quantised-weight", "", codes+`|codes of few bits are packed`),
	on("missing-bias", "", `^the bias is not added`),
	on("narrow-arithmetic", "", `computed in (bfloat16|float16|tf32)|result is rounded to (bfloat16|float16)`),
	on("transposed-weight", projected, `weight is transposed`),
	on("another-layers-weight", "", `, transposed, is used`),
	on("damaged-weight", projected, `^one number of|^channel \d+ is channel \d+$|has the (bits|bytes) of|is cut off to`),
	on("shards", projected, `channels? [\d to]+ (is|are) 0|of its columns|columns of .* are 0|is cut at another place, or has padding`),
	on("quantised-weight", projected, `the scale of rows|their scale`),

	// The tables of the rotary embedding.
	on("rotary-precision", tables, `are rounded to`),
	on("partial-rotation", tables, `whole head|frequencies are not 0|frequencies count`),
	on("rotary-scaling", tables, `scal|result is multiplied|frequencies are (multiplied|divided)|not scaled|angles are multiplied|counted from -?1:|2π`),
	on("position-offset", tables, `start again|^the positions (end|are|count)`),
	on("rotary-base", tables, `theta|exponents are all 0`),
	on("positions-of-decode-steps", tables, `every position is 0|count from 0|of the pass before|^positions are -1|^position \d+ is taken for`),
	on("shifted-positions", tables, `^positions are [+-]`),
	on("rotary-pairs", tables, `order`),

	// Masks, softmax and caches.
	on("fully-masked-row", masks, `sees no key`),
	on("causal-mask", masks, `not causal|ahead|own key`),
	on("mask-value", masks, `clamped`),
	on("mask-value", "", `masked scores are lowered`),
	on("window-on-the-wrong-layers", "", `masks are exchanged`),
	on("window-on-the-wrong-layers", masks, `no window|should have none|reads mask`),
	on("window-size", masks, `window|a ring of`),
	on("softmax-axis", "", `softmax is taken in`),
	on("softmax-axis", "probs", `softmax is taken over`),
	on("unwritten-cache-slots", "probs", `slots?`),
	on("evicted-keys", "", `attention sink`),
	on("evicted-keys", caches, `keeps the oldest`),
	on("zero-cache-slot", caches, `is not written|hold what|holds what`),
	on("shared-keys-and-values", caches, `of another kind`),
	on("keys-cached-before-rotation", caches, `(k_norm|k_proj)`),
	on("shared-keys-and-values", caches, `another layer|rows of .*q_rope`),
	on("crossed-projections", caches, `reads`),
	on("stale-cache-slot", caches, ``),

	// Over a cut: an entry behind the mistake, whose words say which operation it is.
	on("window-size", "probs|context|o_proj", `^the window (is|begins)|^a ring of|^all queries of a pass`),
	on("window-on-the-wrong-layers", "probs|context|o_proj", `window|reads mask`),
	on("causal-mask", "probs|context|o_proj", `not causal|ahead|own key|^the mask is not added`),
	on("attention-soft-cap", "probs|context|o_proj", `soft cap|tanh`),
	on("attention-scale", "probs|context", `the factor|division|self_attn.*multiplied`),
	on("crossed-projections", "context$", `^reads layers`),

	// Queries, keys and values.
	on("partial-rotation", rotated, `whole head|frequencies are not 0|frequencies count`),
	on("rotary-scaling", rotated, `frequencies are (not scaled|scaled|multiplied)|scaling`),
	on("rotary-base", rotated, `theta`),
	on("rotary-precision", rotated, `frequencies are rounded`),
	on("stale-cache-slot", rotated, `pass before`),
	on("missing-bias", rotated, `bias is added`),
	on("rotary-pairs", rotated, `neighbours`),
	on("position-offset", rotated, `^positions`),
	on("direction-of-rotation", rotated, `rope\.sum|turned|sin|halves of .* are each read`),
	on("partial-rotation", rotated, `of its channels alone|channels .* left as they are`),
	on("scale-moved-to-the-queries", rotated, `multiplied`),
	on("head-layout", rotated, `order|memory`),
	on("missing-rotation", rotated, `left out`),
	on("key-heads-of-a-group", "scores|context|o_proj", `tiled|every query head reads`),
	on("heads-merged-without-transposing", "context$", `memory|transposed`),
	on("attention-soft-cap", "scores", `cap|tanh|clip|clamp`),
	on("attention-scale", "scores", `factor|multiplied|division`),
	on("head-layout", "self_attn.[qkv]_proj$", `one matrix|packed`),
	on("permuted-query-and-key-rows", "self_attn.[qk]_proj$", `order`),
	on("crossed-projections", "self_attn.[qkv]_proj$", `self_attn.[qkv]_proj.weight is used`),

	// Norms.
	on("rotary-before-norm", norms, `rope`),
	on("norm-over-all-heads", norms, `over its (heads|tokens)`),
	on("place-of-epsilon", norms, `is added (to the root|behind the inverse)|least value`),
	on("epsilon", norms, `epsilon`),
	on("layernorm", norms, `LayerNorm`),
	on("inverted-norm", norms, `root is|quotient`),
	on("one-plus-the-weight", norms, `\+1|1\+w|1 added|1 taken off`),
	on("another-layers-weight", norms, `another layer`),
	on("permuted-query-and-key-rows", norms, `the other rotary`),
	on("another-norms-weight", norms, `is used, not`),
	on("weight-not-loaded", `(^|[^a-z_])norm$|layernorm$`, `weight .*is left out|weight is 1$`),
	on("branch-of-zeros", "", `is 0$|are all 0`),
	on("order-of-norm-and-residual", "layernorm$", `is added to`),
	on("active-stream", norms, `reads stream`),
	on("missing-norm", norms, `left out|applied twice|once more`),

	// The MLP.
	on("exact-gelu", functions, `activation is gelu, not gelu_tanh|activation is gelu_tanh, not gelu`),
	on("activation-sparsity", "sparse|cutoff|act_fn", `cutoff|std\.|quantile|sparse`),
	on("activation-sparsity", "sparse|cutoff", ``),
	on("gate-and-up", `mlp\.(act_fn|gated)$`, `reads`),
	on("activation", functions, `activation|gelu|silu|operation is left out`),
	on("gate-and-up", `mlp\.(gate|up)_proj$`, `(gate|up)_proj.weight is used|one matrix|packed`),

	// Embeddings and per-layer inputs.
	on("per-layer-rows", `^embed_tokens_per_layer$`, `table|row|ids`),
	on("per-layer-rows", `per_layer_inputs?$`, `order|moved|exchanged|memory`),
	on("per-layer-scales", `^embed_tokens_per_layer|^per_layer_`, ``),
	on("embedding-scale", `^embed_tokens$`, `rows of embed_tokens.lookup`),
	on("embedding-rows", `^embed_tokens`, `\bids\b|row`),
	on("rounded-embedding-scale", `^embed_tokens`, `rounded`),
	on("rescaled-stream", `^embed_tokens.lookup$|o_proj$|down_proj$`, `weight is multiplied by 0`),
	on("embedding-scale", `^embed_tokens`, ``),

	// Streams and the residual.
	on("altup-router", `router_input$|modalities$`, ``),
	on("active-stream", `active_prediction$|altup\.`, `moved|reads stream`),
	on("altup-coefficients", `altup\.(predict|correct|scale_corrected_output|prediction_coefs|correction_coefs)$`, ``),
	on("merging-the-streams", `^altup\.`, ``),
	on("crossed-projections", `^altup_`, `is used|another`),
	on("per-layer-streams", `\.out$`, `other part|not to a part`),
	on("laurel", `\.laurel$`, ``),
	on("laurel", stream, `division`),
	on("source-of-the-residual", stream, `is overwritten|reads|is added to|o_proj is not added`),
	on("order-of-norm-and-residual", stream, `layers\.\*\.in is not added and`),
	on("missing-residual", stream, `not added|left out`),

	// The head, and weights.
	on("logit-soft-cap", "^logits$", `cap|tanh|factor|left out`),
	on("tied-head", "^lm_head$", `embed_tokens.weight is used`),
	on("shifted-logits", heads, `along its tokens`),
	on("logit-scale", heads, `multiplied|factor`),
	on("another-layers-weight", "", `weight is that of another layer|weight is another one`),
	on("weight-not-loaded", "", `weight .*is left out|weight is 1$`),
}

// page is where a name is explained; empty where it is not one of the usual mistakes.
func (s *search) page(n Name) string {
	role := Role(s.m.List.Entries[s.first.Node.Entry].Name)
	old := pageOf(role, n.What)
	kind, now := n.Mistake.Kind, n.Mistake.page(role)
	if n.Relation.Kind != "" {
		kind, now = n.Relation.Kind, n.Relation.page(role)
	}
	if row := catalogue()[kind]; row != nil && row.Pages != nil {
		if now != old {
			panic(fmt.Sprintf("%s: %q (%s): page %q, was %q", role, n.What, kind, now, old))
		}
	}
	return old
}

// pageOf is where a mistake is explained; empty where it is not one of the usual ones.
func pageOf(role, what string) string {
	for _, p := range pages {
		if p.role().MatchString(role) && p.what().MatchString(what) {
			return mistakesPage + p.anchor
		}
	}
	return ""
}

// Pages are the places that findings point to, for a test. It panics of a pattern that is none.
func Pages() []string {
	var all []string
	for _, p := range pages {
		p.role()
		p.what()
		all = append(all, p.anchor)
	}
	return all
}
