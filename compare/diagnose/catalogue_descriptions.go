package diagnose

import (
	"fmt"
	"math"
	"strings"
)

// descriptionRows are the kinds of descriptions.
func descriptionRows() []Row {
	return []Row{
		{Kind: "described.factor", Words: "{of} is {values} times the right value[ ({called})][; {like}][; {zeros} other elements are 0][, {zeros-at}]"},
		{Kind: "described.factors", Words: "each {by} of {of} has its own factor[, the same for each {same}]: {values}[; these are the values of {like}][; {zeros} other elements are 0][, {zeros-at}]"},
		{Kind: "described.addend", Words: "{values} is added to {of}[ ({called})][; {zeros} other elements are 0][, {zeros-at}]"},
		{Kind: "described.addends", Words: "each {by} of {of} has its own constant added[, the same for each {same}]: {values}[; these are the values of {like}][; {zeros} other elements are 0][, {zeros-at}]"},
		{Kind: "described.grid", Words: "{of} has only multiples of {values}: it is quantised"},
		{Kind: "described.grids", Words: "each {by} of {of} has only multiples of its own step: {values}: it is quantised"},
		{Kind: "described.whole", Words: "the operation gives these elements from whole numbers: from {of} rounded, without a scale or with a scale that is never below 1"},
		{Kind: "described.truncated", Words: "the operation gives these elements from whole numbers: from {of} truncated"},
		{Kind: "described.operand", Words: "a different {of} would give all elements: the product reads the wrong input, or the wrong columns of its weight; the steps after the product are right"},
		{Kind: "described.no-operand", Words: "no operand of the product gives the elements: {of} is wrong, or a step after it"},
		{Kind: "described.another", Words: "{like} instead of {of} gives the elements"},
		{Kind: "described.bits", Words: "the wrong elements of {of} have at most {values} significant bits: values of a narrower dtype, or their products"},
		{Kind: "described.keys", Words: "queries attend to the wrong keys: {cases}"},
		{Kind: "described.rows", Words: "{explained} of {elements} wrong rows of {of} are other rows: {cases}"},
		{Kind: "described.layer", Words: "the operation gives these elements with all its weights from {like}, the wrong layer"},
		{Kind: "described.heads", Words: "products use the wrong heads: {cases}"},
		{Kind: "described.rotated", Words: "pairs of channels of {of} are rotated by an extra angle, the same for each position: {values}"},
		{Kind: "described.rotated-more", Words: "pairs of channels of {of} are rotated by an extra angle that grows with the position: {values} per position"},
		{Kind: "described.inputs", Words: "each input of {like} has its own factor, the same for all outputs: {values}: {of} should have this factor and does not, or the reverse"},
		{Kind: "described.block-shifts", Words: "{like} has its own constant added for each block of {called}: {values}"},
		{Kind: "described.blocks", Words: "{like} has its own factor for each block of {called}: {values}"},
		{Kind: "described.rank", Words: "a product of two matrices of rank {values} is added to {of}: a LoRA adapter is merged into the weight, or missing from it"},
		{Kind: "described.index", Words: "all {by} of {of} have the value that belongs to index {values}"},
		{Kind: "described.last-index", Words: "all {by} of {of} have the value that belongs to the last index"},
		{Kind: "described.by-position", Words: "{of} is multiplied by {values} times {called}, with p the token's position"},
		{Kind: "described.ranked", Words: "{of} is the value of one rank in each row of {like}, counted from 1 for the largest: {values}"},
		{Kind: "described.statistic", Words: "{of} would have to be {cases} of each row of {like}"},
		{Kind: "described.sum", Words: "{of} subtracts the mean before it sums squares"},
		{Kind: "described.terms", Words: "the terms of {of} have these weights: {values}"},
		{Kind: "described.shift", Words: "{values} is added to all weights of {of}"},
		{Kind: "described.shifts", Words: "all weights of {of} for one {by} have their own constant added[, the same for each {same}]: {values}"},
		{Kind: "described.mixed", Words: "each {by} of {of} is a mix of {by}s of {like}: {cases}"},
		{Kind: "described.formula", Words: "{of} would have to be {cases}"},
		{Kind: "described.function", Words: "{of} is a different function of {like}: {cases}"},
		{Kind: "described.slope", Words: "a bias is added to {of} that grows by {values} with each {called}"},
		{Kind: "described.slopes", Words: "a bias is added to {of} that grows with each {called}, with its own slope for each {by}[, the same for each {same}]: {values}"},
		{Kind: "described.function-added", Words: "a function of {like} is added to {of}: {cases}"},
		{Kind: "described.turned", Words: "the wrong channels of {of} are rotated together: {cases}"},
		{Kind: "described.positions", Words: "tokens have the wrong positions: {cases}"},
		{Kind: "described.angles", Words: "the angle per position is wrong: {cases}"},
		{Kind: "described.indexes", Words: "{of} has, by its {by}, other elements of the right value: {cases}"},
		{Kind: "described.channels", Words: "{explained} of {elements} wrong channels of {of} are other channels of the right result: {cases}"},
		{Kind: "described.data", Words: "{explained} of {elements} elements differ, and the same operation is right in {right}: look at what is specific to the wrong ones[, such as {like}]"},
		{Kind: "described.somewhere", Words: "{explained} of {elements} elements of {of} differ, with a relative L2 of {values}"},
		{Kind: "described.zeros", Words: "{explained} of {elements} wrong elements of {of} are 0"},
	}
}

// String is the description as a sentence.
func (d *Description) String() string {
	text := say(d.Kind, func(name string) (words string, has bool) {
		switch name {
		case "by":
			return strings.ReplaceAll(d.By, ", ", " and each "), d.By != ""
		case "same":
			return strings.ReplaceAll(d.Same, ", ", " and "), d.Same != ""
		case "called":
			return d.Called, d.Called != ""
		case "like":
			return d.likeWords(), d.Like != Term{}
		case "values":
			return d.values(), true
		case "explained":
			return short(float64(d.Explained)), true
		case "elements":
			return short(float64(d.Elements)), true
		case "cases":
			return d.cases(), true
		case "right":
			return d.Right, d.Right != ""
		case "zeros":
			return short(float64(d.Zeros)), d.Zeros > 0
		case "zeros-at":
			return d.ZerosAt, d.ZerosAt != ""
		}
		return d.Of.String(), true
	})
	if d.Where != "" {
		text += "; it differs " + d.Where
	}
	if d.Only != "" {
		text += "; it differs only " + d.Only
	}
	return text
}

// indexList lists indexes in their order.
func indexList(all []float64) string {
	var parts []string
	for k, x := range all {
		if k == mostListed {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, short(x))
	}
	return listed(parts)
}

// cases are single cases in a sentence.
func (d *Description) cases() string {
	if len(d.Cases) > mostValues {
		return strings.Join(d.Cases[:mostValues], "; ") + "; ..."
	}
	return strings.Join(d.Cases, "; ")
}

const (
	blockWords   = "%d by %d"
	layerAxis    = "layer"
	distanceWord = "distance from query to key"
	rowWord      = "row"
)

// oneOf is what an axis counts, in the singular.
func oneOf(axis byte) string { return strings.TrimSuffix(axisWords(axis), "s") }

// logWords are 1 over a logarithm.
func logWords(of float64) string { return fmt.Sprintf("1/log(%g)", of) }

// positionWords say which position a token has.
func positionWords(at, is int) string { return fmt.Sprintf("token %d has position %d", at, is) }

// ordinal is one index of an axis.
func ordinal(word string, i int) string { return fmt.Sprintf("%s %d", word, i) }

// mostRanges is how many ranges of indexes are listed.
const mostRanges = 6

// indexWords lists sorted indexes: "0, 3 to 5".
func indexWords(all []int) string {
	var parts []string
	for k := 0; k < len(all); {
		end := k
		for end+1 < len(all) && all[end+1] == all[end]+1 {
			end++
		}
		switch {
		case len(parts) == mostRanges:
			return strings.Join(parts, ", ") + ", ..."
		case end > k+1:
			parts = append(parts, fmt.Sprintf("%d to %d", all[k], all[end]))
		case end > k:
			parts = append(parts, fmt.Sprint(all[k]), fmt.Sprint(all[end]))
		default:
			parts = append(parts, fmt.Sprint(all[k]))
		}
		k = end + 1
	}
	return strings.Join(parts, ", ")
}

// indexPlace says that something holds at the indexes in of an axis, or that it holds everywhere except at the indexes out, whichever are fewer.
func indexPlace(counts string, in, out []int) string {
	named := func(all []int) string {
		if len(all) > 1 {
			return counts + "s " + indexWords(all)
		}
		return counts + " " + indexWords(all)
	}
	if len(out) < len(in) {
		return "everywhere except at " + named(out)
	}
	return "only at " + named(in)
}

// queryWords says which keys a query should attend to and does not (lost), and which keys it should not attend to and does (gained); empty without such
// keys.
func queryWords(query int, lost, gained []int) string {
	switch {
	case len(lost) == 0 && len(gained) == 0:
		return ""
	case len(lost) == 0:
		return fmt.Sprintf("query %d attends to keys %s and should not", query, indexWords(gained))
	case len(gained) == 0:
		return fmt.Sprintf("query %d does not attend to keys %s and should", query, indexWords(lost))
	}
	return fmt.Sprintf("query %d attends to keys %s instead of %s", query, indexWords(gained), indexWords(lost))
}

// rowWords say that a row is a row of a tensor.
func rowWords(at string, is rowFrom, pass int) string {
	of := is.of.String()
	if is.of == theResult {
		of = "the right result"
	}
	text := fmt.Sprintf("%s is %s of %s", at, is.at, of)
	if is.pass != pass {
		text += fmt.Sprintf(" in pass %d", is.pass)
	}
	return text
}

// likeWords name the term with the same numbers.
func (d *Description) likeWords() string {
	switch d.Like.Kind {
	case Constant:
		return "this equals " + d.Like.Name + " of the formula, which may be applied twice"
	case ItsReciprocal:
		return "this is the reciprocal of " + d.Like.Name + " of the formula, " + short(d.Like.X) + ", which may be missing"
	}
	return d.Like.String()
}

// values are the numbers in a sentence.
func (d *Description) values() string {
	var all []string
	for _, v := range d.Values {
		all = append(all, short(v))
	}
	text := strings.Join(all, ", ")
	if d.Wrong > len(d.Values) {
		text += ", ..."
	}
	return text
}

// sumWords say which sum an element is.
func sumWords(by string, j int, row []float64) string {
	var terms []string
	for i, c := range row {
		switch {
		case c == 1:
			terms = append(terms, ordinal(by, i))
		case c != 0:
			terms = append(terms, short(c)+" times "+ordinal(by, i))
		}
	}
	if len(terms) == 0 {
		terms = []string{"0"}
	}
	return ordinal(by, j) + " is " + strings.Join(terms, " + ")
}

// withSign is a function with the sign between two values, if any: "tanh *". A product of two values without a function is " *".
func withSign(function, sign string) string { return strings.TrimSuffix(function+" "+sign, " ") }

// signOf reads the text of withSign; two reports whether there is a sign.
func signOf(text string) (function, sign string, two bool) { return strings.Cut(text, " ") }

// formulaWords are a function of one value or two.
func formulaWords(function string, one Term, sign string, other Term) string {
	text := one.String()
	switch function {
	case "":
	case "1+":
		text = "(1 + " + text + ")"
	case "1-":
		text = "(1 - " + text + ")"
	default:
		text = "the " + function + " of " + text
	}
	switch sign {
	case "":
		return text
	case "max", "min":
		return sign + "(" + text + ", " + other.String() + ")"
	}
	return text + " " + sign + " " + other.String()
}

// conditionWords say that something differs where a value is above or below a number.
func conditionWords(of Term, absolute, above bool, at float64) string {
	side := "below"
	if above {
		side = "above"
	}
	text := of.String()
	if absolute {
		text = "|" + text + "|"
	}
	return "where " + text + " is " + side + " " + short(at)
}

// headWords say which heads of two operands give a head of the product.
func headWords(head, first, second int, one, other Term) string {
	return fmt.Sprintf("head %d is the product of head %d of %s and head %d of %s", head, first, one, second, other)
}

// channelWords say which channel of the right result a channel is.
func channelWords(c, k int) string { return fmt.Sprintf("channel %d is %d", c, k) }

// fromWords stand between indexes and the indexes that their elements belong to.
const fromWords = " from "

// zeroWords say that a row is 0.
func zeroWords(at string) string { return at + " is 0" }

// pointWords are a function at a point.
func pointWords(p point, whole bool) string {
	if !whole {
		return fmt.Sprintf("at %s: %s", short(p.x), short(p.want-p.right))
	}
	return fmt.Sprintf("at %s: %s (right: %s)", short(p.x), short(p.want), short(p.right))
}

// pairWords are two channels that turn together.
func pairWords(headA, a, headB, b int, heads bool) string {
	if !heads {
		return fmt.Sprintf("channels %d and %d", a, b)
	}
	return fmt.Sprintf("channel %d of head %d and channel %d of head %d", a, headA, b, headB)
}

// angleWords are an angle by position.
func angleWords(channel int, now, right float64) string {
	return fmt.Sprintf("channel %d: %s times the right angle (%s instead of %s)", channel, short(now/right), short(now), short(right))
}

// numbers lists the numbers of a mistake that change something, with their indexes: "0.5 at heads 2, 3; 2 at head 5". A mistake without an axis has one
// number: "0.5". More than [mostSpelled] different numbers, and numbers along several axes, are counted: "a number for each channel and layer: 1.53, 0.61,
// ... (48 different values, from 0.53 to 1.53)".
func (m Mistake) numbers() string {
	all, noun := m.Numbers.list(), strings.TrimSuffix(m.Axis, "s")
	switch {
	case len(all) == 0:
		return ""
	case m.Kind == "weight.input-factors":
		noun = "input"
	case m.Kind == "weight.factors", m.Kind == shiftedBlocks:
		noun = "block"
	case m.Kind == "heads.others":
		return indexList(all)
	case m.Axis == "":
		return short(all[0])
	}
	axes := singular(m.Axis, noun)
	if strings.HasPrefix(string(m.Kind), "weight.") && m.Axis == layersAxis {
		axes = singular(layersAxis+axisSeparator+noun, noun)
	}
	if n, _, _ := differentNumbers(all); n > mostSpelled || axes != noun {
		return manyNumbers(axes, all, m.rightNumber())
	}
	var seen []float64
	at := map[float64][]int{}
	for i, x := range all {
		if x == m.rightNumber() || math.IsNaN(x) {
			continue
		}
		if at[x] == nil {
			seen = append(seen, x)
		}
		at[x] = append(at[x], i)
	}
	var parts []string
	for k, x := range seen {
		if k == mostValues {
			parts = append(parts, "...")
			break
		}
		of := noun
		if len(at[x]) > 1 {
			of += "s"
		}
		parts = append(parts, short(x)+" at "+of+" "+indexWords(at[x]))
	}
	return strings.Join(parts, "; ")
}

// axisSeparator stands between two axes of [Mistake.Axis].
const axisSeparator = ", "

// singular joins the nouns of several axes in the singular: "channel and layer". For a single axis it is the noun.
func singular(axes, noun string) string {
	if !strings.Contains(axes, axisSeparator) {
		return noun
	}
	var all []string
	for name := range strings.SplitSeq(axes, axisSeparator) {
		all = append(all, strings.TrimSuffix(name, "s"))
	}
	return strings.Join(all, " and ")
}

// manyNumbers says that each index of an axis has a number. The sentence lists the first wrong numbers, and gives the count, the minimum
// and the maximum of the different numbers.
func manyNumbers(of string, all []float64, right float64) string {
	var parts []string
	for _, x := range all {
		if x != right && !math.IsNaN(x) && len(parts) < mostValues {
			parts = append(parts, short(x))
		}
	}
	n, low, high := differentNumbers(all)
	return fmt.Sprintf("a number for each %s: %s, ... (%d different values, from %s to %s)", of, listed(parts), n, short(low), short(high))
}
