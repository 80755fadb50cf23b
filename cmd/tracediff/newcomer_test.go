package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The newcomer's path: a clone, the two commands of the README, a bug planted in the sources of the clone's built-in model, found
// by the same command, taken out again, and the gate. The program is built from the clone each time, offline, from the modules
// that this test was built from. The gate asks for it: it compiles everything again, for a minute.
func TestNewcomer(t *testing.T) {
	if os.Getenv("TRACEDIFF_NEWCOMER") == "" {
		t.Skip("needs TRACEDIFF_NEWCOMER: that it is asked for")
	}
	t.Parallel()
	root := sources(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/newcomer",
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
				out, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				e.Setenv(name, strings.TrimSpace(string(out)))
			}
			e.Setenv("GOPROXY", "off")
			e.Setenv("GOTOOLCHAIN", "local")
			e.Setenv("GOFLAGS", "-buildvcs=false")
			e.Setenv("CI", "")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"clone":  func(ts *testscript.TestScript, _ bool, args []string) { clone(ts, root, args[0]) },
			"readme": readme,
		},
	})
}

// clone DIR makes a clone of the repository with what has changed in its working tree since, or, where the sources are no
// checkout, a copy of them.
func clone(ts *testscript.TestScript, root, dir string) {
	to := ts.MkAbs(dir)
	if out, err := exec.Command("git", "clone", "-q", root, to).CombinedOutput(); err != nil {
		ts.Logf("not a checkout that git clones, so it is copied: %v\n%s", err, out)
		ts.Check(os.RemoveAll(to))
		ts.Check(os.CopyFS(to, os.DirFS(root)))
		return
	}
	names := func(args ...string) []string {
		out, err := exec.Command("git", append([]string{"-C", root, "ls-files", "-z"}, args...)...).Output()
		ts.Check(err)
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	}
	for _, name := range names("--deleted") {
		ts.Check(os.Remove(filepath.Join(to, name)))
	}
	for _, name := range names("--modified", "--others", "--exclude-standard") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted ones are among the modified
		}
		ts.Check(err)
		ts.Check(os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o777))
		ts.Check(os.WriteFile(filepath.Join(to, name), data, 0o666))
	}
}

// readme PAGE N runs step N of the session of a page that changes the sources, with a shell in the current folder, and fails
// where it does not print what the page shows, or ends with another status than the page says. A step that is to fail is negated, as
// with exec.
func readme(ts *testscript.TestScript, neg bool, args []string) {
	all := sessions(ts.ReadFile(args[0]))
	at := slices.IndexFunc(all, editing)
	n, err := strconv.Atoi(args[1])
	if err != nil || at < 0 || n < 1 || n > len(all[at]) {
		ts.Fatalf("%s has no step %s that changes the sources", args[0], args[1])
	}
	s := all[at][n-1]
	cmd := exec.Command("sh", "-c", strings.TrimPrefix(s.command, "$ "))
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOTOOLCHAIN", "GOFLAGS", "CI", "HOME", "PATH", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, ts.Stdout()), ts.Stderr()
	err = cmd.Run()
	if cmd.ProcessState == nil || (s.status != 0) != neg {
		ts.Fatalf("%s: %v, and the page says status %d", s.command, err, s.status)
	}
	if status := cmd.ProcessState.ExitCode(); status != s.status {
		ts.Fatalf("%s: status %d, and the page says %d", s.command, status, s.status)
	}
	if line, ok := shows(strings.Split(out.String(), "\n"), s.want); !ok {
		ts.Fatalf("%s\ndoes not print %q where it is shown", s.command, line)
	}
}
