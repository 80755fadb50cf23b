package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/portweights"
)

// openPort opens the port's checkpoint from the settings, for existing traces.
func (in *inputs) openPort(ctx context.Context) error {
	if in.captured || in.asked.AB != nil || in.settings.Weights == "" {
		return nil
	}
	if in.model.ck == nil {
		return hint.Add(errors.New("--weights: the model of these weights is not known"), "--model DIR names the checkpoint that the port was converted from")
	}
	p, err := portweights.Open(ctx, in.env, &in.settings, in.env.Dir, in.model.ck)
	if err != nil {
		return err
	}
	if p.Of(in.local) == nil {
		err := fmt.Errorf("%s was made from weights that differ from %s and %s", in.local.Path(), in.model.ck.Name(), p.Path)
		return hint.Also(hint.Add(err, "--weights names the file of the port that made the trace, as it was then"), p.Close())
	}
	in.model.opened = append(in.model.opened, p)
	if dtype, err := isolate.ModelDType(in.order.list, in.local, in.ref); err == nil && p.Same(dtype) {
		in.model.kernels = p
		return in.weigh(ctx)
	}
	in.model.port = p
	in.o.ReferenceLabel = p.Labelled(in.o.ReferenceLabel, in.ref)
	return in.weigh(ctx)
}

// weigh adds to the report the name of the port's checkpoint, and any reason to distrust its weights.
func (in *inputs) weigh(context.Context) error {
	file := in.model.file()
	if file == nil {
		return nil
	}
	in.o.Remarks = append(in.o.Remarks, file.Remark())
	if flaw := file.Flaw(); flaw != "" {
		in.o.Flaws = append(in.o.Flaws, flaw)
	}
	return nil
}

// declare reports the port's checkpoint in the manifests of traces made with a port's own weights. A reference with
// known weights of neither the named model nor the port is no evidence about the model, even if every tensor is
// close.
func (in *inputs) declare(context.Context) error {
	o, local, ref, named := &in.o, in.local, in.ref, in.model.claimed
	if in.asked.AB != nil {
		return nil
	}
	if file := ref.Manifest().Port.File; file != "" && !in.alone && (in.model.port == nil || in.model.port.Of(ref) != in.model.port.Checkpoint) {
		o.ReferenceLabel += ", with the weights of " + plain.Text(file)
	}
	sides := map[*capture.Trace]string{ref: "the reference", local: "your port's trace"} // of a single trace: the second
	for _, t := range []*capture.Trace{local, ref} {
		of := t.Manifest().Port
		if of.Wrong == "" || sides[t] == "" || in.model.port != nil && in.model.port.Of(t) == in.model.port.Checkpoint { // of the port's own, its flaw is said
			continue
		}
		o.Flaws = append(o.Flaws, fmt.Sprintf("%s was made with the weights of %s, which are not the model's: %s", sides[t], plain.Text(of.File), plain.Text(of.Wrong)))
		delete(sides, t)
	}
	if named != nil && !in.alone {
		if other := origin.ConfiguredOtherwise(named, ref); other != "" {
			o.Flaws = append(o.Flaws, other)
		}
	}
	switch {
	case named == nil || in.alone || sides[ref] == "":
	case in.model.port == nil && origin.OthersThan(named, ref) != "":
		o.Flaws = append(o.Flaws, origin.OthersThan(named, ref)+"; "+referenceOf)
	case in.model.port != nil && in.model.port.Of(ref) == nil:
		o.Flaws = append(o.Flaws, fmt.Sprintf("the reference was made from weights that differ from %s and %s; %s", in.model.port.Original.Name(), in.model.port.Path, referenceOf))
	}
	return nil
}

// referenceOf is the hint for a reference made with the weights of a different model.
const referenceOf = "capture the reference from the model, or with --weights-from the port's file"
