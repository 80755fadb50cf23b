package dump_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/dump/dumptest"
)

const (
	// mostResident is what refusing a file may take of memory, whatever the file claims.
	mostResident = 100 << 20
	// longest is how long refusing may keep a processor busy. What else the machine does meanwhile does not count.
	longest = time.Second
	// readVariable names the file that this program reads in place of its tests.
	readVariable = "TRACEDIFF_TEST_READ"
)

func TestMain(m *testing.M) {
	path := os.Getenv(readVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := dump.Open(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Refusing costs little, whatever a file claims: each is read by a process of its own, whose peak is the kernel's count.
func TestRefusingIsCheap(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "given")
	for _, c := range dumptest.Corpus(t) {
		if c.Want == "" {
			continue
		}
		if err := os.WriteFile(path, c.Data, 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), readVariable+"="+path)
		text, err := cmd.CombinedOutput()
		took, peak := cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss*1024
		if err == nil || took > longest || peak > mostResident {
			t.Errorf("%s: %v after %v, %d MiB:\n%s", c.Name, err, took, peak>>20, text)
		}
		if took > time.Second || peak > 60<<20 {
			t.Logf("%s: %v, %d MiB", c.Name, took, peak>>20)
		}
	}
}
