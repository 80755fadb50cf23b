// Package job opens the parts of a run: the model, the token ids, and the order of the recorded tensors. It runs
// users' commands on these parts, and states the requirements for a reference.
package job

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// Job is a resolved capture: an open model, known ids, and the order and scope of the recording.
type Job struct {
	Settings settings.Settings
	Dir      string // where traces are kept
	Own      string // the folder in Dir for the traces of both sides; empty: they replace those of the last capture
	Model    Model
	Input    Input
	Order    Order
}

// IDsHint is the next step for ids that the model cannot run.
const IDsHint = "the ids, and how many of them, have to fit config.json (vocab_size, max_position_embeddings); --prompt TEXT makes ids with the model's own tokenizer"

// Open opens the model and tokenizes the input, by the reference runner where e is not nil and there is no other tokenizer for the
// model. The caller closes the job.
func Open(ctx context.Context, e *settings.Env, s settings.Settings, dir string) (*Job, error) {
	if err := tracefolder.CheckDir(dir); err != nil {
		return nil, err
	}
	j := &Job{Settings: s, Dir: dir}
	if err := j.open(ctx, e); err != nil {
		if j.Model.Checkpoint != nil {
			err = hint.Also(err, j.Close())
		}
		return nil, err
	}
	return j, nil
}

func (j *Job) open(ctx context.Context, e *settings.Env) (err error) {
	if j.Model.Checkpoint, j.Model.Folder, err = origin.Open(j.Settings.Model); err != nil {
		return err
	}
	if err = j.openOrder(); err != nil {
		return err
	}
	if j.Model.DType, err = j.Settings.ComputedIn(j.Model.Config.DType); err != nil {
		return err
	}
	if err := j.usePort(ctx, e); err != nil {
		return err
	}
	if j.Model.Digest, err = origin.Digest(ctx, e, j.Model.Checkpoint, j.Model.Checkpoint.Scheme()); err != nil {
		return err
	}
	r := &inputReader{settings: j.Settings, model: &j.Model, handed: j.Handed()}
	if err := r.read(ctx, e); err != nil {
		return err
	}
	j.Input = r.in
	if err := gemma.CheckPasses(j.Model.Config, j.Input.Passes, j.Input.Further); err != nil {
		return hint.Add(err, IDsHint)
	}
	if j.Order.Program != nil {
		p, err := j.Order.Program.ForPasses(j.Input.Passes, j.Input.Further, "")
		if err != nil {
			return err
		}
		return j.Adopt(p)
	}
	return nil
}

// Wanted returns the requirements for a reference of the job. A command is told the names to record; other runners
// record every name.
func (j *Job) Wanted(runner string) reference.Wanted {
	w := reference.Wanted{
		Config: j.Model.Canonical, Recorded: j.Model.Undescribed, Model: j.Model.Checkpoint.Name(), Weights: j.Model.Digest, Changed: j.Model.Checkpoint.Changed(), DType: j.Model.DType,
		Passes: j.Input.Passes, NewTokens: j.Input.Further, Scope: j.Settings.Scope, Order: j.Order.digest,
	}
	switch {
	case runner == reference.External:
		w.Order = j.Order.recordDigest
	case runner == reference.GoWalk && j.Order.Program != nil:
		w.Order, w.Recorded = j.Order.Program.Digest(), true
	}
	if j.Model.Undescribed || j.Order.Program != nil { // what was recorded is what there is
		return w
	}
	for _, e := range j.Settings.Scope.Select(j.Order.Record) {
		if !e.Derived() { // a reference may leave out what it would have to recompute
			w.Entries = append(w.Entries, e.Name)
		}
	}
	return w
}

// Path is where a side's trace is kept.
func (j *Job) Path(side string) string { return tracefolder.TracePath(j.Traces(), side) }

// Traces is the folder of both sides' traces.
func (j *Job) Traces() string { return filepath.Join(j.Dir, j.Own) }

// DataBytes is about how much data of a scope there will be; 1 where that is not known.
func (j *Job) DataBytes(scope capture.Scope) float64 {
	if j.Order.List == nil {
		return 1
	}
	return capture.DataBytes(j.Order.List, scope, j.Model.DType, j.Input.Lengths())
}

// CheckPasses reports passes and positions that were asked for and will not be run.
func (j *Job) CheckPasses() error { return orders.CheckRun(j.Settings.Scope, j.Input.Lengths()) }

// Remarks returns the sentences for a report about the input and the order.
func (j *Job) Remarks() []string {
	var all []string
	if said := j.Input.said(); said != "" {
		all = append(all, said)
	}
	if j.Order.Program != nil && j.Settings.Program != "" {
		all = append(all, j.Order.Program.Said())
	}
	return all
}

// namesFile keeps, in the folder of traces, the names of an order that was a stream.
const namesFile = "names.txt"

// Save keeps the settings for the next comparison.
func (j *Job) Save() error {
	s := j.Settings
	if j.Order.streamed != nil {
		s.Order = filepath.Join(j.Dir, namesFile)
		if err := files.WriteWhole(s.Order, j.Order.streamed); err != nil {
			return hint.Add(fmt.Errorf("keeping the order: %w", err), "--dir names a folder that can be written to")
		}
	}
	return s.Save(j.Dir)
}

// ShowInput prints the model and the ids with their texts.
func (j *Job) ShowInput(w io.Writer) {
	from := ""
	if j.Settings.Model == "" {
		from = " (built in)"
	}
	fmt.Fprintf(w, "model: %s%s, %s\n", j.Model.Checkpoint.Name(), from, j.Model.DType)
	for n, ids := range j.Input.Passes {
		var b strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&b, "  %d", id)
			if text := j.Input.Text(id); text != "" || j.Input.tok != nil {
				fmt.Fprintf(&b, " %q", text)
			}
		}
		fmt.Fprintf(w, "tokens, pass %d:%s\n", n, b.String())
	}
}

// NoteInput says what a reader should know of the input.
func (j *Job) NoteInput(w io.Writer) {
	if j.Input.Default {
		fmt.Fprintln(w, `note: no prompt was given, so the input is the single token "What" without BOS; --prompt TEXT or --tokens IDS give another`)
	}
	if said := j.Input.said(); said != "" {
		fmt.Fprintln(w, "note: "+said)
	}
	if j.Model.Config.Gemma3n == nil {
		return
	}
	rows := j.Model.Config.Gemma3n.PerLayerVocab
	for _, ids := range j.Input.Passes {
		for _, id := range ids {
			if id >= rows {
				fmt.Fprintf(w, "note: id %d is outside the per-layer table of %d rows and reads row 0 there, as in transformers\n", id, rows)
				return
			}
		}
	}
}

// ShowProgram prints a summary of the recorded program. It prints nothing for a model with an order.
func (j *Job) ShowProgram(w io.Writer) {
	if j.Order.Program == nil {
		return
	}
	named := 0
	for i := range j.Order.List.Entries {
		if j.Order.List.Entries[i].Level <= 3 {
			named++
		}
	}
	fmt.Fprintf(w, "program: %s a pass with a name, %s between them, %s: %s\n", amount.Of(named, "tensor"), amount.Of(len(j.Order.List.Entries)-named, "operation"),
		amount.Bytes(j.Order.Program.Size()), plain.Text(j.Order.Program.Path))
}
