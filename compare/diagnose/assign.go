package diagnose

import (
	"iter"
	"slices"
)

// origins are what units, such as rows, may come from, by unit: each source fits all entries that were looked at, and the first is the most plausible.
type origins[U comparable, S any] map[U][]S

// narrow keeps the sources that fit one entry more. A unit that is new has all sources that fit. It reports whether each unit has one.
func (o origins[U, S]) narrow(units []U, all iter.Seq[S], fits func(U, S) bool) bool {
	keep := func(u U, from iter.Seq[S]) bool {
		var left []S
		for x := range from {
			if fits(u, x) {
				left = append(left, x)
			}
		}
		o[u] = left
		return len(left) > 0
	}
	for u, known := range o {
		if !keep(u, slices.Values(known)) {
			return false
		}
	}
	for _, u := range units {
		if o[u] == nil && !keep(u, all) {
			return false
		}
	}
	return true
}
