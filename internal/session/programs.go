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
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
)

// The program of NAME.safetensors is NAME.program.json beside it.
const (
	programEnd = ".program.json"
	traceEnd   = ".safetensors"
)

const programHint = "docs/program-format.md says what a program has; record it again with python -m tracediff.hf --program"

// recordedProgram is a program in use.
type recordedProgram struct {
	path string
	list *order.List
	// ofPrompt: it holds for the token ids of the run that recorded it, and for no others.
	ofPrompt bool
}

// ReadProgram reads a recorded program as an order. The error has a hint.
func ReadProgram(path string) (*order.List, error) {
	data, err := files.Read(path, recorded.MaxBytes)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
	}
	p := &recordedProgram{path: path}
	return p.list, p.read(data)
}

// read reads the program of a file.
func (p *recordedProgram) read(data []byte) error {
	file, err := recorded.Read(bytes.NewReader(data))
	if err == nil {
		p.ofPrompt = file.OfPrompt()
		p.list, err = order.Recorded(file)
	}
	if err != nil {
		return hint.Add(fmt.Errorf("%s: %w", p.path, err), programHint)
	}
	return nil
}

// findProgram reads the program that was named, or the one that lies beside the first trace that declares one; nil where there is
// none. One that is not what the trace was recorded with, or that is of passes of other lengths than those of a trace, is an
// error.
func findProgram(asked string, traces ...*capture.Trace) (*recordedProgram, error) {
	p := &recordedProgram{path: asked}
	if asked != "" {
		data, err := files.Read(asked, recorded.MaxBytes)
		if err != nil {
			return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
		}
		if err := p.read(data); err != nil {
			return nil, err
		}
		return p, p.holds(traces)
	}
	for _, t := range traces {
		digest := t.Manifest().Program
		if digest == "" {
			continue
		}
		p.path = strings.TrimSuffix(t.Path(), traceEnd) + programEnd
		data, err := files.Read(p.path, recorded.MaxBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, hint.Add(fmt.Errorf("reading the program: %w", err), programHint)
		}
		if sum := sha256.Sum256(data); "sha256:"+hex.EncodeToString(sum[:]) != digest {
			return nil, hint.Add(fmt.Errorf("%s is not the program that %s was recorded with", p.path, t.Path()), "--program FILE takes another one, whatever its digest is")
		}
		if err := p.read(data); err != nil {
			return nil, err
		}
		return p, p.holds(traces)
	}
	return nil, nil
}

// holds reports a trace whose passes are not as long as those that were recorded, or of other token ids where these count.
func (p *recordedProgram) holds(traces []*capture.Trace) error {
	at := p.list.Index(order.InputIDs)
	if at < 0 {
		return hint.Add(fmt.Errorf("%s has no %s: nothing says of which passes it is", p.path, order.InputIDs), programHint)
	}
	var own [][]int
	if p.ofPrompt {
		t, err := capture.Open(p.trace())
		if err == nil {
			own, err = t.IDs()
			err = hint.Also(err, t.Close())
		}
		if err != nil {
			return hint.Add(fmt.Errorf("%s holds for the prompt of one run alone: %w", p.path, err), "the trace of that run has to lie beside it")
		}
	}
	for _, t := range traces {
		passes, err := t.IDs()
		if err != nil { // what it lacks is said where it is isolated
			continue
		}
		for pass, ids := range passes {
			if p.ofPrompt && (pass >= len(own) || !slices.Equal(own[pass], ids)) {
				return hint.Add(fmt.Errorf("pass %d of %s has other token ids than the run that recorded %s, which holds for these alone", pass, t.Path(), p.path), "record the program on the prompt of the trace")
			}
			e := p.list.At(order.Node{Entry: at, Pass: pass})
			if len(e.Shape) != 2 || int(e.Shape[1]) != len(ids) {
				return hint.Add(fmt.Errorf("pass %d of %s has %s, and %s was recorded of others", pass, t.Path(), plural(len(ids), "token"), p.path), "record the program on a prompt of as many tokens")
			}
		}
	}
	return nil
}

// trace is where the trace lies that the run which recorded the program has written.
func (p *recordedProgram) trace() string { return strings.TrimSuffix(p.path, programEnd) + traceEnd }

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// certified isolates the trace that the run which recorded the program has written beside it: every form of an operation that
// reproduces it may accuse. Without that trace none may.
func (p *recordedProgram) certified(ctx context.Context, ck *checkpoint.Checkpoint) (certify.Certified, error) {
	into := certify.Certified{}
	path := p.trace()
	if _, err := os.Stat(path); err != nil || path == p.path || ck == nil {
		return into, nil
	}
	t, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	if digest := t.Manifest().Program; digest != "" && othersThan(ck, t) == "" {
		err = into.AddRun(ctx, t, p.list, reference.Weights(ck, t.Manifest().DType))
	}
	if err = hint.Also(err, t.Close()); err != nil {
		return nil, fmt.Errorf("certifying the operations of the program: %w", err)
	}
	return into, nil
}
