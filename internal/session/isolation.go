package session

import (
	"context"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/memo"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/proven"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// certify adds to the options of the comparison what certifies the local trace, or why nothing does.
func (in *inputs) certify(ctx context.Context) error {
	if in.asked.AB != nil {
		dtype, err := isolate.ModelDType(in.order.list, in.local, in.ref)
		if err != nil {
			return err
		}
		in.o.Confirmer = confirmer(in.local, in.order.list, in.model.ck, dtype)
		return nil
	}
	how, dtype, err := in.isolation(ctx)
	if err != nil {
		return err
	}
	if foreign.Printed(in.local) {
		return in.unable("your port's trace is a text of rounded numbers: nothing can be computed from them", "record the tensors themselves: docs/results/in-the-wild.md shows how, for llama.cpp")
	}
	in.o.Confirmer = confirmer(in.local, in.order.list, in.model.own(), dtype)
	switch {
	case in.o.NotIsolated != "":
		return in.unable(in.o.NotIsolated, "dump float32")
	case in.asked.Certification.Declined:
		in.o.NotIsolated, in.o.Certifying = "as asked for (--no-isolate)", compare.Declined
		return nil
	case in.order.list == nil || in.order.list.Config == nil:
		return in.unable("the order has names but no operations", "--model DIR names the checkpoint whose configuration gives the operations")
	case in.model.ck == nil:
		const next = "--model DIR names the checkpoint that your port's trace was made from"
		err = in.unable("the checkpoint of your port's trace is not known", next)
		in.o.NotIsolated += "; " + next
		return err
	}
	theirs := in.model.ck
	if in.model.port != nil {
		theirs = in.model.port.Of(in.ref)
	} else if why := origin.OthersThan(in.model.ck, in.ref); why != "" && !in.alone {
		return in.unable(why, "--model DIR names the checkpoint that both were made from")
	}
	return in.isolate(ctx, how, dtype, theirs)
}

// unable notes why no entry is certified. This is an error if certificates were demanded.
func (in *inputs) unable(why, next string) error {
	if in.o.NotIsolated = why; in.asked.Certification.Demanded {
		return hint.Add(fmt.Errorf("no operation can be verified: %s", why), next)
	}
	return nil
}

// isolation is how entries are isolated, and in which dtype the local side computes; 0 where that is not known.
func (in *inputs) isolation(ctx context.Context) (how isolate.Options, dtype hooks.DType, err error) {
	o, list, ck := &in.o, in.order.list, in.model.ck
	how = in.asked.Certification.Isolate
	how.Thorough, how.Given = in.alone, o.Given
	switch {
	case in.asked.Certification.Required:
		o.Certifying = compare.Required
	case in.asked.Certification.Demanded:
		o.Certifying = compare.Demanded
	}
	o.All = o.All || in.asked.Certification.Demanded
	if list == nil || list.Config == nil {
		return how, 0, nil
	}
	if dtype, err = isolate.ModelDType(list, in.local, in.ref); err != nil {
		return how, 0, err
	}
	how.DType = dtype
	how.Certified = memo.Once("the operations that have reproduced transformers", func(ctx context.Context) (isolate.Certified, error) {
		if in.order.program != nil {
			return in.order.program.Certified(ctx, in.env, ck)
		}
		into, err := proven.ByGoldens(list, dtype)
		if err != nil || ck == nil {
			return into, err
		}
		return into, proven.ByStored(ctx, in.env, into, list, ck, dtype)
	})
	if in.ref.Manifest().Producer.Name == reference.WalkName && !in.alone {
		o.Certified, err = how.Certified(ctx)
	}
	return how, dtype, err
}

// isolate opens both traces for isolation. theirs is the checkpoint of the reference; nil where it is not known.
func (in *inputs) isolate(ctx context.Context, how isolate.Options, dtype hooks.DType, theirs *checkpoint.Checkpoint) (err error) {
	o, local, list, ck := &in.o, in.local, in.order.list, in.model.ck
	weights := reference.Weights(ck, dtype)
	if file := in.model.file(); file != nil {
		ways, err := file.Ways(ctx, local, list, dtype)
		if err != nil {
			return err
		}
		weights = ways.Read(&how)
		o.Remarks = append(o.Remarks, ways.Remarks()...)
		o.Flaws = append(o.Flaws, ways.Flaws()...)
	} else {
		how.Spare = reference.SpareVectors(ck, list)
		proven.Remember(ctx, in.env, &how, local, list, ck)
	}
	if o.Isolator, err = compare.NewIsolator(local, list, weights, how); err != nil {
		o.Isolator = nil
		return in.unable(err.Error(), isolable(err, local.Manifest()))
	}
	if in.alone {
		if rounded, err := roundedAlone(ctx, o.Isolator, local, list, ck, how); err != nil || !rounded {
			return err
		}
		return in.unable(computesWider(dtype), "dump float32")
	}
	if theirs == nil {
		return nil
	}
	how.Single, how.Opaque, how.Own, how.Memory, how.Spare = nil, nil, false, nil, reference.SpareVectors(theirs, list)
	// What keeps the reference from being isolated is said only where something is to be excused by it.
	if how.DType, err = isolate.ModelDType(list, in.ref, local); err != nil {
		return err
	}
	if o.ReferenceIsolator, err = compare.NewIsolator(in.ref, list, reference.Weights(theirs, how.DType), how); err != nil {
		o.ReferenceIsolator = nil
	}
	return nil
}

// confirmer returns an isolator for the constants of the local trace. A confirmer never produces a BUG, so the
// checkpoint may be wrong or absent: entries with unavailable weights are left unconfirmed. confirmer returns nil
// if no entry can be computed.
func confirmer(local *capture.Trace, list *order.List, ck *checkpoint.Checkpoint, dtype hooks.DType) *isolate.Isolator {
	if list == nil || list.Config == nil {
		return nil
	}
	weights := func(order.Weight) (program.Rows, error) { return nil, isolate.ErrNoWeights }
	if ck != nil {
		weights = reference.Weights(ck, dtype)
	}
	i, err := isolate.NewConfirmer(local, list, weights, dtype)
	if err != nil { // without isolation no constant is confirmed, and the comparison is incomplete
		return nil
	}
	return i
}

// isolable says what a trace that cannot be isolated has to have.
func isolable(err error, m capture.Manifest) string {
	next, said := hint.Of(err)
	switch {
	case said && next != "":
		return next
	case len(m.Scope.Positions) > 0:
		return "capture it without --positions: an operation needs all rows"
	case len(m.Scope.Passes) > 0:
		return "capture it without --passes: later passes are computed from those before"
	case m.DType == 0:
		return "the trace has to say its dtype, as tracediff.dtype of its metadata"
	}
	return "the trace has to have the input_ids of every pass"
}
