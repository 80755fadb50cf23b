package orders

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/proven"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
	"github.com/tracediff/tracediff/order/recorded/lengths"
)

const programHint = "docs/formats.md says what a program has; record it again with python -m tracediff.hf --program"

// Program is a recorded program in use.
type Program struct {
	Path string      // of its file
	List *order.List // the program as an order, for the passes that it is used for

	data []byte // of the file
	file *recorded.Program
	base *order.List // for the passes that were recorded
	// ofPrompt says why the program holds only for the token ids of the recorded run. It is empty if the program
	// holds for other ids.
	ofPrompt string
}

// OfProgram reads a recorded program as an order. The error has a hint.
func OfProgram(path string) (*order.List, error) {
	p, err := OpenProgram(path)
	if err != nil {
		return nil, err
	}
	return p.List, nil
}

// OpenProgram reads the program of a file that was named.
func OpenProgram(path string) (*Program, error) {
	data, err := recorded.File(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(fmt.Errorf("reading the program: %w", err), "check the path; python -m tracediff.hf --program records one")
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
	}
	return newProgram(path, data)
}

func newProgram(path string, data []byte) (*Program, error) {
	p := &Program{Path: path, data: data}
	file, err := recorded.Read(bytes.NewReader(data))
	if err == nil {
		p.file, p.ofPrompt = file, file.OfPrompt()
		p.List, err = order.Recorded(file)
		p.base = p.List
	}
	if err == nil && p.List.Index(order.InputIDs) < 0 {
		err = fmt.Errorf("it has no %s: its passes are unknown", order.InputIDs)
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("%s: %w", path, err), programHint)
	}
	return p, nil
}

// ProgramBeside reads the program file next to a trace. It returns nil if the manifest declares no program, or if the
// file does not exist. A file with a digest other than the digest in the manifest is an error.
func ProgramBeside(t *capture.Trace) (*Program, error) {
	if t.Manifest().Program == "" {
		return nil, nil
	}
	data, err := reference.ReadProgram(t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, reference.ErrOtherProgram):
		return nil, hint.Add(err, "--program FILE takes any other program, whatever its digest")
	case err != nil:
		return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
	}
	return newProgram(reference.ProgramBeside(t.Path()), data)
}

// FindProgram reads the program file asked, or the program next to the first trace with one. It returns nil if no
// trace has a program. It returns an error for a program other than the program of the trace, and for a program
// that does not fit the lengths of the passes.
func FindProgram(asked string, traces ...*capture.Trace) (*Program, error) {
	if asked != "" {
		p, err := OpenProgram(asked)
		if err != nil {
			return nil, err
		}
		return p.forTraces(traces)
	}
	for _, t := range traces {
		p, err := ProgramBeside(t)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p.forTraces(traces)
		}
	}
	return nil, nil
}

// forTraces returns the program for the passes of the trace with the most passes. It returns an error if the
// program does not hold for the passes of some trace.
func (p *Program) forTraces(traces []*capture.Trace) (*Program, error) {
	out, most := p, 0
	for _, t := range traces {
		passes, err := t.IDs()
		if err != nil { // what it lacks is said where it is isolated
			continue
		}
		fit, err := p.ForPasses(passes, 0, " of "+t.Path())
		if err != nil {
			return nil, err
		}
		if len(passes) > most {
			out, most = fit, len(passes)
		}
	}
	return out, nil
}

// ForPasses returns the program for these passes of token ids and for further decode passes: the recorded program,
// or a variant for other lengths if the recorder ran several lengths. It returns an error if the program does not
// hold for the passes. of names the owner of the passes in the error.
func (p *Program) ForPasses(passes [][]int, further int, of string) (*Program, error) {
	own, err := p.ids()
	if err != nil {
		return nil, err
	}
	if p.ofPrompt != "" && further > 0 {
		return nil, hint.Add(fmt.Errorf("%s holds only for the token ids of one run (%s), and the ids of decoded passes are not known before", p.Path, p.ofPrompt), "give the ids of every pass: --tokens "+plain.QuoteShell(reference.FormatTokens(own)))
	}
	tokens := make([]int, len(passes)+further)
	first := -1 // the first pass that was recorded of others
	for pass := range tokens {
		if tokens[pass] = 1; pass < len(passes) {
			tokens[pass] = len(passes[pass])
		}
		if p.ofPrompt != "" && (pass >= len(own) || !slices.Equal(own[pass], passes[pass])) {
			return nil, hint.Add(fmt.Errorf("pass %d%s has other token ids than the run that recorded %s, which holds only for these: %s", pass, of, p.Path, p.ofPrompt), "record the program on the prompt of the trace")
		}
		if first < 0 && (pass >= len(p.file.Passes) || p.file.Passes[pass].Tokens != tokens[pass]) {
			first = pass
		}
	}
	if first < 0 {
		return p, nil
	}
	fit := *p
	if fit.file, err = lengths.For(p.file, tokens); err == nil {
		fit.List, err = order.Recorded(fit.file)
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("pass %d%s has %s, and %s %w", first, of, amount.Of(tokens[first], "token"), p.Path, err),
			"record it again: python -m tracediff.hf records other lengths, too, those up to N tokens with --lengths N")
	}
	return &fit, nil
}

// ids returns the token ids of the recorded run if the program holds only for these ids, and nil otherwise.
func (p *Program) ids() (own [][]int, err error) {
	if p.ofPrompt == "" {
		return nil, nil
	}
	t, err := capture.Open(p.trace())
	if err == nil {
		own, err = t.IDs()
		err = hint.Also(err, t.Close())
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("%s holds only for the prompt of one run: %w", p.Path, err), "the trace of that run has to be next to it")
	}
	return own, nil
}

// Said is the sentence about a named program in a report.
func (p *Program) Said() string {
	if p.List != p.base {
		return fmt.Sprintf("the operations come from %s, made for a prompt of another length than the recorded one", p.Path)
	}
	return fmt.Sprintf("the operations come from %s", p.Path)
}

// Size is how many bytes the file has.
func (p *Program) Size() int64 { return int64(len(p.data)) }

// Digest identifies the program.
func (p *Program) Digest() string {
	sum := sha256.Sum256(p.data)
	return "program " + hex.EncodeToString(sum[:8])
}

// trace returns the path of the trace written by the recording run.
func (p *Program) trace() string { return reference.TraceBeside(p.Path) }

// PutBeside writes the program next to a trace.
func (p *Program) PutBeside(trace string) error {
	return files.WriteWhole(reference.ProgramBeside(trace), p.data)
}

// Declared is the digest as the manifest of a trace has it.
func (p *Program) Declared() string {
	sum := sha256.Sum256(p.data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Certified isolates the trace written by the recording run: every form of an operation reproduced there may
// produce a BUG. Without the trace no form may. A walk by the program does not count as such a trace, since it
// evaluates the same program.
func (p *Program) Certified(ctx context.Context, e *settings.Env, ck *checkpoint.Checkpoint) (isolate.Certified, error) {
	into := isolate.Certified{}
	path := p.trace()
	if _, err := os.Stat(path); err != nil || path == p.Path || ck == nil {
		return into, nil
	}
	before := proven.LargeTrace(path, ck)
	t, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	m := t.Manifest()
	if m.Program != "" && m.Producer.Name != reference.WalkName && origin.OthersThan(ck, t) == "" {
		c := proven.Clearing{Env: e, Of: p.Declared(), List: p.base, Trace: t, Before: before}
		into, err = c.Certified(ctx, ck, func() (isolate.Certified, error) {
			own := isolate.Certified{}
			return own, own.AddRun(ctx, t, p.base, reference.Weights(ck, m.DType))
		})
	}
	if err = hint.Also(err, t.Close()); err != nil {
		return nil, fmt.Errorf("certifying the operations of the program: %w", err)
	}
	return into, nil
}

// CopyProgram copies the program next to a trace, along with a copy of the trace. If the trace has no program, an
// older program at the destination is removed.
func CopyProgram(from, to string) error {
	err := files.Copy(reference.ProgramBeside(from), reference.ProgramBeside(to))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(reference.ProgramBeside(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the program of an earlier trace, %s: %w", filepath.Base(reference.ProgramBeside(to)), err)
	}
	return nil
}
