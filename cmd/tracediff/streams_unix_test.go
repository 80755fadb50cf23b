//go:build unix

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/files"
)

// What has no end is refused in time and with little memory: a device, a file of the kernel that waits for more, and a pipe that is written to for ever.
func TestWhatHasNoEnd(t *testing.T) {
	dir := t.TempDir()
	paths := []string{"/dev/zero"}
	if f, err := os.OpenFile("/proc/kmsg", os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // the system has it, and this user may read it
		must(t, f.Close())
		paths = append(paths, "/proc/kmsg")
	}
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	w, err := os.OpenFile(pipe, os.O_RDWR, 0)
	must(t, err)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for zeros := make([]byte, 1<<16); ; {
			if _, err := w.Write(zeros); err != nil {
				return // the test is over
			}
		}
	}()
	t.Cleanup(func() { _ = w.Close(); <-stopped }) // nothing that is written counts
	for _, path := range append(paths, pipe) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		refused(t, typed("accept $F --reason x --until 2099-01-01", path))
		runtime.ReadMemStats(&after)
		if all := (after.TotalAlloc - before.TotalAlloc) >> 20; all > 1<<10 {
			t.Errorf("accept %s: %d MiB were allocated", path, all)
		}
		for _, line := range []string{
			"merge $F", "check $F", "inspect $F", "compare $F $F", "map $F", "diff-program $F $F", "order --order $F", "order --program $F", "gate --config $F",
		} {
			t.Run(line+" "+path, func(t *testing.T) {
				t.Parallel()
				started := time.Now()
				refused(t, typed(line, path))
				if took := time.Since(started); took > 4*files.Patience {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// Where temporary files have no place, the hint names the variable that says where it is.
func TestNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, place := range []string{filepath.Join(dir, "nonexistent"), file} {
		t.Setenv("TMPDIR", place)
		for _, line := range []string{"demo", "prompts", "inspect ../../fixtures/foreign/numpy-compressed.npz input_ids", "capture --dir $F --tokens 5,6 --reference hf --python /bin/sh"} {
			text := refused(t, typed(line, filepath.Join(dir, "traces")))
			if !strings.Contains(text, place+" cannot be used for temporary files: ") || !strings.Contains(text, "hint: set TMPDIR to an existing folder") || strings.Contains(text, "--model") {
				t.Errorf("%s: %s", line, text)
			}
		}
	}
}
