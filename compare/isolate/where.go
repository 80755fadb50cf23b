package isolate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// WhereOutside describes a set of elements by the indexes it occupies on each axis with more than one index. If the
// set fills less than half of the described region, a phrase says so, since scattered elements are not a column.
func WhereOutside(at []int, shape []int, axes string) []string {
	o := newOutsiders(shape)
	o.add(at, 0)
	return o.words(axes)
}

// outsiders is a set of elements of a tensor: their number, and the indexes occupied on each axis.
type outsiders struct {
	shape []int
	count int
	hits  [][]bool // by axis
}

func newOutsiders(shape []int) *outsiders {
	o := &outsiders{shape: shape}
	for _, n := range shape {
		o.hits = append(o.hits, make([]bool, n))
	}
	return o
}

// add adds some elements of a part that begins at an element. They ascend.
func (o *outsiders) add(at []int, from int) {
	o.count += len(at)
	inner := 1
	for a, n := range slices.Backward(o.shape) {
		hits := o.hits[a]
		if inner == 1 {
			row := 0
			for _, i := range at {
				if i+from-row >= n {
					row = (i + from) / n * n
				}
				hits[i+from-row] = true
			}
		}
		for k := 0; k < len(at) && inner > 1; { // the next elements have the same index, and may be many
			index := (at[k] + from) / inner
			hits[index%n] = true
			next, _ := slices.BinarySearch(at[k:], (index+1)*inner-from)
			k += next
		}
		inner *= n
	}
}

// words describes the set; see whereOutside.
func (o *outsiders) words(axes string) []string {
	if o.count == 0 {
		return nil
	}
	var set []string
	some := false // an axis has indexes without any
	box := 1
	for a, n := range o.shape {
		if n > 1 {
			axis := measure.AxisName(axes, a)
			phrase, hits := indexes(axis, o.hits[a])
			switch {
			case phrase != "":
				set, some = append(set, phrase), true
			case axis == "head": // that all have it is worth a word: one head would be a different mistake
				set = append(set, fmt.Sprintf("all %d heads", n))
			}
			box *= hits
		}
	}
	thin := 2*o.count < box
	if !some {
		set = nil
	}
	switch {
	case len(set) == 0 && thin:
		return []string{"scattered over all of it"}
	case len(set) == 0:
		return []string{"everywhere"}
	case thin:
		set[0] = "scattered over " + set[0]
	}
	return set
}

// maxIndexes is how many indexes are listed one by one.
const maxIndexes = 4

// indexes describes a set of indexes of an axis, and counts them. The phrase is empty for all indexes. A list of
// indexes follows the noun, and a number precedes it: "channels 3, 7 (of 64)", "44 of 64 channels".
func indexes(axis string, hit []bool) (phrase string, n int) {
	var list []string
	first, last := -1, -1
	for i, h := range hit {
		if h {
			if first < 0 {
				first = i
			}
			last = i
			if n++; n <= maxIndexes {
				list = append(list, fmt.Sprint(i))
			}
		}
	}
	one, many := nouns(axis)
	switch size, run := len(hit), last-first+1 == n; {
	case n == size:
		return "", n
	case n == 1:
		return fmt.Sprintf("%s %d", one, first), n
	case run && last == size-1:
		return fmt.Sprintf("%s %d and after", many, first), n
	case n <= maxIndexes:
		return fmt.Sprintf("%s %s (of %d)", many, strings.Join(list, ", "), size), n
	case run:
		return fmt.Sprintf("%s %d to %d (of %d)", many, first, last, size), n
	default:
		return fmt.Sprintf("%d of %d %s", n, size, many), n
	}
}

// nouns are one and many of what an axis counts.
func nouns(axis string) (one, many string) {
	switch {
	case strings.HasPrefix(axis, "axis "):
		return "index on " + axis, "indexes on " + axis
	case axis == "vocabulary":
		return "vocabulary entry", "vocabulary entries"
	case axis == "batch":
		return axis, "batches"
	}
	return axis, axis + "s"
}

// FirstToken is the first token that has an element of a set; −1 for an empty set and for an entry without tokens.
func FirstToken(at []int, shape []int, e *order.Entry) int {
	axis, first := TokenAxis(e), -1
	if axis < 0 || axis >= len(shape) {
		return -1
	}
	inner := 1
	for _, n := range shape[axis+1:] {
		inner *= n
	}
	for _, i := range at {
		if k := i / inner % shape[axis]; first < 0 || k < first {
			first = k
		}
	}
	return first
}
