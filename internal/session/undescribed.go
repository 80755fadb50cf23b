package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// A model is undescribed where no order describes its family. Its order is the program that is recorded with the reference: until
// there is one, the job has no list, and nothing is known of the names.

// recordedOrder is what the key of a reference has in the place of the order: whatever was recorded.
const recordedOrder = "recorded"

// recordHint is how a model that no order describes gets one.
const recordHint = "its operations are recorded as transformers runs it: tracediff capture --side reference --reference hf --model DIR"

// openUndescribed opens a model that no order describes.
func (j *Job) openUndescribed() error {
	general, err := order.ReadGeneral(j.ck.Config())
	if err != nil {
		return fmt.Errorf("%s: %w", j.ck.Name(), err)
	}
	j.config, j.canonical, j.undescribed = &general.Config, general.File, true
	if j.Order != "" {
		return hint.Add(fmt.Errorf("--order does not apply to a model of type %q: its order is the program that is recorded of it", general.ModelType), "leave --order out; --tensors and --layers narrow a comparison")
	}
	j.orderDigest, j.recordDigest = recordedOrder, recordedOrder
	return nil
}

// adopt makes a recorded program the order of the job.
func (j *Job) adopt(p *recordedProgram) error {
	j.program, j.list, j.record = p, p.list, p.list.Named()
	return CheckScope(j.Scope, j.record)
}

// useProgram makes the program that was named, or the one that was recorded with the reference, the order of the job.
func (j *Job) useProgram(f *Found) error {
	if j.list != nil {
		return nil
	}
	p, err := programOf(f.Trace)
	if err != nil {
		return err
	}
	if p == nil {
		return hint.Add(fmt.Errorf("%s has no recorded program beside it, and no order describes a model of type %q", f.Path(), j.config.ModelType),
			"--program FILE names one; python -m tracediff.hf without --order, and capture --reference hf, record one")
	}
	if p, err = p.forPasses(f.passes, 0, ""); err != nil {
		return err
	}
	return j.adopt(p)
}

// programRunners are the runners whose stored references have programs.
var programRunners = []string{reference.Transformers, reference.GoWalk}

// programFor is the program by which the walk runs a model that no order describes: that of a stored reference of this model which
// holds for the passes of the job. It needs no Python, and nothing of that reference but its program.
func (j *Job) programFor(ctx context.Context, e *Env) (*recordedProgram, error) {
	entries, err := reference.NewStore(j.dir).List()
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
		if one.Err != nil || one.Program() == "" || !one.SameModel(j.wanted(reference.Transformers)) || one.Intact() != nil {
			continue
		}
		p, err := openProgram(one.Program())
		if err == nil {
			p, err = p.forPasses(j.passes, j.further, "")
		}
		if err == nil {
			e.detail("the walk runs the program %s", p.path)
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
	return nil, hint.Add(fmt.Errorf("the walk has nothing to run: no order describes a model of type %q, and no program of it is stored in %s", j.config.ModelType, j.dir),
		"--program FILE names a recorded program; "+recordHint)
}

// undescribedReference is the reference of a model that no order describes.
func (j *Job) undescribedReference(ctx context.Context, e *Env) (*Found, error) {
	switch j.Reference.Kind {
	case KindExec:
		return nil, hint.Add(fmt.Errorf("--reference exec: no order describes a model of type %q, and a command has nothing to take its names from", j.config.ModelType),
			"let the command write FILE.safetensors with FILE.program.json beside it, and give the file: --reference FILE.safetensors; or use --reference hf")
	case KindGo:
		p, err := j.programFor(ctx, e)
		if err != nil {
			return nil, err
		}
		if err := j.adopt(p); err != nil {
			return nil, err
		}
		return j.storedOrMade(ctx, e, reference.WalkRunner(), false)
	case KindHF:
		return j.storedOrMade(ctx, e, reference.TransformersRunner(), false)
	case KindFile:
		return j.givenReference(ctx, e, j.Reference.Text, e.Partial)
	}
	f, err := j.stored(e, reference.TransformersRunner())
	if f != nil || err != nil {
		return f, err
	}
	if e.Gate {
		return nil, j.gateError()
	}
	return nil, hint.Add(fmt.Errorf("no order describes a model of type %q, and no reference of %s is stored for these token ids and %s", j.config.ModelType, j.ck.Name(), j.dtype),
		"record one: "+j.captureCommand())
}

// checkRecorded reads the program beside a trace that was just recorded: what cannot be read is not stored.
func checkRecorded(path string) error {
	t, err := capture.Open(path)
	if err != nil {
		return err
	}
	p, err := programOf(t)
	if err == nil && p == nil {
		err = errors.New("the runner left no program beside the trace")
	}
	return hint.Also(err, t.Close())
}

// remarks are what a report says of the input and of the order.
func (j *Job) remarks() []string {
	var all []string
	if said := j.saidOfIDs(); said != "" {
		all = append(all, said)
	}
	if j.program != nil && j.Program != "" {
		all = append(all, j.program.said())
	}
	return all
}

// described is the order of a described model, also where a recorded program stands in its place.
func (j *Job) described() *order.List {
	if j.program == nil {
		return j.list
	}
	list, err := order.New(j.config)
	if err != nil { // it was opened by it
		panic(err)
	}
	return list
}

// dataBytes is about how much data of a scope there will be; 1 where that is not known.
func (j *Job) dataBytes(scope capture.Scope) float64 {
	if j.list == nil {
		return 1
	}
	return capture.DataBytes(j.list, scope, j.dtype, j.tokens())
}
