// Package choice finds the reference of a job. It decides which available reference is best and fits: a named file,
// a stored trace, a golden, a run of transformers or of a command, or the float64 walk. If the reference does not
// exist yet, choice makes and stores it.
package choice

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
)

// Found is a reference trace and where it comes from.
type Found struct {
	*capture.Trace
	Label  string           // "golden", "stored", "given", "exec", or "captured" just now: for the report's first line
	Passes [][]int          // the ids to feed the local side, pass by pass
	Entry  *reference.Entry // the place in the store; nil for a golden and for a file used as it is
	files  fs.FS            // where a golden lies; nil for others
}

// Find returns the reference trace for a job: from the named runner, or otherwise the best available. again runs a
// command anew even if an earlier run's trace is stored.
func Find(ctx context.Context, e *settings.Env, j *job.Job, again bool) (*Found, error) {
	return chooser{j, e}.find(ctx, again)
}

// Keep copies the reference of a job next to the local trace, keeps its noise floor in the store, and returns the
// path of the copy.
func Keep(ctx context.Context, e *settings.Env, j *job.Job, f *Found) (path string, err error) {
	c := chooser{j, e}
	if err := c.measureFloor(ctx, f); err != nil {
		return "", err
	}
	return c.putBeside(f)
}

// chooser finds the reference of a job.
type chooser struct {
	job *job.Job
	env *settings.Env
}

// command is the command that was named as the reference.
func (c chooser) command() job.Command {
	return job.Command{Job: c.job, Source: c.job.Settings.Reference, Side: "reference"}
}

func (c chooser) find(ctx context.Context, again bool) (*Found, error) {
	c.env.Detail("model %s, %s of weights, digest %s", c.job.Model.Checkpoint.Name(), amount.Bytes(c.job.Model.Checkpoint.Size()), c.job.Model.Digest)
	started := time.Now()
	f, err := c.choose(ctx, again)
	if err == nil {
		f.Label = c.job.Model.Port.Labelled(f.Label, f.Trace)
		c.env.Detail("reference %s (%s) after %s", f.Path(), f.Label, amount.Since(started))
	}
	return f, err
}

func (c chooser) choose(ctx context.Context, again bool) (*Found, error) {
	j := c.job
	if j.Model.Undescribed && j.Order.List == nil {
		return c.undescribed(ctx)
	}
	switch j.Settings.Reference.Kind {
	case settings.KindFile:
		f, err := c.given(ctx, j.Settings.Reference.Text, c.env.Partial)
		if err == nil {
			err = NotGated(c.env, f.Trace, "--reference go")
		}
		if err != nil && f != nil {
			return nil, hint.Also(err, f.Close())
		}
		return f, err
	case settings.KindExec:
		if err := c.command().Check(); err != nil {
			return nil, err
		}
		return c.storedOrMade(ctx, reference.CommandRunner(j.Settings.Reference.Text, j.Settings.Reference.Folder), again)
	case settings.KindHF:
		return c.storedOrMade(ctx, reference.TransformersRunner(), false)
	case settings.KindGo:
		return c.storedOrMade(ctx, reference.WalkRunner(), false)
	}
	return c.best(ctx)
}

// best is a stored trace of transformers, a golden, a stored walk, or a walk that is made now. Parity means
// transformers, so a gate has no use for the last two.
func (c chooser) best(ctx context.Context) (*Found, error) {
	f, err := c.stored(reference.TransformersRunner())
	if f != nil || err != nil {
		return f, err
	}
	if f, err := c.golden(); f != nil || err != nil {
		return f, err
	}
	if c.env.Gate {
		return nil, c.gateError()
	}
	return c.storedOrMade(ctx, reference.WalkRunner(), false)
}

func (c chooser) storedOrMade(ctx context.Context, r reference.Runner, again bool) (*Found, error) {
	if !again {
		if f, err := c.stored(r); f != nil || err != nil {
			return f, err
		}
	}
	return c.make(ctx, r)
}

// maxPassed bounds the stored but unusable references named in a note. References for other prompts are not worth a
// note.
const maxPassed = 3

// stored looks for a stored reference of a runner, and notes why the closest candidates were not used. It returns
// nil if no stored reference fits.
func (c chooser) stored(r reference.Runner) (*Found, error) {
	f, passed, err := reference.NewStore(c.job.Dir).Find(c.job.Wanted(r.Name), r)
	if err != nil {
		return nil, err
	}
	if f != nil {
		return &Found{Trace: f.Trace, Label: "stored", Passes: f.Passes, Entry: &f.Entry}, nil
	}
	for i, p := range passed {
		if i == maxPassed && !c.env.Verbose {
			fmt.Fprintf(c.env.Notes, "note: %d more stored references are not used\n", len(passed)-i)
			break
		}
		fmt.Fprintf(c.env.Notes, "note: stored reference %s is not used: %v\n", p.Path, p.Why)
	}
	return nil, nil
}
