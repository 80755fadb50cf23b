package weights

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
)

// phrase is a part of a sentence: a kind with arguments. Phrases are compared by kind and arguments, never by their words.
type phrase struct {
	kind  Kind // "" of a part of a phrase
	words string
	args  []any // a string is a name
}

// say makes a phrase.
func say(kind Kind, words string, args ...any) phrase { return phrase{kind, words, args} }

func (p phrase) String() string { return fmt.Sprintf(p.words, p.args...) }

// look is how closely two phrases are held against each other.
type look int

const (
	exact   look = iota
	layers       // names without the numbers of their layers
	numbers      // numbers, too, by their type only
)

// seen is what a look sees of a phrase.
func (p phrase) seen(by look) string {
	all := string(p.kind)
	for _, x := range p.args {
		switch v := x.(type) {
		case phrase:
			x = v.seen(by)
		case choice:
			x = v.is
		case amount:
			x = v.n
		case string:
			if by >= layers {
				_, x = layerOf(v)
			}
		}
		switch x.(type) {
		case int, int32, float64, numeral, both, []int:
			if by == numbers {
				all += fmt.Sprintf("(%T)", x)
				continue
			}
		}
		all += fmt.Sprintf("(%T %v)", x, x)
	}
	return all
}

// inLayers is a phrase about names without the numbers of their layers.
func (p phrase) inLayers() phrase {
	p.args = slices.Clone(p.args)
	for i, x := range p.args {
		switch x := x.(type) {
		case phrase:
			p.args[i] = x.inLayers()
		case string:
			_, p.args[i] = layerOf(x)
		}
	}
	return p
}

// numeral is a number for people, with the digits that they see.
type numeral string

func number(x float64) numeral { return digits(x, 'g', 6) }

func digits(x float64, format byte, n int) numeral {
	return numeral(strconv.FormatFloat(x, format, n, 64))
}

// both are the numbers of two.
type both [2]int

func (b both) String() string { return fmt.Sprintf("%d and %d", b[0], b[1]) }

// amount is a number with its noun.
type amount struct {
	n         int
	one, many string
}

func count(n int, one, many string) amount { return amount{n, one, many} }

func (a amount) String() string {
	return fmt.Sprintf("%d %s", a.n, either(a.n == 1, a.one, a.many))
}

// choice is one of two words.
type choice struct {
	is   bool
	word string
}

func either(b bool, yes, no string) choice {
	if b {
		return choice{b, yes}
	}
	return choice{b, no}
}

func (c choice) String() string { return c.word }

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
