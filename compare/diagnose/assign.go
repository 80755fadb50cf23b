package diagnose

import (
	"iter"
	"slices"
)

// assign gives each of some units the first of its sources that fits the unit. It reports false, and gives nothing, if no source fits some unit.
func assign[S any](units int, sources func(unit int) iter.Seq[S], fits func(unit int, source S) bool) ([]S, bool) {
	var all []S
next:
	for u := range units {
		for s := range sources(u) {
			if fits(u, s) {
				all = append(all, s)
				continue next
			}
		}
		return nil, false
	}
	return all, true
}

// origins are the possible sources of each unit, such as a row. Each source fits all entries that were looked at, and the most plausible source comes
// first.
type origins[U comparable, S any] map[U][]S

// narrow removes the sources that do not fit one more entry. A new unit gets all sources that fit. narrow reports whether each unit has a source left.
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
