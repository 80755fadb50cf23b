package session

import (
	"context"
	"fmt"
	"io"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order"
)

// Prepare opens what a capture is about, finds the reference where one is wanted, and keeps the settings for the next
// comparison. What a command writes now is wanted, whatever it wrote before. The caller closes the job and the reference.
func Prepare(ctx context.Context, e *Env, s Settings, local, ref bool) (_ *Job, _ *Found, err error) {
	var j *Job
	defer func() { err = keepInterrupted(ctx, s, e.Dir, j, err) }()
	if j, err = Open(ctx, e, s, e.Dir); err != nil {
		return nil, nil, err
	}
	if flaw := j.port.flaw(); flaw != "" {
		fmt.Fprintf(e.Notes, "warning: %s\n", flaw)
	}
	var found *Found
	defer func() {
		if err != nil {
			_ = j.Close() // read only
			if found != nil {
				_ = found.Close()
			}
		}
	}()
	if local {
		if err := j.checkLocal(ctx, e); err != nil {
			return nil, nil, err
		}
	}
	if ref {
		if found, err = j.findReference(ctx, e, true); err != nil {
			return nil, nil, err
		}
		if err := j.useProgram(found); err != nil {
			return nil, nil, err
		}
		j.replay(found.passes)
	}
	if err := j.checkPasses(); err != nil {
		return nil, nil, err
	}
	return j, found, j.save()
}

// Record records what a model that no order describes computes on the input of the settings, as transformers runs it, and stores it
// with the reference. One that is stored already is used. It returns the program as an order, and its file.
func Record(ctx context.Context, e *Env, s Settings) (list *order.List, path string, err error) {
	s.Reference, s.Program = Source{Kind: KindHF}, ""
	j, err := Open(ctx, e, s, e.Dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = hint.Also(err, j.Close()) }()
	if !j.undescribed {
		return nil, "", hint.Add(fmt.Errorf("--record: %s has an order: nothing has to be recorded", j.config.ModelType), "leave --record out; python -m tracediff.hf --program records its program beside the trace")
	}
	f, err := j.findReference(ctx, e, false)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = hint.Also(err, f.Close()) }()
	if err := j.useProgram(f); err != nil {
		return nil, "", err
	}
	return j.list, j.program.path, nil
}

// ShowProgram says what was recorded of the model; nothing where an order describes it.
func (j *Job) ShowProgram(w io.Writer) {
	if j.program == nil {
		return
	}
	named := 0
	for i := range j.list.Entries {
		if j.list.Entries[i].Level <= 3 {
			named++
		}
	}
	fmt.Fprintf(w, "program: %s a pass with a name, %s between them, %s: %s\n", amount.Of(named, "tensor"), amount.Of(len(j.list.Entries)-named, "operation"),
		amount.Bytes(int64(len(j.program.data))), plain.Text(j.program.path))
}

// Keep puts the reference beside the local trace, with its noise floor in the store, and returns where.
func (j *Job) Keep(ctx context.Context, e *Env, f *Found) (path string, err error) {
	if err := j.measureFloor(ctx, e, f); err != nil {
		return "", err
	}
	return j.dump(f)
}
