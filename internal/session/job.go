package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

// Embedded is the checkpoint that runs when no model is named.
const Embedded = "gemma3n-tiny"

// DigestLimit is the size up to which weights are hashed at every run: a tenth of a second. Of larger ones the digest is
// known when a reference was made of them here, and else "unknown", which no comparison gates on.
const DigestLimit = 128 << 20

// Job is a resolved capture: a model that is open and ids that are known.
type Job struct {
	Settings
	dir      string // where traces are kept
	ck       *checkpoint.Checkpoint
	folder   fs.FS // the model directory
	list     *order.List
	record   *order.List // the names to record: list, or the user's
	tok      *tokenizer.Tokenizer
	dtype    hooks.DType
	passes   [][]int
	further  int    // tokens to decode after the passes; what was typed stays in the settings
	isWhat   bool   // no input was named
	streamed []byte // the names to record, where they came from a stream
	weights  string

	config      *order.Config // of an undescribed model, what any config.json says
	canonical   json.RawMessage
	undescribed bool             // no order describes the model
	program     *recordedProgram // whose list is the order; nil for an order that describes the family
	byRunner    *runnerIDs       // the ids of the prompt, where the reference runner's tokenizer made them

	orderDigest, recordDigest string // of list and record
}

// CheckDir reports a --dir that is no folder. One that is not there is made when it is needed.
func CheckDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return hint.Add(fmt.Errorf("--dir: %s is not a folder", dir), "--dir names the folder where traces are kept; it is created if it does not exist")
	}
	return nil
}

// Open opens the model and tokenizes the input, by the reference runner where e is not nil and there is no other tokenizer for the
// model. The caller closes ck.
func Open(ctx context.Context, e *Env, s Settings, dir string) (*Job, error) {
	if err := CheckDir(dir); err != nil {
		return nil, err
	}
	j := &Job{Settings: s, dir: dir, further: s.NewTokens}
	if err := j.open(ctx, e); err != nil {
		if j.ck != nil {
			err = hint.Also(err, j.ck.Close())
		}
		return nil, err
	}
	return j, nil
}

func (j *Job) open(ctx context.Context, e *Env) (err error) {
	if err = j.openModel(); err != nil {
		return err
	}
	if err = j.openOrder(); err != nil {
		return err
	}
	if j.dtype, err = j.ComputedIn(j.config.DType); err != nil {
		return err
	}
	j.knownWeights()
	if err := j.readInput(ctx, e); err != nil {
		return err
	}
	if err := gemma.CheckPasses(j.config, j.passes, j.further); err != nil {
		return hint.Add(err, "the ids, and how many of them, have to fit config.json (vocab_size, max_position_embeddings); --prompt TEXT makes ids with the model's own tokenizer")
	}
	if j.program != nil {
		p, err := j.program.forPasses(j.passes, j.further, "")
		if err != nil {
			return err
		}
		return j.adopt(p)
	}
	return nil
}

// openOrder finds the order of the model, and what of it is recorded.
func (j *Job) openOrder() (err error) {
	if j.config, err = order.ReadConfig(j.ck.Config()); err == nil {
		j.list, err = order.New(j.config)
	}
	switch {
	case errors.Is(err, order.ErrModelType):
		err = j.openUndescribed()
	case err != nil:
		err = fmt.Errorf("%s: %w", j.ck.Name(), err)
	default:
		err = j.openDescribed()
	}
	if err != nil || j.Program == "" {
		return err
	}
	p, err := openProgram(j.Program)
	if err != nil {
		return err
	}
	return j.adopt(p)
}

// openDescribed opens a model whose family an order describes.
func (j *Job) openDescribed() (err error) {
	j.canonical = j.config.Canonical()
	if err = gemma.CheckWeights(j.ck, j.list); err != nil {
		return err
	}
	if j.record, err = j.recordList(); err != nil {
		return err
	}
	if j.orderDigest, err = reference.OrderDigest(j.list); err != nil {
		return err
	}
	if j.recordDigest, err = reference.OrderDigest(j.record); err != nil {
		return err
	}
	if err = CheckScope(j.Scope, j.record); err != nil {
		return err
	}
	return gemma.CheckSelected(j.list, j.Scope.Select(j.record))
}

// Close closes the model.
func (j *Job) Close() error { return j.ck.Close() }

// knownWeights sets the digest of the weights where that costs no second: of small ones, and of those that were hashed
// when a reference was made of them and have not changed since.
func (j *Job) knownWeights() {
	j.weights = "unknown"
	if j.ck.Size() <= DigestLimit {
		j.weights = j.ck.Digest()
	} else if sum, ok := checkpoint.NewDigests(j.digests()).Cached(j.ck); ok {
		j.weights = sum
	}
}

// digests is where the digests of weight files are remembered.
func (j *Job) digests() string { return filepath.Join(j.dir, "digests.json") }

// hashWeights makes the digest known: a reference that is stored has to say of which weights it is.
func (j *Job) hashWeights(ctx context.Context, e *Env) (err error) {
	if j.weights != "unknown" {
		return nil
	}
	const mega = 1e6
	p := e.progress("hashing the weights", "MB", nil)
	defer p.Done()
	j.weights, err = checkpoint.NewDigests(j.digests()).Compute(ctx, j.ck, func(done, all int64) {
		p.Step(0, 1, int(done/mega), int(all/mega))
	})
	return err
}

func (j *Job) openModel() (err error) {
	if j.Model == "" {
		if j.folder, err = fs.Sub(fixtures.Files, Embedded); err != nil {
			return err
		}
		j.ck, err = checkpoint.OpenFS("fixtures/"+Embedded, j.folder)
		return err
	}
	j.folder = os.DirFS(j.Model)
	if j.ck, err = checkpoint.Open(j.Model); err != nil {
		return fmt.Errorf("%s: %w", j.Model, err)
	}
	return nil
}

// readModelConfig reads a directory's config.json alone; an empty dir is the embedded checkpoint.
func readModelConfig(dir string) (*order.Config, error) {
	var data []byte
	var err error
	if dir == "" {
		data, err = fs.ReadFile(fixtures.Files, Embedded+"/"+checkpoint.ConfigFile)
	} else {
		data, err = checkpoint.ReadConfig(os.DirFS(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return order.ReadConfig(data)
}

// recordList is the order, or the user's list with what the order knows of its names.
func (j *Job) recordList() (*order.List, error) {
	if j.Order == "" {
		return j.list, nil
	}
	names, text, err := readOrder(j.Order)
	if err != nil {
		return nil, err
	}
	j.streamed = text
	return j.list.Pick(names), nil
}

// maxOrder bounds an order file: a million names of ordinary length.
const maxOrder = 64 << 20

const orderHint = "--order wants a file with one tensor name a line; tracediff order --format text prints one"

// readOrder reads a user's order file. Of a stream, which cannot be read again by the next compare, it returns the text.
func readOrder(path string) (names *order.List, streamed []byte, err error) {
	text, stream, err := files.ReadStream(path, maxOrder)
	if err != nil {
		return nil, nil, hint.Add(fmt.Errorf("reading the order: %w", err), orderHint)
	}
	names, err = order.ReadNames(bytes.NewReader(text))
	if err != nil {
		return nil, nil, hint.Add(fmt.Errorf("%s: %w", path, err), orderHint)
	}
	if !stream {
		text = nil
	}
	return names, text, nil
}

// namesFile keeps, in the folder of traces, the names of an order that was a stream.
const namesFile = "names.txt"

// save keeps the settings for the next comparison.
func (j *Job) save() error {
	s := j.Settings
	if j.streamed != nil {
		s.Order = filepath.Join(j.dir, namesFile)
		if err := WriteWhole(s.Order, j.streamed); err != nil {
			return hint.Add(fmt.Errorf("keeping the order: %w", err), "--dir names a folder that can be written to")
		}
	}
	return s.save(j.dir)
}

// readInput finds the token ids: those given, those of the prompt, those of a given trace, or "What".
func (j *Job) readInput(ctx context.Context, e *Env) (err error) {
	var missing error
	if j.tok, missing = tokenizer.Open(j.folder); missing != nil {
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
	if missing != nil && (j.Prompt == nil || e == nil || !j.undescribed) {
		return hint.Add(fmt.Errorf("%s: %w", j.ck.Name(), missing), "give the ids themselves: --tokens 2,513,88")
	}
	var ids []int
	switch {
	case j.Prompt == nil:
		j.isWhat = true
		ids, err = j.tok.Encode("What")
	case missing != nil:
		ids, err = j.askRunner(ctx, e)
	case j.Chat:
		if ids, err = j.tok.Chat(*j.Prompt); err != nil && e != nil && j.undescribed {
			ids, err = j.askRunner(ctx, e)
		}
	default:
		ids, err = j.tok.Encode(*j.Prompt)
		if bos, ok := j.tok.BOS(); ok {
			ids = append([]int{bos}, ids...)
		}
	}
	j.passes = [][]int{ids}
	return err
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
func (j *Job) texts() func(int) string {
	if j.tok == nil && j.byRunner == nil {
		return nil
	}
	return j.Text
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
	j.byRunner.note(w)
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

// wanted says what a reference for the job has to be. A command is told the names to record, other runners record all.
func (j *Job) wanted(runner string) reference.Wanted {
	w := reference.Wanted{
		Config: j.canonical, Recorded: j.undescribed, Model: j.ck.Name(), Weights: j.weights, Changed: j.ck.Changed(), DType: j.dtype,
		Passes: j.passes, NewTokens: j.further, Scope: j.Scope, Order: j.orderDigest,
	}
	switch {
	case runner == reference.External:
		w.Order = j.recordDigest
	case runner == reference.GoWalk && j.program != nil:
		w.Order, w.Recorded = j.program.digest(), true
	}
	if j.undescribed || j.program != nil { // what was recorded is what there is
		return w
	}
	for _, e := range j.Scope.Select(j.record) {
		if !e.Derived() { // a reference may leave out what it would have to recompute
			w.Entries = append(w.Entries, e.Name)
		}
	}
	return w
}

// path is where a side's trace is kept.
func (j *Job) path(side string) string { return TracePath(j.dir, side) }

// TracePath is where a side's trace is kept in a folder of traces.
func TracePath(dir, side string) string { return filepath.Join(dir, side+".safetensors") }

// replay feeds the local side the reference's ids, so that one tie does not make every later pass incomparable.
func (j *Job) replay(passes [][]int) {
	j.further = max(0, len(j.passes)+j.further-len(passes))
	j.passes = passes
}

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
