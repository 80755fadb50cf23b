package weights

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/capture"
)

// sentence is what is said of one tensor of a finding.
type sentence struct {
	name    string
	what    string
	general string // the same without what each tensor has for itself
}

var (
	layerWords = regexp.MustCompile(`\b(layers?\.)[0-9]+\b`)
	anyNumber  = regexp.MustCompile(`-?[0-9][0-9.e+-]*`)
	anyAmount  = regexp.MustCompile(`# (\w+?)s?\b`)
)

// general is a sentence without its numbers: "12 elements" and "1 element" become "# element".
func general(what string) string {
	return anyAmount.ReplaceAllString(anyNumber.ReplaceAllString(what, "#"), "# $1")
}

// inLayers is a sentence without the numbers of layers.
func inLayers(what string) string { return layerWords.ReplaceAllString(what, "${1}*") }

// alike are the sentences of a finding that differ in numbers at most.
type alike struct {
	first  string
	layers bool // all are the first, but for the numbers of layers
	same   bool // all are the first
	names  []string
}

// ofFirst ends a sentence about several tensors whose numbers differ.
const ofFirst = "; the numbers are those of the first tensor, and each has its own"

func (a *alike) text() string {
	switch {
	case a.same:
		return a.first
	case a.layers:
		return inLayers(a.first)
	}
	return a.first + ofFirst
}

// maxSentences is how many sentences a finding has that differ in more than numbers.
const maxSentences = 3

// together makes one text of the sentences of several tensors.
func together(all []sentence) string {
	var groups []*alike
	at := map[string]*alike{}
	for _, s := range all {
		a := at[s.general]
		if a == nil {
			a = &alike{first: s.what, layers: true, same: true}
			at[s.general] = a
			groups = append(groups, a)
		}
		a.names = append(a.names, s.name)
		a.same, a.layers = a.same && s.what == a.first, a.layers && inLayers(s.what) == inLayers(a.first)
	}
	if len(groups) == 1 {
		return groups[0].text()
	}
	var list []string
	for _, a := range groups[:min(len(groups), maxSentences)] {
		list = append(list, "in "+called(a.names)+": "+a.text())
	}
	if n := len(groups) - maxSentences; n > 0 {
		list = append(list, fmt.Sprintf("and %s: --format json has what is said of each tensor", count(n, "other sentence", "other sentences")))
	}
	return strings.Join(list, "; ")
}

// otherLayers says for each tensor that belongs to another layer what its own layer has. If layer a has the tensors of layer b, and layer b those of
// layer a, the two were swapped.
func otherLayers(rows []Row) map[string]string {
	from := map[int]map[int]int{} // by layer: how many tensors are those of which
	total := map[int]int{}
	for i := range rows {
		mine, _ := layerOf(rows[i].Name)
		if mine >= 0 {
			total[mine]++
		}
		if rows[i].Kind != OtherLayer {
			continue
		}
		theirs, _ := layerOf(rows[i].Other)
		if from[mine] == nil {
			from[mine] = map[int]int{}
		}
		from[mine][theirs]++
	}
	said := map[string]string{}
	for i := range rows {
		r := &rows[i]
		if r.Kind != OtherLayer {
			continue
		}
		mine, _ := layerOf(r.Name)
		theirs, _ := layerOf(r.Other)
		n := from[mine][theirs]
		some := ""
		if n < total[mine] {
			some = fmt.Sprintf(" in %d of %d tensors", n, total[mine])
		}
		if back := from[theirs][mine]; back == n {
			a, b := min(mine, theirs), max(mine, theirs)
			said[r.Name] = fmt.Sprintf("layers %d and %d have changed places%s", a, b, some)
			continue
		}
		said[r.Name] = fmt.Sprintf("layer %d has the weights of layer %d%s", mine, theirs, some)
	}
	return said
}

// crossed finds pairs of tensors, each with the values of the other. It says for both that they have changed places.
func crossed(rows []Row) map[string]string {
	other := map[string]string{}
	for i := range rows {
		if r := &rows[i]; r.Kind == OtherTensor {
			other[r.Name] = r.Other
		}
	}
	said := map[string]string{}
	for name, o := range other {
		if other[o] != name {
			continue
		}
		a, b := name, o
		if n, _ := layerOf(a); lastWord(a) != lastWord(b) {
			if m, _ := layerOf(b); n == m {
				a, b = lastWord(a), lastWord(b)
			}
		}
		said[name] = fmt.Sprintf("%s and %s have changed places", min(a, b), max(a, b))
	}
	return said
}

// Name is the tensors of a finding in one line.
func (f *Finding) Name() string { return called(append([]string{f.Tensor}, f.Also...)) }

// Steps are the lines of [Finding.Try].
func (f *Finding) Steps() []string { return strings.Split(f.Try, "\n") }

// maxCalled is how many names a line has. Names that differ only in the number of a layer count once.
const maxCalled = 3

// called names tensors in one line: the first names, with layers as ranges, and behind several tensors their number.
func called(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	var patterns []string
	layers := map[string][]int{}
	for _, name := range names {
		n, p := layerOf(name)
		if layers[p] == nil {
			patterns = append(patterns, p)
		}
		layers[p] = append(layers[p], n)
	}
	var words []string
	for _, p := range patterns[:min(len(patterns), maxCalled)] {
		at := Ranges(layers[p])
		if len(layers[p]) > 1 {
			at = "{" + at + "}"
		}
		if layers[p][0] < 0 { // of no layer
			at = "*"
		}
		words = append(words, strings.Replace(p, "*", at, 1))
	}
	text := strings.Join(words, ", ")
	if len(patterns) > maxCalled {
		text += ", ..."
	}
	return fmt.Sprintf("%s (%d tensors)", text, len(names))
}

// Ranges are numbers for people: 0-3,7.
func Ranges(list []int) string { return capture.RangesOf(list).String() }
