package health_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/health"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// texts are the lines of a section, "status: what".
func texts(s health.Section) []string {
	var out []string
	for _, l := range s.Lines {
		out = append(out, string(l.Status)+": "+l.What)
	}
	return out
}

// Whatever a file says becomes one line that a terminal can be given, of a bounded length.
func TestLinesAreHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s health.Section
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		s.Fail(text, "%s", strings.Repeat(text, 500))
		for _, got := range []string{s.Lines[0].What, s.Lines[0].Hint} {
			if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || len(got) > 3000 {
				t.Fatalf("%d bytes: %.200q", len(got), got)
			}
		}
	})
	var s health.Section
	s.Warn("", "one\ntwo\x1b[31m\u202e")
	if got, want := s.Lines[0].What, `one; two\u001b[31m\u202e`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Checks run in order, each announced; an interrupt ends them.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	check := func(name string, then func()) health.Check {
		return health.Check{Section: name, Run: func(_ context.Context, s *health.Section) { s.OK("%s ran", name); then() }}
	}
	var announced []string
	lines, err := health.Run(ctx, []health.Check{check("a", func() {}), check("b", cancel), check("c", func() {})}, func(s string) { announced = append(announced, s) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, announced); diff != "" {
		t.Errorf("announced: %s", diff)
	}
	if diff := cmp.Diff([]health.Line{{Section: "a", Status: health.OK, What: "a ran"}}, lines); diff != "" {
		t.Errorf("lines: %s", diff)
	}
}

// An interrupt ends the Python that is being asked at once, and what it has started.
func TestPythonInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 100\necho no\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	started := time.Now()
	var s health.Section
	health.Python(ctx, &s, health.Interpreter{Path: path, Timeout: time.Hour})
	if took := time.Since(started); took > 50*time.Second || len(s.Lines) != 1 || s.Lines[0].Status != health.Warning {
		t.Errorf("%v: %v", took, texts(s))
	}
}

func TestMemory(t *testing.T) {
	m := health.ParseMeminfo("MemTotal:       24000000 kB\nMemFree: x\nnonsense\nMemAvailable:   1000 kB\nMemTotalled: 7 kB\n")
	if want := (health.MemorySize{Total: 24000000 << 10, Available: 1000 << 10}); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	m = health.MemorySize{Total: 100, Available: 50}
	for _, c := range []struct {
		limit, used int64
		want        health.MemorySize
	}{
		{0, 0, m},
		{200, 10, m},
		{60, 30, health.MemorySize{Total: 60, Available: 30}},
		{60, 5, health.MemorySize{Total: 60, Available: 50}},
		{60, 70, health.MemorySize{Total: 60, Available: 1}},
	} {
		if got := m.Limit(c.limit, c.used); got != c.want {
			t.Errorf("limit %d, used %d: %+v, want %+v", c.limit, c.used, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8192.0 PiB"} {
		if got := amount.Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A folder that is not there yet is on the disk of the nearest one above it.
func TestDiskOf(t *testing.T) {
	dir := t.TempDir()
	d, err := health.DiskOf(filepath.Join(dir, "a", "b"))
	if err != nil || d.Folder != dir || d.Free == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "under")} {
		if d, err := health.DiskOf(path); err == nil {
			t.Errorf("%s: %+v", path, d)
		}
	}
}
