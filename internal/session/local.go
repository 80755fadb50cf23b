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
	"github.com/tracediff/tracediff/internal/session/choice"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

// Capture makes the local side's trace, or opens the given file. greedy has the Go model's next token after each
// pass, or −1 for a pass stopped early.
func Capture(ctx context.Context, e *settings.Env, j *job.Job) (_ *capture.Trace, greedy []int, err error) {
	return captureLocal(ctx, e, j, nil)
}

// captureLocal implements [Capture]. If computes is not nil, the Go model runs with computes instead of the
// configuration of its list.
func captureLocal(ctx context.Context, e *settings.Env, j *job.Job, computes *order.Config) (_ *capture.Trace, greedy []int, err error) {
	started := time.Now()
	if j.Settings.Local.Kind == settings.KindFile {
		e.Detail("your port: %s, as it is", j.Settings.Local.Text)
		t, err := job.OpenTrace(j.Settings.Local.Text)
		return t, nil, err
	}
	// The lock is held until the trace is open, or another run could replace the file first. An open trace survives
	// a replacement.
	release, err := tracefolder.LockSide(j.Traces(), "local")
	if err != nil {
		return nil, nil, err
	}
	defer release()
	switch j.Settings.Local.Kind {
	case settings.KindExec:
		err = localCommand(j).Run(ctx, e, j.Path("local"))
	default:
		var out gemma.Output
		out, err = runModel(ctx, e, j, computes)
		greedy = out.Greedy
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := job.OpenTrace(j.Path("local"))
	e.Detail("your port: %s after %s", j.Path("local"), amount.Since(started))
	return t, greedy, err
}

// localCommand is the command that was named as the local side.
func localCommand(j *job.Job) job.Command {
	return job.Command{Job: j, Source: j.Settings.Local, Side: "local"}
}

// checkLocal reports, before anything runs, what would keep the local side from being run or compared.
func checkLocal(ctx context.Context, e *settings.Env, j *job.Job) error {
	switch j.Settings.Local.Kind {
	case settings.KindFile:
		t, err := job.OpenTrace(j.Settings.Local.Text)
		if err != nil {
			return err
		}
		defer t.Close()
		return choice.Suitable(ctx, e, j, t)
	case settings.KindExec:
		return localCommand(j).Check()
	}
	if j.Model.Undescribed {
		return hint.Add(fmt.Errorf("a model of type %q has no built-in model; give a trace or a command with --local", j.Model.Config.ModelType), "compare a port of it: --local 'exec:COMMAND' or --local FILE; or capture only the reference with --side reference")
	}
	return hint.Add(gemma.CheckFamily(j.Order.List), "compare a port of it: --local 'exec:COMMAND' or --local FILE; or capture only the reference with --side reference")
}

// runModel captures the Go model to the local side's place.
func runModel(ctx context.Context, e *settings.Env, j *job.Job, computes *order.Config) (gemma.Output, error) {
	m := capture.Manifest{
		Producer: capture.Producer{Name: "tracediff", Version: e.Version}, Model: j.Model.Checkpoint.Name(), Weights: j.Model.Digest, Port: j.Model.Port.ForManifest(), Scope: j.Settings.Scope,
	}
	if j.Settings.Prompt != nil {
		m.Prompt = *j.Settings.Prompt
	}
	p := e.Begin("capturing the built-in model", "layer", settings.Growing(j.Path("local")))
	defer p.Done()
	log := j.DebugLog(e, "local", j.Settings.Scope)
	defer log.End()
	out, err := gemma.Capture(ctx, gemma.Job{
		Checkpoint: j.Model.Checkpoint, List: j.Order.List, Computes: computes, Record: j.Order.Record, DType: j.Model.DType, Passes: j.Input.Passes, NewTokens: j.Input.Further,
		Path: j.Path("local"), Manifest: m, Progress: p.Step, Debug: log,
	})
	if errors.Is(err, context.Canceled) {
		return out, hint.Add(errors.New("interrupted"), "what was captured so far is in "+j.Path("local")+capture.Suffix)
	}
	return out, err
}
