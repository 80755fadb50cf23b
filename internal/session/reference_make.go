package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
)

// makeReference runs a reference runner and stores what it wrote.
func (j *Job) makeReference(ctx context.Context, e *Env, r reference.Runner) (*Found, error) {
	w, store := j.wanted(r.Name), reference.NewStore(j.dir)
	scope := j.storedScope(r)
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
		err = j.runCommand(ctx, e, j.Reference, "reference", path)
	case reference.Transformers:
		err = j.runTransformers(ctx, e, scope, path)
	default:
		err = j.runWalk(ctx, e, scope, path)
	}
	if err != nil {
		return nil, err
	}
	p := e.progress("storing the reference", "file", nil)
	p.Step(0, 1, 0, 1)
	Kept, err := store.Keep(path, w, key)
	p.Done()
	if err != nil && r.Name == reference.External { // it is not what was asked for: the comparison says how
		return j.unstored(ctx, e, path, err)
	}
	if err != nil {
		return nil, err
	}
	f := &Found{Kept.Trace, "captured", Kept.Passes, &Kept.Entry}
	return f, j.measureFloor(ctx, e, f)
}

// unstored uses a command's trace as it is.
func (j *Job) unstored(ctx context.Context, e *Env, path string, why error) (*Found, error) {
	fmt.Fprintf(e.Notes, "note: %v; it is used as it is\n", why)
	release, err := j.lockSide("reference")
	if err != nil {
		return nil, err
	}
	defer release()
	if err := replaceTrace(path, j.path("reference")); err != nil {
		return nil, err
	}
	if err := reference.MoveProgram(path, j.path("reference")); err != nil {
		return nil, err
	}
	f, err := j.givenReference(ctx, e, j.path("reference"), false)
	if err != nil {
		return nil, err
	}
	f.Label = "exec"
	return f, nil
}

// storedScope is what a runner captures: everything, so that each narrower comparison finds it, unless that is too large.
func (j *Job) storedScope(r reference.Runner) capture.Scope {
	all := capture.Scope{Level: 3}
	switch {
	case r.Name == reference.External: // it is told what is wanted, and may capture that alone
		return j.Scope
	case j.list == nil: // it is recorded whole
		return all
	case capture.DataBytes(j.list, all, j.dtype, j.tokens()) <= reference.MaxStored:
		return all
	case r.Name == reference.Transformers: // which knows no other limits
		return capture.Scope{Level: j.Scope.Level, Layers: j.Scope.Layers}
	}
	return j.Scope
}

// tokens is the number of tokens of each pass.
func (j *Job) tokens() []int { return TokensOf(j.passes, j.further) }

// TokensOf is the number of tokens of each pass, with those that are decoded after them.
func TokensOf(passes [][]int, further int) []int {
	var n []int
	for _, ids := range passes {
		n = append(n, len(ids))
	}
	for range further {
		n = append(n, 1)
	}
	return n
}

// runTransformers runs the embedded runner.
func (j *Job) runTransformers(ctx context.Context, e *Env, scope capture.Scope, path string) error {
	if j.port != nil && j.port.Head != "" {
		return hint.Add(fmt.Errorf("the file has a head of its own, %s, and transformers has one tensor for the head and the embedding of this model", j.port.Head),
			"--reference go computes with both")
	}
	if err := j.prepare(); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	model, order, err := j.handed()
	if err != nil {
		return err
	}
	if j.port != nil {
		if model, err = filepath.Abs(j.ck.Name()); err != nil {
			return err
		}
	}
	if j.undescribed {
		order = ""
	} else if err := j.writeOrder(j.described()); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	out, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	r := reference.HF{
		Python: j.interpreter(), Model: model, Order: order, Out: out, Tokens: reference.FormatTokens(j.passes), NewTokens: j.further,
		DType: j.dtype, Level: scope.Level, Layers: scope.Layers, Debug: e.Debug, DebugFull: j.debugPasses(), DebugLayers: j.debugLayers(), DebugOnly: j.debugOnly(),
	}
	p := e.progress("capturing transformers", "MB", growing(path))
	show := &prefixed{w: e.Notes, prefix: "transformers | "}
	if w, ok := p.(io.Writer); ok {
		show.w = w
	}
	r.Show = show
	stop := follow(p, growing(path), j.dataBytes(scope))
	err = r.Run(ctx)
	stop()
	show.end()
	p.Done()
	if errors.Is(err, context.Canceled) {
		return j.stopped(path)
	}
	if err == nil && j.undescribed {
		err = checkRecorded(path)
	}
	if err != nil {
		return fmt.Errorf("--reference hf: %w", err)
	}
	return nil
}

// runWalk evaluates TENSOR_ORDER in float64.
func (j *Job) runWalk(ctx context.Context, e *Env, scope capture.Scope, path string) error {
	p := e.progress("capturing the reference walk", "entry", growing(path))
	defer p.Done()
	walk := j.walk(scope)
	walk.Path, walk.Progress, walk.Debug, walk.Memory = path, p.Step, j.debugLog(e, "reference", scope), e.Memory
	defer walk.Debug.End()
	_, err := reference.Walk(ctx, walk)
	if errors.Is(err, context.Canceled) {
		return j.stopped(path)
	}
	if err == nil && j.program != nil {
		err = j.program.putBeside(path)
	}
	return err
}

// follow shows how far a program is that another process runs, by the bytes of its trace, until the function that it returns is
// called. all is about how many there will be.
func follow(p Progress, bytes func() int64, all float64) (stop func()) {
	const mega = 1e6
	steps := max(int(min(all, 1e15)/mega), 1)
	done, ended := make(chan struct{}), make(chan struct{})
	show := func() { p.Step(0, 1, min(int(bytes()/mega), steps), steps) }
	go func() {
		defer close(ended)
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			show()
			select {
			case <-done:
				show() // what was written since
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(done); <-ended }
}

const followEvery = 200 * time.Millisecond

// stopped is the error of a reference run that was interrupted. What it had written so far has a place in the store that
// nobody would find, and that the next run clears: it is put where the reference would have been, beside the local trace.
func (j *Job) stopped(path string) error {
	Kept := j.path("reference") + capture.Suffix
	release, err := j.lockSide("reference")
	if err == nil {
		defer release()
		err = os.Rename(path+capture.Suffix, Kept)
	}
	if err != nil { // most often there is none yet
		return hint.Add(errors.New("interrupted; nothing was stored"), "run the same command again")
	}
	return hint.Add(errors.New("interrupted; the reference is unfinished and not stored"), "what was captured so far is in "+Kept+"; run the same command again")
}

// walk is the reference job of these passes at a scope, without a place to write to.
func (j *Job) walk(scope capture.Scope) reference.Job {
	m := capture.Manifest{Model: j.ck.Name(), Weights: j.weights, Port: j.port.told(), Scope: scope}
	if j.Prompt != nil {
		m.Prompt = *j.Prompt
	}
	if j.program != nil {
		m.Program = j.program.declared()
		return reference.Job{Checkpoint: j.ck, List: j.list, Record: j.record, DType: j.dtype, Passes: j.passes, NewTokens: j.further, Manifest: m}
	}
	return reference.Job{Checkpoint: j.ck, List: j.list, DType: j.dtype, Passes: j.passes, NewTokens: j.further, Manifest: m}
}

// walked is the trace where it is what the walk gives of its passes, with every rounding point: then nothing has to be walked again for
// the noise floor. nil where it is another runner's, or has more passes than were asked for.
func (f *Found) walked() *capture.Trace {
	if f.entry.Key.Runner != reference.WalkRunner() || f.Manifest().Passes != len(f.passes) {
		return nil
	}
	return f.Trace
}

// measureFloor puts the noise floor of a stored reference's passes beside it. A floor that cannot be measured is a note:
// the reference is as good without.
func (j *Job) measureFloor(ctx context.Context, e *Env, f *Found) error {
	if f.entry == nil || f.entry.Floor || j.program != nil || j.undescribed { // a recorded program has the rounding of one dtype
		return nil
	}
	walk := j.walk(f.entry.Key.Scope)
	walk.Passes, walk.NewTokens, walk.Memory = f.passes, 0, e.Memory
	err := writeFloor(ctx, e, walk, f.walked(), f.entry.FloorPath())
	if errors.Is(err, context.Canceled) {
		return hint.Also(hint.Add(errors.New("interrupted"), "the reference is stored; its noise floor is measured by the next tracediff capture"), f.Close())
	}
	if err != nil {
		fmt.Fprintf(e.Notes, "note: the reference has no noise floor: %v\n", err)
		return nil
	}
	f.entry.Floor = true
	return nil
}
