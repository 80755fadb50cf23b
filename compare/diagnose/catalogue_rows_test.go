package diagnose

import (
	"slices"
	"strings"
)

// Catalogue lists all rows, by kind.
func Catalogue() []Row {
	var all []Row
	for _, row := range catalogue() {
		all = append(all, *row)
	}
	slices.SortFunc(all, func(a, b Row) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return all
}
