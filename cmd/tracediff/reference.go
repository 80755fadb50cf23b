package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures"
)

// found is a reference trace and where it comes from.
type found struct {
	*capture.Trace
	label  string           // "golden", "stored", "given", "exec", or "captured" just now: for the report's first line
	passes [][]int          // the ids to feed the local side, pass by pass
	entry  *reference.Entry // where it is stored; nil for a golden and for what is used as it is
}

// findReference returns the trace to compare the job with: of the runner that was named, or else the best that there is.
// again asks for what a command writes now, whatever it wrote before.
func (j *job) findReference(c *cli.Context, again bool) (*found, error) {
	detail(c, "model %s, %s of weights, digest %s", j.ck.Name(), size(j.ck.Size()), j.weights)
	started := time.Now()
	f, err := j.chooseReference(c, again)
	if err == nil {
		detail(c, "reference %s (%s) after %s", f.Path(), f.label, took(started))
	}
	return f, err
}

func (j *job) chooseReference(c *cli.Context, again bool) (*found, error) {
	switch j.Reference.Kind {
	case kindFile:
		f, err := j.givenReference(j.Reference.Text, c.Bool("partial"))
		if err == nil {
			err = notGated(c, f.Trace)
		}
		if err != nil && f != nil {
			return nil, also(err, f.Close())
		}
		return f, err
	case kindExec:
		if err := j.checkCommand(j.Reference, "reference"); err != nil {
			return nil, err
		}
		return j.storedOrMade(c, reference.CommandRunner(j.Reference.Text, j.Reference.Folder), again)
	case kindHF:
		return j.storedOrMade(c, reference.TransformersRunner(), false)
	case kindGo:
		return j.storedOrMade(c, reference.WalkRunner(), false)
	}
	return j.bestReference(c)
}

// bestReference is a stored trace of transformers, a golden, a stored walk, or a walk that is made now. Parity means
// transformers, so a gate has no use for the last two.
func (j *job) bestReference(c *cli.Context) (*found, error) {
	f, err := j.stored(c, reference.TransformersRunner())
	if f != nil || err != nil {
		return f, err
	}
	t, passes, err := reference.Golden(fixtures.Files, j.wanted(reference.Transformers))
	if err != nil {
		return nil, err
	}
	if t != nil {
		return &found{t, "golden", passes, nil}, nil
	}
	if gated(c) {
		return nil, j.gateError()
	}
	return j.storedOrMade(c, reference.WalkRunner(), false)
}

func (j *job) storedOrMade(c *cli.Context, r reference.Runner, again bool) (*found, error) {
	if !again {
		if f, err := j.stored(c, r); f != nil || err != nil {
			return f, err
		}
	}
	return j.makeReference(c, r)
}

// maxPassed is how many stored references are named that were passed over: those of other prompts are no news.
const maxPassed = 3

// stored looks for a stored reference by a runner, and notes what kept the nearest ones from being used. It returns nil
// when there is none.
func (j *job) stored(c *cli.Context, r reference.Runner) (*found, error) {
	f, passed, err := reference.NewStore(j.dir).Find(j.wanted(r.Name), r)
	if err != nil {
		return nil, err
	}
	if f != nil {
		return &found{f.Trace, "stored", f.Passes, &f.Entry}, nil
	}
	for i, p := range passed {
		if i == maxPassed && !c.Bool("verbose") {
			fmt.Fprintf(notes(c), "note: %d more stored references are passed over\n", len(passed)-i)
			break
		}
		fmt.Fprintf(notes(c), "note: %s is passed over: %v\n", p.Path, p.Why)
	}
	return nil, nil
}

// gated reports whether only transformers may be the reference: --gate, or a CI that says it is one.
func gated(c *cli.Context) bool {
	if c.Command.Name == gateName {
		return true
	}
	if c.IsSet("gate") {
		return c.Bool("gate")
	}
	return os.Getenv("CI") == "true"
}

// notGated reports a walk in a file where only transformers may be the reference: a file's name does not say that somebody
// asked for a walk.
func notGated(c *cli.Context, ref *capture.Trace) error {
	if !gated(c) || ref.Manifest().Producer.Name != reference.WalkName {
		return nil
	}
	return hinted(fmt.Errorf("%s is the float64 walk, and a gate does not take the walk for transformers", ref.Path()),
		"make a trace with --reference hf, or take the walk: --reference go. A gate is asked for by --gate, or by CI=true in the environment")
}

// gateError names the command that makes the reference which is missing.
func (j *job) gateError() error {
	command := "tracediff capture --side reference --reference hf"
	if j.Model != "" {
		command += " --model " + quoteShell(j.Model)
	}
	command += " --tokens " + quoteShell(reference.FormatTokens(j.passes))
	if j.further > 0 {
		command += fmt.Sprintf(" --max-new-tokens %d", j.further)
	}
	command += " --dtype " + j.dtype.String()
	if j.dir != defaultDir {
		command += " --dir " + quoteShell(j.dir)
	}
	return hinted(fmt.Errorf("no trace of transformers is of %s, these token ids and %s, and a gate does not take the walk for it", j.ck.Name(), j.dtype),
		"make one: "+command+"; or take the walk: --reference go, in tracediff.toml reference = \"go\". A gate is asked for by --gate, or by CI=true in the environment")
}

// makeReference runs a reference runner and stores what it wrote.
func (j *job) makeReference(c *cli.Context, r reference.Runner) (*found, error) {
	if err := j.hashWeights(c); err != nil {
		return nil, err
	}
	w, store := j.wanted(r.Name), reference.NewStore(j.dir)
	scope := j.storedScope(r)
	key := reference.NewKey(w, scope, r)
	release, err := store.Lock(key)
	if errors.Is(err, capture.ErrLocked) {
		return nil, hinted(errors.New("storing the reference: another run is making it"), "wait for it to end, and then repeat the command: the reference is stored by then")
	}
	if err != nil {
		return nil, err
	}
	defer release()
	path := store.Place(key)
	defer func() { // what was not kept
		os.Remove(path)
		os.Remove(path + capture.Suffix)
	}()
	switch r.Name {
	case reference.External:
		err = j.runCommand(c, j.Reference, "reference", path)
	case reference.Transformers:
		err = j.runTransformers(c, scope, path)
	default:
		err = j.runWalk(c, scope, path)
	}
	if err != nil {
		return nil, err
	}
	kept, err := store.Keep(path, w, key)
	if err != nil && r.Name == reference.External { // it is not what was asked for: the comparison says how
		return j.unstored(c, path, err)
	}
	if err != nil {
		return nil, err
	}
	f := &found{kept.Trace, "captured", kept.Passes, &kept.Entry}
	return f, j.measureFloor(c, f)
}

// unstored uses a command's trace as it is.
func (j *job) unstored(c *cli.Context, path string, why error) (*found, error) {
	fmt.Fprintf(notes(c), "note: %v; it is used as it is\n", why)
	release, err := j.lockSide("reference")
	if err != nil {
		return nil, err
	}
	defer release()
	if err := os.Rename(path, j.path("reference")); err != nil {
		return nil, err
	}
	f, err := j.givenReference(j.path("reference"), false)
	if err != nil {
		return nil, err
	}
	f.label = "exec"
	return f, nil
}

// storedScope is what a runner captures: everything, so that each narrower comparison finds it, unless that is too large.
func (j *job) storedScope(r reference.Runner) capture.Scope {
	all := capture.Scope{Level: 3}
	switch {
	case r.Name == reference.External: // it is told what is wanted, and may capture that alone
		return j.Scope
	case capture.DataBytes(j.list, all, j.dtype, j.tokens()) <= reference.MaxStored:
		return all
	case r.Name == reference.Transformers: // which knows no other limits
		return capture.Scope{Level: j.Scope.Level, Layers: j.Scope.Layers}
	}
	return j.Scope
}

// tokens is the number of tokens of each pass.
func (j *job) tokens() []int {
	var n []int
	for _, ids := range j.passes {
		n = append(n, len(ids))
	}
	for range j.further {
		n = append(n, 1)
	}
	return n
}

// runTransformers runs the embedded runner.
func (j *job) runTransformers(c *cli.Context, scope capture.Scope, path string) error {
	if err := j.prepare(); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	if err := j.writeOrder(j.list); err != nil {
		return fmt.Errorf("preparing transformers: %w", err)
	}
	model, order, err := j.handed()
	if err != nil {
		return err
	}
	out, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	interpreter := j.Python
	if interpreter == "" {
		interpreter = "python3"
	}
	r := reference.HF{
		Python: interpreter, Model: model, Order: order, Out: out, Tokens: reference.FormatTokens(j.passes), NewTokens: j.further,
		DType: j.dtype, Level: scope.Level, Layers: scope.Layers, Debug: debugs(c), DebugFull: j.debugPasses(), DebugOnly: j.debugOnly(),
	}
	show := &prefixed{w: notes(c), prefix: "transformers | "}
	r.Show = show
	err = r.Run(c.Context)
	show.end()
	if errors.Is(err, context.Canceled) {
		return j.stopped(path)
	}
	if err != nil {
		return fmt.Errorf("--reference hf: %w", err)
	}
	return nil
}

// runWalk evaluates TENSOR_ORDER in float64.
func (j *job) runWalk(c *cli.Context, scope capture.Scope, path string) error {
	p := newProgress(c, "capturing the reference walk", "entry", path)
	defer p.done()
	job := j.walk(scope)
	job.Path, job.Progress, job.Debug = path, p.step, j.debugLog(c, "reference", scope)
	defer job.Debug.End()
	_, err := reference.Walk(c.Context, job)
	if errors.Is(err, context.Canceled) {
		return j.stopped(path)
	}
	return err
}

// stopped is the error of a reference run that was interrupted. What it had written so far has a place in the store that
// nobody would find, and that the next run clears: it is put where the reference would have been, beside the local trace.
func (j *job) stopped(path string) error {
	kept := j.path("reference") + capture.Suffix
	release, err := j.lockSide("reference")
	if err == nil {
		defer release()
		err = os.Rename(path+capture.Suffix, kept)
	}
	if err != nil { // most often there is none yet
		return hinted(errors.New("interrupted; nothing was stored"), "the same command starts again")
	}
	return hinted(errors.New("interrupted; the reference is unfinished and not stored"), "what was captured so far is in "+kept+"; the same command starts again")
}

// walk is the reference job of these passes at a scope, without a place to write to.
func (j *job) walk(scope capture.Scope) reference.Job {
	m := capture.Manifest{Model: j.ck.Name(), Weights: j.weights, Scope: scope}
	if j.Prompt != nil {
		m.Prompt = *j.Prompt
	}
	return reference.Job{Checkpoint: j.ck, List: j.list, DType: j.dtype, Passes: j.passes, NewTokens: j.further, Manifest: m}
}

// measureFloor puts the noise floor of a stored reference's passes beside it. A floor that cannot be measured is a note:
// the reference is as good without.
func (j *job) measureFloor(c *cli.Context, f *found) error {
	if f.entry == nil || f.entry.Floor {
		return nil
	}
	p := newProgress(c, "measuring the noise floor", "entry", "")
	defer p.done()
	job := j.walk(f.entry.Key.Scope)
	job.Passes, job.NewTokens, job.Progress = f.passes, 0, p.step
	err := writeFloor(c.Context, job, f.entry.FloorPath())
	if errors.Is(err, context.Canceled) {
		return also(hinted(errors.New("interrupted"), "the reference is stored; its noise floor is measured by the next tracediff capture"), f.Close())
	}
	if err != nil {
		fmt.Fprintf(notes(c), "note: the reference has no noise floor: %v\n", err)
		return nil
	}
	f.entry.Floor = true
	return nil
}

// givenReference opens a file as it is. When its ids start with those of the input, the local side is fed its further
// passes; when they do not, the comparison will say so.
func (j *job) givenReference(path string, partial bool) (*found, error) {
	t, err := capture.Open(path)
	if err != nil {
		return nil, hinted(fmt.Errorf("reading the reference: %w", err), "--reference wants a trace file, as tracediff capture and python -m tracediff.hf write them")
	}
	ids, err := t.IDs()
	if err == nil {
		err = j.suitable(t, "reference", partial)
	}
	if err != nil {
		return nil, also(err, t.Close())
	}
	f := &found{t, "given", j.passes, nil}
	if passes, err := j.wanted("").Match(ids); err == nil {
		f.passes = passes
	}
	return f, nil
}

// suitable reports at once what the comparison would refuse after the run.
func (j *job) suitable(t *capture.Trace, side string, partial bool) error {
	if s := t.Status(); s != "" && s != capture.StatusComplete && !partial {
		return hinted(fmt.Errorf("%s is not complete, its status is %q", t.Path(), s), "make it again, or compare what is there with --partial")
	}
	if err := compare.Walkable(t, j.record); err != nil {
		return fmt.Errorf("%s: %w", t.Path(), err)
	}
	if err := j.wanted("").SameModel(t); err != nil {
		return hinted(fmt.Errorf("%s cannot be the %s of %s: %w", t.Path(), side, j.ck.Name(), err), "capture both sides from the same checkpoint")
	}
	return nil
}
