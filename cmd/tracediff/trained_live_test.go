package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// number is a measured number: a processor's last digits are its own.
var number = regexp.MustCompile(`\d+(\.\d+)?(e[-+]\d+)?`)

// The sessions of trained models on the pages print what the pages show, but for numbers. TRACEDIFF_TRAINED is the folder of the checkpoints as
// fixtures/wild/trained/models.py makes them, and TRACEDIFF_PYTHON a Python with numpy, torch and transformers.
func TestTrained(t *testing.T) {
	models, python := os.Getenv("TRACEDIFF_TRAINED"), os.Getenv("TRACEDIFF_PYTHON")
	if models == "" || python == "" {
		t.Skip("needs TRACEDIFF_TRAINED: fixtures/wild/trained/models.py makes it; and TRACEDIFF_PYTHON: .ci/run has how")
	}
	root := sources(t)
	programs := t.TempDir()
	test, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(test, filepath.Join(programs, "tracediff")))
	t.Setenv("PATH", strings.Join([]string{programs, filepath.Dir(python), os.Getenv("PATH")}, string(os.PathListSeparator)))
	t.Setenv("CI", "")
	run := 0
	for _, page := range pages(t, root) {
		for _, session := range sessions(readPage(t, root, page)) {
			if !session[0].trained {
				continue
			}
			run++
			t.Chdir(t.TempDir())
			for _, name := range []string{"smollm2", "gemma3"} {
				must(t, os.Symlink(filepath.Join(models, name), name))
			}
			port, err := os.ReadFile(filepath.Join(root, "fixtures/wild/trained/numpy_run.py"))
			must(t, err)
			must(t, os.WriteFile("port.py", port, 0o666))
			for _, s := range session {
				trainedStep(t, page, s)
			}
		}
	}
	if run != 2 {
		t.Errorf("%d sessions, of which the guide and the page on engines have one each", run)
	}
}

// trainedStep runs a step with a shell and holds its output to the page.
func trainedStep(t *testing.T, page string, s step) {
	t.Helper()
	cmd := exec.Command("sh", "-c", strings.TrimPrefix(s.command, "$ "))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != s.status {
		t.Fatalf("%s: %s\n%v, and the page says status %d\n%s%s", page, s.command, err, s.status, out.String(), errOut.String())
	}
	if line, ok := shows(masked(out.String()), s.masked()); !ok {
		t.Errorf("%s: %s\ndoes not print %q where it is shown; it prints\n%s", page, s.command, line, out.String())
	}
}

// masked returns the lines of a text without its numbers, without the spaces that align them, and without the count of entries that
// match by drift: on a processor where none does, the line has no count.
func masked(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Join(strings.Fields(number.ReplaceAllString(line, "#")), " ")
		lines = append(lines, strings.ReplaceAll(line, " (# by drift)", ""))
	}
	return lines
}

func (s *step) masked() []string { return masked(strings.Join(s.want, "\n")) }
