package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
)

// local makes the local side's trace, if it is not a file that is given, and opens it. greedy has the token that the Go
// model would have gone on with after each pass, −1 where it stopped early.
func (j *Job) Capture(ctx context.Context, e *Env) (_ *capture.Trace, greedy []int, err error) {
	started := time.Now()
	if j.Local.Kind == KindFile {
		e.detail("local side %s, as it is", j.Local.Text)
		t, err := openTrace(j.Local.Text)
		return t, nil, err
	}
	// Until the trace is open: another run's would be taken for it. What is open stays, whatever takes its place.
	release, err := j.lockSide("local")
	if err != nil {
		return nil, nil, err
	}
	defer release()
	switch j.Local.Kind {
	case KindExec:
		err = j.runCommand(ctx, e, j.Local, "local", j.path("local"))
	default:
		var out gemma.Output
		out, err = j.runModel(ctx, e)
		greedy = out.Greedy
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := openTrace(j.path("local"))
	e.detail("local side %s after %s", j.path("local"), amount.Since(started))
	return t, greedy, err
}

// checkLocal reports, before anything runs, what would keep the local side from being run or compared.
func (j *Job) checkLocal(ctx context.Context, e *Env) error {
	switch j.Local.Kind {
	case KindFile:
		t, err := openTrace(j.Local.Text)
		if err != nil {
			return err
		}
		defer t.Close()
		return j.suitable(ctx, e, t, "local side", e.Partial)
	case KindExec:
		return j.checkCommand(j.Local, "local")
	}
	if j.undescribed {
		return hint.Add(fmt.Errorf("a model of type %q has no local model; give a trace or a command with --local", j.config.ModelType), "compare a port of it: --local 'exec:COMMAND' or --local FILE; or capture the reference alone with --side reference")
	}
	return hint.Add(gemma.CheckFamily(j.list), "compare a port of it: --local 'exec:COMMAND' or --local FILE; or capture the reference alone with --side reference")
}

// runModel captures the Go model to the local side's place.
func (j *Job) runModel(ctx context.Context, e *Env) (gemma.Output, error) {
	m := capture.Manifest{
		Producer: capture.Producer{Name: "tracediff", Version: e.Version}, Model: j.ck.Name(), Weights: j.weights, Port: j.port.told(), Scope: j.Scope,
	}
	if j.Prompt != nil {
		m.Prompt = *j.Prompt
	}
	p := e.progress("capturing the local model", "layer", growing(j.path("local")))
	defer p.Done()
	log := j.debugLog(e, "local", j.Scope)
	defer log.End()
	out, err := gemma.Capture(ctx, gemma.Job{
		Checkpoint: j.ck, List: j.list, Computes: j.mistaken, Record: j.record, DType: j.dtype, Passes: j.passes, NewTokens: j.further,
		Path: j.path("local"), Manifest: m, Progress: p.Step, Debug: log,
	})
	if errors.Is(err, context.Canceled) {
		return out, hint.Add(errors.New("interrupted"), "what was captured so far is in "+j.path("local")+capture.Suffix)
	}
	return out, err
}
