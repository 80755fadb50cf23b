package mapping

import "slices"

// matched is the number of a line that matches a tensor, and the text of each capture.
type matched struct {
	line     int
	captures captures
}

// known returns the line that gives entries of the order. It returns all lines if no line or several lines give entries. In a model whose layers
// differ, a port may have one name for two entries, and each layer has one of the two entries: the lines then have the same pattern except for
// the names of captures, or no capture. Of two other lines that match one tensor, one line is too wide.
func (a *application) known(all []matched) []matched {
	if !slices.ContainsFunc(all, func(m matched) bool { return len(a.m.tensors[m.line].to) > 0 }) {
		return all[:1] // every line leaves the tensor out
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

// lines are the numbers of the lines of a map: in plain the lines for a single name, by name, and in others the lines with a
// pattern.
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
