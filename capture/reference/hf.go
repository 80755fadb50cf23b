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

// HF is one run of the embedded transformers runner: the class for the type of the model, loaded with an explicit dtype,
// with eager attention and a cache. A weight that the checkpoint lacks is a failure. The manifest of the trace has the
// versions of the packages and every other fact on which the numbers depend.
type HF struct {
	Python    string // the interpreter, a path or a name in PATH
	Model     string // a directory; Model, Order and Out are absolute
	Order     string // TENSOR_ORDER as JSON; empty: the run is recorded, and NAME.program.json is left next to the trace
	Out       string // path of the trace; no file is there
	Tokens    string // ids of every pass
	NewTokens int    // further passes to decode
	DType     hooks.DType
	Level     int
	Layers    capture.Ranges
	Debug     Debug
	DebugOnly *Shown    // the part of the recorded tensors that debug mode shows; nil for all tensors
	Show      io.Writer // gets the progress of the runner, line by line
}

// Shown selects the tensors that debug mode shows, if a run records more.
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

// Hint is the advice of the runner.
func (e *RunnerError) Hint() string { return e.Advice }

// Run checks the interpreter and starts the runner. The error is a *[SetupError] if the runner cannot start, and a
// *[RunnerError] or *[StatusError] after the start. When ctx is done, Run ends the interpreter.
func (h *HF) Run(ctx context.Context) error {
	p, err := probePython(ctx, h.Python, runnerNeeds...)
	if err == nil {
		err = p.check()
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
	// -m searches the current folder first. The new folder has no torch.py of somebody else.
	args := h.arguments()
	if h.Debug.On && h.DebugOnly != nil && h.Order != "" {
		only := filepath.Join(folder, "only.json") // a file, since thousands of names do not fit an argument
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
	if h.Order != "" { // a recorded run has all levels and layers
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

// The last lines of a failed runner: the message in one line, and in the next line a hint, if the runner has a
// hint.
const (
	messagePrefix = "tracediff.hf: "
	advicePrefix  = "hint: "
)

// runnerError finds the message in the output of the runner. After a crash of the interpreter the message is the
// last line.
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
