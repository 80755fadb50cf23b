package diagnose

import (
	"context"
	"slices"
)

// Proposed are the mistakes of results, of what is stored and of what is computed in narrower types that are tried for an entry.
func Proposed(m *Model, e *Entry) []Mistake {
	s := newSearch(context.Background(), m, []*Entry{e})
	var all []Mistake
	for _, g := range []generator{clippings, dropout, logarithms, penalised, inFewerBits, narrowOperands, narrowSteps, byRow, narrowParts} {
		all = append(all, slices.Collect(g(s))...)
	}
	return all
}
