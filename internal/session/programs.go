package session

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
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
)

const programHint = "docs/program-format.md says what a program has; record it again with python -m tracediff.hf --program"

// recordedProgram is a program in use.
type recordedProgram struct {
	path string
	data []byte // of the file
	list *order.List
	file *recorded.Program
	base *order.List // of the passes that were recorded; list may be of passes of other lengths
	// ofPrompt is why it holds for the token ids of the run that recorded it, and for no others; empty where it holds for others.
	ofPrompt string
}

// ReadProgram reads a recorded program as an order. The error has a hint.
func ReadProgram(path string) (*order.List, error) {
	p, err := openProgram(path)
	if err != nil {
		return nil, err
	}
	return p.list, nil
}

// openProgram reads the program of a file that was named.
func openProgram(path string) (*recordedProgram, error) {
	data, err := recorded.File(path)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
	}
	return readProgram(path, data)
}

func readProgram(path string, data []byte) (*recordedProgram, error) {
	p := &recordedProgram{path: path, data: data}
	file, err := recorded.Read(bytes.NewReader(data))
	if err == nil {
		p.file, p.ofPrompt = file, file.OfPrompt()
		p.list, err = order.Recorded(file)
		p.base = p.list
	}
	if err == nil && p.list.Index(order.InputIDs) < 0 {
		err = fmt.Errorf("it has no %s: nothing says of which passes it is", order.InputIDs)
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("%s: %w", path, err), programHint)
	}
	return p, nil
}

// programOf reads the program that lies beside a trace and is the one that it declares; nil where it declares none, or none is there.
func programOf(t *capture.Trace) (*recordedProgram, error) {
	if t.Manifest().Program == "" {
		return nil, nil
	}
	data, err := reference.ReadProgram(t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, reference.ErrOtherProgram):
		return nil, hint.Add(err, "--program FILE takes another one, whatever its digest is")
	case err != nil:
		return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
	}
	return readProgram(reference.ProgramBeside(t.Path()), data)
}

// findProgram reads the program that was named, or the one that lies beside the first trace that declares one; nil where there is
// none. One that is not what the trace was recorded with, or that is of passes of other lengths than those of a trace, is an
// error.
func findProgram(asked string, traces ...*capture.Trace) (*recordedProgram, error) {
	if asked != "" {
		p, err := openProgram(asked)
		if err != nil {
			return nil, err
		}
		return p.forTraces(traces)
	}
	for _, t := range traces {
		p, err := programOf(t)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p.forTraces(traces)
		}
	}
	return nil, nil
}

// forTraces is the program for the passes of traces: for those of the one that has the most. The error is of one for whose passes
// it does not hold.
func (p *recordedProgram) forTraces(traces []*capture.Trace) (*recordedProgram, error) {
	out, most := p, 0
	for _, t := range traces {
		passes, err := t.IDs()
		if err != nil { // what it lacks is said where it is isolated
			continue
		}
		fit, err := p.forPasses(passes, 0, " of "+t.Path())
		if err != nil {
			return nil, err
		}
		if len(passes) > most {
			out, most = fit, len(passes)
		}
	}
	return out, nil
}

// forPasses is the program for passes of token ids, and for further ones that are decoded: what was recorded, or the same program for
// other lengths, where runs of other lengths were recorded, too. The error is of passes for which it does not hold. of says
// whose they are, for the error.
func (p *recordedProgram) forPasses(passes [][]int, further int, of string) (*recordedProgram, error) {
	own, err := p.ids()
	if err != nil {
		return nil, err
	}
	if p.ofPrompt != "" && further > 0 {
		return nil, hint.Add(fmt.Errorf("%s holds for the token ids of one run alone (%s), and those of decoded passes are not known before", p.path, p.ofPrompt), "give the ids of every pass: --tokens "+QuoteShell(reference.FormatTokens(own)))
	}
	lengths := make([]int, len(passes)+further)
	first := -1 // the first pass that was recorded of others
	for pass := range lengths {
		if lengths[pass] = 1; pass < len(passes) {
			lengths[pass] = len(passes[pass])
		}
		if p.ofPrompt != "" && (pass >= len(own) || !slices.Equal(own[pass], passes[pass])) {
			return nil, hint.Add(fmt.Errorf("pass %d%s has other token ids than the run that recorded %s, which holds for these alone: %s", pass, of, p.path, p.ofPrompt), "record the program on the prompt of the trace")
		}
		if first < 0 && (pass >= len(p.file.Passes) || p.file.Passes[pass].Tokens != lengths[pass]) {
			first = pass
		}
	}
	if first < 0 {
		return p, nil
	}
	fit := *p
	if fit.file, err = p.file.For(lengths); err == nil {
		fit.list, err = order.Recorded(fit.file)
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("pass %d%s has %s, and %s %w", first, of, plural(lengths[first], "token"), p.path, err),
			"record it again: python -m tracediff.hf records other lengths, too, those up to N tokens with --lengths N")
	}
	return &fit, nil
}

// ids are the token ids of the run that recorded a program which holds for these alone; nil of any other.
func (p *recordedProgram) ids() (own [][]int, err error) {
	if p.ofPrompt == "" {
		return nil, nil
	}
	t, err := capture.Open(p.trace())
	if err == nil {
		own, err = t.IDs()
		err = hint.Also(err, t.Close())
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("%s holds for the prompt of one run alone: %w", p.path, err), "the trace of that run has to lie beside it")
	}
	return own, nil
}

// said is what a report says of a program that was named.
func (p *recordedProgram) said() string {
	if p.list != p.base {
		return fmt.Sprintf("the operations are those of %s, made for a prompt of another length than the recorded one", p.path)
	}
	return fmt.Sprintf("the operations are those of %s", p.path)
}

// digest identifies the program.
func (p *recordedProgram) digest() string {
	sum := sha256.Sum256(p.data)
	return "program " + hex.EncodeToString(sum[:8])
}

// trace is where the trace lies that the run which recorded the program has written.
func (p *recordedProgram) trace() string { return reference.TraceBeside(p.path) }

// putBeside writes the program beside a trace.
func (p *recordedProgram) putBeside(trace string) error {
	return WriteWhole(reference.ProgramBeside(trace), p.data)
}

// declared is the digest as the manifest of a trace has it.
func (p *recordedProgram) declared() string {
	sum := sha256.Sum256(p.data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// certified isolates the trace that the run which recorded the program has written beside it: every form of an operation that
// reproduces it may accuse. Without that trace none may. A walk by the program is no such run: it is the program itself.
func (p *recordedProgram) certified(ctx context.Context, e *Env, ck *checkpoint.Checkpoint) (isolate.Certified, error) {
	into := isolate.Certified{}
	path := p.trace()
	if _, err := os.Stat(path); err != nil || path == p.path || ck == nil {
		return into, nil
	}
	before := largeTrace(path, ck)
	t, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	m := t.Manifest()
	if m.Program != "" && m.Producer.Name != reference.WalkName && othersThan(ck, t) == "" {
		into, err = cleared(ctx, e, p.declared(), before, p.base, t, ck, func() (isolate.Certified, error) {
			own := isolate.Certified{}
			return own, own.AddRun(ctx, t, p.base, reference.Weights(ck, m.DType))
		})
	}
	if err = hint.Also(err, t.Close()); err != nil {
		return nil, fmt.Errorf("certifying the operations of the program: %w", err)
	}
	return into, nil
}

// copyProgram puts the program beside a trace beside a copy of it; where there is none, an older one there goes.
func copyProgram(from, to string) error {
	err := copyFile(reference.ProgramBeside(from), reference.ProgramBeside(to))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(reference.ProgramBeside(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the program of an earlier trace, %s: %w", filepath.Base(reference.ProgramBeside(to)), err)
	}
	return nil
}
