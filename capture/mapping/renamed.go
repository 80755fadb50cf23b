package mapping

import "strings"

// Renamed returns the new name of a tensor by the first matching line that gives a name and leaves the elements unchanged. Without a
// matching line Renamed returns name.
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

// plain reports whether the line only gives a name to one tensor.
func (r *rule) plain() bool {
	return len(r.to) == 1 && r.layout == nil && r.split == nil && r.join == "" && r.ring == "" && r.pass == nil && r.unless == nil && !r.last && !r.folded
}
