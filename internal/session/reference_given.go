package session

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
)

// givenReference opens a file as it is. When its ids start with those of the input, the local side is fed its further
// passes; when they do not, the comparison will say so.
func (j *Job) givenReference(ctx context.Context, e *Env, path string, partial bool) (*Found, error) {
	t, err := foreign.Open(path)
	if err == nil {
		t, err = foreign.Fit(t, j.list)
	}
	if err != nil {
		return nil, hint.Default(fmt.Errorf("reading the reference: %w", err), "--reference wants a trace file, as tracediff capture and python -m tracediff.hf write them, or a dump: docs/dumps.md")
	}
	ids, err := t.IDs()
	if err == nil {
		err = j.suitable(ctx, e, t, "reference", partial)
	}
	if err != nil {
		return nil, hint.Also(err, t.Close())
	}
	f := &Found{t, "given", j.passes, nil}
	if passes, err := j.wanted("").Match(ids); err == nil {
		f.passes = passes
	}
	return f, nil
}

// suitable reports at once what the comparison would refuse after the run.
func (j *Job) suitable(ctx context.Context, e *Env, t *capture.Trace, side string, partial bool) error {
	if s := t.Status(); s != "" && s != capture.StatusComplete && !partial {
		return hint.Add(fmt.Errorf("%s is not complete, its status is %q", t.Path(), s), "make it again, or compare what is there with --partial")
	}
	if j.record != nil { // else it is the recorded program's, which is not known yet
		if err := compare.Walkable(t, j.record); err != nil {
			return fmt.Errorf("%s: %w", t.Path(), err)
		}
	}
	w := j.wanted("")
	if scheme, ok := checkpoint.SchemeOf(t.Manifest().Weights); ok && scheme != j.ck.Scheme() { // one that was made before large weights had a digest of their own
		sum, err := weightsDigest(ctx, e, j.ck, scheme)
		if err != nil {
			return err
		}
		w.Weights = sum
	}
	if j.port != nil { // a trace may be of the original's weights: what of it can be certified is decided later
		w.Weights = "unknown"
	}
	if err := w.SameModel(t); err != nil {
		return hint.Add(fmt.Errorf("%s cannot be the %s of %s: %w", t.Path(), side, j.ck.Name(), err), "capture both sides from the same checkpoint")
	}
	return nil
}

// Use says whether a comparison of the job would take an entry, were its runner asked for.
func (j *Job) Use(e *reference.Entry) string {
	runner := e.Key.Runner
	switch runner.Name {
	case reference.Transformers:
		runner = reference.TransformersRunner()
	case reference.GoWalk:
		runner = reference.WalkRunner()
	}
	w := j.wanted(runner.Name)
	byPort := j.Weights != "" && j.port == nil // whether it is of that file, is known when the file was read, which takes long
	if byPort && hasOthers(j.ck, e.Key.Weights) {
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
	case file == filepath.Base(j.Weights):
		return "used for this input while " + file + " is as it was"
	case file != "" || hasOthers(j.ck, e.Key.Weights):
		return "not used for this input, it is of other weights"
	default:
		return "used for this input if " + filepath.Base(j.Weights) + " has the model's own numbers"
	}
	return "used for this input"
}
