package health

import "golang.org/x/sys/unix"

// Memory returns the machine's memory; what of it is available is not known.
func Memory() MemorySize {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil || n > 1<<62 {
		return MemorySize{}
	}
	return MemorySize{Total: int64(n)}
}
