package spelling

import "slices"

// Table is a copy of all rows, in the order of the forward pass. A spelling may stand in several: then the first role that a model has is
// meant.
func Table() []row {
	all := slices.Clone(rows)
	for i := range all {
		all[i].Spelled = slices.Clone(all[i].Spelled)
	}
	return all
}
