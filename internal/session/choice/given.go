package choice

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
)

// given opens a named file without changes. If its ids begin with the ids of the input, the local side is fed the
// file's further passes; if not, the comparison reports the different ids.
func (c chooser) given(ctx context.Context, path string, partial bool) (*Found, error) {
	t, err := foreign.Open(path)
	if err == nil {
		t, err = foreign.Fit(t, c.job.Order.List)
	}
	if err != nil {
		return nil, hint.Default(fmt.Errorf("reading the reference: %w", err), "--reference wants a trace file, as tracediff capture and python -m tracediff.hf write them, or a dump: docs/ports.md")
	}
	ids, err := t.IDs()
	if err == nil {
		err = c.suitable(ctx, t, "the reference", partial)
	}
	if err != nil {
		return nil, hint.Also(err, t.Close())
	}
	f := &Found{Trace: t, Label: "given", Passes: c.job.Input.Passes}
	if passes, err := c.job.Wanted("").Match(ids); err == nil {
		f.Passes = passes
	}
	return f, nil
}

// Suitable reports at once why a comparison would refuse a local trace after the run of the reference.
func Suitable(ctx context.Context, e *settings.Env, j *job.Job, t *capture.Trace) error {
	return chooser{j, e}.suitable(ctx, t, "your port's trace", e.Partial)
}

// suitable reports at once what the comparison would refuse after the run.
func (c chooser) suitable(ctx context.Context, t *capture.Trace, side string, partial bool) error {
	j := c.job
	if s := t.Status(); s != "" && s != capture.StatusComplete && !partial {
		return hint.Add(fmt.Errorf("%s is not complete, its status is %q", t.Path(), s), "make it again, or compare what is there with --partial")
	}
	if j.Order.Record != nil { // else it is the recorded program's, which is not known yet
		if err := plan.Walkable(t, j.Order.Record); err != nil {
			return fmt.Errorf("%s: %w", t.Path(), err)
		}
	}
	w := j.Wanted("")
	if scheme, ok := checkpoint.SchemeOf(t.Manifest().Weights); ok && scheme != j.Model.Checkpoint.Scheme() { // one that was made before large weights had a digest of their own
		sum, err := origin.Digest(ctx, c.env, j.Model.Checkpoint, scheme)
		if err != nil {
			return err
		}
		w.Weights = sum
	}
	if j.Model.Port != nil { // a trace may be of the original's weights: what of it can be certified is decided later
		w.Weights = "unknown"
	}
	if err := w.SameModel(t); err != nil {
		return hint.Add(fmt.Errorf("%s cannot be %s of %s: %w", t.Path(), side, j.Model.Checkpoint.Name(), err), "capture both sides from the same checkpoint")
	}
	return nil
}

// Use says whether a comparison of a job would take an entry, were its runner asked for.
func Use(j *job.Job, e *reference.Entry) string {
	runner := e.Key.Runner
	switch runner.Name {
	case reference.Transformers:
		runner = reference.TransformersRunner()
	case reference.GoWalk:
		runner = reference.WalkRunner()
	}
	w := j.Wanted(runner.Name)
	byPort := j.Settings.Weights != "" && j.Model.Port == nil // whether it is of that file, is known when the file was read, which takes long
	if byPort && origin.HasOthers(j.Model.Checkpoint, e.Key.Weights) {
		w.Weights = e.Key.Weights
	}
	t, _, err := e.Open(w, runner)
	if err != nil {
		return "not used for this input, " + err.Error()
	}
	file := t.Manifest().Port.File
	if err := t.Close(); err != nil {
		return "not used: " + err.Error()
	}
	switch {
	case !byPort:
	case file == filepath.Base(j.Settings.Weights):
		return "used for this input while " + file + " is as it was"
	case file != "" || origin.HasOthers(j.Model.Checkpoint, e.Key.Weights):
		return "not used for this input, it is of other weights"
	default:
		return "used for this input if " + filepath.Base(j.Settings.Weights) + " has the model's own numbers"
	}
	return "used for this input"
}
