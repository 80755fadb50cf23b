package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

// Job is a resolved capture: a model that is open and ids that are known.
type Job struct {
	Settings
	dir      string                 // where traces are kept
	ck       *checkpoint.Checkpoint // with the weights of the port, where these were named
	port     *port                  // nil where they were not, or are the model's
	kernels  *port                  // of a file of the model's own numbers: how an engine may multiply with its formats; nil: none was named
	folder   fs.FS                  // the model directory
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
	mistaken    *order.Config // what the local model computes by in place of the list's configuration; nil for that
	canonical   json.RawMessage
	undescribed bool             // no order describes the model
	program     *recordedProgram // whose list is the order; nil for an order that describes the family
	byRunner    *runnerIDs       // the ids of the prompt, where the reference runner's tokenizer made them
	unchecked   string           // what of the tokenizer that made the ids was not compared with transformers' own

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
			err = hint.Also(err, j.Close())
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
	if err := j.usePort(ctx, e); err != nil {
		return err
	}
	if j.weights, err = weightsDigest(ctx, e, j.ck, j.ck.Scheme()); err != nil {
		return err
	}
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
	case order.Undescribed(err):
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
