package session

import (
	"context"
	"fmt"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/choice"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// Prepare opens what a capture is about, finds the reference where one is wanted, and keeps the settings for the next
// comparison. What a command writes now is wanted, whatever it wrote before. The caller closes the job and the reference.
func Prepare(ctx context.Context, e *settings.Env, s settings.Settings, local, ref bool) (_ *job.Job, _ *choice.Found, err error) {
	var j *job.Job
	defer func() { err = keepInterrupted(ctx, s, e.Dir, j, err) }()
	if j, err = job.Open(ctx, e, s, e.Dir); err != nil {
		return nil, nil, err
	}
	if flaw := j.Model.Port.Flaw(); flaw != "" {
		fmt.Fprintf(e.Notes, "warning: %s\n", flaw)
	}
	var found *choice.Found
	defer func() {
		if err != nil {
			_ = j.Close() // read only
			if found != nil {
				_ = found.Close()
			}
		}
	}()
	if local {
		if err := checkLocal(ctx, e, j); err != nil {
			return nil, nil, err
		}
	}
	if ref {
		if found, err = choice.Find(ctx, e, j, true); err != nil {
			return nil, nil, err
		}
		if err := j.UseProgram(found.Trace, found.Passes); err != nil {
			return nil, nil, err
		}
		j.Input.Replay(found.Passes)
	}
	if err := j.CheckPasses(); err != nil {
		return nil, nil, err
	}
	return j, found, j.Save()
}

// Record runs a model without an order in transformers on the input of the settings, records the operations, and
// stores the recording with the reference. An existing recording is reused. Record returns the recorded program as
// an order, and the path of its file.
func Record(ctx context.Context, e *settings.Env, s settings.Settings) (list *order.List, path string, err error) {
	s.Reference, s.Program = settings.Source{Kind: settings.KindHF}, ""
	j, err := job.Open(ctx, e, s, e.Dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = hint.Also(err, j.Close()) }()
	if !j.Model.Undescribed {
		return nil, "", hint.Add(fmt.Errorf("--record: %s has an order: nothing has to be recorded", j.Model.Config.ModelType), "leave --record out; python -m tracediff.hf --program records its program next to the trace")
	}
	f, err := choice.Find(ctx, e, j, false)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = hint.Also(err, f.Close()) }()
	if err := j.UseProgram(f.Trace, f.Passes); err != nil {
		return nil, "", err
	}
	return j.Order.List, j.Order.Program.Path, nil
}
