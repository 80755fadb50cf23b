package choice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/settings"
)

// programRunners are the runners whose stored references have programs.
var programRunners = []string{reference.Transformers, reference.GoWalk}

// programFor returns the recorded program by which the walk runs a model without an order. The program comes from a
// stored reference of this model and must hold for the passes of the job. Only the program of the reference is
// used, and no Python is needed.
func (c chooser) programFor(ctx context.Context) (*orders.Program, error) {
	j := c.job
	entries, err := reference.NewStore(j.Dir).List()
	if err != nil {
		return nil, err
	}
	// Those of transformers first: their trace certifies the operations.
	slices.SortStableFunc(entries, func(a, b reference.Entry) int {
		return cmp.Compare(slices.Index(programRunners, a.Key.Name), slices.Index(programRunners, b.Key.Name))
	})
	var why error
	for i := range entries {
		one := &entries[i]
		if one.Err != nil || one.Program() == "" || !one.SameModel(j.Wanted(reference.Transformers)) || one.Intact() != nil {
			continue
		}
		p, err := orders.OpenProgram(one.Program())
		if err == nil {
			p, err = p.ForPasses(j.Input.Passes, j.Input.Further, "")
		}
		if err == nil {
			c.env.Detail("the walk runs the program %s", p.Path)
			return p, nil
		}
		if why == nil {
			why = err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if why != nil {
		return nil, why
	}
	return nil, hint.Add(fmt.Errorf("the walk has nothing to run: no order describes a model of type %q, and no program of it is stored in %s", j.Model.Config.ModelType, j.Dir),
		"--program FILE names a recorded program; "+advice.RecordHint)
}

// undescribed is the reference of a model that no order describes.
func (c chooser) undescribed(ctx context.Context) (*Found, error) {
	j := c.job
	switch j.Settings.Reference.Kind {
	case settings.KindExec:
		return nil, hint.Add(fmt.Errorf("--reference exec: no order describes a model of type %q, and a command has nothing to take its names from", j.Model.Config.ModelType),
			"let the command write FILE.safetensors with FILE.program.json next to it, and give the file: --reference FILE.safetensors; or use --reference hf")
	case settings.KindGo:
		p, err := c.programFor(ctx)
		if err != nil {
			return nil, err
		}
		if err := j.Adopt(p); err != nil {
			return nil, err
		}
		return c.storedOrMade(ctx, reference.WalkRunner(), false)
	case settings.KindHF:
		return c.storedOrMade(ctx, reference.TransformersRunner(), false)
	case settings.KindFile:
		return c.given(ctx, j.Settings.Reference.Text, c.env.Partial)
	}
	f, err := c.stored(reference.TransformersRunner())
	if f != nil || err != nil {
		return f, err
	}
	if c.env.Gate {
		return nil, c.gateError()
	}
	return nil, hint.Add(fmt.Errorf("no order describes a model of type %q, and no reference of %s is stored for these token ids and %s", j.Model.Config.ModelType, j.Model.Checkpoint.Name(), j.Model.DType),
		"record one: "+c.captureCommand())
}

// checkRecorded reads the program next to a fresh recording, so an unreadable program is never stored.
func checkRecorded(path string) error {
	t, err := capture.Open(path)
	if err != nil {
		return err
	}
	p, err := orders.ProgramBeside(t)
	if err == nil && p == nil {
		err = errors.New("the runner left no program next to the trace")
	}
	return hint.Also(err, t.Close())
}
