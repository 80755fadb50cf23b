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
// checkpoint. The function is nil if there is no tokenizer. A tokenizer that is no regular file, or is too large, is an error.
func TraceTexts(dir string, traces ...*capture.Trace) (func(int) string, error) {
	var folder fs.FS
	if dir != "" {
		folder = os.DirFS(dir)
	} else {
		sub, err := fs.Sub(fixtures.Files, Embedded)
		config, err2 := readModelConfig("")
		if err != nil || err2 != nil {
			return nil, nil
		}
		for _, t := range traces {
			if t.Manifest().Config == nil || !order.SameConfig(t.Manifest().Config, config.Canonical()) {
				return nil, nil
			}
		}
		folder = sub
	}
	tok, err := tokenizer.Open(folder)
	if place := (*files.Error)(nil); errors.As(err, &place) {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err != nil {
		return nil, nil
	}
	return tok.Texts(), nil
}

// textsBeside is [TraceTexts], read while something else is done.
func textsBeside(dir string, traces ...*capture.Trace) func() (func(int) string, error) {
	var texts func(int) string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		texts, err = TraceTexts(dir, traces...)
	}()
	return func() (func(int) string, error) {
		<-done
		return texts, err
	}
}
