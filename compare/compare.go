package compare

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/compare/suitable"
)

// Alone judges a single trace by its certificates. The trace serves as its own reference. An entry without a
// certificate makes the comparison incomplete. The errors are the errors of [Traces].
func Alone(ctx context.Context, t *capture.Trace, o Options) (*Result, error) {
	o.mode = sides.Alone
	return run(ctx, t, t, o)
}

// AB compares two traces, A and B, where neither is the reference: two runs of one port at two commits, with a
// feature on and off, in two dtypes, or on two devices. The Result lists different configurations and orders, and
// the traces are compared anyway. Relative errors are relative to B. AB certifies nothing and ignores isolators,
// because A and B also agree if both have the same bug. The errors are the errors of [Traces].
func AB(ctx context.Context, a, b *capture.Trace, o Options) (*Result, error) {
	o.mode = sides.AB
	o.Isolator, o.ReferenceIsolator, o.Certified = nil, nil, nil
	return run(ctx, a, b, o)
}

// Traces compares a local trace with a reference, entry by entry in order and pass by pass. Each pass begins with
// its token ids: if they differ the walk stops, since later tensors are not comparable.
//
// Traces returns the error of ctx, an error of reading a trace, or an [*UnsuitableError] if the traces cannot be
// compared: different configurations, weights or orders, an unfinished trace, no order, or a pattern without a
// matching entry. A difference between the traces is never an error but a part of the Result.
//
// A relative error is relative to the norm of the reference. For operations with cancellation or saturation the
// denominator is at least the scale of the operands: for a sum (add, sub, add_scale, the streams of altup_predict,
// altup_correct and add_to_others) the root of the summed squares of the terms with the shape of the result; for
// gelu_tanh and shifted_relu an eighth of the input's norm, or the whole norm if the result is exactly zero. The
// operands are read from the reference, and count as zero if absent.
func Traces(ctx context.Context, localTrace, referenceTrace *capture.Trace, o Options) (*Result, error) {
	return run(ctx, localTrace, referenceTrace, o)
}

// UnsuitableError says why two traces cannot be compared at all.
type UnsuitableError = sides.UnsuitableError

// run is the comparison of all three, step by step: package compare's comment says what each reads and writes.
func run(ctx context.Context, localTrace, referenceTrace *capture.Trace, o Options) (*Result, error) {
	if o.Order != nil {
		known := func(name string) bool { return o.Order.Index(name) >= 0 }
		localTrace, referenceTrace = localTrace.Called(known), referenceTrace.Called(known)
	}
	differences, err := suitable.Check([2]*capture.Trace{localTrace, referenceTrace}, suitable.Options{Order: o.Order, Mode: o.mode, Partial: o.Partial})
	if err != nil {
		return nil, err
	}
	pl, err := plan.New(sides.New(localTrace, referenceTrace, o.mode), planned(&o, len(differences) > 0))
	if err != nil {
		return nil, err
	}
	if err := unlimited(pl, o.Limits); err != nil {
		return nil, err
	}
	res := newResult(pl, &o, differences)
	if res.Expected, err = expectations(pl, o.Different); err != nil {
		return nil, err
	}
	meter := measure.NewMeter(o.Workers)
	defer meter.Close()
	w := newWalk(pl, meter, &o, res)
	if err := w.walk(ctx); err != nil {
		return nil, err
	}
	if err := paddedAsFound(pl, res.Divergence); err != nil {
		return nil, err
	}
	if err := w.downstream(ctx); err != nil {
		return nil, err
	}
	res.Final = w.facts.next.final
	w.finish()
	if err := w.certifier.sight(ctx, res, w.unverified); err != nil {
		return nil, err
	}
	if err := res.spell(o.TokenTexts); err != nil {
		return nil, err
	}
	res.strip()
	return res, nil
}

// planned are the options of the plan of a comparison. oneSided says that the traces are of different orders or configurations.
func planned(o *Options, oneSided bool) plan.Options {
	p := plan.Options{Order: o.Order, Scope: o.Scope, Named: o.Named, Mapped: o.Map != nil, Fused: o.Fused, OneSided: oneSided}
	if o.Map != nil {
		p.Absent = o.Map.Absent
	}
	return p
}

// newResult is a result without rows.
func newResult(pl *plan.Plan, o *Options, differences []string) *Result {
	return &Result{
		Alone: o.mode == sides.Alone, AB: o.mode == sides.AB, Given: o.Given, Map: o.Map, Differences: differences, NotIsolated: o.NotIsolated, Demo: o.Demo, Typed: o.Scope, Allowed: newAllowed(o.Limits),
		Inputs: []Input{}, Rows: []Row{},
		Local: newSide(pl.Sides[local].Trace, pl.Names[local], o.LocalLabel), Reference: newSide(pl.Sides[reference].Trace, pl.Names[reference], o.ReferenceLabel),
	}
}

// paddedAsFound returns an [*UnsuitableError] if the first divergence is the effect of padding.
func paddedAsFound(pl *plan.Plan, d *Divergence) error {
	if d == nil || d.Row.Pass > 0 || d.Row.Layer < 0 || d.Row.Isolated == nil || pl.List == nil {
		return nil
	}
	return suitable.PaddedAsFound(pl.Sides[local].Trace, pl.Names[local].Trace, pl.List, suitable.Wrong{
		Key: d.Row.Key(), Name: d.Row.Name, Certificate: d.Row.Isolated.Certificate, Finding: d.Row.Isolated.Finding,
	})
}

// finish sums up the rows, counts what was compared and what was not, and says why a comparison is incomplete. Notes and reasons are in this order.
func (w *walk) finish() {
	res := w.res
	a := newAccount(w)
	a.coverage()
	a.missing()
	a.unknown()
	a.noteLayers()
	res.Layouts = append(res.Layouts, w.facts.notes()...)
	if w.certifier.chain != nil {
		res.Isolation = isolationOf(res.Rows, w.o.Isolator, w.certifier.cancels)
		res.Layouts = append(res.Layouts, res.Isolation.layouts()...)
	}
	a.weaker()
	if !res.Stopped {
		unmet(res.Expected)
	}
	w.known.finish(w.plan, res.Rows, res.Stopped)
	a.incomplete()
	a.same()
	res.Decided = res.restsOn()
}
