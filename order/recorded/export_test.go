package recorded

import (
	"maps"
	"slices"
)

// Operations are the names of those that have a formula.
func Operations() []string { return slices.Sorted(maps.Keys(formulas)) }
