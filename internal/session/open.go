package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

// openTrace opens a trace or a dump.
func openTrace(path string) (*capture.Trace, error) {
	t, err := foreign.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(err, "compare takes two trace files, or none to capture the local side again")
	}
	return t, hint.Default(err, dump.Next)
}

// TraceTexts returns a function from token ids to texts. It reads the tokenizer of the named model, or the embedded tokenizer for traces of the embedded
// model. The function is nil where there is no tokenizer that can be read; a file that is not to be read is an error.
func TraceTexts(dir string, traces ...*capture.Trace) (func(int) string, error) {
	return textsIn(dir, tokenizerFolder(dir, traces))
}

// textsIn is TraceTexts of a folder; nil for none.
func textsIn(dir string, folder fs.FS) (func(int) string, error) {
	if folder == nil {
		return nil, nil
	}
	tok, err := tokenizer.Open(folder)
	if err != nil {
		return nil, ofPlace(dir, err)
	}
	return tok.Texts(), nil
}

// ofPlace is the error of a file that must not be read, such as a pipe; nil for another error.
func ofPlace(dir string, err error) error {
	if place := (*files.Error)(nil); errors.As(err, &place) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// tokenizerFolder is where the tokenizer of traces is; nil where that is not known.
func tokenizerFolder(dir string, traces []*capture.Trace) fs.FS {
	if dir != "" {
		return os.DirFS(dir)
	}
	sub, err := fs.Sub(fixtures.Files, Embedded)
	config, err2 := readModelConfig("")
	if err != nil || err2 != nil {
		return nil
	}
	for _, t := range traces {
		if t.Manifest().Config == nil || !order.SameConfig(t.Manifest().Config, config.Canonical()) {
			return nil
		}
	}
	return sub
}

// textsBeside is [TraceTexts], read while something else is done. A file that is not to be read is said at once.
func textsBeside(dir string, traces ...*capture.Trace) (func() (func(int) string, error), error) {
	folder := tokenizerFolder(dir, traces)
	if folder != nil {
		if err := ofPlace(dir, tokenizer.Check(folder)); err != nil {
			return nil, err
		}
	}
	var texts func(int) string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		texts, err = textsIn(dir, folder)
	}()
	return func() (func(int) string, error) {
		<-done
		return texts, err
	}, nil
}
