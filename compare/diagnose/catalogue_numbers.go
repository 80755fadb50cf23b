package diagnose

import (
	"slices"
	"strconv"
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
	// numberPages are pages of a number by what it does in its formula.
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
	activationPages = []Page{
		{Anchor: "exact-gelu", Roles: functions, If: oneGELU},
		{Anchor: "activation", Roles: functions},
		{Anchor: "attention-soft-cap", Roles: "probs|context|o_proj|scores", If: ofTanh},
		{Anchor: "logit-soft-cap", Roles: "^logits$", If: ofTanh},
		{Anchor: "inverted-norm", Roles: norms, If: func(m Mistake) bool { return m.Of.Name == "quotient" }},
	}
	functionLeftOutPages = []Page{{Anchor: "missing-norm", Roles: norms}, {Anchor: "missing-residual", Roles: stream}, {Anchor: "logit-soft-cap", Roles: "^logits$"}}
)

// oneGELU reports whether GELU takes the place of its tanh approximation, or the approximation takes the place of GELU. ofTanh reports whether a name has a tanh.
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

// numberRows are mistakes in numbers and functions of a formula, and in what is added to one.
func numberRows() []Row {
	return []Row{
		// Each layer has its own number, and all layers have the same function of the right number.
		{Kind: "number.doubled", Words: "{of} is twice what it should be: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.of-layers", Words: "{of} is another one in each layer: {numbers}", Pages: numberPages, Apply: numberOfLayer, Class: edit.Constant, Solved: fittedOf},
		{Kind: "number.halved", Words: "{of} is half of what it should be: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.times-root-2", Words: "{of} is multiplied by √2: {by} for {for}", Pages: slices.Concat(numberPages, multipliedPages), Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.over-root-2", Words: "{of} is divided by √2: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.negated", Words: "{of} is taken with the other sign: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.squared", Words: "{of} is the square of what it should be: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.rooted", Words: "{of} is the root of what it should be: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.inverted", Words: "{of} is the reciprocal of what it should be: {by} for {for}", Pages: numberPages, Apply: functionOfNumber, Class: edit.Constant},
		{Kind: "number.two-sided-quantile", Words: "{of} is the quantile of both sides of a normal distribution, not of one side: {by} for {for}", Pages: slices.Concat([]Page{{Anchor: "activation-sparsity", Roles: "sparse|cutoff|act_fn"}}, numberPages), Apply: functionOfNumber, Class: edit.Constant},

		// Another function is in the place of an activation or of a tanh.
		{Kind: "activation.other", Words: "the activation is {by}, not {for}", Pages: activationPages, Apply: otherActivation, Class: edit.Exchanged, Alike: activationName},
		{Kind: "activation.other-rounded", Words: "the activation is {by}, not {for}, each step rounded", Pages: activationPages, Apply: otherActivation, Class: edit.Exchanged, Alike: activationName},
		{Kind: "activation.left-out", Words: "the activation {for} is left out", Pages: slices.Concat(activationPages, functionLeftOutPages), Apply: otherActivation, Class: edit.Exchanged},
		{Kind: "activation.step-left-out", Words: "the activation {place} has {of} left out", Pages: slices.Concat(activationPages, functionLeftOutPages), Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.operand-alone", Words: "the activation {place} has one operand of {of} alone", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.step-as", Words: "the activation {place} has {of} as {by}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.number", Words: "the activation {place} has {by}, for {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged},
		{Kind: "activation.other-step-left-out", Words: "the activation is {place}, not {for}, with {of} left out", Pages: slices.Concat(activationPages, functionLeftOutPages), Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-operand-alone", Words: "the activation is {place}, not {for}, with one operand of {of} alone", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-step-as", Words: "the activation is {place}, not {for}, with {of} as {by}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "activation.other-number", Words: "the activation is {place}, not {for}, with {by}, for {of}", Pages: activationPages, Apply: variantActivation, Class: edit.Exchanged, Weak: true},
		{Kind: "tanh.clip", Words: "tanh is a clip to ±1: values are cut off, not bent", Pages: capPages, Apply: otherTanh, Class: edit.Exchanged},
		{Kind: "tanh.softmax", Words: "tanh is a softmax over the channels", Pages: capPages, Apply: otherTanh, Class: edit.Exchanged},
		{Kind: "tanh.sigmoid", Words: "tanh is a sigmoid", Pages: capPages, Apply: otherTanh, Class: edit.Exchanged},

		// Something is done that the model does not do.
		{Kind: "result.clipped-below", Words: "the result is never less than {x}: it is clipped", Pages: slices.Concat([]Page{{Anchor: "attention-soft-cap", Roles: "scores"}}), Apply: cutOff, Class: edit.Inserted, Solved: fitted},
		{Kind: "result.clipped-above", Words: "the result is never more than {x}: it is clipped", Pages: slices.Concat([]Page{{Anchor: "attention-soft-cap", Roles: "scores"}}), Apply: cutOff, Class: edit.Inserted, Solved: fitted},
		{Kind: "result.clamped", Words: "the result is clamped to ±{x}", Pages: slices.Concat([]Page{{Anchor: "mask-value", Roles: masks}, {Anchor: "attention-soft-cap", Roles: "scores"}}), Apply: cutOff, Class: edit.Inserted, Solved: fitted},
		{Kind: "factor.inserted", Words: "{of} is multiplied by {x}[ ({called})]", Pages: factorPages, Apply: insertedNumber, Class: edit.Inserted},
		{Kind: "addend.inserted", Words: "{x} is added to {of}", Pages: addedPages, Apply: insertedNumber, Class: edit.Inserted},
		{Kind: "soft-cap.inserted", Words: "{of} is capped: tanh, with a soft cap of {x}[ ({called})]", Pages: slices.Concat(capPages, pagesWithNames(nil, nil)), Apply: insertedNumber, Class: edit.Inserted},
		{Kind: "value.unused", Words: "{of} is not used: it counts as 0", Pages: pagesWithNames(nil, nil), Apply: unusedValue, Class: edit.Inserted},
		{Kind: "tensor.added", Words: "{by} is added to {of}", Pages: addedPages, Apply: addend, Class: edit.Inserted},
		{Kind: "tensor.taken-off", Words: "{by} is taken off {of}", Pages: pagesWithNames(nil, nil), Apply: addend, Class: edit.Inserted},
		{Kind: "vector.inserted", Words: "{of} is multiplied by {by}", Pages: factorPages, Apply: timesVector, Class: edit.Inserted},
		{Kind: "factors.inserted", Words: "{of} is multiplied by {numbers}", Pages: factorPages, Apply: fittedNumbers, Class: edit.Inserted, Solved: fittedOf},
		{Kind: "addends.inserted", Words: "to {of} is added {numbers}", Pages: addedPages, Apply: fittedNumbers, Class: edit.Inserted, Solved: fittedOf},
		{Kind: "slopes.inserted", Words: "what is added to {of} grows along the {other}[, by another number for each of the {axis}]: {numbers} from one to the next", Pages: addedPages, Apply: addedSlopes, Class: edit.Inserted, Solved: fittedOf},
		{Kind: "input.whole", Words: "{of} is read as whole numbers: it is rounded without a scale, or with one that is never below 1", Apply: wholeNumbers, Class: edit.Inserted},
		{Kind: "input.truncated", Words: "{of} is read as whole numbers: what stands behind the point is cut off", Apply: wholeNumbers, Class: edit.Inserted},
		{Kind: "value.other", Words: "{by} is in place of {of}", Apply: otherValue, Class: edit.InputOf},
		{Kind: "factor.by-position", Words: "{of} is multiplied by {x}[ ({called})] times {other}, of the position p of the token", Pages: factorPages, Apply: timesPosition, Class: edit.Inserted, Solved: oneNumber},
		{Kind: "factor.by-late-position", Words: "{of} is multiplied by {x}[ ({called})] times {other}, of the position p of the token, where that is more than 1", Pages: factorPages, Apply: timesPosition, Class: edit.Inserted, Solved: oneNumber},
		{Kind: "value.of-rank", Words: "{of} is the element of each row of {by} that is number {n} from the largest on, as by sorting", Pages: []Page{{Anchor: "activation-sparsity", Roles: "sparse|cutoff|act_fn"}}, Apply: ofRank, Class: edit.Inserted, Solved: oneNumber},
		{Kind: "value.of-one-index", Words: "{of} has at all {axis} what it should have at index {n} alone", Apply: ofOneIndex, Class: edit.Index},
		{Kind: "value.of-last-index", Words: "{of} has at all {axis} what it should have at the last one alone", Apply: ofOneIndex, Class: edit.Index},
		{Kind: "value.formula", Words: "{of} is {formula}", Apply: byFormula, Class: edit.Inserted},
		{Kind: "heads.others", Words: "the heads of {of} read heads {numbers} of {by}, one after the other", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}, Apply: ofOtherHeads, Class: edit.Index, Solved: fittedOf},
		{Kind: "weights.of-another-layer", Words: "all weights are those of {by}", Pages: []Page{{Anchor: "another-layers-weight"}}, Apply: ofLayerWeights, Class: edit.Leaf},
		{Kind: "weight.input-factors", Words: "the inputs of {of} are multiplied by numbers of their own: {numbers}", Pages: factorPages, Apply: scaledWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: "weight.factors", Words: "blocks of {m} by {k} of {of} are multiplied by numbers of their own: {numbers}", Pages: factorPages, Apply: scaledWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: "weight.shifted", Words: "to the weights of {of} is added {numbers}, the same to all that are multiplied for one output", Pages: []Page{{Anchor: "quantised-weight"}}, Apply: shiftedWeight, Class: edit.Leaf, Solved: fittedOf},
		{Kind: "weight.folded", Words: "the columns of {of} are multiplied by {by}: it is folded into the matrix", Pages: factorPages, Apply: folded, Class: edit.Leaf},
		{Kind: "weight.scales-of-blocks", Words: "{of}: {scales}", Pages: slices.Concat([]Page{{Anchor: "quantised-weight", Roles: projected}}, pagesWithNames(nil, nil)), Apply: changedWeight, Class: edit.Leaf, Solved: eachRun},
		{Kind: "logits.repetition-penalty", Words: "logits of ids of the input are divided by {x} where they are above 0, and multiplied by it below: a repetition penalty", Pages: []Page{{Anchor: "logit-scale", Roles: heads}}, Apply: penalty, Class: edit.Inserted, Solved: fitted},
		{Kind: "logits.presence-penalty", Words: "logits of ids of the input are lowered by {x}: a presence penalty", Apply: penalty, Class: edit.Inserted, Solved: fitted},
	}
}

// mostScales is the largest number of runs of rows that a sentence lists.
const mostScales = 3

// scales lists the rows of a quantised matrix that have a wrong scale: the scale of other rows, no scale, or their own scale twice.
func (r Runs) scales() string {
	var all []string
	for _, run := range r.list() {
		rows := spanWords("row", run.From, run.To)
		switch run.Of {
		case unscaledRows:
			rows += " lack their scale"
		case scaledTwice:
			rows += " have their scale twice"
		default:
			rows += " have the scale of " + spanWords("row", run.Is, run.Is+run.To-run.From)
		}
		all = append(all, rows)
	}
	if more := len(all) - mostScales; more > 0 {
		all = append(all[:mostScales], "and "+strconv.Itoa(more)+" blocks more")
	}
	return strings.Join(all, "; ")
}
