package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Text is the name as a sentence: "epsilon is 1e-05; config.json: rms_norm_eps 1e-06".
func (n Name) Text() string {
	text := n.What
	if n.Right != nil && len(n.Fields) == 0 {
		text += ", not " + short(*n.Right)
	}
	switch {
	case n.Where == "":
	case isLayer(n.Where) && strings.Contains(text, order.AnyLayer):
		text = strings.ReplaceAll(text, order.AnyLayer, order.NameOf(n.Where).Here("").String())
	default:
		text += ", in " + n.Where + " only"
	}
	if len(n.Fields) == 0 {
		return text
	}
	var fields []string
	for _, f := range n.Fields {
		fields = append(fields, f.Name+" "+short(f.Value))
	}
	return text + "; config.json: " + strings.Join(fields, ", ")
}

// Text is the name of the mistake, or a sentence for a mistake without a name. [Finding.Searched] lists the kinds of mistakes that were tried.
func (f *Finding) Text() string {
	if len(f.DumpOnly) == 0 {
		return f.text()
	}
	readers := make([]string, len(f.DumpOnly))
	for i, r := range f.DumpOnly {
		readers[i] = strings.TrimPrefix(r, order.AnyLayer)
	}
	is := " are right"
	if len(readers) == 1 {
		is = " is right"
	}
	return f.text() + "; with the right values, " + listed(readers) + is + ": wrong only in the dump, or two mistakes cancel"
}

func (f *Finding) text() string {
	switch {
	case f.Named():
		return f.Name.Text()
	case f.Likely != "":
		return f.Likely
	case len(f.Undecided) > 0:
		return "undecided: several mistakes reproduce all elements and differ elsewhere: " + textOf(f.Undecided, "; or ")
	}
	text := "unexplained: no mistake that was tried reproduces all elements"
	if f.Left != nil && f.Left.Of > 0 && f.Left.Gives == f.Left.Of {
		text = "unexplained: one mistake reproduces all elements, but correct code could give almost all of them, too"
	}
	if f.Stopped {
		text += "; the search stopped at its limit before every mistake was tried, " + GoesOn(max(f.Times, 1))
	}
	return text
}

// textOf lists the words of names.
func textOf(names []OtherName, between string) string {
	var all []string
	for _, n := range names {
		all = append(all, n.Text())
	}
	return strings.Join(all, between)
}

// inLayer adds the layer to a name whose sentence has a name of any layer, if only one layer has the mistake.
func (n *Name) inLayer(where string) {
	if isLayer(where) && strings.Contains(n.What, order.AnyLayer) {
		n.Where = where
	}
}

// isLayer reports whether a place is a layer. A mistake at this place is in no other layer.
func isLayer(where string) bool {
	name := order.NameOf(where)
	return name.Layer() >= 0 && !name.Within()
}

// Searched counts the mistakes that were tried and lists their kinds. It is empty if no mistake was tried.
func (f *Finding) Searched() string {
	if f.Tried == 0 {
		return ""
	}
	return fmt.Sprintf("%d mistakes: %s", f.Tried, strings.Join(f.Looked, ", "))
}

// String is the finding for a sentence, with its aliases and its proof.
func (f *Finding) String() string {
	text := f.Text()
	if !f.Named() {
		return text
	}
	if len(f.Aliases) > 0 {
		text += " (the same here: " + textOf(f.Aliases, "; ") + ")"
	}
	return fmt.Sprintf("%s; it reproduces all %d elements of %d entries; correct code cannot give %d of them", text, f.Elements, f.Entries, f.Shown)
}

// lookedWords are the classes of edits, as words for the list of tried kinds.
var lookedWords = [...]string{
	edit.LeftOut: "steps left out", edit.Exchanged: "other functions", edit.Swapped: "operands exchanged", edit.Twice: "steps applied twice",
	edit.Count: "counts", edit.Constant: "constants", edit.Axis: "axes", edit.Index: "other indexes", edit.Order: "orders of steps", edit.Leaf: "weights", edit.Operand: "other values of the formula",
	edit.InputOf: "other tensors", edit.Mapped: "orders of elements", edit.Whole: "parts", edit.Known: "masks, positions, norms and caches",
	edit.Inserted: "extra steps",
}

// String lists the further values of a number.
func (o OtherValues) String() string {
	switch {
	case o.Less:
		return " or less, or missing"
	case o.Values != "":
		return " (or " + o.Values + ")"
	}
	return ""
}

// GoesOn names the flag that continues a search. The search stopped after so many times DefaultWork.
func GoesOn(times int) string { return fmt.Sprintf("--search-work %dx goes on", moreWork*times) }

// layerWords lists the names of entries outside layers, and then the layers of the other entries as ranges: "norm, layers 0, 3 to 25".
func layerWords(s *search, entries []*Entry) string {
	var names, ranges []string
	var numbers []int
	for _, l := range layersOf(s, entries) {
		if isLayer(l) {
			numbers = append(numbers, order.NameOf(l).Layer())
		} else {
			names = append(names, l)
		}
	}
	slices.Sort(numbers)
	for k := 0; k < len(numbers); {
		end := k
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		if text := fmt.Sprint(numbers[k]); end > k {
			ranges = append(ranges, text+" to "+fmt.Sprint(numbers[end]))
		} else {
			ranges = append(ranges, text)
		}
		k = end + 1
	}
	switch len(numbers) {
	case 0:
	case 1:
		names = append(names, "layer "+ranges[0])
	default:
		names = append(names, "layers "+strings.Join(ranges, ", "))
	}
	return strings.Join(names, ", ")
}

// passWords say "pass 1", "passes 1 and 2", "passes 1 to 9", or "the prompt".
func passWords(passes []int) string {
	n := len(passes)
	switch {
	case n == 1 && passes[0] == 0:
		return "pass 0 (the prompt)"
	case n == 1:
		return fmt.Sprintf("pass %d", passes[0])
	case passes[n-1]-passes[0] == n-1:
		return fmt.Sprintf("passes %d to %d", passes[0], passes[n-1])
	}
	return "passes " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(passes)), ", "), "[]")
}

// andWords joins places where a step is right.
const andWords = ", and "

// sameLayersIn names the passes in which the layers with the mistake are right.
func sameLayersIn(passes string) string { return "the same layers in " + passes }

// unreadWords counts entries that were not looked at.
func unreadWords(n int) string { return fmt.Sprintf(" (%d more entries were not looked at)", n) }

// firstOfLayers lists the first layers, and counts the others.
func firstOfLayers(layers []string) string {
	text := listed(layers[:min(len(layers), mostPlaces)])
	if n := len(layers) - mostPlaces; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// errThree is the error for a mistake whose first mistake has a first mistake.
var errThree = errors.New("a finding has two mistakes at most")
