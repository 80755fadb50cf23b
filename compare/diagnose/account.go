package diagnose

import (
	"cmp"

	"github.com/tracediff/tracediff/order/program"
)

// The searches for one finding draw on one account of work. An element of a step counts 1, and so do eight products of a sum; what is made and
// laid out for an evaluation counts, too: see [program.Kept]. The account is not kept by the clock, so that a search finds the same on any machine.
const (
	// DefaultWork is what the searches for one finding may take: 13 to 20 seconds of one core, at 6 to 10 ns for a unit.
	DefaultWork = 1 << 31
	// HypothesisWork is what it takes to make the program of a hypothesis: 0.1 ms, the median of the bug bench.
	HypothesisWork = 1 << 14
)

// moreWork is how many times the work of a search that stopped is offered.
const moreWork = 30

// Share limits the next searches to one of n equal parts of the work that is left. The next call sets another limit.
func (m *Model) Share(n int) { m.most = m.work + max(m.limit()-m.work, 0)/n }

func (m *Model) limit() int { return cmp.Or(m.Work, DefaultWork) }

// times is how often the searches have the work that they have where nothing is asked for; 0 for once.
func (m *Model) times() int {
	if n := m.limit() / DefaultWork; n > 1 {
		return n
	}
	return 0
}

// Spent reports whether nothing is left of what the next searches may use.
func (m *Model) Spent() bool { return m.work >= cmp.Or(m.most, m.limit()) }

// Taken is what the searches have taken.
func (m *Model) Taken() int { return m.work }

// spent reports whether the search has used all of the work that it may use. The search is then stopped.
func (s *search) spent() bool {
	if s.work() >= cmp.Or(s.m.most, s.m.limit()) {
		s.stopped = true
	}
	return s.stopped
}

// work is what the searches of the model have taken.
func (s *search) work() int {
	work := s.m.work + HypothesisWork*(s.tried-s.m.tried)
	for _, e := range s.entries {
		work += e.Small().work()
	}
	return work
}

// work is what hypotheses have taken in the entry.
func (e *Entry) work() int {
	if e.kept == nil {
		return e.worked
	}
	return e.worked + e.kept.Time
}

// whole takes account of a program that is evaluated by itself.
func (s *search) whole(p *program.Program) { s.m.work += p.Time() }
