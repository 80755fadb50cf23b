package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A description proposes a mistake if it has all numbers of the mistake. The program then shows whether the port makes the mistake. The numbers have to be
// parameters of the model: a single number for all elements, or a number for each head, channel or layer. A number for each token or row holds for a
// single prompt, so the description proposes nothing.

// draft is what an analysis knows beyond the description.
type draft struct {
	proposes []Mistake // with all numbers filled in
	weight   string    // the weight with the fitted numbers
	heads    [][2]int  // of a product: for each head of the result, the heads of the two operands
	all      bool      // all proposals are tried: several of them may give the elements
	quiet    bool      // without a confirmed proposal, the description says nothing
}

// draft returns the draft of a description.
func (s *search) draft(d *Description) *draft {
	if s.drafts == nil {
		s.drafts = map[*Description]*draft{}
	}
	if s.drafts[d] == nil {
		s.drafts[d] = &draft{}
	}
	return s.drafts[d]
}

// mostSpelled is how many different numbers a sentence and a key list. More numbers become the count, the smallest and the largest number.
const mostSpelled = 8

// mostFitted is how many fitted numbers a mistake may have.
const mostFitted = 1 << 12

// proposed tries the mistakes that descriptions propose, and keeps a description without a confirmed mistake.
func proposed(s *search) error {
	s.proposing = true
	defer func() { s.proposing = false }()
	d, err := describe(s)
	s.description, s.described = d, err == nil
	return err
}

// confirm tries the mistakes that a description proposes, and reports whether the entries have one.
func confirm(s *search, d *Description) bool {
	tried := map[Mistake]bool{}
	for _, m := range s.draft(d).proposes {
		if tried[m] { // the shortest number may be the middle one
			continue
		}
		tried[m] = true
		h := s.hypothesis(m)
		h.solved = max(h.solved, 1)
		if s.failed(s.try(h)) || s.stopped {
			return false
		}
		if len(s.found) > 0 && !s.draft(d).all {
			return true
		}
	}
	return len(s.found) > 0
}

// Numbers are some numbers as a value, with a comma between two, and a count after a number that is repeated: "1*3,0.5" are 1, 1, 1 and 0.5.
type Numbers string

// makeNumbers writes numbers.
func makeNumbers(all []float64) Numbers {
	return writtenNumbers(all, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

// writtenNumbers writes numbers; the function one writes a single number.
func writtenNumbers(all []float64, one func(x float64) string) Numbers {
	var parts []string
	for k := 0; k < len(all); {
		end := k + 1
		for end < len(all) && all[end] == all[k] {
			end++
		}
		text := one(all[k])
		if end > k+1 {
			text += fmt.Sprintf("*%d", end-k)
		}
		parts = append(parts, text)
		k = end
	}
	return Numbers(strings.Join(parts, ","))
}

// mostNumbers is how many numbers a mistake may have.
const mostNumbers = 1 << 20

// list reads numbers that makeNumbers has written. A text that is no number is NaN. The list is empty for a count below 0, and for more than [mostNumbers].
func (n Numbers) list() (all []float64) {
	for text := range strings.SplitSeq(string(n), ",") {
		number, times, _ := strings.Cut(text, "*")
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			x = math.NaN()
		}
		of, err := strconv.Atoi(times)
		if err != nil {
			of = 1
		}
		if of < 0 || of > mostNumbers-len(all) {
			return nil
		}
		all = append(all, slices.Repeat([]float64{x}, of)...)
	}
	return all
}

// proposals are the mistakes that a fit along axes proposes for a value: one number, or a number for each index of axes of the model.
func (f *fit) proposals(s *search, axes []axis, set []int, d *Description, at edit.Place) (all []Mistake) {
	m, source := Mistake{Kind: "factor.inserted", Of: d.Of, Edit: placed(at)}, s.draft(d).weight
	if f.right == 0 {
		m.Kind = "addend.inserted"
	}
	switch {
	case len(set) == 0:
		for _, n := range numbersIn(s, &f.groups[0], f.right) {
			m.X, m.Called = some(n.value), n.words
			all = append(all, m)
		}
	case modelAxes(axes, set):
		if f.kind == "described.factor" && (d.Like.Kind == Weight || d.Like.Kind == OnePlus) && source != "" {
			v := Mistake{Kind: "vector.inserted", Place: order.NameOf(source).Role(), Of: d.Of, By: d.Like, Source: source, Edit: placed(at)}
			all = append(all, v)
		}
		m.Kind, m.Axis = "factors.inserted", axesWords(axes, set)
		if f.right == 0 {
			m.Kind = "addends.inserted"
		}
		for _, numbers := range f.numbersOf() {
			if m.Numbers = makeNumbers(numbers); fewNumbers(numbers, f.right) {
				all = append(all, m)
			}
		}
	}
	var rounded []Mistake
	for _, m := range all {
		if m.Kind == "vector.inserted" { // a vector is rounded in one way
			rounded = append(rounded, m)
			continue
		}
		for _, r := range fittedRoundings(s) {
			m.Rounding = r
			rounded = append(rounded, m)
		}
	}
	return rounded
}

// modelAxes reports whether numbers along some axes may be parameters of the model: no axis counts tokens, keys or distances. An axis of heads that is
// computed from channels may only be together with layers.
func modelAxes(axes []axis, set []int) bool {
	return len(set) > 0 && !slices.ContainsFunc(set, func(a int) bool {
		x := &axes[a]
		return x.letter == order.AxisToken || x.letter == order.AxisKey || x.letter == 0 && x.counts != layerAxis || x.made && slices.ContainsFunc(set, func(b int) bool { return a != b && axes[b].counts != layerAxis })
	})
}

// axesWords are the nouns of some axes, for [Mistake.Axis]: "channels, layers".
func axesWords(axes []axis, set []int) string {
	var all []string
	for _, a := range set {
		if axes[a].letter == 0 {
			all = append(all, layersAxis)
			continue
		}
		all = append(all, axisWords(axes[a].letter))
	}
	return strings.Join(all, axisSeparator)
}

// layersAxis is the noun of an axis that counts the layers of the model.
var layersAxis = axisWords('l')

// fittedRoundings are the ways in which a port may round a changed value.
func fittedRoundings(s *search) []Rounding {
	if s.first.Call.DType == hooks.F32 {
		return []Rounding{""}
	}
	return []Rounding{"", Unstored}
}

// numbersIn are the likely numbers of a group: numbers of the configuration, the shortest number, and the middle.
func numbersIn(s *search, g *group, right float64) (all []number) {
	for _, n := range s.candidates(g.middle(), g.low, g.high) {
		if n.value >= g.low && n.value <= g.high && len(all) < mostProposed {
			all = append(all, n)
		}
	}
	all = append(all, number{value: g.middle()})
	return slices.DeleteFunc(all, func(n number) bool { return !fewNumbers([]float64{n.value}, right) })
}

// mostProposed is how many numbers are proposed for one place.
const mostProposed = 4

// numbersOf returns two lists with a number for each group. A group gets the right number if its interval has the right number, or if the group has no
// element. The first list has the shortest number of every other interval, and the second list the middle of the interval.
func (f *fit) numbersOf() [][]float64 {
	short, middle := make([]float64, len(f.groups)), make([]float64, len(f.groups))
	for k := range f.groups {
		g := &f.groups[k]
		if short[k], middle[k] = f.right, f.right; g.n > 0 && !g.has(f.right) {
			short[k], middle[k] = shortest(g.low, g.high), g.middle()
		}
	}
	return [][]float64{short, middle}
}

// shortest is the number with the fewest digits between two bounds: 0 if it lies between the bounds.
func shortest(low, high float64) float64 {
	if low <= 0 && high >= 0 {
		return 0
	}
	for d := range 17 {
		if x, err := strconv.ParseFloat(strconv.FormatFloat(low/2+high/2, 'e', d, 64), 64); err == nil && x >= low && x <= high {
			return x
		}
	}
	return low/2 + high/2
}

// fewNumbers reports whether numbers may be the numbers of a mistake. There are at most [mostFitted]. A factor nearer to 1 than [nearOne] may come from an
// arithmetic, so fewer than half of the wrong factors may be so near.
func fewNumbers(all []float64, right float64) bool {
	wrong := slices.DeleteFunc(slices.Clone(all), func(x float64) bool { return x == right })
	near := 0
	for _, x := range wrong {
		if right != 0 && math.Abs(x/right-1) < nearOne {
			near++
		}
	}
	return len(all) <= mostFitted && 2*near < max(len(wrong), 1)
}

// different counts the numbers that are not the right number.
func different(all []float64, right float64) (n int) {
	for _, x := range all {
		if x != right && x == x {
			n++
		}
	}
	return n
}

// rightNumber is the number that changes nothing in a mistake with several numbers; NaN if no number does.
func (m Mistake) rightNumber() float64 {
	switch m.Kind {
	case "addends.inserted", "slopes.inserted", "weight.shifted", shiftedBlocks:
		return 0
	case "number.of-layers":
		return math.NaN()
	}
	return 1
}

// fittedOf counts the fitted numbers of a mistake.
func fittedOf(m Mistake) int {
	all := m.Numbers.list()
	if m.Kind == "heads.others" {
		return len(all)
	}
	return different(all, m.rightNumber())
}

// key writes the numbers with three digits, since further digits of solved numbers depend on the processor. More than [mostSpelled] different numbers
// become the count, the smallest and the largest number.
func (n Numbers) key() string {
	all := n.list()
	if few, low, high := differentNumbers(all); few > mostSpelled {
		return fmt.Sprintf("%d:%.3g..%.3g", few, low, high)
	}
	if n == "" {
		return ""
	}
	return string(writtenNumbers(all, func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }))
}

// differentNumbers counts the different numbers, and returns the smallest and the largest.
func differentNumbers(all []float64) (n int, low, high float64) {
	sorted := slices.DeleteFunc(slices.Clone(all), math.IsNaN)
	slices.Sort(sorted)
	if sorted = slices.Compact(sorted); len(sorted) > 0 {
		low, high = sorted[0], sorted[len(sorted)-1]
	}
	return len(sorted), low, high
}
