package main

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A result that could not be written is no success.
func TestUnwritableOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"order"}, {"order", "--format", "json"}, {"capture"}, {"compare"}, {"--help"}} {
		var errOut bytes.Buffer
		if code := run(append([]string{"tracediff"}, args...), nil, full{}, &errOut); code != exitUnusable || !bytes.Contains(errOut.Bytes(), []byte("no space left")) {
			t.Errorf("%q: exit %d, %s", args, code, errOut.String())
		}
		if code := run(append([]string{"tracediff"}, args...), nil, io.Discard, &errOut); code != exitMatch {
			t.Errorf("%q with room: exit %d, %s", args, code, errOut.String())
		}
	}
}

func TestColoured(t *testing.T) {
	for _, c := range []struct {
		when          string
		terminal      bool
		noColor, term string
		want          bool
	}{
		{"auto", true, "", "xterm", true},
		{"auto", false, "", "xterm", false},
		{"auto", true, "1", "xterm", false},
		{"auto", true, "", "dumb", false},
		{"always", false, "1", "dumb", true},
		{"never", true, "", "xterm", false},
	} {
		env := func(name string) string { return map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}[name] }
		if got := coloured(c.when, c.terminal, env); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
