package job

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// inputReader finds the ids that settings name.
type inputReader struct {
	settings settings.Settings
	model    *Model
	handed   Handed // to the reference runner, where its tokenizer makes the ids
	in       Input
}

// ReadInput finds the input that settings name, with the tokenizer of a model and of nobody else.
func ReadInput(s settings.Settings, m *Model) (Input, error) {
	r := &inputReader{settings: s, model: m}
	err := r.read(context.Background(), nil)
	return r.in, err
}

// read takes the token ids from --tokens, from the prompt, from a given trace, or from the default prompt "What".
// If e is nil, no runner is asked for ids.
func (r *inputReader) read(ctx context.Context, e *settings.Env) (err error) {
	r.in.Further = r.settings.NewTokens
	var missing error
	p := e.Begin("reading the tokenizer", "file", nil)
	p.Step(0, 1, 0, 1)
	r.in.tok, missing = tokenizer.Open(r.model.Folder)
	if p.Done(); missing != nil {
		r.in.tok = nil
	}
	if r.settings.Tokens != "" {
		r.in.Passes, err = ParseTokens(r.settings.Tokens)
		return err
	}
	if file := r.settings.InputFile(); file != "" {
		r.in.Further = 0
		r.in.Passes, err = traceIDs(file)
		return err
	}
	asks := e != nil && (r.model.Undescribed || r.settings.Reference.Kind == settings.KindHF)
	if missing != nil && (r.settings.Prompt == nil || !asks) {
		return hint.Add(fmt.Errorf("%s: %w", r.model.Checkpoint.Name(), missing), r.noTokenizerHint())
	}
	var ids []int
	if missing == nil {
		ids, err = r.ownIDs()
	}
	if missing != nil || err != nil && asks && r.settings.Prompt != nil && utf8.ValidString(*r.settings.Prompt) {
		ids, err = r.askRunner(ctx, e)
	}
	r.in.Passes = [][]int{ids}
	return err
}

// noTokenizerHint says who else makes ids.
func (r *inputReader) noTokenizerHint() string {
	if r.settings.Prompt != nil && r.model.Checkpoint != nil && health.HasTokenizer(r.model.Folder) {
		return "--reference hf makes the ids with the tokenizer of transformers; or give them: --tokens 2,513,88"
	}
	return "give the ids themselves: --tokens 2,513,88"
}

// ownIDs are the ids of the prompt, or of "What", by the code for the tokenizer of the model.
func (r *inputReader) ownIDs() ([]int, error) {
	r.in.unchecked = r.in.tok.Unchecked()
	switch {
	case r.settings.Prompt == nil:
		r.in.Default = true
		return r.in.tok.Encode("What")
	case r.settings.Chat:
		return r.in.tok.Chat(*r.settings.Prompt)
	}
	return r.in.tok.Prompt(*r.settings.Prompt)
}

// traceIDs reads the ids of a trace, pass by pass.
func traceIDs(path string) ([][]int, error) {
	t, err := OpenTrace(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	fitted, err := foreign.Fit(t, nil)
	if err != nil {
		return nil, err
	}
	return fitted.IDs()
}
