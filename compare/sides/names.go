package sides

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
)

// Name is the name of one side of a comparison, in every form the sentences of a report use. Renderers choose no
// words of their own.
type Name struct {
	Label  string // "local", "reference"; "A", "B"
	Side   string // in a sentence: "your port", "the reference", "A"
	Trace  string // its trace in a sentence: "your port's trace", "trace A"
	Tensor string // one of its tensors in a sentence: "your port's tensor", "A"
}

// Names are what a comparison calls its sides.
type Names [2]Name

// NamesOf returns the names of the sides. In an A/B comparison neither side is the reference, so they are A and B.
// If both sides are one trace, they share a name.
func NamesOf(m Mode) Names {
	switch m {
	case AB:
		return Names{{"A", "A", "trace A", "A"}, {"B", "B", "trace B", "B"}}
	case Alone:
		one := Name{"trace", "the trace", "the trace", "the tensor"}
		return Names{one, one}
	}
	return Names{
		{"local", "your port", "your port's trace", "your port's tensor"}, {"reference", "the reference", "the reference trace", "the reference"},
	}
}

// Alone reports whether both are one.
func (n Names) Alone() bool { return n[Local] == n[Reference] }

// Both says that something is so on both sides, where there are two.
func (n Names) Both() string {
	if n.Alone() {
		return ""
	}
	return " on both sides"
}

// Pair is two values, one of each side, in words.
func (n Names) Pair(l, r string) string {
	return n[Local].Label + " " + l + ", " + n[Reference].Label + " " + r
}

// Shapes are two shapes that differ, in words.
func (n Names) Shapes(l, r []int) string {
	detail := n.Pair(fmt.Sprint(l), fmt.Sprint(r))
	if measure.Elements(l) == measure.Elements(r) {
		detail += ", of as many elements: another layout? tracediff map proposes its axes"
	}
	return detail
}

// Choice is how a scope chooses entries, in words.
func Choice(s capture.Scope) string {
	var parts []string
	if s.Level > 0 {
		parts = append(parts, fmt.Sprintf("level %d", s.Level))
	}
	if len(s.Layers) > 0 {
		parts = append(parts, "layers "+s.Layers.String())
	}
	if len(s.Tensors) > 0 {
		parts = append(parts, fmt.Sprintf("tensors %.200q", s.Tensors))
	}
	return strings.Join(parts, ", ")
}
