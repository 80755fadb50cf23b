package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// commandHint shows how a command is written.
const commandHint = "for example: 'exec:./port --model {model} --tokens {tokens} --out {out}'; {prompt} and {order} are filled in too, and {{ is a brace of the command's own"

// Command is a command of a person that makes the trace of a side of the job.
type Command struct {
	Job    *Job
	Source settings.Source
	Side   string
}

// told returns the command with the facts of the job filled in: model, order, ids, scope and output path. It writes
// no files.
func (c Command) told() (*reference.Command, error) {
	j, src, side := c.Job, c.Source, c.Side
	dir, err := filepath.Abs(j.Dir)
	if err != nil {
		return nil, err
	}
	r := &reference.Command{
		Line: src.Text, Folder: src.Folder, Side: side, DType: j.Model.DType, Scope: j.Settings.Scope,
		Input: reference.Input{Tokens: reference.FormatTokens(j.Input.Passes), NewTokens: j.Input.Further},
		Out:   filepath.Join(dir, tracefolder.ExecFolder, side, side+".safetensors"),
	}
	if r.Model, r.Order, err = j.Handed().Paths(); err != nil {
		return nil, err
	}
	if j.Model.Port != nil && side == "reference" { // what it computes is stored as made with these weights
		if r.Model, err = filepath.Abs(j.Model.Checkpoint.Name()); err != nil {
			return nil, err
		}
	}
	switch {
	case j.Settings.Prompt == nil:
		r.NoPrompt = "no prompt was given"
	case j.Settings.Chat:
		r.NoPrompt = "a prompt in the chat template is handed on as ids"
	case len(j.Input.Passes) > 1:
		r.NoPrompt = "the passes after the first are replayed by their ids"
	default:
		r.Prompt = *j.Settings.Prompt
	}
	return r, nil
}

// Check reports a command line that cannot be filled in.
func (c Command) Check() error {
	r, err := c.told()
	if err == nil {
		_, err = r.Expand()
	}
	if err != nil {
		return hint.Add(fmt.Errorf("--%s: %w", c.Side, err), commandHint)
	}
	return nil
}

// Run runs the command and moves the trace it wrote to path. The output of a failed command stays in the command's
// own folder.
func (c Command) Run(ctx context.Context, e *settings.Env, path string) error {
	j, side := c.Job, c.Side
	r, err := c.told()
	if err != nil {
		return err
	}
	if _, err = r.Expand(); err != nil { // before anything is written
		return hint.Add(fmt.Errorf("--%s: %w", side, err), commandHint)
	}
	out, done, err := tracefolder.OwnFolder(j.Dir, side)
	if err != nil {
		return fmt.Errorf("preparing the command: %w", err)
	}
	r.Out = out
	defer done()
	line, err := r.Expand()
	if err == nil {
		err = cmp.Or(j.Handed().WriteModel(), j.Handed().WriteOrder(j.Order.Record))
	}
	if err != nil {
		return fmt.Errorf("preparing the command: %w", err)
	}
	r.Debug = reference.Debug{On: e.Debug, Passes: ShownPasses(j.Settings.Scope), Layers: ShownLayers(j.Settings.Scope)}
	show := &Prefixed{To: e.Notes, Prefix: side + " | "}
	r.Show = show
	fmt.Fprintf(e.Notes, "%s | $ %s\n", side, plain.Text(line))
	started := time.Now()
	err = r.Run(ctx)
	show.End()
	if err != nil {
		return commandFailed(e, r, err)
	}
	fmt.Fprintf(e.Notes, "%s | exit status 0 after %s\n", side, time.Since(started).Round(time.Millisecond))
	if err := ReplaceTrace(r.Out, path); err != nil {
		return err
	}
	if err := reference.MoveProgram(r.Out, path); err != nil { // that it recorded, or that of an earlier run
		return err
	}
	return os.RemoveAll(filepath.Dir(r.Out)) // including other files of the command
}

// ReplaceTrace puts a trace, or the folder of a dump, into the place of an older one.
func ReplaceTrace(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	before, err := os.Lstat(to)
	if err == nil && (info.IsDir() || before.IsDir()) { // neither is replaced by a rename
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
	return os.Rename(from, to)
}

// quoted finds what is to be filled in between quotes of the person's own.
var quoted = regexp.MustCompile(`['"]\{[a-z]+\}|\{[a-z]+\}['"]`)

// commandFailed returns the error of a command without a trace. It shows the last lines of output unless they were
// shown before.
func commandFailed(e *settings.Env, r *reference.Command, err error) error {
	if errors.Is(err, context.Canceled) {
		return hint.Add(errors.New("interrupted; the command was ended with its process group"), leftOf(r.Out)+"; run the same command again")
	}
	err = fmt.Errorf("--%s: %w", r.Side, err)
	var status *reference.StatusError
	if errors.As(err, &status) && e.Quiet && len(status.Output) > 0 {
		fmt.Fprintf(&Prefixed{To: e.Errors, Prefix: r.Side + " | "}, "%s\n", bytes.TrimRight(status.Output, "\n"))
	}
	if status != nil && status.Code == 0 && errors.Is(status.Left, fs.ErrNotExist) {
		return hint.Add(err, "the command has to write its trace to {out}, which is also TRACEDIFF_OUT in its environment")
	}
	if quoted.MatchString(r.Line) {
		return hint.Add(err, "{prompt}, {tokens} and the others are quoted when they are filled in: write them without quotes of your own")
	}
	nothing := status != nil && errors.Is(status.Left, fs.ErrNotExist)
	next := "the command's output is above"
	switch silent := status != nil && len(bytes.TrimSpace(status.Output)) == 0; {
	case silent && nothing:
		next = "the command printed nothing and wrote no trace: run it in a shell"
	case silent:
		next = "the command printed nothing: run it in a shell"
	case nothing:
		next += "; run it in a shell"
	}
	if !nothing {
		next += "; tracediff compare FILE REFERENCE --partial looks into an unfinished trace"
	}
	return hint.Add(err, next)
}

// leftOf says what a command that was ended has left of its trace.
func leftOf(out string) string {
	for _, path := range []string{out, out + capture.Suffix} {
		if _, err := os.Lstat(path); err == nil {
			return "what it had written is in " + path
		}
	}
	return "it had written nothing to " + out
}
