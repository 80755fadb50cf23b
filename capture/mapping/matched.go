package mapping

import "slices"

// matched is the number of a line that matches a tensor, and the text of each capture.
type matched struct {
	line     int
	captures captures
}

// known returns the one of several lines that gives entries of the order, and all where not one alone does. In a model whose layers
// differ, one name of a port may be that of two entries, of which each layer has one: so the lines have the same pattern, but for
// the names of captures, or no capture at all. Of other lines that match one tensor, one is too wide.
func (a *application) known(all []matched) []matched {
	if !slices.ContainsFunc(all, func(m matched) bool { return len(a.m.tensors[m.line].to) > 0 }) {
		return all[:1] // each leaves the tensor out
	}
	var have []matched
	shape := ""
	for _, m := range all {
		r := a.m.tensors[m.line]
		if len(r.from.names) > 0 {
			here := r.from.shape()
			if shape != "" && shape != here {
				return all
			}
			shape = here
		}
		if a.list == nil || len(r.to) == 0 {
			return all
		}
		lacks := func(t target) bool {
			name, err := t.name(m.captures)
			return err != nil || a.list.Index(name) < 0
		}
		if !slices.ContainsFunc(r.to, lacks) {
			have = append(have, m)
		}
	}
	if len(have) == 1 {
		return have
	}
	return all
}

// lines are the lines of the tensors of a map, by their numbers: those that match one name alone, by that name, and the others.
func (m *Map) lines() (plain map[string][]int, others []int) {
	plain = map[string][]int{}
	for n, r := range m.tensors {
		if len(r.from.names) == 0 {
			plain[r.from.start] = append(plain[r.from.start], n)
		} else {
			others = append(others, n)
		}
	}
	return plain, others
}
