package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// openDump opens a dump or a trace for [ProposeMap], and adds a hint to an error.
func openDump(path string) (*capture.Trace, error) {
	t, err := foreign.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(err, "tracediff map LOCAL [REFERENCE] takes the names of files or folders")
	}
	return t, hint.Default(err, dump.Next)
}

// Unmapped is the input of a proposal. Every field except Local may be empty.
type Unmapped struct {
	Local     string // a dump
	Reference string
	Model     string // the checkpoint's folder, if the reference does not declare its model
	Program   string // the file of a recorded program, if the reference has none next to it
}

// ProposeMap writes the map that a dump may need, and returns it. The map is found by known names, shapes and, with a reference, values.
func ProposeMap(ctx context.Context, e *settings.Env, w io.Writer, u Unmapped) (*propose.Proposal, error) {
	referenceFile := u.Reference
	local, err := openDump(u.Local)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	ref := local
	if referenceFile != "" {
		if ref, err = openDump(referenceFile); err != nil {
			return nil, err
		}
		defer ref.Close()
		if local, err = foreign.Renumbered(local, ref); err != nil {
			return nil, err
		}
	}
	list, err := mapOrder(u.Model, u.Program, local, ref)
	if err != nil {
		return nil, err
	}
	fitted, err := foreign.Fit(local, list)
	if err != nil {
		return nil, err
	}
	if r, ok := fitted.Lookup(0, order.InputIDs); ok && len(r.Shape) == 2 && r.Shape[0] > 1 {
		_, err := fitted.IDs() // the error for a batch of several sequences
		return nil, err
	}
	far := ref
	if ref == local || foreign.Printed(local) { // a printed text has few of the values, and rounded: values of the reference are not compared
		far, referenceFile = nil, ""
	} else if far, err = foreign.Fit(ref, list); err != nil {
		return nil, err
	}
	ck, err := mapCheckpoint(ctx, u.Model, ref)
	if err != nil {
		return nil, err
	}
	var weights propose.Weights
	if ck != nil {
		defer ck.Close()
		if !foreign.Printed(local) {
			weights = reference.Weights(ck, hooks.F32)
		}
	}
	shown := e.Begin("proposing the map", "step", nil)
	p, err := propose.Map(ctx, local, fitted, list, far, propose.Options{Weights: weights, Tell: func(step, steps int, name string) {
		shown.Step(0, 1, step, steps)
		shown.Doing(name)
	}})
	shown.Done()
	if errors.Is(err, propose.ErrNoTokens) {
		return nil, hint.Add(err, "dump them as input_ids, or name a reference that has them: tracediff map LOCAL REFERENCE")
	}
	if err != nil {
		return nil, err
	}
	return p, p.Write(w, u.Local, referenceFile)
}

// mapCheckpoint opens the checkpoint in the folder model, or the checkpoint of the reference if model is empty. With the weights, entries are computed
// from tensors of the dump, which tells tensors of one shape apart. The checkpoint is nil if no weights can be opened; then nothing is computed.
func mapCheckpoint(ctx context.Context, model string, ref *capture.Trace) (*checkpoint.Checkpoint, error) {
	if model == "" {
		return origin.Of(ctx, &settings.Env{}, "", "", ref)
	}
	ck, err := checkpoint.Open(model)
	if err != nil { // a folder without weights can still have config.json, which mapOrder reads
		return nil, nil
	}
	return ck, nil
}

// mapOrder returns the order whose names the map proposes. The command compare would use the same order for the two traces.
func mapOrder(model, program string, local, ref *capture.Trace) (*order.List, error) {
	list, err := orders.OfTraces(local, ref)
	if err != nil {
		return nil, err
	}
	if list == nil || program != "" {
		p, err := orders.FindProgram(program, ref)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p.List.Named(), nil
		}
	}
	if m := ref.Manifest(); list == nil && model == "" && (m.Program != "" || m.Config != nil) {
		return nil, hint.Add(fmt.Errorf("%s is of a model that no order describes, and no recorded program is next to it", ref.Path()), "--program FILE names the program that was recorded with it")
	}
	if list == nil || model != "" {
		return orders.OfModel(model, "")
	}
	return list, nil
}
