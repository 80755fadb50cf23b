package choice

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/noise"
)

// walked returns the trace if it is the walk's own result for the job's passes, with every rounding point, so the
// noise floor does not need a second walk. It returns nil for other runners, and for a trace with more passes than
// the job.
func (f *Found) walked() *capture.Trace {
	if f.Entry.Key.Runner != reference.WalkRunner() || f.Manifest().Passes != len(f.Passes) {
		return nil
	}
	return f.Trace
}

// measureFloor writes the noise floor of a stored reference's passes to the store. If the floor cannot be measured,
// a note says why and the reference stays valid.
func (c chooser) measureFloor(ctx context.Context, f *Found) error {
	if f.Entry == nil || f.Entry.Floor || c.job.Order.Program != nil || c.job.Model.Undescribed { // a recorded program has the rounding of one dtype
		return nil
	}
	walk := c.walk(f.Entry.Key.Scope)
	walk.Passes, walk.NewTokens, walk.Memory = f.Passes, 0, c.env.Memory
	err := noise.Write(ctx, c.env, walk, f.walked(), f.Entry.FloorPath())
	if errors.Is(err, context.Canceled) {
		return hint.Also(hint.Add(errors.New("interrupted"), "the reference is stored; its noise floor is measured by the next tracediff capture"), f.Close())
	}
	if err != nil {
		fmt.Fprintf(c.env.Notes, "note: the reference has no noise floor: %v\n", err)
		return nil
	}
	f.Entry.Floor = true
	return nil
}
