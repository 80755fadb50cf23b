package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"sync"

	"github.com/tracediff/tracediff/compare/isolate"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// addIsolators adds to the options of a comparison what certifies the local trace, or why nothing does. list is the model's
// whole order, ck its checkpoint, which may be nil when it is not known.
func addIsolators(ctx context.Context, e *Env, a *Asked, o *compare.Options, local, ref *capture.Trace, list *order.List, ck *checkpoint.Checkpoint) error {
	var err error
	io := a.Isolate
	io.Thorough, io.Given = o.Alone, o.Given
	switch {
	case a.Required:
		o.Certifying = compare.Required
	case a.Demanded:
		o.Certifying = compare.Demanded
	}
	o.All = o.All || a.Demanded
	unable := func(why, next string) error {
		if o.NotIsolated = why; a.Demanded {
			return hint.Add(fmt.Errorf("no operation can be verified: %s", why), next)
		}
		return nil
	}
	var dtype hooks.DType // of the local side
	if list != nil && list.Config != nil {
		if dtype, err = isolate.ModelDType(list, local, ref); err != nil {
			return err
		}
		io.DType = dtype
		io.Certified = sync.OnceValues(func() (isolate.Certified, error) {
			if a.program != nil {
				return a.program.certified(ctx, e, ck)
			}
			into, err := certified(ctx, list, dtype)
			if err != nil || ck == nil {
				return into, err
			}
			return into, certifyByStored(ctx, e, into, list, ck, dtype)
		})
		if ref.Manifest().Producer.Name == reference.WalkName && !o.Alone {
			if o.Certified, err = io.Certified(); err != nil {
				return err
			}
		}
	}
	if foreign.Printed(local) {
		return unable("the local trace is a text of rounded numbers: nothing can be computed from them", "record the tensors themselves: docs/in-the-wild.md shows how, for llama.cpp")
	}
	o.Confirmer = confirmer(local, list, a.own(ck), dtype)
	switch {
	case o.NotIsolated != "":
		return unable(o.NotIsolated, "dump float32")
	case a.Declined:
		o.NotIsolated, o.Certifying = "as asked for (--no-isolate)", compare.Declined
		return nil
	case list == nil || list.Config == nil:
		return unable("the order has names and no operations", "--model DIR names the checkpoint whose configuration gives the operations")
	case ck == nil:
		const next = "--model DIR names the checkpoint that the local trace was made of"
		err = unable("the checkpoint of the local trace is not known", next)
		o.NotIsolated += "; " + next
		return err
	}
	theirs := ck
	if a.port != nil {
		theirs = a.port.of(ref)
	} else if why := othersThan(ck, ref); why != "" && !o.Alone {
		return unable(why, "--model DIR names the checkpoint that both were made of")
	}
	weights := reference.Weights(ck, dtype)
	if file := a.file(); file != nil {
		ways, err := file.waysOf(ctx, local, list, dtype)
		if err != nil {
			return err
		}
		weights = ways.read(&io)
		o.Remarks = append(o.Remarks, ways.remarks()...)
		o.Flaws = append(o.Flaws, ways.flaws()...)
	}
	if a.file() == nil {
		remember(ctx, e, &io, local, list, ck)
	}
	if o.Isolator, err = compare.NewIsolator(local, list, weights, io); err != nil {
		o.Isolator = nil
		return unable(err.Error(), isolable(err, local.Manifest()))
	}
	if o.Alone {
		if rounded, err := roundedAlone(ctx, o.Isolator, local, list, ck, io); err != nil || !rounded {
			return err
		}
		return unable(computesWider(dtype), "dump float32")
	}
	if theirs == nil {
		return nil
	}
	io.Single, io.Opaque, io.Own, io.Memory = nil, nil, false, nil
	// What keeps the reference from being isolated is said only where something is to be excused by it.
	if io.DType, err = isolate.ModelDType(list, ref, local); err != nil {
		return err
	}
	if o.ReferenceIsolator, err = compare.NewIsolator(ref, list, reference.Weights(theirs, io.DType), io); err != nil {
		o.ReferenceIsolator = nil
	}
	return nil
}

// confirmer says which constants of the local trace the order gives. It accuses nobody, so that a checkpoint which may not be the
// right one, or none, does for it: what needs its weights is then not confirmed. nil where nothing can be computed.
func confirmer(local *capture.Trace, list *order.List, ck *checkpoint.Checkpoint, dtype hooks.DType) *isolate.Isolator {
	if list == nil || list.Config == nil {
		return nil
	}
	weights := func(order.Weight) (program.Rows, error) { return nil, isolate.ErrNoWeights }
	if ck != nil {
		weights = reference.Weights(ck, dtype)
	}
	i, err := isolate.NewConfirmer(local, list, weights, dtype)
	if err != nil { // a trace that cannot be isolated: nothing constant in it is confirmed, and that is incomplete
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

// certified isolates the goldens of a model's family: every form of an operation that reproduces them may accuse. A form
// that the family's goldens do not have, such as a scaling of the rotary embedding, is what it is in any family: those of the
// others decide. Goldens are those of the dtype; for one that has none, all.
func certified(ctx context.Context, list *order.List, dtype hooks.DType) (isolate.Certified, error) {
	own, others, err := goldensOf(list, "*."+dtype.String())
	if err == nil && len(own) == 0 {
		own, others, err = goldensOf(list, "*")
	}
	if err != nil {
		return nil, err
	}
	into, elsewhere := isolate.Certified{}, isolate.Certified{}
	for _, name := range own {
		if err := certifyBy(ctx, into, name); err != nil {
			return nil, fmt.Errorf("certifying the operations of the walk: %w", err)
		}
	}
	for _, name := range others {
		if into.Knows(list) {
			return into, nil
		}
		if err := certifyBy(ctx, elsewhere, name); err != nil {
			return nil, fmt.Errorf("certifying the operations of the walk: %w", err)
		}
	}
	for form, good := range elsewhere {
		if _, seen := into[form]; !seen {
			into[form] = good
		}
	}
	return into, nil
}

// certifyByStored isolates the traces of transformers that are stored of this very model, in this dtype: they have the last
// word on every form that they show, and the only one on forms that no golden has.
func certifyByStored(ctx context.Context, e *Env, into isolate.Certified, list *order.List, ck *checkpoint.Checkpoint, dtype hooks.DType) error {
	entries, err := reference.NewStore(e.Dir).List()
	if err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	of := fmt.Sprintf("order %x %s", sha256.Sum256(text), dtype)
	own := isolate.Certified{}
	for i := range entries {
		stored := &entries[i]
		if stored.Key.Name != reference.Transformers || stored.Key.DType != dtype.String() || stored.Intact() != nil {
			continue
		}
		before := largeTrace(stored.Path, ck)
		t, err := capture.Open(stored.Path)
		if err != nil {
			return err
		}
		m := t.Manifest()
		if m.Config != nil && order.SameConfig(m.Config, list.Config.Canonical()) && notOf(ck, m) == "" {
			var its isolate.Certified
			its, err = cleared(ctx, e, of, before, list, t, ck, func() (isolate.Certified, error) {
				its := isolate.Certified{}
				return its, its.Add(ctx, t, list, reference.Weights(ck, dtype))
			})
			own.Also(its)
		}
		if err = hint.Also(err, t.Close()); err != nil {
			return fmt.Errorf("certifying the operations of the walk: %w", err)
		}
	}
	maps.Copy(into, own)
	return nil
}

// goldensOf lists the goldens whose names match: those of checkpoints of the list's family, and the others.
func goldensOf(list *order.List, pattern string) (own, others []string, err error) {
	all, err := fs.Glob(fixtures.Files, "golden/*/"+pattern+".safetensors")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range all {
		data, err := fs.ReadFile(fixtures.Files, path.Base(path.Dir(name))+"/"+checkpoint.ConfigFile)
		if err != nil {
			return nil, nil, err
		}
		config, err := order.ReadConfig(data)
		if err != nil {
			return nil, nil, err
		}
		if config.ModelType == list.Config.ModelType {
			own = append(own, name)
		} else {
			others = append(others, name)
		}
	}
	return own, others, nil
}

// certifiedBy has what each golden certifies, by its name: they are a part of the program, so that once is enough.
var certifiedBy sync.Map

// certifyBy isolates one golden.
func certifyBy(ctx context.Context, into isolate.Certified, name string) error {
	if known, ok := certifiedBy.Load(name); ok {
		into.Also(known.(isolate.Certified))
		return nil
	}
	dir := path.Base(path.Dir(name))
	files, err := fs.Sub(fixtures.Files, dir)
	if err != nil {
		return err
	}
	ck, err := checkpoint.OpenFS(dir, files)
	if err != nil {
		return err
	}
	config, err := order.ReadConfig(ck.Config())
	if err != nil {
		return err
	}
	list, err := order.New(config)
	if err != nil {
		return err
	}
	data, err := fs.ReadFile(fixtures.Files, name)
	if err != nil {
		return err
	}
	t, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	own := isolate.Certified{}
	if err := own.Add(ctx, t, list, reference.Weights(ck, t.Manifest().DType)); err != nil {
		return err
	}
	certifiedBy.Store(name, own)
	into.Also(own)
	return nil
}

// traceCheckpoint opens the checkpoint that a trace was made of: the one that was named, an embedded one with the same
// weights, or the directory that the trace names, if it still is what it was. It is nil when none of these is there. Of a trace with other
// weights than those of dir, the port's file may be the one: weights names it, empty for none.
func traceCheckpoint(ctx context.Context, e *Env, dir, weights string, t *capture.Trace) (*checkpoint.Checkpoint, error) {
	m := t.Manifest()
	if dir != "" {
		ck, err := checkpoint.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if err := hashed(ctx, e, ck, m); err != nil {
			return nil, hint.Also(err, ck.Close())
		}
		why := notOf(ck, m)
		if why == "" || why == itsWeights && weights != "" {
			return ck, nil
		}
		next := "--model names the checkpoint that the local trace was made of"
		if why == itsWeights && m.Port.File != "" {
			next = "it was made with the weights of a port: --weights " + QuoteShell(plain.Text(m.Port.File)) + " names them, beside --model"
		}
		return nil, hint.Also(hint.Add(fmt.Errorf("%s is not the checkpoint of %s: %s", dir, t.Path(), why), next), ck.Close())
	}
	if ck, err := embeddedCheckpoint(m); ck != nil || err != nil {
		return ck, err
	}
	ck, err := checkpoint.Open(m.Model)
	if err != nil { // a name, or a directory that is gone: nobody asked for it
		return nil, nil
	}
	if err := hashed(ctx, e, ck, m); err != nil {
		return nil, hint.Also(err, ck.Close())
	}
	if m.Config == nil && !knownDigest(m.Weights) || notOf(ck, m) != "" { // a recorder that runs inside the engine knows no configuration
		return nil, ck.Close()
	}
	return ck, nil
}

// embeddedCheckpoint opens the embedded checkpoint with the configuration and the weights of a trace, nil where none has both. Of the
// others no more than the configuration is read.
func embeddedCheckpoint(m capture.Manifest) (*checkpoint.Checkpoint, error) {
	if m.Config == nil || !knownDigest(m.Weights) {
		return nil, nil
	}
	configs, err := fs.Glob(fixtures.Files, "*/"+checkpoint.ConfigFile)
	if err != nil {
		return nil, err
	}
	for _, name := range configs {
		files, err := fs.Sub(fixtures.Files, path.Dir(name))
		if err != nil {
			return nil, err
		}
		text, err := checkpoint.ReadConfig(files)
		if err != nil {
			return nil, err
		}
		if config, err := order.ReadConfig(text); err != nil || !order.SameConfig(m.Config, config.Canonical()) {
			continue
		}
		ck, err := checkpoint.OpenFS("fixtures/"+path.Dir(name), files)
		if err != nil || notOf(ck, m) == "" {
			return ck, err
		}
		if err := ck.Close(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// commonCheckpoint opens the checkpoint that both traces are compared by: the local trace's, and where that one is not
// known or is not of the reference's weights, the reference's, unless the local trace says that it is of another. Only the
// local trace's own certifies it alone. It is nil when there is none.
func commonCheckpoint(ctx context.Context, e *Env, dir, weights string, local, ref *capture.Trace) (*checkpoint.Checkpoint, error) {
	ck, err := traceCheckpoint(ctx, e, dir, weights, local)
	if err != nil || local == ref || ck != nil && (dir != "" || othersThan(ck, ref) == "") {
		return ck, err
	}
	of, err := traceCheckpoint(ctx, e, "", "", ref)
	if err != nil || of == nil {
		return ck, err
	}
	if isPort(of) && local.Manifest().Weights != ref.Manifest().Weights { // of a port the local trace says nothing
		return ck, of.Close()
	}
	if notOf(of, local.Manifest()) != "" {
		return ck, of.Close()
	}
	if ck != nil {
		err = ck.Close()
	}
	return of, err
}
