package mapping

import "strings"

// Renamed is the name that the map gives to a tensor whose elements it leaves as they are: a line that is a name alone. It is the name
// itself where no line or another one matches it.
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
