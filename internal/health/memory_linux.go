package health

import "os"

// Memory returns the machine's memory, lowered to the limit of a container.
func Memory() MemorySize {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return MemorySize{}
	}
	const group = "/sys/fs/cgroup/memory." // of version 2; under version 1 the machine's numbers have to do
	return parseMeminfo(string(text)).limitMemory(number(group+"max"), number(group+"current"))
}
