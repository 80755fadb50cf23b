package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

// Describe names who made a trace: "transformers 5.23.0, float32".
func Describe(t *capture.Trace) string {
	m := t.Manifest()
	name := m.Producer.Name
	if name == "" {
		name = "unknown producer"
	}
	if m.Producer.Version != "" {
		name += " " + m.Producer.Version
	}
	if m.DType.Valid() {
		name += ", " + m.DType.String()
	}
	return name
}

// tokenizerPlace is a folder with the tokenizer of traces.
type tokenizerPlace struct {
	folder fs.FS
	path   string // for people
	asked  bool   // the user named the folder: if a file there must not be read, that is an error
}

// placeOfTokenizer finds the tokenizer of traces. The first of these counts: the named folder; the folder of the built-in model, for its own traces; the folder of the model
// that a trace names, if the configuration there is still that of the trace. It is nil if no place is known.
func placeOfTokenizer(dir string, traces []*capture.Trace) *tokenizerPlace {
	if dir != "" {
		return &tokenizerPlace{os.DirFS(dir), dir, true}
	}
	sub, err := fs.Sub(fixtures.Files, origin.Embedded)
	config, err2 := origin.ReadConfig("")
	of := func(config *order.Config) bool {
		return !slices.ContainsFunc(traces, func(t *capture.Trace) bool {
			return t.Manifest().Config == nil || !order.SameConfig(t.Manifest().Config, config.Canonical())
		})
	}
	if err == nil && err2 == nil && of(config) {
		return &tokenizerPlace{sub, "the built-in model", false}
	}
	for _, t := range slices.Backward(traces) {
		m := t.Manifest()
		if info, err := os.Stat(m.Model); m.Model == "" || err != nil || !info.IsDir() {
			continue // a name, or a folder of another machine
		}
		if m.Config != nil {
			c, err := origin.ReadConfig(m.Model)
			if err == nil && !order.SameConfig(m.Config, c.Canonical()) || err != nil && !order.Undescribed(err) {
				continue
			}
		}
		return &tokenizerPlace{os.DirFS(m.Model), m.Model, false}
	}
	return nil
}

// texts reads the tokenizer; nil where it cannot be read, which why says. A file that must not be read is an error where the place was asked for.
func (p *tokenizerPlace) texts() (texts func(int) string, why string, err error) {
	if p == nil {
		return nil, "", nil
	}
	tok, err := tokenizer.Open(p.folder)
	if err == nil {
		return tok.Texts(), "", nil
	}
	why = fmt.Sprintf("no texts of tokens: %s: %v", plain.Text(p.path), err)
	if place := (*files.Error)(nil); p.asked && errors.As(err, &place) {
		return nil, why, fmt.Errorf("%s: %w", p.path, err)
	}
	return nil, why, nil
}

// TraceTexts returns a function from token ids to texts: by the tokenizer of the named folder, or of the model of the traces. The function is nil where there
// is no tokenizer that can be read. A file of the named folder that must not be read, such as a pipe, is an error.
func TraceTexts(dir string, traces ...*capture.Trace) (func(int) string, error) {
	texts, _, err := placeOfTokenizer(dir, traces).texts()
	return texts, err
}

// textsBeside is [TraceTexts], read while something else is done. A file that must not be read is said at once, and another failure with what --verbose shows.
func textsBeside(e *settings.Env, dir string, traces ...*capture.Trace) (func() (func(int) string, error), error) {
	place := placeOfTokenizer(dir, traces)
	if place != nil && place.asked {
		if err := tokenizer.Check(place.folder); errors.As(err, new(*files.Error)) {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	var texts func(int) string
	var why string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		texts, why, err = place.texts()
	}()
	var once sync.Once
	return func() (func(int) string, error) {
		<-done
		if why != "" && err == nil {
			once.Do(func() { e.Detail("%s", why) })
		}
		return texts, err
	}, nil
}
