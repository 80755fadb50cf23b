package compare

import (
	"context"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Options say how to compare. The zero value compares everything that both traces declare, in the order in which the
// reference was computed, and stops at the first divergence.
type Options struct {
	Order *order.List // nil: the reference trace's own, if it is one of execution
	// Named says that somebody asked for the entries of Order by name: a trace that declares nothing misses those that it
	// does not have, as it does with a list of names alone and without an Order. Otherwise such a trace has what it has.
	Named bool

	// Scope is what was asked for; Level 0 is no limit. What it leaves out is noted. What a trace leaves out of it makes
	// the comparison incomplete.
	Scope capture.Scope

	All bool // go on after the first divergence
	// Limits are a person's own, in place of those of the noise floor and the table; nil: none.
	Limits *gate.Limits
	// Noise is the noise floor of this prompt. It limits pairs that come out of arithmetic in its dtype. nil: the table does.
	Noise *gate.NoiseFloor

	Partial bool // accept traces that are not complete; such a comparison never succeeds
	// StrictDType makes every difference of dtype a mismatch. Without it a trace has one where its tensor cannot hold what the
	// order gives the entry in a model like its own, or where its numbers have more digits; of the local trace that is none if
	// the operation is right by itself.
	StrictDType bool

	// Certified, when it is not nil, says that the reference is the walk, and which of its operations may accuse. An entry
	// that any other has a part in is not judged. A nil one is for a reference that needs none, such as transformers.
	Certified isolate.Certified

	// Isolator certifies every entry that is visited, from the local trace's own inputs. nil: nothing is certified, and
	// NotIsolated says why, for the report.
	Isolator    *Isolator
	NotIsolated string
	Certifying  Certifying // whether that was asked for
	// Stored is the dtype in which a local dump is stored whose port computes wider; 0: the dump has what was computed.
	Stored hooks.DType
	// Confirmer says of a constant tensor of the local trace whether the order gives that constant: the Isolator where it is nil.
	// Confirming accuses nobody, so it is done where nothing is certified, too. Without either, what is constant was not tested.
	Confirmer *isolate.Isolator
	// ReferenceIsolator certifies the reference from its own inputs, where an error that accumulated is to be excused: both
	// sides have to be right by themselves. nil: nothing is excused.
	ReferenceIsolator *Isolator
	// Alone says that both traces are one and the same, so that nothing but its certificates is tested. An entry without
	// one then makes the comparison incomplete.
	Alone bool

	// Baseline has the known divergences. They do not fail the comparison, and the walk goes on behind them. nil: none is known.
	Baseline *KnownDivergences
	// Numbers asks for estimates of the numbers of all formulas: see [arithmetic.Estimate]. They take about as long as certifying the
	// operations that have numbers; a walk that stops at a divergence has none.
	Numbers bool

	// Workers is how many blocks of tensors are measured at a time; 0 is as many as there are processors, 16 at most. No
	// result depends on it.
	Workers int

	// Progress is told before each entry how far the walk is: the pass, of how many, and the entry, of how many. It may be nil.
	Progress func(pass, passes, entry, entries int)

	// AB says that neither trace is the one that is right: they are of one model, from one port at two commits, with a
	// feature on and off, in two dtypes or on two devices. They are called A and B; configurations and orders that differ
	// are listed in the Result and do not keep the traces from being compared. The relative errors are measured against B.
	// Nothing is certified, whatever isolators there are: A and B agree also where both have the same bug.
	AB bool
	// Different are patterns of the names of entries that are expected to differ, in the syntax of [hooks.Match]; see
	// [Expectation].
	Different []string

	// Given says that the local trace is a file that a person made: what it lacks is dumped by their own program, and no flag of this
	// one captures it.
	Given bool

	// Demo is the model that is embedded in the program, where the sides ran it since no other was named.
	Demo string

	// Parity says that the local side has to be another program's than the reference: sides that are one make the comparison incomplete.
	Parity bool

	// Sight asks which of the usual mistakes this run would have shown: see [Result.Sight]. No verdict depends on it.
	Sight bool

	// Fused are further modules of the local side with fused attention: those of its manifest count anyway.
	Fused []string

	// Map is what gave the local tensors their names, for reports; nil where they had them.
	Map *Map

	// Flaws are what keeps the local trace from showing that the port is right, a sentence each: they make the comparison incomplete.
	Flaws []string

	// Code says what computes a tensor of a pass, for the first divergence; nil where nothing was recorded.
	Code func(name string, pass int) *Code

	// Remarks are notes for the report that decide nothing, a sentence each.
	Remarks []string

	LocalLabel     string // what to call the sides beside their producers: "golden"
	ReferenceLabel string
	// TokenTexts returns a function from token ids to texts. Run calls it at the end: a caller can read the tokenizer while entries are compared. Its error is Run's.
	// If TokenTexts is nil or returns nil, ids have no texts.
	TokenTexts func() (func(id int) string, error)

	// Observe is shown each pair of tensors of one shape after its row is decided, in the order of the walk. An error ends the
	// comparison. It may not change the row. nil: nothing is shown.
	Observe func(Pair) error
}

// Run compares a local trace with a reference, entry by entry in order and pass by pass. Token ids come first in each
// pass: where they differ the walk stops, since nothing behind them is comparable.
//
// The errors are those of ctx, of reading either trace, and an [*UnsuitableError] when there is nothing to compare: traces of
// different configurations, weights or orders, an unfinished trace, no order; and a pattern that no entry matches. What a comparison finds is never an error
// but in the Result.
//
// A relative error is measured against the reference, but for operations that cancel or saturate at least against their
// operands: the root of the summed squares of the terms of a sum that have its shape (add, sub, add_scale, the streams
// of altup_predict, altup_correct and add_to_others), an eighth of the input's norm for gelu_tanh and shifted_relu, all
// of it where their result is exactly zero. The operands are the reference's own; one that its trace does not have
// counts as zero.
func Run(ctx context.Context, localTrace, referenceTrace *capture.Trace, o Options) (*Result, error) {
	if o.AB {
		o.Isolator, o.ReferenceIsolator, o.Certified = nil, nil, nil
	}
	if o.Order != nil {
		known := func(name string) bool { return o.Order.Index(name) >= 0 }
		localTrace, referenceTrace = localTrace.Called(known), referenceTrace.Called(known)
	}
	differences, err := suitable(localTrace, referenceTrace, o)
	if err != nil {
		return nil, err
	}
	meter := measure.NewMeter(ctx, o.Workers)
	defer meter.Close()
	w := &walker{
		ctx: ctx, o: o, names: o.names(), meter: meter, sides: [2]side{newSideIndex(localTrace), newSideIndex(referenceTrace)},
		verdicts: map[string]Verdict{}, different: map[string]bool{}, errors: map[string]measure.Number{}, limits: map[string]*gate.Gate{},
		noise: gate.NewFloors(o.Noise), cancels: map[string]string{},
	}
	w.chain, w.refChain = NewChain(o.Isolator, w), NewChain(o.ReferenceIsolator, w)
	w.accept()
	if w.plan, err = newPlan(&w.sides, o); err != nil {
		return nil, err
	}
	if err := w.unlimited(); err != nil {
		return nil, err
	}
	if len(differences) > 0 {
		w.plan.window = -1 // the order is that of one side alone
	}
	w.layouts = w.layoutsOf(o)
	w.res = &Result{
		Alone: o.Alone, AB: o.AB, Given: o.Given, Map: o.Map, Differences: differences, NotIsolated: o.NotIsolated, Demo: o.Demo, Typed: o.Scope, Allowed: newAllowed(o.Limits),
		Inputs: []Input{}, Rows: []Row{}, Baseline: w.newBaseline(),
		Local: newSide(localTrace, w.names[local], o.LocalLabel), Reference: newSide(referenceTrace, w.names[reference], o.ReferenceLabel),
	}
	if o.Certified != nil && o.Order != nil {
		w.unverified = o.Certified.Unverified(o.Order)
	}
	if err := w.expect(); err != nil {
		return nil, err
	}
	passes := w.plan.common()
	if len(passes) > 0 {
		w.ahead = lookahead{first: passes[0], from: map[int]int{}, entries: fewAhead, passes: 1}
	}
	for i := range passes {
		if w.stopped {
			break
		}
		w.step = func(entry int) {
			if o.Progress != nil {
				o.Progress(i, len(passes), entry, len(w.plan.entries))
			}
		}
		if err := w.pass(passes[i:]); err != nil {
			return nil, err
		}
	}
	if err := w.paddedAsFound(); err != nil {
		return nil, err
	}
	if err := w.downstream(); err != nil {
		return nil, err
	}
	w.finish()
	if err := w.numbers(); err != nil {
		return nil, err
	}
	if err := w.sight(); err != nil {
		return nil, err
	}
	if err := w.spell(); err != nil {
		return nil, err
	}
	w.res.strip()
	return w.res, nil
}

// maxPasses bounds the forward calls of a trace: a capture of more decode steps than any context has tokens is none.
const maxPasses = 1 << 16

// maxEmpty bounds, beside 64 for each tensor that a trace holds, the entries of all passes that are looked for: what a
// manifest or a key claims may not cost more than what is there. The largest model has some 2000 entries a pass.
const maxEmpty = 1 << 23

// walker is the state of one comparison.
type walker struct {
	ctx   context.Context
	o     Options
	names sideNames
	sides [2]side
	plan  *plan
	meter *measure.Meter
	next  int // the entry of this pass that is to be measured ahead next
	ahead lookahead
	res   *Result

	verdicts  map[string]Verdict // of rows, by key
	lastMatch string             // key of the last row that matched and gates
	stopped   bool
	untested  string          // why the first of Result.Untested shows nothing
	nanBoth   []string        // keys of rows that are NaN on both sides
	different map[string]bool // keys of rows that differ and were expected to

	layouts    [2]*keyorder.Layout       // of cached keys
	unverified map[string]string         // names that are not judged, and the form that is why
	chain      *chain.Chain              // what is right by itself back to the token ids; nil without an isolator
	refChain   *chain.Chain              // and in the reference, as far as it was asked
	noise      *gate.Floors              // nil without a noise floor
	errors     map[string]measure.Number // relative L2 of rows, by key
	limits     map[string]*gate.Gate     // of rows, by key
	step       func(entry int)           // tells how far the pass is
	lines      map[string]*KnownLine     // of the baseline, by key
	cancels    map[string]string         // where a layout cancels, by the key of a row that is wrong by itself
}

// pass walks the entries of one forward call, the first of those that are left.
func (w *walker) pass(passes []int) error {
	pass := passes[0]
	w.next = 0
	if err := w.inputs(pass); err != nil {
		return err
	}
	for i := range w.plan.entries {
		if w.stopped {
			return nil
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if !w.plan.covered(i) || w.plan.rowless(i, pass) {
			continue
		}
		w.step(i)
		w.readAhead(i, pass)
		w.certifyAhead(i, passes)
		if err := w.entry(i, pass); err != nil {
			return err
		}
	}
	return nil
}

// entry compares all firings of one entry in one pass.
func (w *walker) entry(i, pass int) error {
	e := &w.plan.entries[i]
	for n := 0; !w.stopped; n++ {
		l, hasL := w.sides[local].trace.LookupFiring(pass, e.Name, n)
		r, hasR := w.sides[reference].trace.LookupFiring(pass, e.Name, n)
		if !hasL || !hasR {
			return nil // what is missing is listed at the end, for all entries and passes
		}
		p, err := w.look(i, pass, l, r)
		if err != nil {
			return err
		}
		p.row.Firing = n
		if err := w.isolate(p); err != nil {
			return err
		}
		if err := w.confirm(p); err != nil {
			return err
		}
		w.settle(p)
		if err := w.keep(*p.row, p.untested); err != nil {
			return err
		}
		if err := w.observe(p); err != nil {
			return err
		}
	}
	return nil
}

// keep adds a decided row to the result and stops the walk at the first divergence. why is why it shows nothing, where that
// is so.
func (w *walker) keep(row Row, why string) (err error) {
	key := row.Key()
	if row.Facts.Policy.Unverified && row.Verdict == Unverified {
		w.res.Unverified = append(w.res.Unverified, key)
	}
	w.expected(&row)
	if row.Metrics != nil {
		w.errors[key] = row.Metrics.RelL2
	}
	w.allow(&row)
	w.blame(&row)
	w.res.Rows = append(w.res.Rows, row)
	w.verdicts[key] = row.Verdict
	if row.Derived {
		return nil
	}
	if row.Verdict == Match && row.Facts.Content == Untested {
		if w.untested == "" {
			w.untested = why
		}
		w.res.Untested = append(w.res.Untested, key)
	}
	if row.Facts.Content == NotFinite {
		w.nanBoth = append(w.nanBoth, key)
	}
	if row.has(Expected) {
		w.different[key] = true
		return nil
	}
	if row.Verdict == Match {
		w.lastMatch = key
	}
	if row.Verdict == Match || row.Verdict == Unverified || row.Allowed != "" {
		return nil
	}
	w.res.Mismatches++
	if w.res.Divergence == nil {
		w.res.Divergence, err = w.divergence(row)
	}
	// Behind different inputs nothing is comparable, whatever was asked for.
	w.stopped = w.stopped || !w.o.All || row.Name == order.InputIDs
	return err
}

// look puts two tensors side by side and measures them, where they can be.
func (w *walker) look(i, pass int, l, r capture.Record) (*pair, error) {
	p, err := w.pair(i, pass, l, r)
	if err == nil && p.seen == SeenWithin {
		err = w.compare(p)
	}
	return p, err
}

// pair puts two tensors side by side. Their shapes are held to each other, and to the order.
func (w *walker) pair(i, pass int, l, r capture.Record) (*pair, error) {
	e := &w.plan.entries[i]
	row := &Row{
		Name: e.Name, Pass: pass, Layer: e.Layer, Behind: w.plan.last >= 0 && i > w.plan.last, Derived: w.plan.derived(i), Local: describe(l), Ref: describe(r),
	}
	if e.Op != nil {
		row.Op = e.Op.Kind()
	}
	p := &pair{row: row, entry: e, pass: pass, names: w.names, early: i < w.plan.before, seen: SeenWithin, content: Tested}
	axesL, axesR := w.plan.axesOf(local, e, len(l.Shape)), w.plan.axesOf(reference, e, len(r.Shape))
	if axesL != axesR && axesL != "" && axesR != "" {
		p.see(SeenShape, "axes: %s", w.names.pair(strconv.Quote(axesL), strconv.Quote(axesR)))
		return p, nil
	}
	p.axes = axesR
	var cutL *measure.Cut
	var err error
	if axesL != "" && axesL == axesR {
		cutL, p.cut, err = w.common(axesR, pass, l, r)
	}
	if err != nil {
		return nil, err
	}
	for side, cut := range []*measure.Cut{cutL, p.cut} {
		if cut != nil && rune(axesL[cut.Axis]) == order.AxisKey {
			p.remark(OtherLayout, "the keys of %s lie in another order; they are compared from the oldest to the newest", p.names[side].Trace)
			break
		}
	}
	p.l, p.r = measure.Whole(w.sides[local].trace, l).Cut(cutL), measure.Whole(w.sides[reference].trace, r).Cut(p.cut)
	if !slices.Equal(p.l.Shape, p.r.Shape) {
		p.see(SeenShape, "%s", p.names.shapes(p.l.Shape, p.r.Shape))
	}
	for side, rec := range []capture.Record{l, r} {
		if want := w.plan.shape(side, pass, e, rec); want != "" && !w.o.Alone {
			p.see(SeenShape, "%s has shape %v, and the order and the ids give %s", p.names[side].Trace, rec.Shape, want)
		}
	}
	return p, nil
}
