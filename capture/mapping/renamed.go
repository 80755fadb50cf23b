package mapping

import "strings"

// Renamed returns the name that the map gives to a tensor without changing its elements. It returns name if no such line matches.
func (m *Map) Renamed(name string) string {
	if m == nil || strings.Contains(name, "#") {
		return name
	}
	for _, r := range m.tensors {
		c, ok := r.from.of(name)
		if !ok || !r.plain() {
			continue
		}
		if to, err := r.to[0].name(c); err == nil {
			return to
		}
	}
	return name
}

// plain reports whether the line is a name for one tensor, and nothing more.
func (r *rule) plain() bool {
	return len(r.to) == 1 && r.layout == nil && r.split == nil && r.join == "" && r.ring == "" && r.pass == nil && r.unless == nil && !r.last && !r.folded
}
