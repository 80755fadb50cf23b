//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/settings"
)

// An interrupt while either side is written leaves what was captured so far where the hint says, and inspect lists it. The next compare uses the
// settings of the capture: it does not compare something else, nor nothing.
func TestInterruptLeavesWhatWasCaptured(t *testing.T) {
	for side, kept := range map[string]string{"local": "local.safetensors.part", "reference": "reference.safetensors.part"} {
		t.Run(side, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "traces")
			cmd, errOut := endedBy(t, dir, side, syscall.SIGINT)
			if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
				t.Fatalf("exit status %d, want %d: %s", got, exitInterrupted, errOut.String())
			}
			named := regexp.MustCompile(`(?m)^hint: what was captured so far is in ([^;\n]+)`).FindStringSubmatch(errOut.String())
			if named == nil || named[1] != filepath.Join(dir, kept) {
				t.Fatalf("no hint at %s: %s", kept, errOut.String())
			}
			var out, said bytes.Buffer
			if status := run([]string{"tracediff", "inspect", named[1], "--header"}, nil, &out, &said); status != exitMatch || !strings.Contains(out.String(), "embed_tokens") {
				t.Errorf("inspect: exit status %d\n%s%s", status, out.String(), said.String())
			}
			if s, kept, err := settings.LastSettings(dir); err != nil || !kept || s.Prompt == nil || *s.Prompt != "Hello world" || s.NewTokens != 124 || s.Scope.Level != 3 {
				t.Errorf("settings %+v, kept is %v, %v", s, kept, err)
			}
		})
	}
}

// What a killed run has written of a trace is removed by the next run that succeeds, and not while another run writes it.
func TestKilledWalkLeavesNothingBehindTheNext(t *testing.T) {
	for _, side := range []string{"local", "reference"} {
		t.Run(side, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "traces")
			endedBy(t, dir, side, syscall.SIGKILL)
			left := unfinished(dir)
			if len(left) == 0 {
				t.Fatal("the killed run has left no unfinished trace")
			}
			captured := func() {
				t.Helper()
				var out, said bytes.Buffer
				if status := run([]string{"tracediff", "capture", "--side", side, "--dir", dir, "--prompt", "Hello world", "--reference", "go", "--gate=false"}, nil, &out, &said); status != exitMatch {
					t.Fatalf("capture: exit status %d: %s", status, said.String())
				}
			}
			trace, _, _ := strings.Cut(left[0], ".part")
			if side == "reference" { // the trace of the local side's lock is taken by the capture itself
				release, err := capture.Lock(trace)
				must(t, err)
				captured()
				if len(unfinished(dir)) == 0 {
					t.Errorf("%s was removed while it was locked", left[0])
				}
				release()
			}
			captured()
			if left := unfinished(dir); len(left) > 0 {
				t.Errorf("%s is left", strings.Join(left, ", "))
			}
		})
	}
}

// endedBy starts a capture of a side and ends it by a signal once it has written tensors.
func endedBy(t *testing.T, dir, side string, by syscall.Signal) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	said := &bytes.Buffer{}
	cmd := exec.Command(self, "capture", "--side", side, "--dir", dir, "--prompt", "Hello world", "--max-new-tokens", "124", "--level", "3", "--reference", "go", "--gate=false")
	cmd.Args[0], cmd.Stderr = "tracediff", said
	must(t, cmd.Start())
	begun := writing(dir)
	must(t, cmd.Process.Signal(by))
	_ = cmd.Wait() // its callers look at the status
	if !begun {
		t.Fatalf("nothing was written: %s", said)
	}
	return cmd, said
}

// unfinished are the unfinished traces below dir.
func unfinished(dir string) (all []string) {
	for _, pattern := range []string{"*.part", "*/*.part"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well formed
		all = append(all, paths...)
	}
	return all
}

// writing waits until an unfinished trace below dir has tensors.
func writing(dir string) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, path := range unfinished(dir) {
			trace, err := capture.Open(path)
			if err != nil {
				continue // not a trace, or not yet
			}
			n := len(trace.Records())
			trace.Close()
			if n > 0 {
				return true
			}
		}
	}
	return false
}
