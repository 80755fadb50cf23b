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
	"github.com/tracediff/tracediff/internal/session"
)

// An interrupt while either side is written leaves what was captured so far where the hint says, and inspect lists it. The next compare uses the
// settings of the capture: it does not compare something else, nor nothing.
func TestInterruptLeavesWhatWasCaptured(t *testing.T) {
	for side, kept := range map[string]string{"local": "local.safetensors.part", "reference": "reference.safetensors.part"} {
		t.Run(side, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "traces")
			var errOut bytes.Buffer
			self, err := os.Executable()
			must(t, err)
			cmd := exec.Command(self, "capture", "--side", side, "--dir", dir, "--prompt", "Hello world", "--max-new-tokens", "124", "--level", "3", "--reference", "go", "--gate=false")
			cmd.Args[0], cmd.Stderr = "tracediff", &errOut
			must(t, cmd.Start())
			begun := writing(dir)
			must(t, cmd.Process.Signal(syscall.SIGINT))
			_ = cmd.Wait() // the status is looked at below
			if !begun {
				t.Fatalf("nothing was written: %s", errOut.String())
			}
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
			if s, kept, err := session.LastSettings(dir); err != nil || !kept || s.Prompt == nil || *s.Prompt != "Hello world" || s.NewTokens != 124 || s.Scope.Level != 3 {
				t.Errorf("settings %+v, kept is %v, %v", s, kept, err)
			}
		})
	}
}

// writing waits until an unfinished trace below dir has tensors.
func writing(dir string) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, pattern := range []string{"*.part", "*/*.part"} {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well formed
			for _, path := range paths {
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
	}
	return false
}
