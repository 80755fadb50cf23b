package diagnose

import (
	"time"

	"github.com/tracediff/tracediff/order/program"
)

// Study is for those who measure a search. The zero value leaves it as it is.
type Study struct {
	// Without is a class of edits that are not tried, by its name.
	Without string
	// Looked hears of each search of a name that ended.
	Looked func(Effort)
	// Tried hears of each mistake before the mistake is judged. A mistake without a kind is an edit of steps.
	Tried func(Mistake)
}

// Effort is what a search took.
type Effort struct {
	Role    string // of the entries
	Tried   int    // hypotheses
	Stopped bool   // it came to its end before its last hypothesis
	Took    time.Duration
}

// declined reports whether a hypothesis is of a class that is not tried. A number that is left out of a sum is said to be 0.
func declined(s *search, h hypothesis) bool {
	if s.m.Without == "" {
		return false
	}
	class := h.class
	if _, ok := addendLeftOut(s, survivor{hypothesis: h}); ok {
		class = program.Constant
	}
	return class.String() == s.m.Without
}

// hears tells whoever measures the search that a hypothesis is tried.
func (s *search) hears(h hypothesis) {
	if s.m.Study.Tried != nil && h.statement == nil {
		s.m.Study.Tried(h.is)
	}
}

// begun is called where a search begins, and what it returns where it ends.
func (s *search) begun() (ended func()) {
	start, before := time.Now(), s.tried
	return func() {
		if s.m.Looked != nil {
			s.m.Looked(Effort{Role(s.m.List.Entries[s.first.Node.Entry].Name), s.tried - before, s.stopped, time.Since(start)})
		}
	}
}
