package diagnose

import (
	"slices"
)

// Pages are the anchors that findings point to, without repetition, in order.
func Pages() []string {
	var all []string
	add := func(pages []Page) {
		for _, p := range pages {
			all = append(all, p.Anchor)
		}
	}
	add(rolePages)
	for _, row := range catalogue() {
		add(row.Pages)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
