package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// AxesOf returns the axis letters of an entry on one side: from the trace's manifest, or else from the order. It
// returns "" for unknown axes, and for letters that do not fit the rank.
func (p *Plan) AxesOf(side int, e *order.Entry, rank int) string {
	axes := e.Axes
	if own, ok := p.Sides[side].Manifest.Axes[e.Name]; ok {
		axes = strings.ReplaceAll(own, " ", "")
	}
	if len(axes) != rank {
		return ""
	}
	return axes
}

// Shape describes the shape expected by the order and the token ids, if a tensor has another shape. It returns ""
// for the expected shape, and for an unknown expectation. A trace with declared axes may have the axes in another
// order.
func (p *Plan) Shape(side, pass int, e *order.Entry, rec capture.Record) string {
	if e.Op == nil || p.window < 0 || !p.Tokens.Known(pass) {
		return ""
	}
	want := e.Size(order.Pass{Past: p.Tokens.Past[pass], Tokens: p.Tokens.In[pass]}, p.window)
	axes := strings.ReplaceAll(e.Axes, " ", "")
	if len(axes) != len(want) {
		return ""
	}
	if at := strings.IndexRune(axes, order.AxisToken); at >= 0 && e.Name != order.InputIDs && len(p.Scopes.Of[side].Positions) > 0 {
		want[at] = len(p.Scopes.Of[side].Rows(p.Tokens.Past[pass], p.Tokens.In[pass]))
	} else if at >= 0 && rec.LastRow {
		want[at] = 1
	}
	if own := p.AxesOf(side, e, len(rec.Shape)); own != axes && sorted(own) == sorted(axes) {
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
