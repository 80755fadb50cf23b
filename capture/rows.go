package capture

// SomeRows reports whether a trace leaves out rows of its tensors: its scope has positions, and not all of the sequence.
// Nothing is known of one without token ids.
func (t *Trace) SomeRows() bool {
	scope := t.Manifest().Scope
	if len(scope.Positions) == 0 {
		return false
	}
	passes, err := t.IDs()
	if err != nil {
		return true
	}
	past := 0
	for _, ids := range passes {
		if len(scope.Rows(past, len(ids))) < len(ids) {
			return true
		}
		past += len(ids)
	}
	return false
}
