package session

import (
	"context"
	"fmt"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
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
		f.Label = j.port.labelled(f.Label, f.Trace)
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
		f, err := j.givenReference(ctx, e, j.Reference.Text, e.Partial)
		if err == nil {
			err = e.notGated(f.Trace, "--reference go")
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
// asked for a walk. The hint names the flag that accepts it here.
func (e *Env) notGated(ref *capture.Trace, accept string) error {
	if !e.Gate || ref.Manifest().Producer.Name != reference.WalkName {
		return nil
	}
	return hint.Add(fmt.Errorf("%s is the float64 walk, and a gate needs a trace of transformers", ref.Path()),
		"make a trace with --reference hf, or accept the walk with "+accept+". --gate or CI=true makes this a gate")
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
	if j.port != nil {
		command += " --weights-from " + QuoteShell(j.Weights)
	}
	if j.port != nil && j.Map != "" {
		command += " --map " + QuoteShell(j.Map)
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
