package main

import (
	"runtime/debug"
	"testing"
	"time"
)

// A bar says how many bytes there are and how fast they come, and nothing of the kind where none are counted.
func TestProgressAmount(t *testing.T) {
	count := func(n int64) func() int64 { return func() int64 { return n } }
	for _, c := range []struct {
		bytes   func() int64
		elapsed time.Duration
		want    string
	}{
		{count(3 << 20), 2 * time.Second, ", 3.0 MiB, 1.5 MiB/s"},
		{count(3 << 20), 0, ""},
		{count(0), time.Second, ""},
		{nil, time.Second, ""},
	} {
		p := &progress{bytes: c.bytes}
		if got := p.amount(c.elapsed); got != c.want {
			t.Errorf("after %v: %q, want %q", c.elapsed, got, c.want)
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
