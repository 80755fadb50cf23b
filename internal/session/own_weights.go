package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order"
)

// own is the checkpoint that certifies the local trace: the port's weights where they were named, else that of the model.
func (a *Asked) own(ck *checkpoint.Checkpoint) *checkpoint.Checkpoint {
	if a.port != nil {
		return a.port.ck
	}
	return ck
}

// file is the port's file that was named, nil for none.
func (a *Asked) file() *port { return cmp.Or(a.port, a.kernels) }

// ownWeights opens the port's weights that the settings name, for traces that are there already. The caller closes them.
func (a *Asked) ownWeights(ctx context.Context, e *Env, s *Settings, ck *checkpoint.Checkpoint, list *order.List, o *compare.Options, local, ref *capture.Trace) (*port, error) {
	if ck == nil {
		return nil, hint.Add(errors.New("--weights: the model that they are for is not known"), "--model DIR names the checkpoint that the port was converted from")
	}
	p, err := openPort(ctx, e, s, e.Dir, ck)
	if err != nil {
		return nil, err
	}
	if p.of(local) == nil {
		err := fmt.Errorf("%s was made of other weights than those of %s and of %s", local.Path(), ck.Name(), p.path)
		return nil, hint.Also(hint.Add(err, "--weights names the file of the port that made the trace, as it was then"), p.Close())
	}
	if dtype, err := isolate.ModelDType(list, local, ref); err == nil && p.same(dtype) {
		a.kernels = p
		a.weighed(o)
		return p, nil
	}
	a.port = p
	a.weighed(o)
	o.ReferenceLabel = p.labelled(o.ReferenceLabel, ref)
	return p, nil
}

// weighed says in a report with which weights the port was verified, and what keeps them from being right.
func (a *Asked) weighed(o *compare.Options) {
	file := a.file()
	if file == nil {
		return
	}
	o.Remarks = append(o.Remarks, file.remark())
	if flaw := file.flaw(); flaw != "" {
		o.Flaws = append(o.Flaws, flaw)
	}
}

// declared says of traces that were made with the weights of a port's file what they declare of these. A reference whose weights are known to
// be neither those of the model that was named nor the port's shows nothing of that model, however near it is.
func (a *Asked) declared(o *compare.Options, local, ref *capture.Trace, named *checkpoint.Checkpoint) {
	if o.AB {
		return
	}
	if file := ref.Manifest().Port.File; file != "" && !o.Alone && (a.port == nil || a.port.of(ref) != a.port.ck) {
		o.ReferenceLabel += ", with the weights of " + plain.Text(file)
	}
	sides := map[*capture.Trace]string{ref: "reference", local: "local trace"} // of one trace alone: the second
	for _, t := range []*capture.Trace{local, ref} {
		of := t.Manifest().Port
		if of.Wrong == "" || sides[t] == "" || a.port != nil && a.port.of(t) == a.port.ck { // of the port's own, its flaw is said
			continue
		}
		o.Flaws = append(o.Flaws, fmt.Sprintf("the %s was made with the weights of %s, which are not the model's: %s", sides[t], plain.Text(of.File), plain.Text(of.Wrong)))
		delete(sides, t)
	}
	if named != nil && !o.Alone {
		if other := configuredOtherwise(named, ref); other != "" {
			o.Flaws = append(o.Flaws, other)
		}
	}
	switch {
	case named == nil || o.Alone || sides[ref] == "":
	case a.port == nil && othersThan(named, ref) != "":
		o.Flaws = append(o.Flaws, othersThan(named, ref)+"; "+referenceOf)
	case a.port != nil && a.port.of(ref) == nil:
		o.Flaws = append(o.Flaws, fmt.Sprintf("the reference was made of other weights than those of %s and of %s; %s", a.port.original.Name(), a.port.path, referenceOf))
	}
}

// referenceOf is what to do about a reference that shows nothing of the model that was named.
const referenceOf = "capture the reference from the model, or with --weights-from the port's file"
