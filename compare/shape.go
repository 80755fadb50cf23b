package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// shape returns the shape that the order and the token ids give an entry of a pass on one side, in words, where a tensor has
// another one; empty where it has that, and where nothing is known. Axes that the trace itself declares may stand in another
// order.
func (p *plan) shape(side, pass int, e *order.Entry, rec capture.Record) string {
	if e.Op == nil || p.window < 0 || pass >= len(p.past) {
		return ""
	}
	want := e.Size(order.Pass{Past: p.past[pass], Tokens: p.tokens[pass]}, p.window)
	axes := strings.ReplaceAll(e.Axes, " ", "")
	if len(axes) != len(want) {
		return ""
	}
	if at := strings.IndexRune(axes, order.AxisToken); at >= 0 && e.Name != order.InputIDs && len(p.scopes[side].Positions) > 0 {
		want[at] = len(p.scopes[side].Rows(p.past[pass], p.tokens[pass]))
	} else if at >= 0 && rec.LastRow {
		want[at] = 1
	}
	if own := p.axesOf(side, e, len(rec.Shape)); own != axes && sorted(own) == sorted(axes) {
		return permuted(own, axes, want, rec.Shape)
	}
	if slices.Equal(rec.Shape, want) {
		return ""
	}
	return fmt.Sprint(want)
}

// permuted is what a shape with the axes own has to be, in words, where sizes of the same letters differ.
func permuted(own, axes string, want, got []int) string {
	var sizes []string
	same := true
	for i, letter := range own {
		at := strings.IndexRune(axes, letter)
		sizes = append(sizes, fmt.Sprintf("%c = %d", letter, want[at]))
		same = same && got[i] == want[at]
	}
	if same {
		return ""
	}
	return strings.Join(sizes, ", ")
}

// sorted are the letters of axes in the order of the alphabet.
func sorted(axes string) string {
	letters := []rune(axes)
	slices.Sort(letters)
	return string(letters)
}

// shapes are two shapes that differ, in words.
func (n sideNames) shapes(l, r []int) string {
	detail := n.pair(fmt.Sprint(l), fmt.Sprint(r))
	if measure.Elements(l) == measure.Elements(r) {
		detail += ", of as many elements: another layout? tracediff map proposes its axes"
	}
	return detail
}
