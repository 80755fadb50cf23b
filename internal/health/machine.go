package health

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/tracediff/tracediff/internal/amount"
)

// Machine adds what Go sees of the machine: cores, memory, instruction sets. build names the program and its version.
func Machine(s *Section, build string) {
	s.OK("%s, %s, %s/%s", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	s.OK("%s, %d used (GOMAXPROCS)", amount.Of(runtime.NumCPU(), "core"), runtime.GOMAXPROCS(0))
	if m := Memory(); m.Total > 0 {
		text := amount.Bytes(m.Total)
		if m.Available > 0 {
			text += ", " + amount.Bytes(m.Available) + " available"
		}
		s.OK("memory %s", text)
	}
	if sets := instructionSets(); len(sets) > 0 {
		s.OK("instruction sets %s", strings.Join(sets, ", "))
	}
}

// instructionSets names the sets that choose a kernel here or in torch: the last bits of a result may differ between kernels.
func instructionSets() []string {
	var names []string
	for _, set := range []struct {
		name string
		has  bool
	}{
		{"AVX", cpu.X86.HasAVX},
		{"AVX2", cpu.X86.HasAVX2},
		{"FMA", cpu.X86.HasFMA},
		{"AVX512F", cpu.X86.HasAVX512F},
		{"AVX512BF16", cpu.X86.HasAVX512BF16},
		{"AMX-BF16", cpu.X86.HasAMXBF16},
		{"NEON", cpu.ARM64.HasASIMD},
		{"ASIMDDP", cpu.ARM64.HasASIMDDP},
		{"SVE", cpu.ARM64.HasSVE},
	} {
		if set.has {
			names = append(names, set.name)
		}
	}
	return names
}

// MemorySize is the memory of the machine, or what a container may use of it, in bytes; 0 is unknown.
type MemorySize struct{ Total, Available int64 }

// limitMemory lowers m to what the control group of the process allows.
func (m MemorySize) limitMemory(limit, used int64) MemorySize {
	if limit <= 0 || limit >= m.Total {
		return m
	}
	return MemorySize{Total: limit, Available: min(m.Available, max(limit-used, 1))}
}

// parseMeminfo reads /proc/meminfo: lines such as "MemTotal: 24000000 kB".
func parseMeminfo(text string) MemorySize {
	var m MemorySize
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		into := map[string]*int64{"MemTotal": &m.Total, "MemAvailable": &m.Available}[name]
		fields := strings.Fields(rest)
		if into == nil || len(fields) == 0 {
			continue
		}
		if kib, err := strconv.ParseInt(fields[0], 10, 53); err == nil {
			*into = kib << 10
		}
	}
	return m
}

// number reads an integer from a file, and returns 0 for a text such as "max".
func number(path string) int64 {
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
