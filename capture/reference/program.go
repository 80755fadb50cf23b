package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order/recorded"
)

// The program of NAME.safetensors is NAME.program.json beside it.
const (
	ProgramEnd = ".program.json"
	traceEnd   = ".safetensors"
)

// ProgramBeside is where the recorded program of a trace lies.
func ProgramBeside(trace string) string { return strings.TrimSuffix(trace, traceEnd) + ProgramEnd }

// TraceBeside is where the trace of the run that recorded a program lies.
func TraceBeside(program string) string { return strings.TrimSuffix(program, ProgramEnd) + traceEnd }

// ErrOtherProgram is wrapped by the error for a program that is not the one that a trace declares.
var ErrOtherProgram = errors.New("is not the program that the trace was recorded with")

// ReadProgram reads the program that lies beside a trace and is the one that the trace declares by its digest.
// The error is fs.ErrNotExist where there is none, and wraps [ErrOtherProgram] where another one lies there.
func ReadProgram(t *capture.Trace) ([]byte, error) {
	path := ProgramBeside(t.Path())
	data, err := recorded.File(path)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); "sha256:"+hex.EncodeToString(sum[:]) != t.Manifest().Program {
		return nil, fmt.Errorf("%s %w: %s", path, ErrOtherProgram, t.Path())
	}
	return data, nil
}

// MoveProgram moves the program beside a trace with it; where there is none, an older one at the new place goes.
func MoveProgram(from, to string) error {
	err := os.Rename(ProgramBeside(from), ProgramBeside(to))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(ProgramBeside(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// programContent is what tells the program beside a trace from another; nil where there is none.
func (s Store) programContent(trace string) (*content, error) {
	is, err := s.content(ProgramBeside(trace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &is, err
}

// Program is where the recorded program of a stored reference lies; empty where none was recorded.
func (e *Entry) Program() string {
	if e.program == nil {
		return ""
	}
	return ProgramBeside(e.Path)
}

// same reports a file that is not the one that was kept.
func (e *Entry) same(path string, kept content) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	changed := fmt.Errorf("%s was changed after it was stored", filepath.Base(path))
	if !info.Mode().IsRegular() || info.Size() != kept.Size {
		return changed
	}
	sum, err := e.digests.File(path)
	if err == nil && sum != kept.SHA256 {
		return changed
	}
	return err
}

// SameModel reports whether a stored reference is of the model that is wanted: of its configuration and its weights.
func (e *Entry) SameModel(w Wanted) bool {
	if e.Err != nil || e.Key.Config != digest(w.Config) {
		return false
	}
	if known(e.Key.Weights) && known(w.Weights) {
		return e.Key.Weights == w.Weights
	}
	return filepath.Base(e.Model) == filepath.Base(w.Model) && !w.Changed.After(e.Made)
}
