package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program/edit"
)

// Pages of numbers and functions.
var (
	multipliedPages = []Page{{Anchor: "scale-moved-to-the-queries", Roles: rotated}, {Anchor: "attention-scale", Roles: "scores"}, {Anchor: "logit-scale", Roles: heads}}
	factorPages     = slices.Concat([]Page{
		{Anchor: "rotary-scaling", Roles: tables, If: func(m Mistake) bool { return m.Of == theResult }},
		{Anchor: "rotary-scaling", Roles: turning, If: func(m Mistake) bool { return strings.Contains(m.Called, "scaling") }},
		{Anchor: "attention-scale", Roles: "probs|context", If: func(m Mistake) bool { return strings.Contains(m.Of.Name, "self_attn") }},
	}, pagesWithNames(nil, nil), multipliedPages)
	addedPages = slices.Concat(pagesWithNames(nil, nil), []Page{{Anchor: "order-of-norm-and-residual", Roles: "layernorm$"}, {Anchor: "source-of-the-residual", Roles: stream}})
	capPages   = []Page{{Anchor: "attention-soft-cap", Roles: "probs|context|o_proj|scores"}, {Anchor: "logit-soft-cap", Roles: "^logits$"}}
	// numberPages are pages of a number by its part in the formula.
	numberPages = slices.Concat([]Page{
		{Anchor: "attention-soft-cap", Roles: "probs|context|o_proj|scores", If: of(SoftCap)},
		{Anchor: "logit-soft-cap", Roles: "^logits$", If: of(SoftCap)},
		{Anchor: "attention-scale", Roles: "probs|context|scores", If: of(AFactor, TheFactor)},
		{Anchor: "logit-soft-cap", Roles: "^logits$", If: of(AFactor, TheFactor)},
		{Anchor: "logit-scale", Roles: heads, If: of(AFactor, TheFactor)},
		{Anchor: "epsilon", Roles: norms, If: of(Epsilon)},
		{Anchor: "inverted-norm", Roles: norms, If: of(Floor)},
		{Anchor: "one-plus-the-weight", Roles: norms, If: of(TheAddend)},
	}, pagesWithNames(nil, nil))
	// statisticPages are pages of a number that differs by row: an epsilon does not fit the rescaled input.
	statisticPages  = slices.Concat([]Page{{Anchor: "place-of-epsilon", Roles: norms, If: of(Epsilon)}}, numberPages)
	activationPages = []Page{
		{Anchor: "exact-gelu", Roles: functions, If: oneGELU},
		{Anchor: "activation", Roles: functions},
		{Anchor: "attention-soft-cap", Roles: "probs|context|o_proj|scores", If: ofTanh},
		{Anchor: "logit-soft-cap", Roles: "^logits$", If: ofTanh},
		{Anchor: "inverted-norm", Roles: norms, If: func(m Mistake) bool { return m.Of.Name == "quotient" }},
	}
	functionLeftOutPages = []Page{{Anchor: "missing-norm", Roles: norms}, {Anchor: "missing-residual", Roles: stream}, {Anchor: "logit-soft-cap", Roles: "^logits$"}}
)

// oneGELU reports whether GELU replaces its tanh approximation, or the approximation replaces GELU. ofTanh reports whether a name has a tanh.
func oneGELU(m Mistake) bool {
	is, right := m.By.Name, m.For.Name
	if m.Kind != "activation.other" && m.Kind != "activation.other-rounded" {
		is = m.Place
	}
	return is == "gelu" && right == "gelu_tanh" || is == "gelu_tanh" && right == "gelu"
}

func ofTanh(m Mistake) bool {
	return slices.ContainsFunc([]string{m.Of.Name, m.By.Name, m.For.Name, m.Called, m.Place}, func(name string) bool { return strings.Contains(name, "tanh") })
}

// numberRows are mistakes in numbers and functions of a formula, and in numbers and tensors that are added to a formula.
func numberRows() []Row {
	return []Row{
		// Each layer has its own number, and all layers have the same function of the right number.
		{Kind: "number.doubled", Words: "{of} is doubled: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.of-layers", Words: "{of} differs by layer: {numbers}[, instead of {right numbers}]", Pages: numberPages, Apply: numberOfLayer, Class: edit.Constant, Solved: fittedOf},
		{Kind: "number.halved", Words: "{of} is halved: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.times-root-2", Words: "{of} is multiplied by √2: {by} instead of {for}", Pages: slices.Concat(numberPages, multipliedPages), Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.over-root-2", Words: "{of} is divided by √2: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.negated", Words: "{of} has the wrong sign: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.squared", Words: "{of} is squared: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.rooted", Words: "{of} is the square root of the right value: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.inverted", Words: "{of} is the reciprocal of the right value: {by} instead of {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		// A number is computed from each row.
		{Kind: "number.times-statistic", Words: "{of} is multiplied by {for} of each row of {by}", Pages: statisticPages, Apply: byStatistic, Class: edit.Inserted, Field: OfItself},
		{Kind: "number.over-statistic", Words: "{of} is divided by {for} of each row of {by}", Pages: statisticPages, Apply: byStatistic, Class: edit.Inserted, Field: OfItself},
		{Kind: "number.statistic", Words: "{of} is [{x} times ]{for} of each row of {by}, not {right}", Pages: statisticPages, Apply: byStatistic, Class: edit.Inserted, Field: OfItself, Solved: numberOf},
		{Kind: "number.two-sided-quantile", Words: "{of} is the two-sided quantile of a normal distribution, not the one-sided: {by} instead of {for}", Pages: slices.Concat([]Page{{Anchor: "activation-sparsity", Roles: "sparse|cutoff|act_fn"}}, numberPages), Apply: functionOfNumber, Class: edit.Constant},

		// Another function is in the place of an activation or of a tanh.
		{Kind: "activation.other", Words: "the activation is {by}, not {for}", Pages: activationPages, Apply: otherActivation, Class: edit.Exchanged, Alike: activationName},
		{Kind: "activation.other-rounded", Words: "the activation is {by}, not {for}, with each step rounded", Pages: activationPages, Apply: otherActivation, Class: edit.Exchanged, Alike: activationName},
		{Kind: "activation.left-out", Words: "the activation {for} is missing", Pages: slices.Concat(activationPages, functionLeftOutPages), Apply: otherActivation, Class: edit.Exchanged},
		{Kind: "activation.step-left-out", Words: "the activation {place} lacks {of}", Pages: slices.Concat(activationPages, functionLeftOutPages), Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.operand-alone", Words: "the activation {place} uses only one operand of {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.step-as", Words: "the activation {place} has {by} instead of {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.number", Words: "the activation {place} has {by} instead of {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.other-step-left-out", Words: "the activation is {place}, not {for}, and lacks {of}", Pages: slices.Concat(activationPages, functionLeftOutPages), Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-operand-alone", Words: "the activation is {place}, not {for}, and uses only one operand of {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-step-as", Words: "the activation is {place}, not {for}, with {by} instead of {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-number", Words: "the activation is {place}, not {for}, with {by} instead of {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-with-number", Words: "the activation is {place}, not {for}, with {x} instead of {of}", Pages: activationPages, Apply: numberedActivation, Class: edit.Exchanged, Solved: fitted},
		{Kind: "activation.zero-below", Words: "the activation {place} is 0 for inputs below {x}", Pages: activationPages, Apply: cutActivation, Class: edit.Exchanged, Solved: fitted},
		{Kind: "activation.input-above", Words: "the activation {place} is its input for inputs above {x}", Pages: activationPages, Apply: cutActivation, Class: edit.Exchanged, Solved: fitted},
		{Kind: "activation.saturated", Words: "the activation {place} is 0 for inputs below -{x}, and its input for inputs above {x}", Pages: activationPages, Apply: cutActivation, Class: edit.Exchanged, Solved: fitted},
		{Kind: "function.of-lines", Words: "{of} is made of {n} lines of {by}, which meet near {meets}", Pages: activationPages, Apply: byCurve, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "function.lines-times-input", Words: "{of} is {by} times a function that is made of {n} lines, which meet near {meets}", Pages: activationPages, Apply: byCurve, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "function.near", Words: "a function near {of} takes its place: it is up to {x} off, where {by} is {for}", Pages: activationPages, Apply: byCurve, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "function.near-powers-of-2", Words: "the exponential in {of} is a whole power of 2 times a function near the rest of the power: it is off by up to {x} of its value", Pages: activationPages, Apply: byPowers, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "tanh.clip", Words: "a hard clip to ±1 replaces tanh", Pages: capPages, Apply: otherTanh, Class: edit.Exchanged},
		{Kind: "tanh.softmax", Words: "a softmax over the channels replaces tanh", Pages: capPages, Apply: otherTanh, Class: edit.Exchanged},
		{Kind: "tanh.sigmoid", Words: "a sigmoid replaces tanh", Pages: capPages, Apply: otherTanh, Class: edit.Exchanged},

		// Something is done that the model does not do.
		{Kind: "result.clipped-below", Words: "the result is clipped at a minimum of {x}", Pages: slices.Concat([]Page{{Anchor: "attention-soft-cap", Roles: "scores"}}), Apply: cutOff, Class: edit.Inserted, Solved: fitted},
		{Kind: "result.clipped-above", Words: "the result is clipped at a maximum of {x}", Pages: slices.Concat([]Page{{Anchor: "attention-soft-cap", Roles: "scores"}}), Apply: cutOff, Class: edit.Inserted, Solved: fitted},
		{Kind: "result.clamped", Words: "the result is clamped to ±{x}", Pages: slices.Concat([]Page{{Anchor: "mask-value", Roles: masks}, {Anchor: "attention-soft-cap", Roles: "scores"}}), Apply: cutOff, Class: edit.Inserted, Solved: fitted},
		{Kind: "factor.inserted", Words: "{of} is multiplied by {x}[ ({called})]", Pages: factorPages, Apply: insertedNumber, Class: edit.Inserted},
		{Kind: "addend.inserted", Words: "{x} is added to {of}", Pages: addedPages, Apply: insertedNumber, Class: edit.Inserted},
		{Kind: "soft-cap.inserted", Words: "{of} has a tanh soft cap of {x}[ ({called})]", Pages: slices.Concat(capPages, pagesWithNames(nil, nil)), Apply: insertedNumber, Class: edit.Inserted},
		{Kind: "value.unused", Words: "{of} is not used: it counts as 0", Pages: pagesWithNames(nil, nil), Apply: unusedValue, Class: edit.Inserted},
		{Kind: "tensor.added", Words: "{by} is added to {of}", Pages: addedPages, Apply: addend, Class: edit.Inserted},
		{Kind: "result.accumulated", Words: "{by} of the layer before is added: the result is added to a buffer that was not cleared", Pages: addedPages, Apply: accumulated, Class: edit.Inserted},
		{Kind: "tensor.taken-off", Words: "{by} is subtracted from {of}", Pages: pagesWithNames(nil, nil), Apply: addend, Class: edit.Inserted},
		{Kind: "vector.inserted", Words: "{of} is multiplied by {by}", Pages: factorPages, Apply: timesVector, Class: edit.Inserted},
		{Kind: "factors.inserted", Words: "{of} is multiplied by {numbers}", Pages: factorPages, Apply: fittedNumbers, Class: edit.Inserted, Solved: fittedOf},
		{Kind: "addends.inserted", Words: "constants are added to {of}: {numbers}", Pages: addedPages, Apply: fittedNumbers, Class: edit.Inserted, Solved: fittedOf},
		{Kind: "slopes.inserted", Words: "a bias that grows along the {other} is added to {of}[, with its own slope for each of the {axis}]: {numbers} per step", Pages: addedPages, Apply: addedSlopes, Class: edit.Inserted, Solved: fittedOf},
		{Kind: "input.whole", Words: "{of} is rounded to whole numbers: its quantisation has no scale, or a scale that is never below 1", Apply: wholeNumbers, Class: edit.Inserted},
		{Kind: "input.truncated", Words: "{of} is truncated to whole numbers", Apply: wholeNumbers, Class: edit.Inserted},
		{Kind: "value.other", Words: "{by} takes the place of {of}", Apply: otherValue, Class: edit.InputOf},
		{Kind: "factor.by-position", Words: "{of} is multiplied by {x}[ ({called})] times {other}, with p the token's position", Pages: factorPages, Apply: timesPosition, Class: edit.Inserted, Solved: oneNumber},
		{Kind: "factor.by-late-position", Words: "{of} is multiplied by {x}[ ({called})] times {other}, with p the token's position, where that exceeds 1", Pages: factorPages, Apply: timesPosition, Class: edit.Inserted, Solved: oneNumber},
		{Kind: "value.on-grid", Words: "{of} has only multiples of {x}: it is quantised", Pages: []Page{{Anchor: "quantised-cache", Roles: caches}}, Apply: roundedToGrid, Class: edit.Inserted, Solved: oneNumber},
		{Kind: mixedValue, Words: "the {axis} of {of} are sums of {axis}[ of {by}]: {sums}", Apply: mixes, Class: edit.Inserted, Solved: coefficientsOf},
		{Kind: "value.of-rank", Words: "{of} is the value of rank {n} in each row of {by}, counted from the largest", Pages: []Page{{Anchor: "activation-sparsity", Roles: "sparse|cutoff|act_fn"}}, Apply: ofRank, Class: edit.Inserted, Solved: oneNumber},
		{Kind: "value.statistic", Words: "{of} is one number in each row: {for} of the row", Apply: asStatistic, Class: edit.Inserted},
		{Kind: "value.of-one-index", Words: "{of} has the value of index {n} at all {axis}", Apply: ofRuledIndexes, Class: edit.Index},
		{Kind: "value.of-last-index", Words: "{of} has the value of the last index at all {axis}", Apply: ofRuledIndexes, Class: edit.Index},
		{Kind: "value.of-index-before", Words: "{of} has the value of the index before at all {axis}", Apply: ofRuledIndexes, Class: edit.Index},
		{Kind: "value.of-index-after", Words: "{of} has the value of the next index at all {axis}", Apply: ofRuledIndexes, Class: edit.Index},
		{Kind: "value.of-block-index", Words: "{of} has the value of index {k} of each block of {n} at all {axis} of the block", Apply: ofRuledIndexes, Class: edit.Index},
		{Kind: "value.formula", Words: "{of} is {formula}", Apply: byFormula, Class: edit.Inserted},
		{Kind: "heads.others", Words: "heads of {of} read the wrong heads of {by}: {numbers}, in this order", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}, Apply: ofOtherHeads, Class: edit.Index, Solved: fittedOf},
		{Kind: "weights.of-another-layer", Words: "all weights come from {by}", Pages: []Page{{Anchor: "another-layers-weight"}}, Apply: ofLayerWeights, Class: edit.Leaf},
		{Kind: "weight.input-factors", Words: "the inputs of {of} are multiplied by a factor each: {numbers}", Pages: factorPages, Apply: blockedWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: "weight.factors", Words: "blocks of {m} by {k} of {of} are multiplied by a factor each: {numbers}", Pages: factorPages, Apply: blockedWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: "weight.shifted", Words: "the weights of each output of {of} have a constant added: {numbers}", Pages: []Page{{Anchor: "quantised-weight"}}, Apply: shiftedWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: shiftedBlocks, Words: "blocks of {m} by {k} of {of} have a constant added each: {numbers}", Pages: []Page{{Anchor: "quantised-weight"}}, Apply: blockedWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: "weight.folded", Words: "the columns of {of} are multiplied by {by}: the vector is folded into the matrix", Pages: factorPages, Apply: folded, Class: edit.Leaf},
		{Kind: "logits.repetition-penalty", Words: "a repetition penalty of {x} is applied to the logits of the input's ids: positive logits are divided, negative ones multiplied", Pages: []Page{{Anchor: "logit-scale", Roles: heads}}, Apply: penalty, Class: edit.Inserted, Solved: fitted},
		{Kind: "logits.presence-penalty", Words: "a presence penalty of {x} is subtracted from the logits of the input's ids", Apply: penalty, Class: edit.Inserted, Solved: fitted},
	}
}

// sums are the sums that indexes of an axis are, where they are not themselves.
func (m Mistake) sums() string {
	var all []string
	for j, row := range m.coefficients() {
		if m.By != (Term{}) || !isUnit(row, j) {
			all = append(all, sumWords(strings.TrimSuffix(m.Axis, "s"), j, row))
		}
	}
	if len(all) > mostRanges {
		all = append(all[:mostRanges], "...")
	}
	return strings.Join(all, "; ")
}
