package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// instances yields the mistake of entries that read the tensor or weight of a wrong layer or stream, the same in all passes of an entry. m has the right
// tensor or weight, and others are the names of candidates.
func instances(s *search, m Mistake, others []string) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		if len(others) < 2 {
			return
		}
		byName := map[string][]*Entry{}
		var names []string
		for _, e := range s.entries {
			name := s.m.List.Entries[e.Node.Entry].Name
			if byName[name] == nil {
				names = append(names, name)
			}
			byName[name] = append(byName[name], e)
		}
		m.Kind, m.Place = "instance.of-another-layer", m.Of.Name
		if !order.NameOf(names[0]).Within() {
			m.Kind = "instance.another"
		}
		read, ok := assign(len(names), func(int) iter.Seq[string] { return slices.Values(others) }, func(k int, other string) bool {
			if s.err != nil || s.spent() {
				return false
			}
			s.tried++
			h := s.hypothesis(inAll(m, other))
			return !slices.ContainsFunc(byName[names[k]], func(e *Entry) bool {
				may, err := s.may(h, e.Small())
				return s.failed(err) || !may
			})
		})
		if !ok {
			return
		}
		for k := range names {
			read[k] = names[k] + "=" + read[k]
		}
		m.By = listTerm(Others, read)
		yield(m)
	}
}

// solvedInstances counts the entries of a mistake: a tensor or weight was found for each entry.
func solvedInstances(m Mistake) int { return strings.Count(m.By.Name, "=") }

// inAll is the mistake that all entries read one tensor or weight: the pair in the list has no entry.
func inAll(m Mistake, other string) Mistake {
	m.By = listTerm(Others, []string{"=" + other})
	return m
}

// instanceOf is the tensor or weight that an entry reads, from a list of pairs.
func instanceOf(list Term, entry string) (string, bool) {
	for pair := range strings.SplitSeq(list.Name, ",") {
		if of, other, _ := strings.Cut(pair, "="); of == entry || of == "" {
			return other, true
		}
	}
	return "", false
}

// otherInstance reads the tensor or weight of another layer or stream, if the list of the mistake has the entry.
func otherInstance(s *subject, e *Entry, m Mistake) *program.Edited {
	other, ok := instanceOf(m.By, s.m.List.Entries[e.Node.Entry].Name)
	switch {
	case !ok:
		return nil
	case m.Of.Kind == Weight:
		return weightInstead(s, e, m.Of.Name, func(string) string { return other }, false)
	}
	return reads(s, e, s.place(m), source{name: other, all: m.Of.Kind != TheKept})
}
