package diagnose

import (
	"cmp"

	"github.com/tracediff/tracediff/order/program"
)

// The searches for one finding share one account of work. An element of a step counts 1, and so do eight products of a sum. Making and laying out a
// program for an evaluation counts too: see [program.Kept]. Work is not measured in time, so that a search finds the same on any machine.
const (
	// DefaultWork is the work that the searches for one finding may use: 13 to 20 seconds of one core, at 6 to 10 ns for a unit.
	DefaultWork = 1 << 31
	// HypothesisWork is the work of making the program of a hypothesis: 0.1 ms, the median of the bug bench.
	HypothesisWork = 1 << 14
)

// moreWork is the factor by which the work of a stopped search is raised in the offer to go on.
const moreWork = 30

// Share limits the next searches to one of n equal parts of the work that is left. The next call sets another limit.
func (m *Model) Share(n int) { m.most = m.work + max(m.limit()-m.work, 0)/n }

func (m *Model) limit() int { return cmp.Or(m.Work, DefaultWork) }

// times is the limit of work as a multiple of DefaultWork, rounded down; 0 for once.
func (m *Model) times() int {
	if n := m.limit() / DefaultWork; n > 1 {
		return n
	}
	return 0
}

// Spent reports whether the next searches have used all their work.
func (m *Model) Spent() bool { return m.work >= cmp.Or(m.most, m.limit()) }

// Taken is the work that the searches have used.
func (m *Model) Taken() int { return m.work }

// spent reports whether the search has used its work. The search then stops.
func (s *search) spent() bool {
	if s.work() >= cmp.Or(s.m.most, s.m.limit()) {
		s.stopped = true
	}
	return s.stopped
}

// work is the work of the searches of the model, with the hypotheses of this search.
func (s *search) work() int {
	work := s.m.work + HypothesisWork*(s.tried-s.m.tried)
	for _, e := range s.entries {
		work += e.Small().work()
	}
	return work
}

// work is the work of hypotheses in the entry.
func (e *Entry) work() int {
	if e.kept == nil {
		return e.worked
	}
	return e.worked + e.kept.Time
}

// whole adds the work of a program that is evaluated outside of the kept values of an entry.
func (s *search) whole(p *program.Program) { s.m.work += p.Time() }
