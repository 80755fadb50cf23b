package session

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// readInput finds the token ids: those given, those of the prompt, those of a given trace, or "What".
func (j *Job) readInput(ctx context.Context, e *Env) (err error) {
	var missing error
	p := e.progress("reading the tokenizer", "file", nil)
	p.Step(0, 1, 0, 1)
	j.tok, missing = tokenizer.Open(j.folder)
	if p.Done(); missing != nil {
		j.tok = nil
	}
	if j.Tokens != "" {
		j.passes, err = ParseTokens(j.Tokens)
		return err
	}
	if file := j.InputFile(); file != "" {
		j.further = 0
		j.passes, err = traceIDs(file)
		return err
	}
	asks := e != nil && (j.undescribed || j.Reference.Kind == KindHF)
	if missing != nil && (j.Prompt == nil || !asks) {
		return hint.Add(fmt.Errorf("%s: %w", j.ck.Name(), missing), j.noTokenizerHint())
	}
	var ids []int
	if missing == nil {
		ids, err = j.ownIDs()
	}
	if missing != nil || err != nil && asks && j.Prompt != nil && utf8.ValidString(*j.Prompt) {
		ids, err = j.askRunner(ctx, e)
	}
	j.passes = [][]int{ids}
	return err
}

// noTokenizerHint says who else makes ids.
func (j *Job) noTokenizerHint() string {
	if j.Prompt != nil && j.ck != nil && health.HasTokenizer(j.folder) {
		return "--reference hf makes the ids by the tokenizer of transformers; or give them: --tokens 2,513,88"
	}
	return "give the ids themselves: --tokens 2,513,88"
}

// ownIDs are the ids of the prompt, or of "What", by the code for the tokenizer of the model.
func (j *Job) ownIDs() ([]int, error) {
	j.unchecked = j.tok.Unchecked()
	switch {
	case j.Prompt == nil:
		j.isWhat = true
		return j.tok.Encode("What")
	case j.Chat:
		return j.tok.Chat(*j.Prompt)
	}
	return j.tok.Prompt(*j.Prompt)
}

// saidOfIDs is the remark of a report about the ids: they were made by transformers, or by code that was not compared with it.
func (j *Job) saidOfIDs() string {
	switch {
	case j.byRunner != nil:
		return j.byRunner.said()
	case j.unchecked != "":
		return "ids: by tracediff, unchecked kind: " + j.unchecked
	}
	return ""
}

// Input is what is fed to a model.
type Input struct {
	Passes  [][]int
	Further int  // tokens to decode after them
	Default bool // no input was named
}

// ReadInput finds the input that the settings name, with the tokenizer of a model directory.
func ReadInput(s Settings, folder fs.FS) (Input, error) {
	j := &Job{Settings: s, folder: folder, further: s.NewTokens}
	err := j.readInput(context.Background(), nil)
	return Input{j.passes, j.further, j.isWhat}, err
}

// traceIDs reads the ids of a trace, pass by pass.
func traceIDs(path string) ([][]int, error) {
	t, err := openTrace(path)
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

// ParseTokens reads "2,513,88;17;29": ids separated by commas, passes by semicolons.
func ParseTokens(text string) ([][]int, error) {
	var passes [][]int
	for part := range strings.SplitSeq(text, ";") {
		var ids []int
		for word := range strings.SplitSeq(part, ",") {
			id, err := strconv.ParseUint(strings.TrimSpace(word), 10, 31)
			if err != nil {
				return nil, hint.Add(fmt.Errorf("--tokens: %q is not a token id", word), "want ids such as 2,513,88, with ';' between passes")
			}
			ids = append(ids, int(id))
		}
		passes = append(passes, ids)
	}
	return passes, nil
}

// Text is a token's text, empty when there is no tokenizer.
func (j *Job) Text(id int) string {
	if j.tok == nil {
		return j.byRunner.text(id)
	}
	return j.tok.Text(id)
}

// texts gives the texts of ids; nil when there is no tokenizer.
func (j *Job) texts() (func(int) string, error) {
	if j.tok == nil && j.byRunner == nil {
		return nil, nil
	}
	return j.Text, nil
}

// ShowInput prints the model and the ids with their texts.
func (j *Job) ShowInput(w io.Writer) {
	fmt.Fprintf(w, "model: %s, %s\n", j.ck.Name(), j.dtype)
	for n, ids := range j.passes {
		var b strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&b, "  %d", id)
			if text := j.Text(id); text != "" || j.tok != nil {
				fmt.Fprintf(&b, " %q", text)
			}
		}
		fmt.Fprintf(w, "tokens, pass %d:%s\n", n, b.String())
	}
}

// NoteInput says what a reader should know of the input.
func (j *Job) NoteInput(w io.Writer) {
	if j.isWhat {
		fmt.Fprintln(w, `note: no prompt was given, so the input is the single token "What" without BOS; --prompt TEXT or --tokens IDS give another`)
	}
	if said := j.saidOfIDs(); said != "" {
		fmt.Fprintln(w, "note: "+said)
	}
	if j.config.Gemma3n == nil {
		return
	}
	rows := j.config.Gemma3n.PerLayerVocab
	for _, ids := range j.passes {
		for _, id := range ids {
			if id >= rows {
				fmt.Fprintf(w, "note: id %d is outside the per-layer table of %d rows and reads row 0 there, as in transformers\n", id, rows)
				return
			}
		}
	}
}

// replay feeds the local side the reference's ids, so that one tie does not make every later pass incomparable.
func (j *Job) replay(passes [][]int) {
	j.further = max(0, len(j.passes)+j.further-len(passes))
	j.passes = passes
}
