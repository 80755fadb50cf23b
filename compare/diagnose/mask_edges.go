package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// The first or the last key of a query may follow a wrong rule. The keys that the queries see show the rule, so it is read off the keys and not
// searched for: M·⌊b/N⌋ + K of a mistake, with b the position of the query or the number of keys. For N = 0 the rule is K.

// The kinds of mistakes with a rule.
const (
	firstKeyRule Kind = "mask.first-key"
	lastKeyRule  Kind = "mask.last-key"
)

// What a rule depends on, for [Mistake.Axis].
const (
	onPosition = "position"
	onKeys     = "keys"
)

// firstAndLast counts the numbers of a run of keys.
func firstAndLast(Mistake) int { return 2 }

// edge is the key that the rule of a mistake gives for a query, in a pass with so many keys.
func (m Mistake) edge(query, keys int) int {
	base := query
	if m.Axis == onKeys {
		base = keys
	}
	if m.N < 1 {
		return m.K
	}
	return m.M*(base/m.N) + m.K
}

// seen are the keys of a query, by their positions: the first and the last key that the query sees, and those that it should see.
type seen struct {
	query, keys           int
	first, last           int
	rightFirst, rightLast int
}

// rules lists mistakes with a rule that gives the keys of all queries, the simplest rule first. The list is empty if both the first and the
// last keys are wrong.
func rules(all []seen) []Mistake {
	firstMoved := func(s seen) bool { return s.first != s.rightFirst }
	lastMoved := func(s seen) bool { return s.last != s.rightLast }
	switch first, last := slices.ContainsFunc(all, firstMoved), slices.ContainsFunc(all, lastMoved); {
	case first && !last:
		return rulesOf(firstKeyRule, all, firstMoved)
	case last && !first:
		return rulesOf(lastKeyRule, all, lastMoved)
	}
	return nil
}

// rulesOf lists the mistakes of a kind that give the keys of all queries. More queries than the rule has numbers must have another key.
func rulesOf(kind Kind, all []seen, moved func(seen) bool) (found []Mistake) {
	wrong := slices.DeleteFunc(slices.Clone(all), func(s seen) bool { return !moved(s) })
	try := func(axis string, times, by int) {
		m := Mistake{Kind: kind, Place: maskSite, Axis: axis, M: times, N: by}
		at := wrong[0].first
		if kind == lastKeyRule {
			at = wrong[0].last
		}
		m.K = at - m.edge(wrong[0].query, wrong[0].keys)
		if len(wrong) > numbersOfRule(m) && !slices.ContainsFunc(all, func(s seen) bool { return !m.gives(s) }) {
			found = append(found, m)
		}
	}
	try("", 0, 0)
	for _, axis := range []string{onPosition, onKeys} {
		try(axis, 1, 1)
		for by := 2; by <= mostMasked; by++ {
			try(axis, by, by)
			try(axis, 1, by)
		}
	}
	return found
}

// numbersOfRule counts the numbers of a rule.
func numbersOfRule(m Mistake) int {
	if m.N > 1 {
		return 2
	}
	return 1
}

// gives reports whether the rule of a mistake gives the keys that a query sees.
func (m Mistake) gives(s seen) bool {
	edge := m.edge(s.query, s.keys)
	if m.Kind == lastKeyRule {
		return min(edge, s.rightLast) == s.last
	}
	return max(edge, 0) == s.first
}

// otherEdge makes masks with the rule of a mistake. A program without a mask gets a mask before its softmax.
func otherEdge(s *subject, e *Entry, m Mistake) *program.Edited {
	if len(masksOf(e)) > 0 {
		return otherSight(s, e, m)
	}
	pass, rule := s.m.Passes[e.Node.Pass], maskRules[m.Kind]
	last := float64(pass.Past + pass.Tokens - 1)
	return addedToScores(s, e, func(q, k int) float64 {
		if rule(view{Mistake: m, q: float64(q), k: float64(k), last: last, right: true}) {
			return 0
		}
		return e.Call.Arith.Lowest()
	})
}
