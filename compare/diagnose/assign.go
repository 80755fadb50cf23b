package diagnose

import "iter"

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
