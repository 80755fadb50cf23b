//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/internal/dump/dumptest"
)

// Every file that is no dump, or a hostile one, gets an error of two lines from each command that takes a trace.
func TestHostileDumps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "given")
	golden, err := filepath.Abs("../../fixtures/golden/gemma3-tiny/prefill.float32.safetensors")
	must(t, err)
	commands := [][]string{{"inspect", path}, {"check", path}, {"compare", "--isolate", path}, {"compare", path, golden}, {"compare", golden, path}}
	for i, c := range dumptest.Corpus(t) {
		if c.Want == "" {
			continue
		}
		must(t, os.WriteFile(path, c.Data, 0o666))
		args := commands[i%len(commands)]
		var out, errOut bytes.Buffer
		if status := run(append([]string{"tracediff"}, args...), nil, &out, &errOut); status != exitUnusable || !twoLines.MatchString(errOut.String()) {
			t.Errorf("%s: %v: exit %d\n%s", c.Name, args, status, errOut.String())
		}
	}
}
