package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	// mostResident is what comparing may have in memory, whatever the traces' size.
	mostResident = 64 << 20
	// tensors of a trace: their rows, in JSON, are more than a pipe holds, so that the program waits with its memory as it is.
	tensorsOfTrace = 200
)

// Comparing takes no more than 64 MiB of memory, and as much of a large trace as of a small one. The program is run as a person
// runs it and its peak is the kernel's own count, stack, code and collector included.
func TestMemoryIsIndependentOfSize(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "order.txt")
	var names []string
	for k := range tensorsOfTrace {
		names = append(names, fmt.Sprintf("t%d", k))
	}
	must(t, os.WriteFile(list, []byte(strings.Join(names, "\n")), 0o666))
	peak := map[int]int{}
	for _, size := range []int{10 << 20, 400 << 20} {
		local, reference := filepath.Join(dir, fmt.Sprint("local", size)), filepath.Join(dir, fmt.Sprint("reference", size))
		writeSparse(t, local, names, size)
		writeSparse(t, reference, names, size)
		peak[size] = peakOf(t, "compare", "--order", list, "--all", "--format", "json", local, reference)
		t.Logf("two traces of %d MiB: %.1f MiB resident at most", size>>20, float64(peak[size])/(1<<20))
		if peak[size] > mostResident {
			t.Errorf("two traces of %d MiB: %d bytes resident, want %d at most", size>>20, peak[size], mostResident)
		}
	}
	// Buffers that are not yet collected vary by some MiB; a trace that was held would be forty times as large.
	if small, large := peak[10<<20], peak[400<<20]; large > small+16<<20 {
		t.Errorf("%d bytes resident for 400 MiB, %d for 10 MiB", large, small)
	}
}

// writeSparse makes a file of float32 tensors of one size, together size bytes. Some numbers of each are there; the rest is
// a hole, which is read as zeros.
func writeSparse(t testing.TB, path string, names []string, size int) {
	t.Helper()
	const row = 64
	rows := size / len(names) / 4 / row
	each := rows * row * 4
	var parts []string
	for k, name := range names {
		parts = append(parts, fmt.Sprintf(`%q:{"dtype":"F32","shape":[1,%d,%d],"data_offsets":[%d,%d]}`, name, rows, row, k*each, (k+1)*each))
	}
	header := []byte("{" + strings.Join(parts, ",") + "}")
	header = append(header, strings.Repeat(" ", -len(header)&7)...)
	f, err := os.Create(path)
	must(t, err)
	_, err = f.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...))
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range names {
		var some []byte
		for range row {
			some = binary.LittleEndian.AppendUint32(some, 0x3f800000|rng.Uint32()>>9)
		}
		_, err = f.WriteAt(some, int64(8+len(header)+k*each))
		must(t, err)
	}
	must(t, f.Truncate(int64(8+len(header)+len(names)*each)))
	must(t, f.Close())
}

// highWater is the peak of a process's resident memory, in /proc. That of getrusage begins with the parent's.
var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakOf runs the program and says how much memory it had when it began to write its report, which it does when all is
// compared and which is too long for the pipe.
func peakOf(t *testing.T, args ...string) int {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	program := filepath.Join(t.TempDir(), "tracediff")
	must(t, os.Symlink(self, program))
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GOGC=100") // as a person has it: see TestMain
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	first := make([]byte, 1)
	_, err = out.Read(first)
	status, statusErr := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	rest, readErr := io.ReadAll(out)
	if waited := cmd.Wait(); err != nil || readErr != nil || waited != nil {
		t.Fatalf("%v: %v, %v, %v\n%s", args, err, readErr, waited, errOut.String())
	}
	must(t, statusErr)
	if n := bytes.Count(rest, []byte(`"verdict": "MATCH"`)); n != tensorsOfTrace {
		t.Fatalf("%d tensors were compared, want %d", n, tensorsOfTrace)
	}
	m := highWater.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no peak in\n%s", status)
	}
	return 1024 * atoi(string(m[1]))
}
