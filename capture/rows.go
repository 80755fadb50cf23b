package capture

// SomeRows reports whether a trace leaves out rows of its tensors: its scope has positions, and the positions are not the whole sequence.
// Without token ids the length of the sequence is not known, and SomeRows is true for every scope with positions.
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
