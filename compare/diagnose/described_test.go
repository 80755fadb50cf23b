package diagnose

import "context"

// Described is the description of entries, whether they have a name or not. It is nil where nothing simple holds.
func Described(m *Model, entries ...*Entry) (*Description, error) {
	return describe(newSearch(context.Background(), m, entries))
}
