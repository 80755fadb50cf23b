package session

import (
	"context"
	"errors"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// own is the checkpoint that certifies the local trace: the port's weights where they were named, else that of the model.
func (a *Asked) own(ck *checkpoint.Checkpoint) *checkpoint.Checkpoint {
	if a.port != nil {
		return a.port.ck
	}
	return ck
}

// ownWeights opens the port's weights that the settings name, for traces that are there already. The caller closes them.
func (a *Asked) ownWeights(ctx context.Context, e *Env, s *Settings, ck *checkpoint.Checkpoint, list *order.List, o *compare.Options, local, ref *capture.Trace) (*port, error) {
	if ck == nil {
		return nil, hint.Add(errors.New("--weights: the model that they are for is not known"), "--model DIR names the checkpoint that the port was converted from")
	}
	p, err := openPort(ctx, e, s, e.Dir, ck)
	if err != nil {
		return nil, err
	}
	if dtype, err := certify.ModelDType(list, local, ref); err == nil && p.same(dtype) {
		o.Remarks = append(o.Remarks, p.remark())
		return p, nil
	}
	a.port = p
	a.weighed(o)
	o.ReferenceLabel = p.labelled(o.ReferenceLabel, ref)
	return p, nil
}

// weighed says in a report with which weights the port was verified, and what keeps them from being right.
func (a *Asked) weighed(o *compare.Options) {
	if a.port == nil {
		return
	}
	o.Remarks = append(o.Remarks, a.port.remark())
	if flaw := a.port.flaw(); flaw != "" {
		o.Flaws = append(o.Flaws, flaw)
	}
}
