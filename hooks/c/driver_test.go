package c_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// strict are the warnings under which the header has to compile in somebody else's build.
var strict = []string{"-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror", "-O1"}

// variants are the compilers and languages in which the header is tried.
var variants = []struct {
	name, compiler string
	args           []string
}{
	{"C99", "cc", []string{"-std=c99"}},
	{"C++11", "c++", []string{"-x", "c++", "-std=c++11"}},
	{"sanitized", "cc", []string{"-std=gnu99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}},
}

// drivers maps a variant to its built testdata/driver.c, and lacking one that was not built to what it needs.
var drivers, lacking = map[string]string{}, map[string]string{}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tracediff-c")
	if err == nil {
		err = build(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles the driver once for each variant. A compiler that is there and fails is an error; one without
// sanitizers leaves that variant out.
func build(dir string) error {
	for _, v := range variants {
		if _, err := exec.LookPath(v.compiler); err != nil {
			lacking[v.name] = "needs " + v.compiler + ": a compiler"
			continue
		}
		path := filepath.Join(dir, v.name)
		args := append(append([]string{}, v.args...), strict...)
		args = append(args, "-o", path, "testdata/driver.c", "testdata/plain.c")
		out, err := exec.Command(v.compiler, args...).CombinedOutput()
		switch {
		case err == nil:
			drivers[v.name] = path
		case v.name == "sanitized" && bytes.Contains(out, []byte("san")) && !bytes.Contains(out, []byte("tracediff.h")):
			lacking[v.name] = "needs " + v.compiler + ": one that has sanitizers"
		default:
			return fmt.Errorf("compiling tracediff.h as %s: %w\n%s", v.name, err, out)
		}
	}
	return nil
}

// each runs a test in every variant, and skips it in those that were not built.
func each(t *testing.T, test func(t *testing.T, driver string)) {
	// The compilers have read these, which go test does not see: it would answer from its cache after a change.
	for _, source := range []string{"tracediff.h", "testdata/driver.c", "testdata/plain.c"} {
		if _, err := os.ReadFile(source); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			if lack := lacking[v.name]; lack != "" {
				t.Skip(lack)
			}
			t.Parallel()
			test(t, drivers[v.name])
		})
	}
}

// A script is what a driver is told to do.
type script struct{ strings.Builder }

// manifest is td_manifest; nil texts are NULL, nil names are not declared.
type manifest struct {
	side, producer, version, model, prompt, dtype, device *string

	passes, level int
	layers        *string
	reserve       int
	names         []string
}

func text(s string) *string { return &s }

func word(s *string) string {
	switch {
	case s == nil:
		return "-"
	case *s == "":
		return "="
	}
	return hex.EncodeToString([]byte(*s))
}

func (s *script) open(path string, m manifest) {
	s.WriteString("open " + word(&path))
	for _, p := range []*string{m.side, m.producer, m.version, m.model, m.prompt, m.dtype, m.device} {
		s.WriteString(" " + word(p))
	}
	fmt.Fprintf(s, " %d %d %s %d", m.passes, m.level, word(m.layers), m.reserve)
	if m.names == nil {
		s.WriteString(" -1")
	} else {
		fmt.Fprintf(s, " %d", len(m.names))
	}
	for _, name := range m.names {
		s.WriteString(" " + word(&name))
	}
	s.WriteByte('\n')
}

func (s *script) do(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// tensor is the part that the commands which record have in common.
func (s *script) tensor(command, name string, x hooks.Tensor) {
	data := string(x.Data)
	fmt.Fprintf(s, "%s %s %d %s %s", command, word(&name), int(x.DType)-1, list(x.Shape), word(&data))
}

func (s *script) record(name string, x hooks.Tensor) {
	s.tensor("record", name, x)
	s.WriteByte('\n')
}

func list(numbers []int) string {
	return strings.Trim(fmt.Sprint(len(numbers), " ", strings.Trim(fmt.Sprint(numbers), "[]")), " ")
}

// An answer is what one call returned, and the writer's error after it.
type answer struct {
	code string
	err  string
}

// run lets a driver do a script and returns its answers.
func run(t testing.TB, driver string, s *script) []answer {
	t.Helper()
	return runCommand(t, s, exec.Command(driver))
}

func runCommand(t testing.TB, s *script, cmd *exec.Cmd) []answer {
	t.Helper()
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(s.String()), &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == killed {
		err = nil
	}
	if err != nil {
		t.Fatalf("driver: %v\n%s", err, stderr.String())
	}
	var answers []answer
	for line := range strings.Lines(string(out)) {
		code, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		answers = append(answers, answer{code, rest})
	}
	return answers
}

// killed is the exit code of a driver that ended itself in the middle.
const killed = 9

// A session is a driver that stays, for the properties: starting a process is what most of their time would go to.
type session struct {
	in      io.WriteCloser
	answers *bufio.Scanner
}

func start(t *testing.T, driver string) *session {
	t.Helper()
	cmd := exec.Command(driver)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil { // a leak, if nothing else
			t.Errorf("driver: %v", err)
		}
	})
	return &session{in, bufio.NewScanner(out)}
}

// mustDo does a script in which nothing may go wrong.
func (s *session) mustDo(t testing.TB, todo *script) {
	t.Helper()
	go func() { _, _ = io.WriteString(s.in, todo.String()) }() // a driver that died is noticed by its silence
	for i := range strings.Count(todo.String(), "\n") {
		if !s.answers.Scan() || s.answers.Text() != "0 " {
			t.Fatalf("command %d: %q", i, s.answers.Text())
		}
	}
}

// mustRun is run for a script in which nothing may go wrong.
func mustRun(t testing.TB, driver string, s *script) {
	t.Helper()
	answers := run(t, driver, s)
	if want := strings.Count(s.String(), "\n"); len(answers) != want {
		t.Fatalf("%d answers to %d commands", len(answers), want)
	}
	for i, a := range answers {
		if a.code != "0" || a.err != "" {
			t.Fatalf("command %d: %s %s", i, a.code, a.err)
		}
	}
}
