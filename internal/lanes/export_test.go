package lanes

// SetWidest limits passes over strips to registers of the given number of bits, and returns a function to undo it.
func SetWidest(bits int) (undo func()) {
	old := widest
	widest = bits
	return func() { widest = old }
}
