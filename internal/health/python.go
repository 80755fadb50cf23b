package health

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/plain"
)

// probe is a script that prints the versions of a Python and its packages. Python gets the script as text, so nothing is unpacked to disk.
//
//go:embed probe.py
var probe string

// mark starts the lines of the probe: what a site's own start-up code prints is not taken for an answer.
const mark = "tracediff-doctor "

// maxAnswer bounds what is read of a program that was said to be a Python.
const maxAnswer = 1 << 20

// minPython is the oldest minor version of Python 3 that the transformers runner works with.
const minPython = 11

// Pin is a Python package and the version that the goldens were made with.
type Pin struct{ Name, Version string }

// Interpreter names the Python to ask.
type Interpreter struct {
	Path    string        // as LookPath takes it
	Typed   bool          // a person named it: what is wrong with it is an error
	Command string        // the path as a person types it in a shell, for hints
	Timeout time.Duration // after which it is killed
	Pins    []Pin
}

// answer is everything that a probe has said.
type answer struct {
	Version      string
	Executable   string
	Packages     map[string]*string
	Accelerators []string
	Threads      int
	Error        string
}

// Python asks the interpreter for its version, the versions of the pinned packages and the accelerators that torch sees.
// It is needed only to make a reference with transformers, so what is missing is a warning, unless the interpreter was
// named by hand. It never takes longer than the timeout and a moment to kill what was started.
func Python(ctx context.Context, s *Section, p Interpreter) {
	bad := s.Warn
	if p.Typed {
		bad = s.Fail
	}
	path, err := exec.LookPath(p.Path)
	if err != nil {
		bad("Python is needed for --reference hf and for nothing else: install Python 3.11 or later, or name one with --python PATH",
			"%s: not found", plain.Quote(p.Path))
		return
	}
	a, err := ask(ctx, path, p)
	if a.Version == "" {
		if err == nil {
			err = errors.New("it did not print what was asked for")
		}
		bad("name a Python 3.11 or later with --python PATH", "%s is not a Python interpreter that answers: %v", plain.Quote(path), err)
		return
	}
	if minor, ok := minorOf(a.Version); ok && minor < minPython {
		bad(fmt.Sprintf("name a Python 3.%d or later with --python PATH", minPython),
			"Python %s (%s): the transformers runner needs 3.%d or later", a.Version, a.Executable, minPython)
	} else {
		s.OK("Python %s (%s)", a.Version, a.Executable)
	}
	packages(s, p, a)
	torch(s, p, a, err)
}

// packages adds a line for each pinned package. Missing packages share a line.
func packages(s *Section, p Interpreter, a answer) {
	var missing, wants []string
	for _, pin := range p.Pins {
		found := a.Packages[pin.Name]
		want := pin.Name + "==" + pin.Version
		switch {
		case found == nil:
			missing, wants = append(missing, pin.Name), append(wants, want)
		case strings.Split(*found, "+")[0] != pin.Version: // 2.15.0+cpu is 2.15.0
			s.warnCommand("", p.install(want), "%s %s is installed, %s is pinned: tensors can differ in their last bits from the goldens", pin.Name, *found, pin.Version)
		default:
			s.OK("%s %s, as pinned", pin.Name, *found)
		}
	}
	if len(missing) > 0 {
		s.warnCommand("for --reference hf: ", p.install(wants...), "not installed: %s", strings.Join(missing, ", "))
	}
}

// install are the words of the command that installs exactly these versions.
func (p Interpreter) install(wants ...string) []string {
	return append([]string{p.Command, "-m", "pip", "install"}, wants...)
}

// torch adds what importing torch has shown. err is how the probe ended.
func torch(s *Section, p Interpreter, a answer, err error) {
	switch {
	case a.Packages["torch"] == nil && err == nil:
	case a.Error != "":
		s.warnCommand("install it again: ", p.install("--force-reinstall", "torch"), "torch cannot be imported: %s", a.Error)
	case a.Threads == 0:
		if err == nil {
			err = errors.New("it ended and printed nothing")
		}
		s.Warn("try it by hand: "+p.Command+` -c "import torch"; --timeout gives it more time`, "importing torch failed: %v", err)
	case len(a.Accelerators) == 0:
		s.OK("torch sees no accelerator and uses %s of the CPU", amount.Of(a.Threads, "thread"))
	default:
		s.OK("torch sees %s, and %s of the CPU", few(a.Accelerators), amount.Of(a.Threads, "thread"))
	}
}

// minorOf reads 11 from "3.11.7".
func minorOf(version string) (int, bool) {
	parts := strings.Split(version, ".")
	if len(parts) < 2 || parts[0] != "3" {
		return 0, parts[0] == "2"
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}

// ask runs the probe. Whatever was said before an error is in the answer.
func ask(ctx context.Context, path string, p Interpreter) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	args := []string{"-c", probe}
	for _, pin := range p.Pins {
		args = append(args, pin.Name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	out, problems := &limited{}, &limited{}
	cmd.Stdout, cmd.Stderr = out, problems
	// A torch.py that happens to lie in the working folder is not to be imported.
	cmd.Env = append(os.Environ(), "PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1")
	killGroup(cmd)
	cmd.WaitDelay = time.Second // a child that keeps the pipe open does not keep us
	err := cmd.Run()
	a := parseAnswer(out.kept.Bytes())
	switch {
	case ctx.Err() != nil:
		return a, fmt.Errorf("it did not answer within %v and was killed", p.Timeout)
	case err != nil && problems.kept.Len() > 0:
		return a, fmt.Errorf("%w: %s", err, lastLine(problems.kept.String()))
	}
	return a, err
}

// parseAnswer merges the probe's lines and skips all other lines.
func parseAnswer(out []byte) answer {
	var a answer
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), mark); ok {
			_ = json.Unmarshal([]byte(text), &a) // a line that is cut short says nothing
		}
	}
	return a
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// limited keeps the first bytes written and refuses the rest, which ends the writing program. The buffer is not embedded: its ReadFrom would
// take everything.
type limited struct{ kept bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > maxAnswer {
		return 0, errors.New("too much output")
	}
	return l.kept.Write(p)
}
