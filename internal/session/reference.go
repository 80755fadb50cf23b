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
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
)

// Found is a reference trace and where it comes from.
type Found struct {
	*capture.Trace
	Label  string           // "golden", "stored", "given", "exec", or "captured" just now: for the report's first line
	passes [][]int          // the ids to feed the local side, pass by pass
	entry  *reference.Entry // where it is stored; nil for a golden and for what is used as it is
}

// findReference returns the trace to compare the job with: of the runner that was named, or else the best that there is.
// again asks for what a command writes now, whatever it wrote before.
func (j *Job) findReference(ctx context.Context, e *Env, again bool) (*Found, error) {
	e.detail("model %s, %s of weights, digest %s", j.ck.Name(), amount.Bytes(j.ck.Size()), j.weights)
	started := time.Now()
	f, err := j.chooseReference(ctx, e, again)
	if err == nil {
		e.detail("reference %s (%s) after %s", f.Path(), f.Label, amount.Since(started))
	}
	return f, err
}

func (j *Job) chooseReference(ctx context.Context, e *Env, again bool) (*Found, error) {
	if j.undescribed && j.list == nil {
		return j.undescribedReference(ctx, e)
	}
	switch j.Reference.Kind {
	case KindFile:
		f, err := j.givenReference(j.Reference.Text, e.Partial)
		if err == nil {
			err = e.notGated(f.Trace)
		}
		if err != nil && f != nil {
			return nil, hint.Also(err, f.Close())
		}
		return f, err
	case KindExec:
		if err := j.checkCommand(j.Reference, "reference"); err != nil {
			return nil, err
		}
		return j.storedOrMade(ctx, e, reference.CommandRunner(j.Reference.Text, j.Reference.Folder), again)
	case KindHF:
		return j.storedOrMade(ctx, e, reference.TransformersRunner(), false)
	case KindGo:
		return j.storedOrMade(ctx, e, reference.WalkRunner(), false)
	}
	return j.bestReference(ctx, e)
}

// bestReference is a stored trace of transformers, a golden, a stored walk, or a walk that is made now. Parity means
// transformers, so a gate has no use for the last two.
func (j *Job) bestReference(ctx context.Context, e *Env) (*Found, error) {
	f, err := j.stored(e, reference.TransformersRunner())
	if f != nil || err != nil {
		return f, err
	}
	t, passes, err := reference.Golden(fixtures.Files, j.wanted(reference.Transformers))
	if err != nil {
		return nil, err
	}
	if t != nil {
		return &Found{t, "golden", passes, nil}, nil
	}
	if e.Gate {
		return nil, j.gateError()
	}
	return j.storedOrMade(ctx, e, reference.WalkRunner(), false)
}

func (j *Job) storedOrMade(ctx context.Context, e *Env, r reference.Runner, again bool) (*Found, error) {
	if !again {
		if f, err := j.stored(e, r); f != nil || err != nil {
			return f, err
		}
	}
	return j.makeReference(ctx, e, r)
}

// maxPassed is how many stored references are named that were not used: those of other prompts are no news.
const maxPassed = 3

// stored looks for a stored reference by a runner, and notes what kept the nearest ones from being used. It returns nil
// when there is none.
func (j *Job) stored(e *Env, r reference.Runner) (*Found, error) {
	f, passed, err := reference.NewStore(j.dir).Find(j.wanted(r.Name), r)
	if err != nil {
		return nil, err
	}
	if f != nil {
		return &Found{f.Trace, "stored", f.Passes, &f.Entry}, nil
	}
	for i, p := range passed {
		if i == maxPassed && !e.Verbose {
			fmt.Fprintf(e.Notes, "note: %d more stored references are not used\n", len(passed)-i)
			break
		}
		fmt.Fprintf(e.Notes, "note: stored reference %s is not used: %v\n", p.Path, p.Why)
	}
	return nil, nil
}

// notGated reports a walk in a file where only transformers may be the reference: a file's name does not say that somebody
// asked for a walk.
func (e *Env) notGated(ref *capture.Trace) error {
	if !e.Gate || ref.Manifest().Producer.Name != reference.WalkName {
		return nil
	}
	return hint.Add(fmt.Errorf("%s is the float64 walk, and a gate needs a trace of transformers", ref.Path()),
		"make a trace with --reference hf, or accept the walk with --reference go. --gate or CI=true makes this a gate")
}

// gateError names the command that makes the reference which is missing.
func (j *Job) gateError() error {
	return hint.Add(fmt.Errorf("there is no trace of transformers for %s, these token ids and %s, and a gate does not accept the walk in its place", j.ck.Name(), j.dtype),
		"make one: "+j.captureCommand()+"; or accept the walk with --reference go (in tracediff.toml: reference = \"go\"). --gate or CI=true makes this a gate")
}

// captureCommand is the command that makes the reference of the job.
func (j *Job) captureCommand() string {
	command := "tracediff capture --side reference --reference hf"
	if j.Model != "" {
		command += " --model " + QuoteShell(j.Model)
	}
	command += " --tokens " + QuoteShell(reference.FormatTokens(j.passes))
	if j.further > 0 {
		command += fmt.Sprintf(" --max-new-tokens %d", j.further)
	}
	command += " --dtype " + j.dtype.String()
	if j.dir != DefaultDir {
		command += " --dir " + QuoteShell(j.dir)
	}
	return command
}

// makeReference runs a reference runner and stores what it wrote.
func (j *Job) makeReference(ctx context.Context, e *Env, r reference.Runner) (*Found, error) {
	if err := j.hashWeights(ctx, e); err != nil {
		return nil, err
	}
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
	Kept, err := store.Keep(path, w, key)
	if err != nil && r.Name == reference.External { // it is not what was asked for: the comparison says how
		return j.unstored(e, path, err)
	}
	if err != nil {
		return nil, err
	}
	f := &Found{Kept.Trace, "captured", Kept.Passes, &Kept.Entry}
	return f, j.measureFloor(ctx, e, f)
}

// unstored uses a command's trace as it is.
func (j *Job) unstored(e *Env, path string, why error) (*Found, error) {
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
	f, err := j.givenReference(j.path("reference"), false)
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
	if err := j.prepare(); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	model, order, err := j.handed()
	if err != nil {
		return err
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
	walk.Path, walk.Progress, walk.Debug = path, p.Step, j.debugLog(e, "reference", scope)
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
	go func() {
		defer close(ended)
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			p.Step(0, 1, min(int(bytes()/mega), steps), steps)
			select {
			case <-done:
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
	m := capture.Manifest{Model: j.ck.Name(), Weights: j.weights, Scope: scope}
	if j.Prompt != nil {
		m.Prompt = *j.Prompt
	}
	if j.program != nil {
		m.Program = j.program.declared()
		return reference.Job{Checkpoint: j.ck, List: j.list, Record: j.record, DType: j.dtype, Passes: j.passes, NewTokens: j.further, Manifest: m}
	}
	return reference.Job{Checkpoint: j.ck, List: j.list, DType: j.dtype, Passes: j.passes, NewTokens: j.further, Manifest: m}
}

// measureFloor puts the noise floor of a stored reference's passes beside it. A floor that cannot be measured is a note:
// the reference is as good without.
func (j *Job) measureFloor(ctx context.Context, e *Env, f *Found) error {
	if f.entry == nil || f.entry.Floor || j.program != nil || j.undescribed { // a recorded program has the rounding of one dtype
		return nil
	}
	walk := j.walk(f.entry.Key.Scope)
	walk.Passes, walk.NewTokens = f.passes, 0
	err := writeFloor(ctx, e, walk, f.entry.FloorPath())
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

// givenReference opens a file as it is. When its ids start with those of the input, the local side is fed its further
// passes; when they do not, the comparison will say so.
func (j *Job) givenReference(path string, partial bool) (*Found, error) {
	t, err := foreign.Open(path)
	if err == nil {
		t, err = foreign.Fit(t, j.list)
	}
	if err != nil {
		return nil, hint.Default(fmt.Errorf("reading the reference: %w", err), "--reference wants a trace file, as tracediff capture and python -m tracediff.hf write them, or a dump: docs/dumps.md")
	}
	ids, err := t.IDs()
	if err == nil {
		err = j.suitable(t, "reference", partial)
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
func (j *Job) suitable(t *capture.Trace, side string, partial bool) error {
	if s := t.Status(); s != "" && s != capture.StatusComplete && !partial {
		return hint.Add(fmt.Errorf("%s is not complete, its status is %q", t.Path(), s), "make it again, or compare what is there with --partial")
	}
	if j.record != nil { // else it is the recorded program's, which is not known yet
		if err := compare.Walkable(t, j.record); err != nil {
			return fmt.Errorf("%s: %w", t.Path(), err)
		}
	}
	if err := j.wanted("").SameModel(t); err != nil {
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
	t, _, err := e.Open(j.wanted(runner.Name), runner)
	if err != nil {
		return "not used for this input, " + err.Error()
	}
	if err := t.Close(); err != nil {
		return "not used: " + err.Error()
	}
	return "used for this input"
}
