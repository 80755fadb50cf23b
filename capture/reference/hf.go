package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// HF is one run of the embedded transformers runner: the class of the model's type, loaded with an explicit dtype, eager
// attention, its cache in use. A weight that the checkpoint does not have is a failure. Versions of the packages, and what
// else the numbers depend on, are in the trace's manifest.
type HF struct {
	Python    string // the interpreter, a path or a name in PATH
	Model     string // a directory; it and the next two are absolute
	Order     string // TENSOR_ORDER as JSON; empty: the run is recorded, and NAME.program.json is left next to the trace
	Out       string // where the trace goes; nothing is there
	Tokens    string // ids of every pass
	NewTokens int    // passes to decode after those
	DType     hooks.DType
	Level     int
	Layers    capture.Ranges
	Debug     Debug
	DebugOnly *Shown    // what debug mode shows of what is recorded; nil for all
	Show      io.Writer // what the runner says while it works, a line each
}

// Shown is what debug mode shows of a run that records more.
type Shown struct {
	Names     []string       `json:"names"`
	Passes    capture.Ranges `json:"passes"`
	Positions capture.Ranges `json:"positions"`
}

// RunnerError is a failure of the runner, in its own words.
type RunnerError struct {
	Status  string // "exit status 2"
	Message string
	Advice  string
}

// Error is the runner's message and its exit status.
func (e *RunnerError) Error() string {
	return fmt.Sprintf("transformers: %s (%s)", e.Message, e.Status)
}

// Hint is the runner's.
func (e *RunnerError) Hint() string { return e.Advice }

// Run checks the interpreter and runs the runner. The error is a *[SetupError] before, a *[RunnerError] or *[StatusError]
// after it ran. When ctx is done the interpreter is ended.
func (h *HF) Run(ctx context.Context) error {
	p, err := ProbePython(ctx, h.Python, runnerNeeds...)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(h.Show, "Python %s, torch %s, transformers %s\n", p.Version, p.Packages["torch"], p.Packages["transformers"])
	folder, err := extract()
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	// -m looks into the current folder first, and there nobody else has put a torch.py.
	args := h.arguments()
	if h.Debug.On && h.DebugOnly != nil && h.Order != "" {
		only := filepath.Join(folder, "only.json") // a file, since thousands of names are no argument
		text, err := json.Marshal(h.DebugOnly)
		if err == nil {
			err = os.WriteFile(only, text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("telling the runner what to show: %w", err)
		}
		args = append(args, "--debug-only", only)
	}
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PYTHONPATH="+prependPath(folder, os.Getenv("PYTHONPATH")), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		"TRACEDIFF_DEBUG="+onOff(h.Debug.On), fmt.Sprint("TRACEDIFF_DEBUG_PASSES=", h.Debug.Passes), fmt.Sprint("TRACEDIFF_DEBUG_LAYERS=", h.Debug.Layers))
	var said ending
	cmd.Stderr = io.MultiWriter(&said, h.Show)
	err = runTo(ctx, cmd, h.Out)
	var status *StatusError
	if errors.As(err, &status) && status.Code != 0 {
		return runnerError(status, &said)
	}
	return err
}

func (h *HF) arguments() []string {
	args := []string{"-m", "tracediff.hf", "--progress", "--model", h.Model}
	if h.Order != "" {
		args = append(args, "--order", h.Order)
	}
	args = append(args, "--out", h.Out, "--tokens", h.Tokens, "--dtype", h.DType.String())
	if h.Order != "" { // else all levels and layers are recorded
		args = append(args, "--level", fmt.Sprint(h.Level))
	}
	if h.NewTokens > 0 {
		args = append(args, "--max-new-tokens", fmt.Sprint(h.NewTokens))
	}
	if len(h.Layers) > 0 {
		args = append(args, "--layers", h.Layers.String())
	}
	return args
}

func prependPath(folder, path string) string {
	if path == "" {
		return folder
	}
	return folder + string(os.PathListSeparator) + path
}

// The runner ends with its message in one line, and a hint in the next if it has one.
const (
	messagePrefix = "tracediff.hf: "
	advicePrefix  = "hint: "
)

// runnerError finds the runner's message in what it said; a crash of the interpreter has its last line.
func runnerError(status *StatusError, said *ending) error {
	e := &RunnerError{Status: status.Status, Message: string(said.lastLine())}
	for line := range strings.Lines(string(said.text)) {
		line = strings.TrimSpace(line)
		if m, ok := strings.CutPrefix(line, messagePrefix); ok && !strings.HasPrefix(m, "warning: ") {
			e.Message, e.Advice = m, ""
		} else if a, ok := strings.CutPrefix(line, advicePrefix); ok {
			e.Advice = a
		}
	}
	return e
}
