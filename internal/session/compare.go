package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/picture"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
)

// Asked is what a comparison is asked for, beside its two sides.
type Asked struct {
	Limits      *gate.Limits
	Isolate     isolate.Options // the arithmetic and the bound
	Demanded    bool            // every entry is to be certified: that none can be is an error
	Required    bool            // every entry that counts is to be EXACT or ROUNDING: else the comparison is incomplete
	Declined    bool            // nothing is to be certified
	All         bool            // do not stop at the first divergence
	StrictDType bool
	Fused       []string // modules of the local side whose attention is one kernel, or patterns of them
	Numbers     bool     // estimate the numbers of formulas
	LevelTyped  bool     // the level was asked for: a reference that has less is incomplete
	Keep        bool     // the settings become those of the last capture
	AB          bool     // neither side is the reference
	Different   []string // patterns of what has to differ between A and B

	Pictures *picture.Set // is given a picture of every pair of tensors; nil: none is made
	Baseline *Baseline    // the known divergences; nil: none is known
	Run      string       // the prompt of a gate that is compared; empty outside of one

	// Mistake changes the configuration that the local model computes by, and not the one that its trace declares: a port that reads a
	// setting wrongly. Nil: the local model computes by config.json.
	Mistake func(*order.Config)

	program *recordedProgram // in use
	port    *port            // whose own weights certify it; nil: those of the model do
	kernels *port            // a file of the model's own numbers, whose formats say how an engine may multiply with them; nil: none was named
}

// Compare captures the local side by settings and compares it with the reference that fits.
func Compare(ctx context.Context, e *Env, s Settings, a *Asked) (_ *compare.Result, err error) {
	var j *Job
	e = e.within(a.Isolate.Room)
	if a.Keep {
		defer func() { err = keepInterrupted(ctx, s, e.Dir, j, err) }()
	}
	if err := e.spare(s.Files(e.Dir)...); err != nil {
		return nil, err
	}
	if j, err = Open(ctx, e, s, e.Dir); err != nil {
		return nil, err
	}
	defer j.Close()
	if a.Mistake != nil {
		mistaken := *j.list.Config
		a.Mistake(&mistaken)
		j.mistaken = &mistaken
	}
	if err := j.checkLocal(ctx, e); err != nil {
		return nil, err
	}
	ref, err := j.findReference(ctx, e, false)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	if err := j.useProgram(ref); err != nil {
		return nil, err
	}
	a.program, a.port, a.kernels = j.program, j.port, j.kernels
	j.replay(ref.passes)
	if err := j.checkPasses(); err != nil {
		return nil, err
	}
	j.NoteInput(e.Notes)
	if a.Keep {
		if err := j.save(); err != nil {
			return nil, err
		}
	}
	local, _, err := j.Capture(ctx, e)
	if err != nil {
		if failed := (*reference.StatusError)(nil); a.Keep && errors.As(err, &failed) {
			fmt.Fprintln(e.Notes, "note: the command failed, but its settings are kept: tracediff compare, without flags, runs it again")
		}
		return nil, err
	}
	defer local.Close()
	mapped, err := s.fit(local, j.list)
	if err != nil {
		return nil, err
	}
	var flaws []string
	if local, flaws, err = nearest(&s, mapped.Trace, ref.Trace); err != nil {
		return nil, err
	}
	if local, err = lastHidden(ctx, local, ref.Trace, j.list); err != nil {
		return nil, err
	}
	o := compare.Options{
		// A gate is about everything at the level asked for, whatever the port says that it can show.
		Given: s.Local.Kind == KindFile, Order: j.record, Named: j.Order != "" || e.Gate, Scope: j.compared(ref.Trace, a.LevelTyped), ReferenceLabel: ref.Label, TokenTexts: j.texts,
		Flaws: append(mapped.Differ, flaws...), Parity: e.Gate, Map: mapOf(mapped), Remarks: j.remarks(),
	}
	if s.Model == "" && s.Local.Kind != KindFile {
		o.Demo = Embedded
	}
	a.weighed(&o)
	a.declared(&o, local, ref.Trace, j.ck)
	if local, err = unrounded(ctx, local, ref.Trace, j.list, j.ck, &o); err != nil {
		return nil, err
	}
	if err := addIsolators(ctx, e, a, &o, local, ref.Trace, j.list, j.ck); err != nil {
		return nil, err
	}
	if err := limit(ctx, e, a, &o, local, ref.Trace, ref.entry, j.list, j.ck); err != nil {
		return nil, err
	}
	m, err := s.readMap()
	if err != nil {
		return nil, err
	}
	o.Code = code(e, a.program, local, ref.Trace, m)
	return run(ctx, e, a, local, ref.Trace, o)
}

// compared is the scope of the comparison: the job's, and of a reference that went on decoding the passes asked for. A
// level that nobody typed does not ask a reference for more than it has.
func (j *Job) compared(ref *capture.Trace, levelTyped bool) capture.Scope {
	s := j.Scope
	if has := ref.Manifest().Scope.Level; !levelTyped && has > 0 {
		s.Level = min(s.Level, has)
	}
	if asked := len(j.passes) + j.further; len(s.Passes) == 0 && ref.Manifest().Passes > asked {
		s.Passes = capture.Ranges{{From: 0, To: asked - 1}}
	}
	return s
}

// CompareFiles compares two traces as they are.
func CompareFiles(ctx context.Context, e *Env, s Settings, a *Asked, localFile, referenceFile string) (*compare.Result, error) {
	local, err := openTrace(localFile)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	ref, err := openTrace(referenceFile)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	if local, err = foreign.Later(local, ref); err != nil {
		return nil, err
	}
	o := compare.Options{ReferenceLabel: "given"}
	if a.AB {
		o = abOptions(a, local, ref)
	} else if err := e.notGated(ref, "--gate=false"); err != nil {
		return nil, err
	}
	return compareTraces(ctx, e, s, a, local, ref, o)
}

// Alone certifies every entry of one trace from that trace's own inputs: there is nothing that it is compared with.
func Alone(ctx context.Context, e *Env, s Settings, a *Asked, file string) (*compare.Result, error) {
	t, err := openTrace(file)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return compareTraces(ctx, e, s, a, t, t, compare.Options{Alone: true, All: true})
}

// compareTraces compares open traces by the order of the model that they declare.
func compareTraces(ctx context.Context, e *Env, s Settings, a *Asked, local, ref *capture.Trace, o compare.Options) (*compare.Result, error) {
	if err := CheckDir(e.Dir); err != nil {
		return nil, err
	}
	if err := e.spare(append(s.Files(""), ModelFiles(local.Manifest().Model, ref.Manifest().Model)...)...); err != nil {
		return nil, err
	}
	whole, err := TraceOrder(local, ref)
	if err != nil {
		return nil, err
	}
	named := false
	if whole == nil && s.Model != "" {
		if whole, err = namedOrder(&s, local, ref); err != nil {
			return nil, err
		}
		named = whole != nil
	}
	shown := whole // what a trace may have: not the steps of a recorded program that have no name
	if !o.AB && (whole == nil || s.Program != "") {
		if a.program, err = findProgram(s.Program, ref, local); err != nil {
			return nil, err
		}
		if a.program != nil {
			whole = a.program.list
			shown = whole.Named()
		}
	}
	if local, ref, err = fitted(&s, shown, local, ref, &o); err != nil {
		return nil, err
	}
	var flaws []string
	if local, flaws, err = nearest(&s, local, ref); err != nil {
		return nil, err
	}
	if local, err = lastHidden(ctx, local, ref, shown); err != nil {
		return nil, err
	}
	o.Flaws = append(o.Flaws, flaws...)
	if o.Order, err = picked(shown, s.Order); err != nil {
		return nil, err
	}
	if o.Order != nil {
		if err := CheckScope(s.Scope, o.Order); err != nil {
			return nil, err
		}
	}
	if err := checkRun(s.Scope, runTokens(local, ref)); err != nil {
		return nil, err
	}
	o.Given, o.Parity = true, e.Gate && !o.AB
	o.Named, o.Scope = s.Order != "" || e.Gate && !o.AB, s.Scope
	if o.TokenTexts, err = textsBeside(e, s.Model, local, ref); err != nil {
		return nil, err
	}
	var ck *checkpoint.Checkpoint
	if !o.AB || named || sameModel(local, ref) { // of two models there is no one noise floor
		weights := s.Weights
		if o.AB {
			weights = ""
		}
		if ck, err = commonCheckpoint(ctx, e, s.Model, weights, local, ref); err != nil {
			return nil, err
		}
	}
	if ck != nil {
		defer ck.Close()
	}
	if local, err = unrounded(ctx, local, ref, whole, ck, &o); err != nil {
		return nil, err
	}
	if s.Weights != "" && !o.AB {
		own, err := a.ownWeights(ctx, e, &s, ck, whole, &o, local, ref)
		if err != nil {
			return nil, err
		}
		defer own.Close()
	}
	var model *checkpoint.Checkpoint // that somebody named
	if s.Model != "" {
		model = ck
	}
	a.declared(&o, local, ref, model)
	if o.AB {
		dtype, err := isolate.ModelDType(whole, local, ref)
		if err != nil {
			return nil, err
		}
		o.Confirmer = confirmer(local, whole, ck, dtype)
	} else if err := addIsolators(ctx, e, a, &o, local, ref, whole, ck); err != nil {
		return nil, err
	}
	if err := limit(ctx, e, a, &o, local, ref, nil, whole, ck); err != nil {
		return nil, err
	}
	m, err := s.readMap()
	if err != nil {
		return nil, err
	}
	o.Code = code(e, a.program, local, ref, m)
	return run(ctx, e, a, local, ref, o)
}

// fitted reads what is a dump as the order has it, the local side by the map, and of two runs of one port both that have its names. A trace
// that is both sides stays one. What the map did, and what keeps the comparison from being complete, is noted in the options.
func fitted(s *Settings, list *order.List, local, ref *capture.Trace, o *compare.Options) (l, r *capture.Trace, err error) {
	m, err := s.readMap()
	if err != nil {
		return nil, nil, err
	}
	a, err := fitBy(m, local, list)
	if err != nil {
		return nil, nil, err
	}
	o.Flaws, o.Map = a.Differ, mapOf(a)
	if local == ref {
		return a.Trace, a.Trace, nil
	}
	if o.AB && m != nil && m.Matches(ref) && !asOrdered(ref, list) {
		b, err := fitBy(m, ref, list)
		if err != nil {
			return nil, nil, err
		}
		o.Flaws = append(o.Flaws, b.Differ...)
		return a.Trace, b.Trace, nil
	}
	r, err = foreign.Fit(ref, list)
	return a.Trace, r, err
}

// asOrdered reports whether a trace has the names of an order already, and no other.
func asOrdered(t *capture.Trace, list *order.List) bool {
	return list != nil && !slices.ContainsFunc(t.Records(), func(r capture.Record) bool { return list.Index(r.Name) < 0 })
}

// run compares open traces.
func run(ctx context.Context, e *Env, a *Asked, local, ref *capture.Trace, o compare.Options) (*compare.Result, error) {
	o.All, o.Partial, o.StrictDType = o.All || a.All, e.Partial, a.StrictDType
	o.Fused = a.Fused
	o.Sight, o.Numbers, o.Baseline = e.Sight, a.Numbers, a.known(e)
	started := time.Now()
	what, bytes := "comparing", func() int64 { return local.BytesRead() + ref.BytesRead() }
	switch {
	case o.Alone:
		what, bytes = "verifying", local.BytesRead
	case o.Isolator != nil:
		what = "comparing and verifying"
	}
	p := e.progress(what, "entry", bytes)
	o.Progress = p.Step
	if o.Isolator != nil && e.Progress != nil {
		o.Isolator.Tell(p.Doing)
	}
	result, err := compare.Run(ctx, local, ref, a.drawn(o, local, ref))
	p.Done()
	if err != nil {
		return nil, err
	}
	next, err := finer(result, &o, local, ref)
	if err != nil {
		return nil, err
	}
	if next != "" {
		result.Notes = append([]string{next}, result.Notes...)
	}
	keep(e, o)
	e.removeLeftWalks()
	e.detail("compared %d entries in %s", len(result.Rows), amount.Since(started))
	return result, nil
}

// drawn are options with pictures, where somebody wants them.
func (a *Asked) drawn(o compare.Options, local, ref *capture.Trace) compare.Options {
	if a.Pictures != nil {
		a.Pictures.Manifests = [2]capture.Manifest{local.Manifest(), ref.Manifest()}
		o.Observe = a.Pictures.See
	}
	return o
}

// abOptions are those of an A/B comparison of two open traces.
func abOptions(asked *Asked, a, b *capture.Trace) compare.Options {
	return compare.Options{
		AB: true, Different: asked.Different, LocalLabel: runOf(a), ReferenceLabel: runOf(b),
		NotIsolated: "an A/B comparison says whether the sides agree, not which of them is right",
	}
}

// sameModel reports whether two traces are of one configuration.
func sameModel(a, b *capture.Trace) bool {
	l, r := a.Manifest().Config, b.Manifest().Config
	return l != nil && r != nil && order.SameConfig(l, r)
}

// runOf tells a trace from another of the same program: by its file, and by its device where it says.
func runOf(t *capture.Trace) string {
	if device := t.Manifest().Device; device != "" {
		return t.Path() + ", on " + device
	}
	return t.Path()
}
