package diagnose

import (
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program/edit"
)

// readRows are mistakes in the tensors that an operation reads, operations in the wrong place, and relations.
func readRows() []Row {
	return []Row{
		// Tensors and weights in the place of others.
		{Kind: "input.other", Words: "reads {by}, not {for}", Pages: inputPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.other-kept", Words: "for earlier passes, reads {by}, not {for}", Pages: inputPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.stream", Words: "reads stream {n} of {of}, not {m}", Pages: streamPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.pass-before", Words: "reads {by}", Pages: inputPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.layer-before", Words: "reads {by} of the layer before, not {for}", Pages: inputPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.chained", Words: "each reads the result of the one before, {by}, not {for}", Pages: eachPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.own-stream", Words: "stream k reads stream k[ {+n}] of {by}, not {for}", Pages: eachPages, Apply: otherInput, Class: edit.InputOf},
		{Kind: "input.overwritten", Words: "{of} reads {by} after the operation has overwritten it with its result: the operation is done in place", Apply: readOverwritten, Class: edit.InputOf},
		{Kind: "input.apart", Words: "{of} reads {by}, not {for}; all other readers are right", Pages: inputPages, Apply: inputApart, Class: edit.InputOf},
		{Kind: "inputs.exchanged", Words: "{of} and {by} are exchanged", Pages: pagesWithNames(nil, nil, onRoles("per-layer-rows", "per_layer_inputs?$")), Apply: exchangedInputs, Class: edit.Swapped},
		{Kind: "instance.of-another-layer", Words: "{of} comes from the wrong layer: {by}", Pages: append(pagesWithNames(nil, []Page{onRoles("shared-keys-and-values", caches), onRoles("another-layers-weight", norms)}, onRoles("crossed-projections", `^altup_`)), ofOf("another-layers-weight", "", isWeight)), Apply: otherInstance, Class: edit.InputOf, Solved: solvedInstances},
		{Kind: "instance.another", Words: "{of} is the wrong instance: {by}", Pages: append(pagesWithNames(nil, nil, onRoles("crossed-projections", `^altup_`)), ofOf("another-layers-weight", "", isWeight)), Apply: otherInstance, Class: edit.InputOf, Solved: solvedInstances},
		{Kind: "ids.limited", Words: "ids above {n} have the row of {n}: ids are limited to the first {n+1} rows", Pages: rowPages, Apply: changedWeight, Class: edit.Leaf, Exact: true},
		{Kind: "ids.shifted", Words: "ids from {n} on are off by {+k} in the table: rows before them are missing, or are there twice", Pages: rowPages, Apply: changedWeight, Class: edit.Leaf, Exact: true},
		{Kind: "ids.modulo", Words: "ids from {n} on have the row of their remainder by {n}", Pages: rowPages, Apply: changedWeight, Class: edit.Leaf, Exact: true, After: []Kind{"weight.first-shard-everywhere"}},
		{Kind: "lookup.other-rows", Words: "{each}", Each: "id {at} has the row of id {are}", Zero: "the row of id {at} is 0", Between: "; ", Pages: append([]Page{onRoles("stale-cache-slot", caches), {Anchor: "branch-of-zeros", If: endsInZeros}}, rowPages...), Apply: rowsOfOthers, Class: edit.Leaf, After: []Kind{"weight.rows-interleaved"}, Exact: true},
		{Kind: "weight.other", Words: "{by} is used, not {for}", Pages: pagesWithNames(nil,
			[]Page{ofByName("crossed-projections", "self_attn.[qkv]_proj$", `self_attn.[qkv]_proj.weight$`), onRoles("another-norms-weight", norms)},
			ofByName("gate-and-up", `mlp\.(gate|up)_proj$`, `(gate|up)_proj.weight$`), onRoles("crossed-projections", `^altup_`), ofByName("tied-head", "^lm_head$", `embed_tokens.weight$`)), Apply: otherWeight, Class: edit.Leaf},
		{Kind: transposedKind, Words: "{by}, transposed, is used, not {for}", Pages: []Page{onRoles("another-layers-weight", "")}, Apply: otherWeight, Class: edit.Leaf},

		// Operations where they do not belong.
		{Kind: "operation.taken-first", Words: "{of} is applied to {by} first, as in {for}", Pages: pagesWithNames(nil, nil), Apply: inserted, Class: edit.Inserted, After: []Kind{"tensor.added"}},
		{Kind: "operation.taken-of-result", Words: "{of} is applied to the result, as in {for}", Pages: pagesWithNames(nil, nil), Apply: inserted, Class: edit.Inserted},
		{Kind: "operation.twice", Words: "{of} is applied twice", Pages: pagesWithNames(nil, []Page{onRoles("missing-norm", norms)}), Apply: inserted, Class: edit.Twice, After: []Kind{"step.twice"}},
		{Kind: "operand.overwritten", Words: "{of} is overwritten in place by {by}: the value before its last step is read, as in {for}", Pages: pagesWithNames(nil, nil, onRoles("source-of-the-residual", stream)), Apply: inserted, Class: edit.Inserted},
		{Kind: "operand.overwritten-earlier", Words: "{of} is overwritten in place by {by}: the value before its last {n} steps is read, as in {for}", Pages: pagesWithNames(nil, nil, onRoles("source-of-the-residual", stream)), Apply: inserted, Class: edit.Inserted},
		{Kind: "channels.first-alone", Words: "only the first {n} channels are used; channels {n} to {m-1} pass through unchanged", Pages: []Page{onRoles("partial-rotation", rotated)}, Apply: partOf, Class: edit.Whole},
		{Kind: "layer.other-kind", Words: "the layer has the wrong type: {of} is computed as in {by}, from {for}", Pages: pagesWithNames([]Page{onRoles("shared-keys-and-values", caches)}, nil, onRoles("crossed-projections", `^altup_`)), Apply: asOtherLayer, Class: edit.Inserted},
		{Kind: "result.log-softmax", Words: "the result is a log softmax: log probabilities, each row shifted by a constant", Pages: rowPages, Apply: logSoftmax, Class: edit.Inserted},

		// Relations: the dump of what is read, rows, and elements that are not finite.
		{Kind: notAsDumpedKind, Words: "with the right {of}, every element is right: {of} was not dumped as it was read, or two mistakes cancel", Pages: []Page{{Anchor: "hooks-at-another-point"}}},
		{Kind: "rows.of-another", Words: rowsWords, Pages: relatedPages},
		{Kind: "rows.of-itself", Words: rowsWords, Pages: relatedPages},
		{Kind: "rows.zeros", Words: rowsWords, Pages: relatedPages},
		{Kind: "rows.stale-keys", Words: "{at} of {of} are keys {k} again: stale", Pages: pagesWithNames(nil, nil)},
		{Kind: "rows.left-as-they-are", Words: "{at} are unchanged from {by}: the operation was not applied to them", Pages: pagesWithNames(nil, []Page{{Anchor: "partial-rotation", Roles: rotated, Of: ofChannels}})},
		{Kind: "rows.operations-left-out", Words: "{of} was not applied to {n} of {m} rows: they are {by}", Pages: relatedPages},
		{Kind: "rows.overwritten", Words: "{at} of {of} are overwritten by {by}[: those of {from}]", Pages: relatedPages},
		{Kind: "elements.nan", Words: "{at} are NaN: uninitialised memory, or an undefined operation such as 0/0", Pages: notFinitePages},
		{Kind: "elements.nan-or-infinite", Words: "{at} are NaN or infinite: overflow of the dtype", Pages: notFinitePages},
		{Kind: "error.of-low-rank", Words: "the result has a product of two matrices of rank {n} added, as where a LoRA adapter is merged into {of}, or missing from it"},
		{Kind: "weight.random", Words: "{of} is not the checkpoint's and has no relation to it: its elements are random numbers of standard deviation {x}, as in a weight that was not loaded", Pages: []Page{{Anchor: "weight-not-loaded"}}},
		{Kind: "slots.foreign", Words: "{at} of {of} hold values that this run has not computed, such as another request's cache or overwritten memory", Pages: []Page{{Anchor: "stale-cache-slot"}}},
		{Kind: "elements.infinite", Words: "{at} are infinite: overflow of the dtype", Pages: notFinitePages},
		{Kind: "elements.minus-infinity", Words: "{at} are -infinity: masked or suppressed, or overflow of the dtype"},
	}
}

// notAsDumpedKind is the kind of [NotAsDumped].
const notAsDumpedKind = "input.not-as-dumped"

// rowsWords says how many rows are rows of another tensor, and which.
const rowsWords = "{n} of {m} rows are {by}[, in layer L from layer L-{k}][ (in {of}: {at})][: those of {from}]"

// eachPages are for a tensor that each entry of a role reads in its own way, streamPages for a wrong stream of the right tensor, and inputPages for a
// wrong tensor or stream.
var (
	eachPages = pagesWithNames(nil, []Page{
		onRoles("crossed-projections", caches), {Anchor: "one-plus-the-weight", Roles: norms, If: isNext}, onRoles("gate-and-up", gated),
	}, onRoles("source-of-the-residual", stream))

	streamPages = pagesWithNames(nil, []Page{onRoles("crossed-projections", caches), onRoles("active-stream", norms), onRoles("gate-and-up", gated)},
		onRoles("altup-router", routers), onRoles("active-stream", `active_prediction$|altup\.`), onRoles("source-of-the-residual", stream))

	inputPages = pagesWithNames([]Page{
		ofBy("window-on-the-wrong-layers", masks, isMask), ofBy("window-on-the-wrong-layers", attendedTo, isMask), ofBy("stale-cache-slot", rotated, isBefore),
	}, []Page{
		onRoles("crossed-projections", caches), ofBy("positions-of-decode-steps", tables, isBefore),
		ofOf("attention-scale", "probs|context", isKind(TheFactor, TheDivisor)),
		{Anchor: "crossed-projections", Roles: "context$", If: readsLayer},
		ofOf("attention-scale", "scores", isKind(TheFactor, TheDivisor)), ofOf("one-plus-the-weight", norms, isPlusOne),
		ofBy("active-stream", norms, isStream), onRoles("gate-and-up", gated),
	},
		onRoles("altup-router", routers), ofBy("active-stream", `active_prediction$|altup\.`, isStream),
		ofOf("laurel", stream, isKind(TheDivisor)), onRoles("source-of-the-residual", stream),
		ofOf("logit-soft-cap", "^logits$", isKind(TheFactor)), ofOf("logit-scale", heads, isKind(TheFactor)))
)

// relatedPages are the pages of rows that are rows of another tensor.
var (
	relatedPages = pagesWithNames([]Page{ofBy("stale-cache-slot", rotated, isBefore)}, []Page{
		ofBy("positions-of-decode-steps", tables, isBefore), ofByName("shared-keys-and-values", caches, `q_rope`),
	}, append([]Page{ofByName("embedding-scale", `^embed_tokens$`, `^embed_tokens.lookup`)}, rowPages...)...)
	notFinitePages = []Page{onRoles("not-finite", "")}
)

// isMask, isStream and isWeight report whether a term is a whole mask, a stream of a tensor, or a weight.
func isMask(t Term) bool   { return strings.HasPrefix(t.Name, "mask") && !t.Item.Has }
func isStream(t Term) bool { return t.Item.Has }
func isWeight(t Term) bool { return strings.HasSuffix(t.Name, "weight") }

// isPlusOne reports whether a term is the sum with 1.
func isPlusOne(t Term) bool { return t.Kind == TheAddend && strings.HasPrefix(short(t.X), "1") }

// isNext reports whether each reads the stream after its own.
func isNext(m Mistake) bool { return m.N == 1 }

// readsLayer reports whether a mistake of no single step reads a tensor of a layer, and not a stream of it.
func readsLayer(m Mistake) bool {
	return m.Of == Term{} && order.NameOf(m.By.Name).Label() != "" && !m.By.Item.Has
}

// ofChannels reports whether rows are those of some channels.
func ofChannels(r Relation) bool { return strings.HasPrefix(string(r.At), "channels") }

// endsInZeros reports whether the last run is zeros.
func endsInZeros(m Mistake) bool {
	all := m.Runs.list()
	return all[len(all)-1].Is == isZero
}
