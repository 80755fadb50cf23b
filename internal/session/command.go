package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order"
)

// commandHint shows how a command is written.
const commandHint = "for example: 'exec:./port --model {model} --tokens {tokens} --out {out}'; {prompt} and {order} are known too, and a brace of the command's own is {{"

// command fills in what a side's command is told. Nothing is written.
func (j *Job) command(src Source, side string) (*reference.Command, error) {
	dir, err := filepath.Abs(j.dir)
	if err != nil {
		return nil, err
	}
	r := &reference.Command{
		Line: src.Text, Folder: src.Folder, Side: side, Tokens: reference.FormatTokens(j.passes), NewTokens: j.further, DType: j.dtype, Scope: j.Scope,
		Out: filepath.Join(dir, execFolder, side, side+".safetensors"),
	}
	if r.Model, r.Order, err = j.handed(); err != nil {
		return nil, err
	}
	if j.port != nil && side == "reference" { // what it computes is stored as made with these weights
		if r.Model, err = filepath.Abs(j.ck.Name()); err != nil {
			return nil, err
		}
	}
	switch {
	case j.Prompt == nil:
		r.NoPrompt = "no prompt was given"
	case j.Chat:
		r.NoPrompt = "a prompt in the turn template is handed on as ids"
	case len(j.passes) > 1:
		r.NoPrompt = "the passes after the first are replayed by their ids"
	default:
		r.Prompt = *j.Prompt
	}
	return r, nil
}

// handed are the paths that a runner outside is handed: the model directory and the order file.
func (j *Job) handed() (model, order string, err error) {
	dir, err := filepath.Abs(j.dir)
	if err != nil {
		return "", "", err
	}
	model = filepath.Join(dir, "model", Embedded)
	if j.Model != "" {
		model, err = filepath.Abs(j.Model)
	}
	return model, filepath.Join(dir, "order.json"), err
}

// checkCommand reports a command line that cannot be filled in.
func (j *Job) checkCommand(src Source, side string) error {
	r, err := j.command(src, side)
	if err == nil {
		_, err = r.Expand()
	}
	if err != nil {
		return hint.Add(fmt.Errorf("--%s: %w", side, err), commandHint)
	}
	return nil
}

// runCommand runs a side's command and puts the trace that it wrote at path. What a command that failed has left stays
// where it was told to write.
func (j *Job) runCommand(ctx context.Context, e *Env, src Source, side, path string) error {
	r, err := j.command(src, side)
	if err != nil {
		return err
	}
	if _, err = r.Expand(); err != nil { // before anything is written
		return hint.Add(fmt.Errorf("--%s: %w", side, err), commandHint)
	}
	done, err := j.ownFolder(r)
	if err != nil {
		return fmt.Errorf("preparing the command: %w", err)
	}
	defer done()
	line, err := r.Expand()
	if err == nil {
		err = cmp.Or(j.prepare(), j.writeOrder(j.record))
	}
	if err != nil {
		return fmt.Errorf("preparing the command: %w", err)
	}
	r.Debug, r.DebugFull, r.DebugLayers = e.Debug, j.debugPasses(), j.debugLayers()
	show := &prefixed{w: e.Notes, prefix: side + " | "}
	r.Show = show
	fmt.Fprintf(e.Notes, "%s | $ %s\n", side, plain.Text(line))
	started := time.Now()
	err = r.Run(ctx)
	show.end()
	if err != nil {
		return commandFailed(e, r, err)
	}
	fmt.Fprintf(e.Notes, "%s | exit status 0 after %s\n", side, time.Since(started).Round(time.Millisecond))
	if err := replaceTrace(r.Out, path); err != nil {
		return err
	}
	if err := reference.MoveProgram(r.Out, path); err != nil { // that it recorded, or that of an earlier run
		return err
	}
	return os.RemoveAll(filepath.Dir(r.Out)) // and what the command has left beside it
}

// replaceTrace puts a trace, or the folder of a dump, into the place of an older one.
func replaceTrace(from, to string) error {
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

// commandFailed is the error of a command that left no trace. Its last output is shown where it was not shown already.
func commandFailed(e *Env, r *reference.Command, err error) error {
	if errors.Is(err, context.Canceled) {
		return hint.Add(errors.New("interrupted; the command was ended with its process group"), leftOf(r.Out)+"; run the same command again")
	}
	err = fmt.Errorf("--%s: %w", r.Side, err)
	var status *reference.StatusError
	if errors.As(err, &status) && e.Quiet && len(status.Output) > 0 {
		fmt.Fprintf(&prefixed{w: e.Errors, prefix: r.Side + " | "}, "%s\n", bytes.TrimRight(status.Output, "\n"))
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
		next = "the command printed nothing and wrote no trace: run it in a shell by itself"
	case silent:
		next = "the command printed nothing: run it in a shell by itself"
	case nothing:
		next += "; run it in a shell by itself"
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

// prepare writes the embedded checkpoint out when no other is named.
func (j *Job) prepare() error {
	if j.Model != "" {
		return nil
	}
	return WriteEmbedded(j.dir)
}

// writeOrder writes the file that {order} is.
func (j *Job) writeOrder(l *order.List) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return WriteWhole(filepath.Join(j.dir, "order.json"), append(text, '\n'))
}

// WriteEmbedded puts the embedded checkpoint under dir, for runners that read a directory. Files that
// are there already and the same are left alone, so that their times say when they changed.
func WriteEmbedded(dir string) error {
	return fs.WalkDir(fixtures.Files, Embedded, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fixtures.Files, name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, "model", filepath.FromSlash(name))
		if there, err := files.Read(path, int64(len(data))); err == nil && bytes.Equal(there, data) {
			return nil
		}
		return WriteWhole(path, data)
	})
}

// prefixed writes a prefix before every line of what another program prints, and escapes what a terminal would act on. A carriage return, with which programs redraw a line of progress, begins
// one too.
type prefixed struct {
	w      io.Writer
	prefix string
	within bool // a line that was begun
	open   bool // the last line was not ended: what else is printed would stand in it
	safe   io.Writer
	text   bytes.Buffer // what safe has written
}

// end ends a line that was left open.
func (p *prefixed) end() {
	if p.open {
		fmt.Fprintln(p.w)
	}
	p.within, p.open = false, false
}

func (p *prefixed) Write(data []byte) (int, error) {
	var b bytes.Buffer
	if p.safe == nil {
		p.safe = plain.Writer(&p.text)
	}
	if _, err := p.safe.Write(data); err != nil {
		return 0, err
	}
	defer p.text.Reset()
	for _, c := range p.text.Bytes() {
		if !p.within {
			b.WriteString(p.prefix)
		}
		b.WriteByte(c)
		p.within, p.open = c != '\n' && c != '\r', c != '\n'
	}
	_, err := p.w.Write(b.Bytes())
	return len(data), err
}

// QuoteShell quotes a word for a POSIX shell where it has to be, for a hint.
func QuoteShell(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@", r)
	}
	if s != "" && strings.TrimFunc(s, safe) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
