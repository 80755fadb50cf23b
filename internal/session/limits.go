package session

import (
	"context"
	"errors"

	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/session/noise"
)

// limit adds to the options of a comparison the limits of accumulated errors: the person's own, and the noise floor of the
// prompt.
func (in *inputs) limit(ctx context.Context) (err error) {
	o, e := &in.o, in.env
	if o.Limits = in.asked.Limits; in.alone {
		return nil
	}
	traces := noise.Traces{Local: in.local, Ref: in.ref, Stored: in.stored, List: in.order.list, Checkpoint: in.model.ck}
	if o.Noise, err = traces.Floor(ctx, e); errors.Is(err, context.Canceled) {
		return errors.New("interrupted while the noise floor was measured")
	}
	if place := (*files.Error)(nil); errors.As(err, &place) { // what stands there is somebody else's
		return err
	}
	in.model.noFloor = err
	return nil
}
