package diagnose

import (
	"slices"
	"strings"
)

// sayTheSame are kinds that may have the name of another kind, or of their own kind at another place, where the values are equal. Kinds are by their beginnings.
var sayTheSame = []struct{ kinds, as, why string }{
	{"activation.", "activation. operation.left-out factor. number. step. steps. product. minus.", "a step of an activation that is another is an edit of that step too, and two changes of a formula may be one"},
	{"cache.newest- cache.slot-", "cache.decode-", "with one step the newest slot is the slot that steps write"},
	{"cache.oldest-kept", "index.oldest", "the slots that a cache keeps are those that its slice has"},
	{"cache.rounded", "tensor.rounded", "a cache is a tensor, and one scale is one scale"},
	{"elements. memory. operand.transposed", "elements. memory. operand.transposed rope.interleaved heads.tiled-keys heads.tiled-operand cache.order", "an order of two values may be two orders, and steps that take each element by itself have it before and after them"},
	{"elements.halves-exchanged-and-back", "step.exchanged", "halves that are exchanged before a rotation and put back after it turn the other way"},
	{"elements.one-index", "cache.slots-of-another", "an index of the keys that is read for all is a slot of the cache in the place of each"},
	{"elements.one-index heads.one", "addend.left-out elements.one-index", "one index of an axis is all of it, or a part that is not added"},
	{"heads.tiled-operand", "heads.tiled-keys", "the operand is the keys"},
	{"epsilon.least-value order. number. step.left-out", "number. addend.twice step. epsilon.after-inverse", "an edit that makes a number another one is that number, the more plausible of both"},
	{"factor.inserted tensor.added tensor.taken-off operation.", "factor.inserted tensor. weight.multiplied addend.left-out cache.slot-unwritten number. operation.twice step.twice", "a value that is added or taken of itself is a multiple of it"},
	{"input. instance.", "input. instance.", "tensors of one value have several names, and a layer has a name beside that of the layer before"},
	{"mask.", "mask. addend.left-out", "in a few tokens two rules may let queries see the same keys, and a mask that hides nothing is none"},
	{"row.over-length", "mask.prefix", "a mask is 0 and a number that hides: what is done to its rows lets queries see"},
	{"norm.of-parts norm.rmsnorm", "axis.parts step.left-out steps.run-left-out", "a variant of a norm is an edit of one of its steps"},
	{"operand.at-other-indexes", "part.", "a tensor that reaches the indexes that it should not reach, and no other, is added to the other part"},
	{"operand.", "index.run step. steps. minus.left-out", "a step that reads another value is as if those between were left out"},
	{"order.later steps.run-left-out precision.from-step-on", "order.later steps.run-left-out precision.from-step-on", "a step with two places in a formula does the same in both"},
	{"position. tensor.rounded row.mean-subtracted", "position. operation.left-out rope.frequencies-multiplied", "positions 0 turn nothing, few positions show no rule, and a multiple of positions is one of frequencies"},
	{"precision.", "precision. tensor.rounded-dtype", "a formula of few steps that round is narrow as a whole, and a result that is rounded again is rounded once"},
	{"row.mean-subtracted", "row.mean-subtracted", "a table that is read by rows is the result"},
	{"rope.", "rope.", "few frequencies of a small head do not show which setting made them"},
	{"softmax.parts-", "softmax.parts-", "few keys are in the same parts by two rules"},
	{"softmax.slots-to-block softmax.whole-blocks", "softmax.slots-to-block softmax.whole-blocks softmax.slots-unwritten mask.", "of few keys two sizes of blocks leave as many"},
	{"step.twice tensor.rounded", "elements.minus-infinity", "a mask of the lowest number is minus infinity in twice its size or in fewer bits"},
	{"tanh.clip", "step.left-out", "scores within a clip are not clipped"},
	{"tensor.rounded", "soft-cap.inserted", "the largest number of a type is the only number of a mask"},
	{"value.unused", "addend.left-out rows.zeros weight.zero", "a product without its factor is zeros"},
	{"weight.", "weight. channels. step.exchanged addend.twice", "the rows of a matrix are the channels of its product, and a vector is a factor or a term"},
}

// lineOf is the line of a list that a kind is in; -1 for none.
func lineOf(list []struct{ kinds, why string }, kind Kind) int {
	return slices.IndexFunc(list, func(c struct{ kinds, why string }) bool { return beginsWith(kind, c.kinds) })
}

// changeNothing are kinds of which some mistakes change nothing in the entries that they go with. No search says them there, since they show no element.
var changeNothing = []struct{ kinds, why string }{
	{"elements. rope.interleaved inputs.exchanged", "an order that is put back after steps that take each element by itself, or of the terms of a sum"},
	{"operand. operation. order.", "what an operation is taken of in the place of another is the same value, and a product may be taken earlier or later"},
	{"heads.tiled-keys input.apart row.maximum-subtracted steps.run-left-out channels.first-alone", "what is read in the place of another is equal to it, or is 0, in a role"},
	{"mask.", "a key or a block beyond those that there are, or a number that hides as the right one does"},
	{"epsilon.added floor.left-out", "a floor below all that is there"},
	{"ids.last-row", "no id is beyond the table"},
	{"number.not-rounded position.rounded precision.narrow-operands tensor.rounded weight.", "the numbers are those of the narrower type, or positive"},
}

// notReached are kinds that no plant of this test is, and why. A test that plants them by hand is named where there is one.
var notReached = []struct{ kinds, why string }{
	{"described.", "how a tensor differs, and no mistake"},
	{"addends.inserted factors.inserted heads.others input.truncated input.whole mask.first-key mask.keys-masked mask.last-key slopes.inserted value.formula value.other weight.factors weight.input-factors weight.shifted weight.shifted-in-blocks weights.of-another-layer", "a description of a port's tensors proposes them: TestDescriptionsAreConfirmed"},
	{"factor.by-late-position factor.by-position norm.about-mean number.of-layers sum.terms value.mixed value.of-block-index value.of-index-after value.of-index-before value.of-last-index value.on-grid value.of-one-index value.of-rank", "a description of a port's tensors proposes them: TestSumsAndRowsAreNamed, TestSumsAndRowsAreApplied, TestMixedValuesAreNamed, TestValuesOnAGridAreNamed"},
	{"indexes.others value.statistic", "a description of a port's tensors proposes them: TestBlocksAreNamed"},
	{"number.over-statistic number.statistic", "a description of a port's tensors proposes them: TestNumbersOfRowsMadeInLoopsAreNamed"},
	{"function.", "a description of a port's tensors proposes them: TestFunctionsInPlainLoopsAreNamed of package naming"},
	{"activation.input-above activation.other-with-number", "a number is solved from the tensors of a port: TestMistakesInPlainLoopsAreNamed of package naming"},
	{"input.not-as-dumped", "a relation of two entries, which package naming finds: TestATensorThatIsWrongOnlyInTheDump"},
	{"error.of-low-rank slots.foreign", "a relation, and no mistake: TestErrorsOfLowRankAreNamed, TestMistakesInPlainLoopsAreNamed of package naming"},
	{"weight.random", "a relation, and no mistake: TestRandomWeightsAreNamed"},
	{"rows. elements.nan elements.nan-or-infinite elements.infinite elements.minus-infinity", "a relation, and no mistake: TestARelationSaysNothingOfAnotherEntry, TestMinusInfinityIsMasked"},
	{"cache.order cache.other-slots cache.ring cache.slots-of-another cache.written-elsewhere", "the slots are found in the cache of a port: TestSlotsAreApplied"},
	{"addend.inserted result.clamped result.clipped-above result.clipped-below dropout.left-on logits.", "a number is solved from the tensors of a port: TestMistakesOfResultsAndPrecisionAreApplied"},
	{"channels.many-others channels.others channels.reordered lookup.other-rows weight.rows-many-others weight.bit-flipped weight.one-number weight.rows-read-apart weight.columns-read-later", "the rows and numbers are found in the tensors of a port: TestMistakesOfWeightsAreApplied"},
	{"weight.scales- weight.zero-points-", "scales are found in the tensors of a port: TestMistakesOfScales"},
	{"instance.another layer.other-kind rope.frequencies-factors rope.scaling-of-some rope.frequencies-multiplied-not-divided", "what is read is found in the tensors of a port: TestOtherInputsAreApplied, TestRotaryMistakesAreApplied, TestFrequenciesOfATableAreNamed"},
	{"ids.limited ids.modulo ids.shifted", "the rows are found in the table of a port: TestRulesOfRowsAreFound"},
	{"elements.as-halves elements.as-parts elements.by-turns-not-parts elements.blocks-by-turns elements.parts-crossed index.part part.all-unnamed", "the operations of these families have no parts by turns, and none of which one is read"},
	{"heads.tiled precision.operation-to", "an entry of these orders is one operation"},
	{"input.pass-before mask.step-sees-prompt-alone", "they need two steps, and the prompt and one step are looked at"},
	{"mask.anti-causal mask.both-sides mask.causal mask.none", "queries of these families see no later token: TestMasksAreApplied"},
	{"rope.exponents-of-part rope.larger-part rope.whole-head", "these families turn all of a head: TestRotaryMistakesAreApplied"},
	{"rope.theta-exchanged rope.theta-of-kinds", "a role is of one kind of layers here: TestBasesOfKindsOfLayers"},
	{"router.softmax-over-all router.softmax-over-chosen softmax.joined-left-out", "these families have no experts and no scores beside those of keys: TestSoftmaxesAreApplied"},
	{"number.not-rounded position.rounded", "float32 has these numbers, and bfloat16 these positions: TestRotaryMistakesOfAnglesAreApplied"},
	{"weight.rounded-mxfp4", "its blocks have 32 numbers, and these matrices rows of 24"},
}

// notNamed are kinds that a search may leave without a name, and why.
var notNamed = []struct{ kinds, why string }{
	{"channels.first-alone", "keys are counted as channels, and a step has more of them than the prompt"},
}

// notBack are kinds of which no two neighbours in a role have both their own names, and why; or no plant has, of a kind that each role has one of.
var notBack = []struct{ kinds, why string }{
	{"activation.number activation.operand-alone activation.other-operand-alone activation.other-rounded activation.step-as activation.step-left-out", "the edit of the step says more, or the rounding of steps is not seen in float32"},
	{"activation.saturated", "the limit is found in the tensors of a port: TestMistakesInPlainLoopsAreNamed of package naming"},
	{"cache.newest-stale cache.newest-unwritten cache.oldest-kept", "in one step the newest slot is what steps write, and what is kept is a slice"},
	{"elements.blocks-reversed elements.halves-exchanged-and-back elements.neighbours-exchanged elements.reversed-and-back elements.rolled", "the order of another operand says the same"},
	{"epsilon.least-value norm.rmsnorm number.doubled number.inverted number.negated number.squared number.two-sided-quantile step.left-out", "a step that is taken twice, exchanged or left out, or the number itself, says the same"},
	{"input.layer-before instance.of-another-layer", "the name has a list of layers, and what is planted has none"},
	{"mask.first-keys-seen mask.layers-exchanged mask.own-key-alone mask.window-of-first-query mask.window-whole-block", "another window lets queries see the same keys in a prompt of nine tokens"},
	{"position.ahead position.behind position.from-zero", "one step does not show by which rule its position is wrong"},
	{"precision.each-step precision.from-step-on precision.narrow", "an operation of few steps is narrow as a whole"},
	{"softmax.whole-blocks", "of few keys two sizes of blocks leave as many"},
	{"rope.bands-exchanged rope.bands-without-2pi rope.setting", "few frequencies are between the bands, so that another setting makes the same"},
	{"operand.at-other-indexes", "a tensor that is added to the other part says the same: TestCapsAndPartsMadeInLoopsAreNamed"},
	{"operand.other-part tensor.taken-off value.unused", "a term or factor that is missing says the same"},
	{"weight.rows-others weight.rows-reordered-in-blocks weight.stored-plus-one", "the channels of a product are the rows of its matrix, and 1 is added where it is read or stored"},
}

// beginsWith reports whether a kind has one of some beginnings.
func beginsWith(kind Kind, beginnings string) bool {
	for _, b := range strings.Fields(beginnings) {
		if string(kind) == b || strings.HasPrefix(string(kind), b) && strings.ContainsAny(b[len(b)-1:], ".-") {
			return true
		}
	}
	return false
}
