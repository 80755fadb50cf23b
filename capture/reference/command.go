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

// Command is a runner that is not ours: a command line for the system's shell that runs a model and writes a trace. It
// may stand on either side.
//
// In the line {prompt}, {tokens}, {model}, {order} and {out} are replaced by their values, quoted for the shell, and {{
// by one brace. Braces around anything but lower-case letters are the shell's own. The same values, and what has no
// place in a line, are in the environment: TRACEDIFF_SIDE, _PROMPT (unset without one), _TOKENS, _MAX_NEW_TOKENS, _MODEL,
// _ORDER, _OUT, _DTYPE, _LEVEL, _LAYERS, _SCOPE, _DEBUG and _DEBUG_PASSES.
type Command struct {
	Line   string
	Folder string // where it runs; empty for the current folder
	Side   string // "local" or "reference"
	Input
	Model string        // a directory with config.json, weights and tokenizer
	Order string        // TENSOR_ORDER as JSON
	DType hooks.DType   // to compute in
	Scope capture.Scope // what will be compared; a command may capture more
	Out   string        // where the trace, or a dump, has to be afterwards; nothing is there before
	Debug Debug         // which hooks are shown, if the command's recorder can
	Show  io.Writer     // what the command prints on either output, as it comes
}

// Input is what a command is to feed its model.
type Input struct {
	Prompt    string // the text of the first pass
	NoPrompt  string // why there is no text; empty when there is
	Tokens    string // ids of every pass: "2,513,88;17;29"
	NewTokens int    // passes to decode after those, one token each
}

// Debug is which hooks a run shows as they fire.
type Debug struct {
	On     bool // else none
	Passes int  // that are shown in full
	Layers int  // of each of these passes
}

// placeholder is what is replaced: a doubled brace, or a name in braces. The shell's ${HOME} and { list; } are none.
var placeholder = regexp.MustCompile(`\{\{|\{[a-z_]+\}`)

// names of the placeholders, in the order in which an error lists them.
var names = []string{"prompt", "tokens", "model", "order", "out"}

// Expand returns the line with its placeholders filled in. The error is that of an unknown name, or of {prompt} where
// there is no prompt.
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

// killWait is how long a command that was interrupted may take to end before it is killed, and how long its output is
// waited for when it left a process behind that holds it open.
const killWait = 2 * time.Second

// Run runs the command and returns nil when it has left a complete trace at Out. The error says with which status it
// ended and what it left instead: nothing, or an unfinished trace. When ctx is done the command is ended with
// its process group; a process that left the group goes on.
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
	cmd.Stdout, cmd.Stderr = show, show // the same writer: one pipe, and lines stay in their order
	err = runTo(ctx, cmd, c.Out)
	var status *StatusError
	if errors.As(err, &status) {
		status.Output = said.text
	}
	return err
}

// RunBuild runs a line for the system's shell, or words without one, that makes no trace: a build. What it prints goes to show as it
// comes. When ctx is done it is ended with its process group. The error is that of ctx, or says how it ended.
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
	case errors.Is(err, exec.ErrWaitDelay): // a process that outlived it is no failure
		return nil
	}
	return err
}

// runTo runs a command in a group of its own and returns nil when it ended well and has left a complete trace at out. Nothing is at out before the run, so the
// trace came from this run, whatever its date: a command may copy a file with its time, and the clock of a file server may be slow.
func runTo(ctx context.Context, cmd *exec.Cmd, out string) error {
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already, a trace at it could be an old one", out)
	}
	group(cmd)
	cmd.WaitDelay = killWait
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	err := cmd.Wait()
	endGroup(cmd) // what it left running could still write
	if moved := named(out); moved != nil {
		return moved
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return &StatusError{Code: cmd.ProcessState.ExitCode(), Status: cmd.ProcessState.String(), Left: left(out)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a process that outlived it is no failure
		return fmt.Errorf("running the command: %w", err)
	}
	if err := left(out); err != nil {
		return &StatusError{Status: cmd.ProcessState.String(), Left: err}
	}
	return nil
}

// StatusError is a command that ended and left no complete trace, or failed although it did.
type StatusError struct {
	Code   int    // the exit status; −1 when a signal ended it
	Status string // in words: "exit status 1"
	Left   error  // what there is in place of a trace, fs.ErrNotExist for nothing; nil for a complete one
	Output []byte // the end of what a Command printed
}

// Error says how the command ended and what it left.
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
	for _, v := range os.Environ() { // a value of an outer run would be believed
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

// onOff is a switch as the recorders read it: they look at DEBUG where it is empty.
func onOff(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// named moves what numpy.savez wrote, which puts an ending of its own behind a name that has another, to where it was to be.
func named(out string) error {
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.Rename(out+".npz", out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// left says what there is at path in place of a complete trace; nil for one.
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

// unfinished describes the .part that a run left which did not come to its end.
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
