package compare

// SetVectors turns the vectors of the processor off, or on where it has them, and returns what undoes it.
func SetVectors(on bool) (undo func()) {
	old := vectors
	vectors = on && old
	return func() { vectors = old }
}
