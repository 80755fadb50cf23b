package diagnose

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Study is for measurements of a search. The zero value changes nothing.
type Study struct {
	// Without is a class of edits that are not tried, by its name.
	Without string
	// Drawn is the seed of another order of the stages within each reach, and of the generators of a stage. All stages of a reach are then tried. 0
	// leaves the order and ends a search with the first stage that has a match.
	Drawn uint64
	// Looked is called for each search of a name, at its end.
	Looked func(Effort)
	// Tried is called for each mistake before the mistake is judged. A mistake without a kind is an edit of steps.
	Tried func(Mistake)
}

// Effort is what a search took.
type Effort struct {
	Role    string // of the entries
	Tried   int    // hypotheses
	Stopped bool   // the search ended before its last hypothesis
	Took    time.Duration
}

// drawnStages are stages in the order in which they are looked at.
func drawnStages(m *Model, stages []stage) []stage {
	stages = inDrawnOrder(m, stages)
	slices.SortStableFunc(stages, func(a, b stage) int { return cmp.Compare(a.reach, b.reach) })
	return stages
}

// inDrawnOrder is a list in the order that the seed of a study draws.
func inDrawnOrder[T any](m *Model, list []T) []T {
	if m.Drawn == 0 {
		return list
	}
	list = slices.Clone(list)
	rand.New(rand.NewPCG(m.Drawn, 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// declined reports whether a hypothesis is of a class that is not tried. A number that is left out of a sum counts as a number of 0.
func declined(s *search, h hypothesis) bool {
	if s.m.Without == "" {
		return false
	}
	class := h.class
	if _, ok := addendLeftOut(s, survivor{hypothesis: h}); ok {
		class = edit.Constant
	}
	return class.String() == s.m.Without
}

// hears tells the study that a hypothesis is tried.
func (s *search) hears(h hypothesis) {
	if s.m.Study.Tried != nil && h.statement == nil {
		s.m.Study.Tried(h.is)
	}
}

// begun is called at the start of a search, and the returned function at the end.
func (s *search) begun() (ended func()) {
	start, before := time.Now(), s.tried
	return func() {
		if s.m.Looked != nil {
			s.m.Looked(Effort{order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name).Role(), s.tried - before, s.stopped, time.Since(start)})
		}
	}
}
