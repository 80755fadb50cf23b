package detectable

import (
	"fmt"
	"slices"
)

// Untried is a mistake that was not tried in a run.
type Untried struct {
	Name    string `json:"name"`
	Mistake string `json:"mistake"` // in words
	Page    string `json:"page"`    // its heading in docs/mistakes.md
	Why     string `json:"why"`     // UntriedWork, UntriedRoom or UntriedForm
}

// Why mistakes are not tried.
const (
	UntriedWork = "the search stopped at its limit of work"
	UntriedRoom = "it takes more memory than the search may use"
	UntriedForm = "the operation in which it would show was not recomputed"
)

// moreWork is how many times the work of a search that stopped is offered, and mostWork how often a search has it at most.
const moreWork, mostWork = 30, 1000

// More is the value of --search-work with which a search tries more of what was not tried for want of work; empty where none does.
func (s *Sight) More() string {
	times := min(moreWork*s.Times, mostWork)
	if times <= s.Times || !slices.ContainsFunc(s.Untried, func(u Untried) bool { return u.Why == UntriedWork }) {
		return ""
	}
	return fmt.Sprintf("%dx", times)
}

// lacked notes what the last entry lacked, if anything.
func (k *candidate) lacked(s *search) {
	if s.short {
		k.short(s.large)
	}
}

// short notes that there was not enough memory, or work, for a mistake.
func (k *candidate) short(large bool) { k.ended, k.large = true, large && (k.large || !k.ended) }

// skip notes a mistake that was not tried.
func (f *Sight) skip(k *candidate) {
	why := UntriedForm
	switch {
	case k.ended && k.large:
		why = UntriedRoom
	case k.ended:
		why = UntriedWork
	}
	f.Skipped, f.Untried = append(f.Skipped, k.Name), append(f.Untried, Untried{k.Name, k.What, k.Page, why})
}
