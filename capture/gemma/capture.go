package gemma

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Job is one local capture: a model, what to feed it, and what to record.
type Job struct {
	Checkpoint *checkpoint.Checkpoint
	List       *order.List   // of the checkpoint's configuration
	Computes   *order.Config // the configuration to compute with, for a mistake made on purpose; nil for the configuration of List
	Record     *order.List   // the names to record and their order; nil for List
	DType      hooks.DType
	Passes     [][]int
	NewTokens  int // greedy passes after those
	Path       string
	Manifest   capture.Manifest // what the caller knows; Capture fills in the rest
	Registry   *hooks.Registry  // may hold observers and replacers of the caller's; nil for none
	Debug      *debug.Log       // shows what is recorded; nil for nothing
	Progress   func(pass, passes, layer, layers int)
}

// Capture runs the model and writes a trace to Path, whose folder it makes. Only the scope's entries are written. A pass ends after the last
// layer with a selected entry, unless tokens are decoded after the pass. On an error the unfinished trace stays next to Path and says why.
func Capture(ctx context.Context, j Job) (Output, error) {
	if j.Record == nil {
		j.Record = j.List
	}
	if j.Registry == nil {
		j.Registry = &hooks.Registry{}
	}
	selected := j.Manifest.Scope.Select(j.Record)
	if err := CheckSelected(j.List, selected); err != nil {
		return Output{}, err
	}
	if err := CheckPasses(j.List.Config, j.Passes, j.NewTokens); err != nil {
		return Output{}, err
	}
	// Building the model resolves the hooks, so write is attached before. The trace is begun after, so that no file is left for a model that cannot be
	// built.
	var w *capture.Writer
	write := func(e hooks.Event) error { return w.Observe(e) }
	if err := capture.Attach(j.Registry, j.Debug.Around(write), j.Record, j.Manifest.Scope, j.tokens()); err != nil {
		return Output{}, err
	}
	last := lastLayer(j.List, selected)
	build := last
	if j.NewTokens > 0 { // the logits, which give the next token, need every layer
		build = All
	}
	model, err := New(j.Checkpoint, j.computed(), j.DType, j.Registry, build)
	if err != nil {
		return Output{}, err
	}
	if w, err = j.create(selected); err != nil {
		return Output{}, err
	}
	if j.Progress != nil {
		passes := len(j.Passes) + j.NewTokens
		model.progress = func(pass, layer int) { j.Progress(pass, passes, layer, model.layers) }
	}
	out, err := model.Run(ctx, j.Registry, Input{Passes: j.Passes, MaxNewTokens: j.NewTokens, LastLayer: last})
	if err != nil {
		if failed := w.Fail(err); failed != nil {
			return out, fmt.Errorf("%w (and %w)", err, failed)
		}
		return out, err
	}
	return out, w.Close()
}

// computed is List, with the configuration Computes if there is one.
func (j *Job) computed() *order.List {
	if j.Computes == nil {
		return j.List
	}
	list := *j.List
	list.Config = j.Computes
	return &list
}

// tokens is the number of tokens of each pass.
func (j *Job) tokens() []int {
	var n []int
	for _, ids := range j.Passes {
		n = append(n, len(ids))
	}
	return append(n, slices.Repeat([]int{1}, j.NewTokens)...)
}

// create begins the trace.
func (j *Job) create(selected []*order.Entry) (*capture.Writer, error) {
	tokens := j.tokens()
	m := j.Manifest
	m.Side, m.DType, m.Device, m.Passes = "local", j.DType, "cpu", len(tokens)
	m.Config = j.List.Config.Canonical()
	for _, e := range selected {
		m.Entries = append(m.Entries, e.Name)
	}
	if err := os.MkdirAll(filepath.Dir(j.Path), 0o777); err != nil {
		return nil, fmt.Errorf("making the folder of the trace: %w", err)
	}
	return capture.Create(j.Path, m, capture.Reserve(j.Record, m.Scope, tokens))
}

// CheckSelected reports selected names that the model does not have, which would be missing from the trace without a
// word, and a selection of nothing.
func CheckSelected(l *order.List, selected []*order.Entry) error {
	var unknown []string
	for _, e := range selected {
		if l.Index(e.Name) < 0 {
			unknown = append(unknown, e.Name)
		}
	}
	switch {
	case len(unknown) > 0:
		text := "the model has no tensor " + unknown[0]
		if len(unknown) > 1 {
			text = fmt.Sprintf("%s, and %d more names are unknown", text, len(unknown)-1)
		}
		return hint.Add(errors.New(text), "tracediff order --format text lists the names")
	case len(selected) <= 1: // only input_ids, which every scope selects
		return hint.Add(errors.New("the scope selects no tensor of the model"), "--level, --layers, --tensors and --order select tensors; tracediff order lists all")
	}
	return nil
}

// lastLayer is the last layer that has to run for the selected entries: −1 if the entries before the layers are enough, All for an entry after the layers.
func lastLayer(l *order.List, selected []*order.Entry) int {
	last := -1
	for _, e := range selected {
		if e.Layer < 0 && l.Index(e.Name) > l.Index(order.InLayer(0, "in").String()) {
			return All
		}
		last = max(last, e.Layer)
	}
	return last
}
