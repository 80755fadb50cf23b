package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracediff/tracediff/hooks/python"
	"github.com/tracediff/tracediff/internal/files"
)

// probedPython is the description that an interpreter gives.
type probedPython struct {
	Path     string            `json:"executable"`
	Version  string            `json:"python"`   // "3.11.4"
	Packages map[string]string `json:"packages"` // the installed version of each package in question; empty if not installed
}

// SetupError is the error for a machine on which transformers cannot run, and the fix.
type SetupError struct {
	Problem string
	Fix     string // a command or a flag
}

// Error says what is missing, and where.
func (e *SetupError) Error() string { return e.Problem }

// Hint is the fix.
func (e *SetupError) Hint() string { return e.Fix }

// runnerNeeds are the packages that the runner needs to start. Their dependencies are installed with the two
// packages.
var runnerNeeds = []string{"torch", "transformers"}

// oldestPython is the first minor version of Python 3 with every feature that the runner uses.
const oldestPython = 11

// probeTimeout bounds the wait for an answer that takes less than a second, even from a slow disk.
const probeTimeout = 60 * time.Second

// probe asks for versions without importing the packages: importing torch takes seconds, and the runner does so
// later.
const probe = `import json, sys
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
print(json.dumps({"executable": sys.executable, "python": "%d.%d.%d" % sys.version_info[:3],
                  "packages": {name: version(name) for name in sys.argv[1:]}}))`

// probePython asks an interpreter, a path or a name in PATH, for its version and the versions of packages. The
// error is a *[SetupError] if the interpreter does not exist or does not answer.
func probePython(ctx context.Context, interpreter string, packages ...string) (probedPython, error) {
	var p probedPython
	path, err := findPython(interpreter)
	if err != nil {
		return p, err
	}
	// An empty working folder: Python would import a json.py in the current folder.
	dir, err := files.MkdirTemp("tracediff-python-*")
	if err != nil {
		return p, fmt.Errorf("asking %s for its packages: %w", path, err)
	}
	defer os.RemoveAll(dir)
	limited, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	var out, problems ending
	cmd := exec.CommandContext(limited, path, append([]string{"-c", probe}, packages...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &problems, killWait
	group(cmd)
	err = cmd.Run()
	if cmd.Process != nil {
		endGroup(cmd)
	}
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	if limited.Err() != nil {
		err = fmt.Errorf("no answer within %s", probeTimeout)
	}
	if err == nil {
		err = json.Unmarshal(out.lastLine(), &p)
	}
	if err != nil {
		return p, &SetupError{strings.TrimSpace(fmt.Sprintf("%s does not work: %v %s", path, err, problems.lastLine())), pythonHint}
	}
	p.Path = path
	return p, nil
}

const pythonHint = "transformers runs in Python 3.11 or later: name an interpreter that has it with --python PATH"

// findPython returns the absolute path of an interpreter. It keeps symbolic links, since the Python of a virtual
// environment is a link.
func findPython(interpreter string) (string, error) {
	path, err := exec.LookPath(interpreter)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", &SetupError{fmt.Sprintf("no Python: %v", err), pythonHint}
	}
	return path, nil
}

// check returns a *[SetupError] if the runner cannot start: the missing package, the interpreter, and the command that
// installs the package.
func (p probedPython) check() error {
	where := fmt.Sprintf("%s (Python %s)", p.Path, p.Version)
	if !p.recent() {
		return &SetupError{fmt.Sprintf("%s is older than 3.%d", where, oldestPython), pythonHint}
	}
	pins, err := Pins()
	if err != nil {
		return err
	}
	var missing, install []string
	for _, name := range runnerNeeds {
		if p.Packages[name] == "" {
			missing = append(missing, name)
		}
		install = append(install, name+"=="+pins[name])
	}
	if len(missing) == 0 {
		return nil
	}
	return &SetupError{
		fmt.Sprintf("%s has no %s", where, strings.Join(missing, " and no ")),
		fmt.Sprintf("%s -m pip install %s, or name another interpreter with --python PATH", p.Path, strings.Join(install, " ")),
	}
}

func (p probedPython) recent() bool {
	parts := strings.Split(p.Version, ".")
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major > 3 || major == 3 && minor >= oldestPython)
}

// Pins returns the versions of packages for which the runner is made, and with which the goldens were made.
func Pins() (map[string]string, error) {
	text, err := python.Files.ReadFile("requirements.txt")
	if err != nil {
		return nil, err
	}
	pins := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), "=="); ok && !strings.HasPrefix(name, "#") {
			pins[name] = version
		}
	}
	for _, name := range runnerNeeds {
		if pins[name] == "" {
			return nil, fmt.Errorf("requirements.txt does not pin %s", name)
		}
	}
	return pins, nil
}

// extract writes the runner to a new folder that only this user can read or write, and returns the folder. A folder for
// one run needs no check against changes of its files; a folder in a cache would.
func extract() (string, error) {
	dir, err := files.MkdirTemp("tracediff-hf-*")
	if err == nil {
		err = os.CopyFS(dir, python.Files)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("unpacking the transformers runner: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}

// hfVersion identifies the runner: a digest of its files and pins.
func hfVersion() string {
	var all bytes.Buffer
	err := fs.WalkDir(python.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := python.Files.ReadFile(name)
		fmt.Fprintf(&all, "%q %q\n", name, data)
		return err
	})
	if err != nil { // of an embedded file
		panic(err)
	}
	return digest(all.Bytes())
}

// maxEnding is the number of bytes kept of a program's output, to say why the program failed.
const maxEnding = 16 << 10

// ending keeps the last maxEnding bytes written.
type ending struct{ text []byte }

func (e *ending) Write(data []byte) (int, error) {
	e.text = append(e.text, data...)
	if over := len(e.text) - maxEnding; over > 0 {
		e.text = slices.Delete(e.text, 0, over)
	}
	return len(data), nil
}

func (e *ending) lastLine() []byte {
	lines := bytes.Split(bytes.TrimSpace(e.text), []byte("\n"))
	return bytes.TrimSpace(lines[len(lines)-1])
}
