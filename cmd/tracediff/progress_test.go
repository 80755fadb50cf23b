package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
)

// A bar says how large the trace has grown and how fast, and nothing of the kind where no file grows.
func TestProgressAmount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "local.safetensors")
	must(t, os.WriteFile(path+capture.Suffix, make([]byte, 3<<20), 0o666))
	for _, c := range []struct {
		path    string
		elapsed time.Duration
		want    string
	}{
		{path, 2 * time.Second, ", 3.0 MiB, 1.5 MiB/s"},
		{path, 0, ""},
		{path + "x", time.Second, ""},
		{"", time.Second, ""},
	} {
		p := &progress{path: c.path}
		if got := p.amount(c.elapsed); got != c.want {
			t.Errorf("%q after %v: %q, want %q", c.path, c.elapsed, got, c.want)
		}
	}
}

func TestCommit(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, "unknown"},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, "0123456789ab"},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, revision}, "0123456789ab, modified"},
	} {
		if got := commitOf(c.settings); got != c.want {
			t.Errorf("%v: %q, want %q", c.settings, got, c.want)
		}
	}
}
