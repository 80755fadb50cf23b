package compare

// SetChunk changes how many elements are read at a time and returns what undoes it.
func SetChunk(n int) (undo func()) {
	old := chunkElements
	chunkElements = n
	return func() { chunkElements = old }
}
