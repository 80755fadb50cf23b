package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/order"
)

// mistakesPage is where the usual mistakes are explained.
const mistakesPage = "docs/mistakes.md#"

// QuantisedPage is where weights that are codes are explained.
const QuantisedPage = mistakesPage + "quantised-weight"

// Quantised reports whether the port has rounded weights to codes. Many ports do so on purpose. A mistake in the codes, such as a wrong order of packing,
// does not count.
func (f *Finding) Quantised() bool {
	return f != nil && f.Page == QuantisedPage && (f.Likely != "" || f.Mistake.Coding != Coding{})
}

// Anchors lists the anchors in docs/mistakes.md that explain mistakes of a kind. ok is false for an unknown kind.
func Anchors(kind Kind) (anchors []string, ok bool) {
	row := catalogue()[kind]
	if row == nil {
		return nil, false
	}
	for _, p := range row.Pages {
		if !slices.Contains(anchors, p.Anchor) {
			anchors = append(anchors, p.Anchor)
		}
	}
	return anchors, true
}

// pageOf is where a name is explained; empty if no page explains it.
func pageOf(s *search, n Name) string {
	role := order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name).Role()
	if n.Relation.Kind != "" {
		return n.Relation.page(role)
	}
	return n.Mistake.page(role)
}

// pattern compiles a regular expression at the first request: most runs find no mistake.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Roles of entries by what they are, as regular expressions.
const (
	norms          = `norm$`
	plainNorms     = `(^|[^a-z_])norm$|layernorm$`
	layernorms     = `layernorm$`
	tables         = `^rotary\.`
	rotated        = `_rope$`
	masks          = `^mask\.|scores_masked$`
	caches         = `self_attn\.(keys|values)$`
	heads          = `^lm_head$|^logits$`
	projected      = `_proj(ection)?$|lm_head$`
	functions      = `act_fn$|gated$`
	gated          = `mlp\.(act_fn|gated)$`
	gateAndUp      = `mlp\.(gate|up)_proj$`
	stream         = `attn_residual$|attn_gated$|attn_laurel$|laurel_gated$|\.out$`
	outs           = `\.out$`
	scored         = `scores`
	attended       = `probs|context`
	attendedTo     = `probs|context|o_proj`
	attendedScores = `scores|context|o_proj`
	contexts       = `context$`
	queriesAndKeys = `self_attn.[qk]_proj$`
	attentionInput = `self_attn.[qkv]_proj$`
	embeddings     = `^embed_tokens`
	perLayer       = `per_layer_inputs?$`
	predictions    = `active_prediction$|altup\.`
	rescaledStream = `^embed_tokens.lookup$|o_proj$|down_proj$`
)

// rolePages are where mistakes of entries of some roles are explained, whatever the mistake is, if the row of its kind has no page for the role.
var rolePages = []Page{
	{Anchor: "stale-cache-slot", Roles: caches},
	{Anchor: "activation-sparsity", Roles: `sparse|cutoff`},
	{Anchor: "per-layer-scales", Roles: `^embed_tokens_per_layer|^per_layer_`},
	{Anchor: "embedding-scale", Roles: embeddings},
	{Anchor: "altup-router", Roles: `router_input$|modalities$`},
	{Anchor: "altup-coefficients", Roles: `altup\.(predict|correct|scale_corrected_output|prediction_coefs|correction_coefs)$`},
	{Anchor: "merging-the-streams", Roles: `^altup\.`},
	{Anchor: "laurel", Roles: `\.laurel$`},
}

// Pages that several kinds have.
var (
	leftOutPages = []Page{
		{Anchor: "attention-soft-cap", Roles: attendedTo, If: ofFunction},
		{Anchor: "attention-soft-cap", Roles: scored, If: ofFunction},
		{Anchor: "attention-scale", Roles: attended, If: of(TheFactor, TheDivisor)},
		{Anchor: "attention-scale", Roles: scored, If: of(TheFactor, TheDivisor)},
		{Anchor: "laurel", Roles: stream, If: divides},
		{Anchor: "inverted-norm", Roles: norms, If: of(TheRoot)},
		{Anchor: "one-plus-the-weight", Roles: norms, If: of(TheAddend)},
		{Anchor: "missing-rotation", Roles: rotated},
		{Anchor: "missing-norm", Roles: norms},
		{Anchor: "activation", Roles: functions, If: ofFunction},
		{Anchor: "missing-residual", Roles: stream},
		{Anchor: "logit-soft-cap", Roles: `^logits$`},
		{Anchor: "logit-scale", Roles: heads, If: of(TheFactor)},
	}
	addendLeftOutPages = []Page{
		{Anchor: "causal-mask", Roles: attendedTo, If: of(TheMask)},
		{Anchor: "source-of-the-residual", Roles: stream, If: func(m Mistake) bool { return strings.HasSuffix(m.Of.Name, "o_proj") }},
		{Anchor: "missing-residual", Roles: stream},
	}
	twicePages = []Page{
		{Anchor: "attention-soft-cap", Roles: attendedTo, If: ofFunction},
		{Anchor: "attention-soft-cap", Roles: scored, If: ofFunction},
		{Anchor: "attention-scale", Roles: attended, If: of(TheFactor, TheDivisor)},
		{Anchor: "attention-scale", Roles: scored, If: of(TheFactor, TheDivisor)},
		{Anchor: "one-plus-the-weight", Roles: norms, If: of(TheAddend)},
		{Anchor: "missing-norm", Roles: norms},
		{Anchor: "laurel", Roles: stream, If: divides},
		{Anchor: "logit-soft-cap", Roles: `^logits$`, If: ofFunction},
		{Anchor: "logit-scale", Roles: heads, If: of(TheFactor)},
	}
	weightLeftOutPages = []Page{
		{Anchor: "weight-not-loaded", Roles: plainNorms},
		{Anchor: "missing-rotation", Roles: rotated},
		{Anchor: "missing-norm", Roles: norms},
		{Anchor: "weight-not-loaded", Last: true},
	}
	reorderedPages = []Page{
		{Anchor: "rotary-pairs", Roles: tables},
		{Anchor: "head-layout", Roles: rotated},
		{Anchor: "permuted-query-and-key-rows", Roles: queriesAndKeys},
		{Anchor: "per-layer-rows", Roles: perLayer},
		{Anchor: "crossed-projections", Roles: `^altup_`},
	}
	readPages = []Page{
		{Anchor: "active-stream", Roles: norms, If: aStream},
		{Anchor: "active-stream", Roles: predictions, If: aStream},
		ofByName("keys-cached-before-rotation", caches, `k_norm|k_proj`),
		{Anchor: "crossed-projections", Roles: caches},
		ofByName("rotary-before-norm", norms, `rope`),
		{Anchor: "one-plus-the-weight", Roles: norms, If: forPlusOne},
		{Anchor: "activation", Roles: functions, If: ofFunction},
		{Anchor: "gate-and-up", Roles: gated},
		{Anchor: "source-of-the-residual", Roles: stream},
	}
	codedPages = []Page{
		{Anchor: "quantised-cache", Roles: caches, If: ints}, {Anchor: "quantised-weight", If: func(m Mistake) bool { return ints(m) || strings.HasSuffix(m.Of.Name, "weight") }},
	}
	rowPages    = []Page{{Anchor: "per-layer-rows", Roles: `^embed_tokens_per_layer$`}, {Anchor: "embedding-rows", Roles: embeddings}}
	packedPages = []Page{{Anchor: "head-layout", Roles: attentionInput}, {Anchor: "gate-and-up", Roles: gateAndUp}}
)

// pagesOf makes pages from pairs of an anchor and a pattern of roles.
func pagesOf(pairs ...string) []Page {
	var all []Page
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, Page{Anchor: pair[0], Roles: pair[1]})
	}
	return all
}

// of tests whether a mistake is in a term of some kinds.
func of(kinds ...TermKind) func(Mistake) bool {
	return func(m Mistake) bool { return slices.Contains(kinds, m.Of.Kind) }
}

// ofFunction tests whether a mistake is in a function, such as tanh.
func ofFunction(m Mistake) bool { return m.Of.Kind == Function }

// divides tests whether a division by a number is left out or taken twice, with another step or without.
func divides(m Mistake) bool { return m.Of.Kind == TheDivisor || m.By.Kind == TheDivisor }

// forPlusOne tests whether a step should read the weight with 1 added.
func forPlusOne(m Mistake) bool { return strings.HasSuffix(m.For.Name, "1+w") }

// aStream tests whether another stream is read.
func aStream(m Mistake) bool { return m.Axis == "stream" || m.By.Item.Has }

// ints tests whether numbers are kept as whole numbers.
func ints(m Mistake) bool {
	return slices.Contains([]Codes{Int8, Int4, Int8Kept, Int4Kept}, m.Coding.Numbers)
}

// alongTokens tests whether elements are moved along the tokens.
func alongTokens(m Mistake) bool { return m.Axis == axisWords('t') }

// oneChannel tests whether a single channel stands in the place of a wrong channel.
func oneChannel(m Mistake) bool {
	all := m.Runs.list()
	return len(all) == 1 && all[0].To == all[0].From+1 && all[0].Is >= 0
}

// withZeros tests whether channels of zeros are among the runs of the sentence.
func withZeros(m Mistake) bool {
	return slices.ContainsFunc(m.Runs.said(), func(r sourceRun) bool { return r.Is < 0 })
}
