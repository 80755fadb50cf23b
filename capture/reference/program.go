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

// The program of NAME.safetensors is NAME.program.json in the same folder.
const (
	programEnd = ".program.json"
	traceEnd   = ".safetensors"
)

// ProgramBeside is the path of the recorded program of a trace.
func ProgramBeside(trace string) string { return strings.TrimSuffix(trace, traceEnd) + programEnd }

// TraceBeside is the path of the trace of the run that recorded a program.
func TraceBeside(program string) string { return strings.TrimSuffix(program, programEnd) + traceEnd }

// ErrOtherProgram is wrapped by the error for a program that differs from the program declared by the trace.
var ErrOtherProgram = errors.New("is not the program that the trace was recorded with")

// ReadProgram reads the recorded program of a trace and compares it with the digest in the trace. The error is
// fs.ErrNotExist without a program file, and wraps [ErrOtherProgram] for a program with another digest.
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

// MoveProgram moves the recorded program of a trace to the new place of the trace. If the trace has no program,
// MoveProgram removes an older program at the new place.
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

// programContent is the size and digest of the recorded program of a trace; nil without a program.
func (s Store) programContent(trace string) (*content, error) {
	is, err := s.content(ProgramBeside(trace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &is, err
}

// Program is the path of the recorded program of a stored reference; empty if no program was recorded.
func (e *Entry) Program() string {
	if e.program == nil {
		return ""
	}
	return ProgramBeside(e.Path)
}

// same returns an error for a file that differs from the stored file.
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

// SameModel reports whether a stored reference is of the wanted model: the same configuration and the same weights.
func (e *Entry) SameModel(w Wanted) bool {
	if e.Err != nil || e.Key.Config != digest(w.Config) {
		return false
	}
	if known(e.Key.Weights) && known(w.Weights) {
		return e.Key.Weights == w.Weights
	}
	return filepath.Base(e.Model) == filepath.Base(w.Model) && !w.Changed.After(e.Made)
}
