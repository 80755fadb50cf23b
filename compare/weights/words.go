package weights

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/spelling"
)

// phrase is a sentence or a part of a sentence. Its form leaves numbers out: phrases of one form differ in numbers only.
type phrase struct{ text, form string }

// say makes a phrase. Arguments that are numbers are no part of its form; words, names without the numbers of layers, and the forms of phrases are.
func say(format string, args ...any) phrase {
	p := phrase{fmt.Sprintf(format, args...), format}
	for _, x := range args {
		switch x := x.(type) {
		case phrase:
			p.form += "\n" + x.form
		case amount:
			p.form += "\n" + x.many
		case string:
			_, general := layerOf(x)
			p.form += "\n" + general
		case int, float64, numeral, []int:
		default:
			p.form += fmt.Sprintf("\n%v", x)
		}
	}
	return p
}

func (p phrase) String() string { return p.text }

// with is a phrase in which a word stands for another.
func (p phrase) with(old, word string) phrase {
	return phrase{strings.ReplaceAll(p.text, old, word), strings.ReplaceAll(p.form, old, word)}
}

// then appends another phrase after a separator.
func (p phrase) then(between string, o phrase) phrase {
	return phrase{p.text + between + o.text, p.form + between + o.form}
}

// numeral is a number for people.
type numeral float64

func number(x float64) numeral { return numeral(x) }

func (n numeral) String() string { return strconv.FormatFloat(float64(n), 'g', 6, 64) }

// amount is a number with its noun.
type amount struct {
	n         int
	one, many string
}

func count(n int, one, many string) amount { return amount{n, one, many} }

func (a amount) String() string {
	if a.n == 1 {
		return "1 " + a.one
	}
	return fmt.Sprintf("%d %s", a.n, a.many)
}

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

var layerWords = regexp.MustCompile(`\b((?:` + spelling.LayerWord + `)\.)[0-9]+\b`)

// inLayers is a sentence without the numbers of layers.
func inLayers(what string) string { return layerWords.ReplaceAllString(what, "${1}*") }

// maxCalled is how many names a line has. Names that differ only in the number of a layer count once.
const maxCalled = 3

// called names tensors in one line: the first names, with layers in ranges, and the number of tensors if there are several.
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
		at := ranges(layers[p])
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

// ranges are numbers for people: 0-3,7.
func ranges(list []int) string { return capture.RangesOf(list).String() }
