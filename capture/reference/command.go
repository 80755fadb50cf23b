package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/hooks"
)

// Command is a runner of the user: a command line for the system's shell that runs a model and writes a trace, of your
// port or of the reference.
//
// In the line, {prompt}, {tokens}, {model}, {order} and {out} are replaced by their values, quoted for the shell, and {{
// by one brace. Any other name of lower-case letters in braces is an error; other braces belong to the shell. The
// environment has the same values and some more: TRACEDIFF_SIDE, _PROMPT (unset without a prompt), _TOKENS,
// _MAX_NEW_TOKENS, _MODEL, _ORDER, _OUT, _DTYPE, _LEVEL, _LAYERS, _SCOPE, _DEBUG, _DEBUG_PASSES and _DEBUG_LAYERS.
type Command struct {
	Line   string
	Folder string // working folder of the command; empty for the current folder
	Side   string // "local" or "reference"
	Input
	Model string        // a directory with config.json, weights and tokenizer
	Order string        // TENSOR_ORDER as JSON
	DType hooks.DType   // to compute in
	Scope capture.Scope // the scope of the comparison; a command may capture more
	Out   string        // path of the trace, or of a dump, after the run; no file is there before
	Debug Debug         // the hooks to show, if the command's recorder can show hooks
	Show  io.Writer     // gets both outputs of the command during the run
}

// Input is the input of the model.
type Input struct {
	Prompt    string // the text of the first pass
	NoPrompt  string // why there is no text; empty if there is a text
	Tokens    string // ids of every pass: "2,513,88;17;29"
	NewTokens int    // further passes to decode, one token each
}

// Debug selects the hooks that a run shows.
type Debug struct {
	On     bool // false: no hook is shown
	Passes int  // number of passes shown in full
	Layers int  // number of layers shown in each of these passes
}

// placeholder is a doubled brace, or a name in braces. It does not match ${HOME} and { list; } of the shell.
var placeholder = regexp.MustCompile(`\{\{|\{[a-z_]+\}`)

// names of the placeholders, in the order in which an error lists them.
var names = []string{"prompt", "tokens", "model", "order", "out"}

// Expand returns the line with its placeholders filled in. An unknown name is an error, and so is {prompt} without a
// prompt.
func (c *Command) Expand() (string, error) {
	values := map[string]string{"prompt": c.Prompt, "tokens": c.Tokens, "model": c.Model, "order": c.Order, "out": c.Out}
	var wrong error
	line := placeholder.ReplaceAllStringFunc(c.Line, func(found string) string {
		if found == "{{" {
			return "{"
		}
		name := strings.Trim(found, "{}")
		value, known := values[name]
		switch {
		case !known:
			wrong = fmt.Errorf("the command has %s; known are {%s}, and {{ is a brace", found, strings.Join(names, "}, {"))
		case name == "prompt" && c.NoPrompt != "":
			wrong = fmt.Errorf("the command has {prompt}, and %s; {tokens} stands for the ids", c.NoPrompt)
		}
		quoted, ok := quote(value)
		if !ok {
			wrong = fmt.Errorf("%s cannot be quoted for this system's shell: %.80q; the command can read TRACEDIFF_%s", found, value, strings.ToUpper(name))
		}
		return quoted
	})
	return line, wrong
}

// killWait is the time that an interrupted command has before it is killed. It also bounds the wait for output after
// the command has ended, if a process that the command started holds the output open.
const killWait = 2 * time.Second

// Run runs the command and returns nil if the command left a complete trace at Out. The error has the exit status,
// and says what the command left: nothing, or an unfinished trace. When ctx is done, Run ends the command and its
// process group; a process that left the group keeps running.
func (c *Command) Run(ctx context.Context) error {
	line, err := c.Expand()
	if err != nil {
		return err
	}
	env, err := c.environment()
	if err != nil {
		return err
	}
	cmd := shell(ctx, line)
	cmd.Dir, cmd.Env = c.Folder, env
	var said ending
	show := io.MultiWriter(&said, c.Show)
	cmd.Stdout, cmd.Stderr = show, show // the same writer for both: one pipe, and lines stay in order
	err = runTo(ctx, cmd, c.Out)
	var status *StatusError
	if errors.As(err, &status) {
		status.Output = said.text
	}
	return err
}

// RunBuild runs a build, which makes no trace: words without a shell or, if words is empty, a line for the system's shell. The
// output goes to show during the run. When ctx is done, RunBuild ends the command and its process group. The error is the error of
// ctx, or says how the command ended.
func RunBuild(ctx context.Context, line string, words []string, folder string, show io.Writer) error {
	var cmd *exec.Cmd
	if len(words) > 0 {
		cmd = exec.CommandContext(ctx, words[0], words[1:]...)
	} else {
		cmd = shell(ctx, line)
	}
	group(cmd)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = folder, show, show, killWait
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	err := cmd.Wait()
	endGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay): // a process that outlives the command is no failure
		return nil
	}
	return err
}

// runTo runs a command in its own process group and returns nil if the command ended well and left a complete trace at out. No file is at out before
// the run, so the trace is from this run, whatever its date: a command may copy a file with its time, and the clock of a file server may be slow.
func runTo(ctx context.Context, cmd *exec.Cmd, out string) error {
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists already: a trace there could be an old one", out)
	}
	group(cmd)
	cmd.WaitDelay = killWait
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	err := cmd.Wait()
	endGroup(cmd) // a process that the command left running could still write
	if moved := named(out); moved != nil {
		return moved
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return &StatusError{Code: cmd.ProcessState.ExitCode(), Status: cmd.ProcessState.String(), Left: left(out)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a process that outlives the command is no failure
		return fmt.Errorf("running the command: %w", err)
	}
	if err := left(out); err != nil {
		return &StatusError{Status: cmd.ProcessState.String(), Left: err}
	}
	return nil
}

// StatusError is the error of a command that left no complete trace, or that failed after a complete trace.
type StatusError struct {
	Code   int    // the exit status; −1 for a command ended by a signal
	Status string // in words: "exit status 1"
	Left   error  // why there is no complete trace, fs.ErrNotExist for no file; nil for a complete trace
	Output []byte // the end of what a Command printed
}

// Error says how the command ended and what the command left.
func (e *StatusError) Error() string {
	if e.Left == nil {
		return fmt.Sprintf("the command failed (%s), although its trace is complete", e.Status)
	}
	return fmt.Sprintf("the command left no complete trace (%s): %v", e.Status, e.Left)
}

// Unwrap returns Left.
func (e *StatusError) Unwrap() error { return e.Left }

func (c *Command) environment() ([]string, error) {
	scope, err := json.Marshal(c.Scope)
	if err != nil {
		return nil, err
	}
	values := map[string]string{
		"SIDE": c.Side, "TOKENS": c.Tokens, "MAX_NEW_TOKENS": fmt.Sprint(c.NewTokens), "MODEL": c.Model, "ORDER": c.Order, "OUT": c.Out,
		"DTYPE": c.DType.String(), "LEVEL": fmt.Sprint(c.Scope.Level), "LAYERS": c.Scope.Layers.String(), "SCOPE": string(scope),
		"DEBUG": onOff(c.Debug.On), "DEBUG_PASSES": fmt.Sprint(c.Debug.Passes), "DEBUG_LAYERS": fmt.Sprint(c.Debug.Layers),
	}
	if c.NoPrompt == "" {
		values["PROMPT"] = c.Prompt
	}
	var env []string
	for _, v := range os.Environ() { // the command would use the prompt of an outer run
		if !strings.HasPrefix(v, "TRACEDIFF_PROMPT=") {
			env = append(env, v)
		}
	}
	for name, value := range values {
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("TRACEDIFF_%s cannot be passed on: it has a zero byte", name)
		}
		env = append(env, "TRACEDIFF_"+name+"="+value)
	}
	return env, nil
}

// onOff is the value of a switch for the recorders, "0" for off: with an empty value the recorders read DEBUG.
func onOff(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// named renames the file of numpy.savez to out: numpy.savez adds .npz to a name with another ending.
func named(out string) error {
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.Rename(out+".npz", out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// left returns an error for a path without a complete trace; the error says what the path has.
func left(path string) error {
	t, err := foreign.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return unfinished(path)
	}
	if err != nil {
		return err
	}
	defer t.Close()
	switch s := t.Status(); {
	case s != "" && s != capture.StatusComplete:
		return fmt.Errorf("%s has %d tensors and its status is %q", path, len(t.Records()), s)
	case len(t.Records()) == 0:
		return fmt.Errorf("%s holds no tensors", path)
	}
	return nil
}

// unfinished describes the .part file of a run that did not come to its end.
func unfinished(path string) error {
	t, err := capture.Open(path + capture.Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	defer t.Close()
	last := "none"
	if n := len(t.Records()); n > 0 {
		last = t.Records()[n-1].Key
	}
	return fmt.Errorf("%s is not there, only %s with %d tensors, the last %.80q, status %q", path, capture.Suffix, len(t.Records()), last, t.Status())
}
