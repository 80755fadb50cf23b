package diagnose

import (
	"cmp"

	"github.com/tracediff/tracediff/order/program"
)

// The searches for one finding draw on one account: about how long what they compute takes, where an element of a step takes 1, as eight products of a
// sum do; see [program.Kept]. It is not the clock's, so that it is the same on any machine.
const (
	// DefaultWork is what the searches for one finding may take: some ten seconds.
	DefaultWork = 1 << 31
	// HypothesisWork is what a hypothesis takes beside what it computes: a program is made for it, and laid out.
	HypothesisWork = 1 << 17
)

// Share has the searches until the next call use one of n parts of what is left of the account: others come behind them.
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

// spent reports whether what the search may use is used up, and notes that it ended so.
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
