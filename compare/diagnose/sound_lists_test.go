package diagnose

import "strings"

// sayTheSame are kinds that may have the name of another kind, or of their own kind at another place, where the values are equal. Kinds are by their beginnings.
var sayTheSame = []struct{ kinds, as, why string }{
	{"activation.", "activation. operation.left-out factor. number. step. steps. product. minus.", "a step of an activation that is another is an edit of that step too, and two changes of a formula may be one"},
	{"cache.newest- cache.slot", "cache.decode-", "with one step the newest slot is the slot that steps write"},
	{"cache.oldest-kept", "index.oldest", "the slots that a cache keeps are those that its slice has"},
	{"cache.rounded", "tensor.rounded", "a cache is a tensor, and one scale is one scale"},
	{"elements. memory. operand.transposed", "elements. memory. operand.transposed rope.interleaved heads.tiled cache.order", "an order of two values may be two orders, and steps that take each element by itself have it before and after them"},
	{"elements.one-index heads.one", "addend.left-out elements.one-index", "one index of an axis is all of it, or a part that is not added"},
	{"heads.tiled-operand", "heads.tiled-keys", "the operand is the keys"},
	{"epsilon.least-value order. number. step.left-out", "number. addend.twice step. epsilon.after-inverse", "an edit that makes a number another one is that number, the more plausible of both"},
	{"factor.inserted tensor.added tensor.taken-off operation.", "factor.inserted tensor. weight.multiplied addend.left-out cache.slot-unwritten number. operation.twice step.twice", "a value that is added or taken of itself is a multiple of it"},
	{"input. instance.", "input. instance.", "tensors of one value have several names, and a layer has a name beside that of the layer before"},
	{"mask.", "mask. addend.left-out", "in a few tokens two rules may let queries see the same keys, and a mask that hides nothing is none"},
	{"row.over-length", "mask.prefix", "a mask is 0 and a number that hides: what is done to its rows lets queries see"},
	{"norm.of-parts norm.rmsnorm", "axis.parts step.left-out", "a variant of a norm is an edit of one of its steps"},
	{"operand.", "index.run step. steps. minus.left-out", "a step that reads another value is as if those between were left out"},
	{"order.later steps.run-left-out precision.from-step-on", "order.later steps.run-left-out precision.from-step-on", "a step with two places in a formula does the same in both"},
	{"position. tensor.rounded row.mean-subtracted", "position. operation.left-out rope.frequencies-multiplied", "positions 0 turn nothing, few positions show no rule, and a multiple of positions is one of frequencies"},
	{"precision.", "precision. tensor.rounded-dtype", "a formula of few steps that round is narrow as a whole, and a result that is rounded again is rounded once"},
	{"row.mean-subtracted", "row.mean-subtracted", "a table that is read by rows is the result"},
	{"rope.", "rope.", "few frequencies of a small head do not show which setting made them"},
	{"step.twice tensor.rounded", "elements.minus-infinity", "a mask of the lowest number is minus infinity in twice its size or in fewer bits"},
	{"tanh.clip", "step.left-out", "scores within a clip are not clipped"},
	{"tensor.rounded", "soft-cap.inserted", "the largest number of a type is the only number of a mask"},
	{"value.unused", "addend.left-out rows.zeros weight.zero", "a product without its factor is zeros"},
	{"weight.", "weight. channels. step.exchanged addend.twice", "the rows of a matrix are the channels of its product, and a vector is a factor or a term"},
}

// changeNothing are kinds of which some mistakes change nothing in the entries that they go with. No search says them there, since they show no element.
var changeNothing = []struct{ kinds, why string }{
	{"elements. rope.interleaved heads.tiled inputs.exchanged operands.exchanged", "an order of equal elements, or of the terms of a sum"},
	{"operand. operation. order.", "an operation of one of its values may be that of another: it is taken twice, or its operands are one tensor"},
}

// notReached are kinds that no plant of this test is, and why. A test that plants them by hand is named where there is one.
var notReached = []struct{ kinds, why string }{
	{"addend.inserted channels.many-others channels.others channels.reordered dropout.left-on result.clamped result.clipped- lookup.other-rows weight.rows-many-others weight.bit-flipped weight.one-number weight.scales-of-blocks rope.scaling-of-some", "solved from the tensors of a port: TestMistakesOfWeightsAreApplied, TestMistakesOfResultsAndPrecisionAreApplied, TestRotaryMistakesAreApplied plant them"},
}

// begins reports whether a kind has one of some beginnings.
func beginsWith(kind Kind, beginnings string) bool {
	for _, b := range strings.Fields(beginnings) {
		if string(kind) == b || strings.HasPrefix(string(kind), b) && strings.ContainsAny(b[len(b)-1:], ".-") {
			return true
		}
	}
	return false
}
