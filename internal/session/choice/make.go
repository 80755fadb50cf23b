package choice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// make runs a reference runner and stores what it wrote.
func (c chooser) make(ctx context.Context, r reference.Runner) (*Found, error) {
	w, store := c.job.Wanted(r.Name), reference.NewStore(c.job.Dir)
	scope := c.storedScope(r)
	key := reference.NewKey(w, scope, r)
	release, err := store.Lock(key)
	if errors.Is(err, capture.ErrLocked) {
		return nil, hint.Add(errors.New("storing the reference: another run is making it"), "wait for it to end, then run the command again: the reference is stored by then")
	}
	if err != nil {
		return nil, err
	}
	defer release()
	path := store.Place(key)
	defer func() { // what was not kept
		os.RemoveAll(path)
		os.Remove(path + capture.Suffix)
		os.Remove(reference.ProgramBeside(path))
	}()
	switch r.Name {
	case reference.External:
		err = c.command().Run(ctx, c.env, path)
	case reference.Transformers:
		err = c.runTransformers(ctx, scope, path)
	default:
		err = c.runWalk(ctx, scope, path)
	}
	if err != nil {
		return nil, err
	}
	p := c.env.Begin("storing the reference", "file", nil)
	p.Step(0, 1, 0, 1)
	kept, err := store.Keep(path, w, key)
	p.Done()
	if err != nil && r.Name == reference.External { // it is not what was asked for: the comparison says how
		return c.unstored(ctx, path, err)
	}
	if err != nil {
		return nil, err
	}
	f := &Found{Trace: kept.Trace, Label: "captured", Passes: kept.Passes, Entry: &kept.Entry}
	return f, c.measureFloor(ctx, f)
}

// unstored uses a command's trace as it is.
func (c chooser) unstored(ctx context.Context, path string, why error) (*Found, error) {
	fmt.Fprintf(c.env.Notes, "note: %v; it is used as it is\n", why)
	release, err := tracefolder.LockSide(c.job.Traces(), "reference")
	if err != nil {
		return nil, err
	}
	defer release()
	if err := job.ReplaceTrace(path, c.job.Path("reference")); err != nil {
		return nil, err
	}
	if err := reference.MoveProgram(path, c.job.Path("reference")); err != nil {
		return nil, err
	}
	f, err := c.given(ctx, c.job.Path("reference"), false)
	if err != nil {
		return nil, err
	}
	f.Label = "exec"
	return f, nil
}

// storedScope returns the scope for a runner to capture: everything, so every narrower comparison can reuse the
// trace, unless the trace would be too large.
func (c chooser) storedScope(r reference.Runner) capture.Scope {
	j := c.job
	all := capture.Scope{Level: 3}
	switch {
	case r.Name == reference.External: // a command is told the scope, and may capture only that scope
		return j.Settings.Scope
	case j.Order.List == nil: // it is recorded whole
		return all
	case capture.DataBytes(j.Order.List, all, j.Model.DType, j.Input.Lengths()) <= reference.MaxStored:
		return all
	case r.Name == reference.Transformers: // which knows no other limits
		return capture.Scope{Level: j.Settings.Scope.Level, Layers: j.Settings.Scope.Layers}
	}
	return j.Settings.Scope
}

// runTransformers runs the embedded runner.
func (c chooser) runTransformers(ctx context.Context, scope capture.Scope, path string) error {
	j := c.job
	if j.Model.Port != nil && j.Model.Port.Head != "" {
		return hint.Add(fmt.Errorf("the file has a head of its own, %s, and transformers has one tensor for the head and the embedding of this model", j.Model.Port.Head),
			"--reference go computes with both")
	}
	if err := j.Handed().WriteModel(); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	model, order, err := j.Handed().Paths()
	if err != nil {
		return err
	}
	if j.Model.Port != nil {
		if model, err = filepath.Abs(j.Model.Checkpoint.Name()); err != nil {
			return err
		}
	}
	if j.Model.Undescribed {
		order = ""
	} else if err := j.Handed().WriteOrder(j.Described()); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	out, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	r := reference.HF{
		Python: j.Settings.Interpreter(), Model: model, Order: order, Out: out, Tokens: reference.FormatTokens(j.Input.Passes), NewTokens: j.Input.Further,
		DType: j.Model.DType, Level: scope.Level, Layers: scope.Layers, DebugOnly: j.Shown(),
		Debug: reference.Debug{On: c.env.Debug, Passes: job.ShownPasses(j.Settings.Scope), Layers: job.ShownLayers(j.Settings.Scope)},
	}
	p := c.env.Begin("capturing transformers", "MB", settings.Growing(path))
	show := &job.Prefixed{To: c.env.Notes, Prefix: "transformers | "}
	if w, ok := p.(io.Writer); ok {
		show.To = w
	}
	r.Show = show
	stop := follow(p, settings.Growing(path), j.DataBytes(scope))
	err = r.Run(ctx)
	stop()
	show.End()
	p.Done()
	if errors.Is(err, context.Canceled) {
		return c.stopped(path)
	}
	if err == nil && j.Model.Undescribed {
		err = checkRecorded(path)
	}
	if err != nil {
		return fmt.Errorf("--reference hf: %w", err)
	}
	return nil
}

// runWalk evaluates TENSOR_ORDER in float64.
func (c chooser) runWalk(ctx context.Context, scope capture.Scope, path string) error {
	p := c.env.Begin("capturing the reference walk", "entry", settings.Growing(path))
	defer p.Done()
	walk := c.walk(scope)
	walk.Path, walk.Progress, walk.Debug, walk.Memory = path, p.Step, c.job.DebugLog(c.env, "reference", scope), c.env.Memory
	defer walk.Debug.End()
	_, err := reference.Walk(ctx, walk)
	if errors.Is(err, context.Canceled) {
		return c.stopped(path)
	}
	if err == nil && c.job.Order.Program != nil {
		err = c.job.Order.Program.PutBeside(path)
	}
	return err
}

// walk is the reference job of these passes at a scope, without a place to write to.
func (c chooser) walk(scope capture.Scope) reference.Job {
	j := c.job
	m := capture.Manifest{Model: j.Model.Checkpoint.Name(), Weights: j.Model.Digest, Port: j.Model.Port.ForManifest(), Scope: scope}
	if j.Settings.Prompt != nil {
		m.Prompt = *j.Settings.Prompt
	}
	walk := reference.Job{Checkpoint: j.Model.Checkpoint, List: j.Order.List, DType: j.Model.DType, Passes: j.Input.Passes, NewTokens: j.Input.Further}
	if j.Order.Program != nil {
		m.Program = j.Order.Program.Declared()
		walk.Record = j.Order.Record
	}
	walk.Manifest = m
	return walk
}

// stopped returns the error of an interrupted reference run. The next run would clear the partial trace from the
// store, so stopped moves it to the usual place of the reference, next to the local trace.
func (c chooser) stopped(path string) error {
	kept := c.job.Path("reference") + capture.Suffix
	release, err := tracefolder.LockSide(c.job.Traces(), "reference")
	if err == nil {
		defer release()
		err = os.Rename(path+capture.Suffix, kept)
	}
	if err != nil { // most often because nothing was written yet
		return hint.Add(errors.New("interrupted; nothing was stored"), "run the same command again")
	}
	return hint.Add(errors.New("interrupted; the reference is unfinished and not stored"), "what was captured so far is in "+kept+"; run the same command again")
}
