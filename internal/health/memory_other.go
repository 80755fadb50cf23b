//go:build !linux && !darwin

package health

// Memory is not known on this system.
func Memory() MemorySize { return MemorySize{} }
