package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Kind is a class of mistakes, in the words of the field: "rope.interleaved". It is the key of a row of the catalogue.
type Kind string

// Row is what is known of a kind of mistakes: a line of the catalogue. Most rows leave most fields empty.
type Row struct {
	Kind Kind
	// Words is the sentence. A hole {of} is filled with the field of that name, see Mistake.field. A part in brackets is left out if a field in the part
	// has its zero value. A backslash marks a bracket of the sentence itself.
	Words string
	// Each fills the hole {each} for each run, Zero fills it for a run of zeros, and Unknown, if the row has it, for a run of unknown content. Between stands
	// between two runs.
	Each, Zero, Unknown, Between string
	// Pages are where docs/mistakes.md explains the kind. The page of a mistake is the first page that fits the entry.
	Pages []Page
	// Apply makes the edit of a mistake of the kind in the program of an entry. It is nil for edits of steps, which [Mistake.Edit] holds, and for
	// relations.
	Apply apply
	// Class says how plausible the kind is, compared with other kinds that give the same elements. An edit of steps has the class of the edit instead.
	Class edit.Class
	// After lists kinds that come before this kind in a finding, where both kinds give the same elements.
	After []Kind
	// Weak is set for a kind that is named only if nothing else of its class gives the same elements.
	Weak bool
	// Exact is set for a kind that moves values without computing. One row is enough to show the mistake, since no number was fitted.
	Exact bool
	// WeakIf reports whether a mistake is weak, where only some mistakes of the kind are; it may be nil.
	WeakIf func(m Mistake) bool
	// Field is the kind of the right number of a mistake, and selects the fields of the configuration that are listed with the mistake; empty for no
	// fields. AName selects the field with the name of [Mistake.Of].
	Field TermKind
	// Alike returns the same text for mistakes that differ only in rounding: these have one name. If Alike is nil, the text is [Mistake.Key], which leaves
	// out the rounding.
	Alike func(m Mistake) string
	// Curve is set for a kind whose numbers are those of a curve: they depend on the prompt, and are no part of a key.
	Curve bool
	// Solved counts the numbers of a mistake that are solved from the elements; nil for no numbers.
	Solved func(m Mistake) int
}

// apply makes the edit of a mistake in the program of an entry; nil if the mistake does not fit the entry.
type apply func(s *subject, e *Entry, m Mistake) *program.Edited

// Page is where a mistake is explained.
type Page struct {
	Anchor string
	Roles  string // a regular expression for the roles of entries that the page is about; empty for all
	If     func(Mistake) bool
	Last   bool                // only where the role has no page of its own
	Of     func(Relation) bool // like If, for relations
}

// descriptions is the prefix of the kinds of descriptions. The holes of their sentences are not the fields of a mistake.
const descriptions = "described."

// catalogue has all kinds of mistakes. Only the catalogue has sentences.
func catalogue() map[Kind]*Row {
	rows.once.Do(func() { rows.all = allRows() })
	return rows.all
}

// byPlausibility are the classes of mistakes, the most plausible first: the steps of a formula, then known mistakes of masks, positions, norms and caches,
// then the tensors and weights that an operation reads.
var byPlausibility = [...]edit.Class{
	edit.LeftOut, edit.Exchanged, edit.Swapped, edit.Twice, edit.Count, edit.Constant, edit.Axis, edit.Index, edit.Order, edit.Operand, edit.Whole,
	edit.Known, edit.Leaf, edit.InputOf, edit.Mapped, edit.Inserted,
}

// plausible is the index of a class in byPlausibility. A kind with [Row.After] is at most as plausible as the kinds in After.
func plausible(c edit.Class, k Kind) int {
	n := slices.Index(byPlausibility[:], c)
	if row := catalogue()[k]; row != nil {
		for _, before := range row.After {
			n = max(n, plausible(catalogue()[before].Class, before))
		}
	}
	return n
}

// depth is the length of the longest chain of [Row.After] that starts at a kind.
func (k Kind) depth() int {
	row, n := catalogue()[k], 0
	if row == nil {
		return 0
	}
	for _, before := range row.After {
		n = max(n, before.depth()+1)
	}
	return n
}

// rows is the catalogue after the first request. It has no initial value, because rows have functions that request rows.
var rows struct {
	once sync.Once
	all  map[Kind]*Row
}

func allRows() map[Kind]*Row {
	all := map[Kind]*Row{}
	for _, table := range [][]Row{stepRows(), maskRows(), rotaryRows(), numberRows(), cacheRows(), readRows(), weightRows(), scaleRows(), precisionRows(), descriptionRows()} {
		for k := range table {
			if all[table[k].Kind] != nil {
				panic("two rows of the kind " + string(table[k].Kind))
			}
			all[table[k].Kind] = &table[k]
		}
	}
	return all
}

// String is the mistake as a sentence: "epsilon is 1e-05". A description, or a kind that the catalogue does not have, is written as the kind.
func (m Mistake) String() string {
	if strings.HasPrefix(string(m.Kind), descriptions) {
		return string(m.Kind)
	}
	text := say(m.Kind, m.field) + m.Tokens.String() + m.Only.only() + m.Others.String()
	if m.First != "" {
		return m.First.mistake().String() + secondWords + text
	}
	return text
}

// secondWords begin the second of two mistakes.
const secondWords = "; and "

// say makes the sentence of a kind; field fills the holes.
func say(kind Kind, field func(name string) (words string, has bool)) string {
	row := catalogue()[kind]
	if row == nil {
		return string(kind)
	}
	return segment.ReplaceAllStringFunc(row.Words, func(part string) string {
		if bracket, ok := strings.CutPrefix(part, `\`); ok {
			return bracket
		}
		inner, optional := strings.CutPrefix(part, "[")
		words, all := fill(strings.TrimSuffix(inner, "]"), field)
		if optional && !all {
			return ""
		}
		return words
	})
}

var (
	segment = regexp.MustCompile(`\\[[\]]|\[[^\]]*\]|[^[\\]+`) // a bracket, an optional part, or the text between them
	hole    = regexp.MustCompile(`\{[^}]*\}`)
)

// fill fills the holes of a text; all reports whether each hole has a value.
func fill(text string, field func(name string) (words string, has bool)) (filled string, all bool) {
	all = true
	filled = hole.ReplaceAllStringFunc(text, func(h string) string {
		words, has := field(h[1 : len(h)-1])
		all = all && has
		return words
	})
	return filled, all
}

// field is the text for a hole, and whether the mistake has a value for the hole:
//
//	of, by, for       a term
//	x, right          a number with six digits; +x has its sign
//	times             how many times the right number the port's number is
//	n, m, k           a size, or a sum of sizes and whole numbers (n+k-1); +n has its sign
//	place, place step the step at the place of the mistake, and the same at the beginning of a sentence
//	axis, other       what an axis counts, or the number of an axis without a known meaning; "its axis" is an axis of a tensor
//	dtype, called     as they are
//	coding            how values are kept in few bits
//	formula           a function of one value or two
//	numbers           the numbers that change something, with their indexes
//	right numbers     the same of the model's numbers
//	runs NOUN         the wrong rows, channels or slots, and their content
//	interleaved       the order of n rows that are read as m columns
//	pieces, order     the parts of a matrix that the rows come from, and the order of n parts
//	scalings          the rotary frequencies with a wrong scaling, and the scaling of each
//	scales            the rows with a wrong scale, and the scale of each
//	block, noun       what has a scale of its own, and "scale" or "zero point"
//	of blocks         the blocks that have a scale each, after the word "scale"
//	further           the block whose scale a block has
//	sums              the sums that the indexes of an axis are
//	edge              the rule for the first or the last key of a query
//	at, are           the indexes of the runs, and the indexes of their content
//	each              a part of the sentence for each run, see [Row.Each]
//	from              the indexes of the rows that a relation finds elsewhere
func (m Mistake) field(name string) (words string, has bool) {
	noun, isRuns := strings.CutPrefix(name, "runs ")
	switch {
	case isRuns:
		return m.Runs.words(noun), m.Runs != ""
	case name == "interleaved":
		return interleavedRows(m.N, m.M), m.N != 0
	case name == "pieces":
		return m.Runs.pieces(), m.Runs != ""
	case name == "order":
		return m.Runs.order(m.N), m.Runs != ""
	case name == "at":
		return m.Runs.at(), m.Runs != ""
	case name == "are":
		return m.Runs.are(), m.Runs != ""
	case name == "each":
		return m.each(), m.Runs != ""
	case name == "from": // only a relation has it
		return "", false
	case name == "of":
		return m.Of.String(), m.Of != Term{}
	case name == "by":
		return m.By.String(), m.By != Term{}
	case name == "for":
		return m.For.String(), m.For != Term{}
	case name == "x":
		return short(m.X.Value), m.X.Has
	case name == "times":
		return short(m.Times.Value), m.Times.Has
	case name == "+x":
		return fmt.Sprintf("%+g", m.X.Value), m.X.Has
	case name == "right":
		return short(m.Right.Value), m.Right.Has
	case name == "place":
		return cmp.Or(m.Code.String(), m.Place), m.Place != ""
	case name == "place step":
		return Term{Kind: Step, Name: m.Place, Code: m.Code}.String(), m.Place != ""
	case name == "axis":
		return axisName("", m.Axis), m.Axis != ""
	case name == "other":
		return axisName("", m.Other), m.Other != ""
	case name == "its axis":
		return axisName("its ", m.Axis), m.Axis != ""
	case name == "its other":
		return axisName("its ", m.Other), m.Other != ""
	case name == "dtype":
		return m.DType.String(), m.DType != 0
	case name == "coding":
		return m.Coding.String(), m.Coding != Coding{}
	case name == "formula":
		function, sign, _ := signOf(m.Other)
		return formulaWords(function, m.By, sign, m.For), m.By != Term{}
	case name == "sums":
		return m.sums(), m.Numbers != ""
	case name == "edge":
		return m.edgeWords(), true
	case name == "numbers":
		return m.numbers(), m.Numbers != ""
	case name == "right numbers":
		m.Numbers = m.RightNumbers
		return m.numbers(), m.Numbers != ""
	case name == "meets":
		return m.Numbers.breaks(), m.Numbers != ""
	case name == "called":
		return m.Called, m.Called != ""
	case name == "scalings":
		return m.scalings(), m.Runs != ""
	case name == "scales":
		return m.Runs.scales(), m.Runs != ""
	case name == "block":
		return m.block(), true
	case name == "noun":
		return m.scaleNoun(), true
	case name == "of blocks":
		return m.ofBlocks(), true
	case name == "further":
		return m.further(), true
	}
	return m.size(name)
}

// String is the term in a sentence.
func (t Term) String() string {
	text := termWords[t.Kind]
	if coded := codedWords[t.Kind]; coded != "" && t.Code != (Code{}) {
		text = strings.ReplaceAll(coded, "{code}", t.Code.String())
	}
	if t.Kind == Primitive {
		text = cmp.Or(primWords[t.Name], t.Name)
	}
	name := t.Name
	if t.Kind == RowStatistic {
		name = cmp.Or(statisticWords[name], name)
	}
	if list := termLists[t.Kind]; list != nil {
		name = list.Replace(name)
	}
	text = strings.ReplaceAll(text, "{name}", name)
	text = strings.ReplaceAll(text, "{x}", short(t.X))
	if t.Item.Has {
		text = fmt.Sprintf("stream %g of %s", t.Item.Value, text)
	}
	if t.Before {
		text += " of the previous pass"
	}
	if t.Sum {
		text = "the sum with " + text
	}
	return text
}

// termWords are the terms of each kind.
var termWords = map[TermKind]string{
	Tensor: "{name}", Weight: "{name}", Step: "step {name}", Literal: "{x}", Function: "{name}", TheMask: "the mask", TheResult: "the result",
	TheFactor: "the factor {x}", TheWeight: "the weight {name}", TheDivisor: "the division by {x}", TheAddend: "the +{x}", TheNamed: "the {name}", TheRoot: "the root",
	AName: "{name}", Epsilon: "epsilon", Floor: "the floor under the root", SoftCap: "the soft cap", AFactor: "the factor", ADivisor: "the divisor", SomeValue: "a number",
	TheCache: "the cache", TheCached: "the cached {name}", TheKept: "{name} of earlier passes", Operation: "{name}", ALayer: "{name}",
	RowsOf: "rows of {name}", OtherRowsOf: "other rows of {name}", OwnRows: "other rows of the same tensor", Zeros: "zeros",
	Modules: "{name}", Operations: "{name}", Others: "{name}",
	ScalesOfTokensAndHeads: "a scale per token and head", ScalesOfTokens: "a scale per token", ScalesOfHeads: "a scale per head",
	ScalesOfChannels: "a scale per channel", OneScale: "one scale",
	Window: "the window", Theta: "theta", Scaling: "the scaling", RowStatistic: "{name}",
	Constant: "{name}, {x}", ItsSquare: "{x}, its square", ItsRoot: "{x}, its square root", ItsReciprocal: "{x}, its reciprocal", TwiceIt: "{x}, its double", HalfOfIt: "{x}, its half",
	ItsNegative: "{x}, its negative", OnePlus: "1+{name}", TheMinus: "the minus sign",
}

// codedWords are the terms that may have a place in the source of a recorded model.
var codedWords = map[TermKind]string{Step: "{code}", TheNamed: "the addend of {code}", AName: "{code}"}

// termLists are the terms whose names are lists, with the text between two names in a sentence.
var termLists = map[TermKind]*strings.Replacer{
	Modules: strings.NewReplacer(",", ", "), Operations: strings.NewReplacer(",", " and "), Others: strings.NewReplacer("=", " has that of ", ",", "; "),
}

// primWords are functions of a program by their names.
var primWords = map[string]string{
	program.Add.String(): "a sum", program.Sub.String(): "a difference", program.Mul.String(): "a product", program.Div.String(): "a quotient",
	program.Sqrt.String(): "√x", program.Rsqrt.String(): "1/√x", program.Neg.String(): "−x",
}

// String says which tokens have a mistake; empty for all tokens.
func (t Tokens) String() string {
	switch {
	case !t.Some:
		return ""
	case !t.From.Has:
		return ", for some tokens only"
	case t.Called != "":
		return ", only for ids from " + short(t.From.Value) + " on (" + t.Called + "): past the end of a table"
	}
	return ", only for ids from " + short(t.From.Value) + " on"
}

// notApplied is the error for a mistake that cannot be applied: its kind is a relation, or is not in the catalogue.
func notApplied(kind Kind) error {
	return fmt.Errorf("a mistake of the kind %q cannot be applied", kind)
}

// page is where the mistake is explained for an entry of a role; empty if no page explains the mistake.
func (m Mistake) page(role string) string {
	return pageIn(m.Kind, role, func(p Page) bool { return p.If == nil || p.If(m) })
}

// pageIn is the first page of a kind that fits a role and the function fits.
func pageIn(kind Kind, role string, fits func(Page) bool) string {
	row := catalogue()[kind]
	if row == nil {
		return ""
	}
	at := func(p Page) bool {
		return fits(p) && (p.Roles == "" || regexp.MustCompile(p.Roles).MatchString(role))
	}
	for _, p := range row.Pages {
		if !p.Last && at(p) {
			return mistakesPage + p.Anchor
		}
	}
	for _, p := range append(rolePages[:len(rolePages):len(rolePages)], row.Pages...) {
		if at(p) {
			return mistakesPage + p.Anchor
		}
	}
	return ""
}

// short is a number as people write it.
func short(x float64) string { return fmt.Sprintf("%.6g", x) }

// fieldNames are the names in a list that [listed] has made: "rope_theta, max_position_embeddings".
func fieldNames(list string) []string { return strings.Split(list, ", ") }

// axisName names an axis in a sentence. The name is the noun that the axis counts, after the owner of the axis, or "axis" with a number.
func axisName(whose, counts string) string {
	if _, err := strconv.Atoi(counts); err == nil {
		return "axis " + counts
	}
	return whose + counts
}
