package compare

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// walk is the walk through the entries of a plan, pass by pass. Each step reads what the steps before it have found of the pair and writes its own.
type walk struct {
	o    *Options
	plan *plan.Plan
	res  *Result // the rows, and conclusions from the decided rows

	facts      *facts
	certifier  *certifier
	lookahead  *lookahead // certificates
	readahead  *readahead // measurements
	known      *knownLines
	ancestors  *ancestors
	decided    *decided
	unverified map[string]string // names that are not judged, and the form that is why
}

// newWalk prepares a walk.
func newWalk(pl *plan.Plan, meter *measure.Meter, o *Options, res *Result) *walk {
	d := newDecided()
	m := &measurer{pairing: newPairing(pl, o.Isolator), meter: meter, judging: &o.Judging, noise: gate.NewFloors(o.Noise), stored: o.Stored, next: &nextTokens{plan: pl, floor: o.Noise}}
	f := newFacts(m, &o.Certification)
	c := &certifier{
		plan: pl, by: &o.Certification, chain: NewChain(o.Isolator, f), reference: NewChain(o.ReferenceIsolator, f), decided: d, cancels: map[string]string{},
	}
	known := newKnownLines(o.Baseline)
	if c.chain != nil && o.Baseline != nil {
		c.chain.Accepted = known.accepts // that of the reference begins at the token ids
	}
	w := &walk{
		o: o, plan: pl, res: res, facts: f, certifier: c, lookahead: newLookahead(pl, c.chain, o.All, pl.Common()), readahead: &readahead{measurer: m},
		known: known, ancestors: &ancestors{plan: pl, decided: d, given: o.Given}, decided: d,
	}
	if o.Certified != nil && o.Order != nil {
		w.unverified = o.Certified.Unverified(o.Order)
	}
	res.Baseline = known.account
	return w
}

// walk goes through all passes, to the end or to the first divergence.
func (w *walk) walk(ctx context.Context) error {
	passes := w.plan.Common()
	for i := range passes {
		if w.res.Stopped {
			break
		}
		step := func(entry int) {
			if w.o.Progress != nil {
				w.o.Progress(i, len(passes), entry, len(w.plan.Entries))
			}
		}
		if err := w.pass(ctx, passes[i:], step); err != nil {
			return err
		}
	}
	return nil
}

// pass walks the entries of one forward call, passes[0]. step receives the progress.
func (w *walk) pass(ctx context.Context, passes []int, step func(entry int)) error {
	pass := passes[0]
	w.readahead.next = 0
	if err := w.inputs(pass); err != nil {
		return err
	}
	for i := range w.plan.Entries {
		if w.res.Stopped {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !w.plan.Walked(i, pass) {
			continue
		}
		step(i)
		w.readahead.measure(i, pass)
		w.lookahead.certify(ctx, i, passes)
		if err := w.entry(ctx, i, pass); err != nil {
			return err
		}
	}
	return nil
}

// entry compares all firings of one entry in one pass.
func (w *walk) entry(ctx context.Context, i, pass int) error {
	e := &w.plan.Entries[i]
	for n := 0; !w.res.Stopped; n++ {
		l, r, both := w.plan.LookupFiring(pass, e.Name, n)
		if !both {
			return nil // what is missing is listed at the end, for all entries and passes
		}
		p, err := w.facts.look(ctx, i, pass, l, r)
		if err != nil {
			return err
		}
		p.row.Firing = n
		if err := w.certifier.isolate(ctx, p); err != nil {
			return err
		}
		if err := w.certifier.confirm(ctx, p); err != nil {
			return err
		}
		settle(p, w.unverified[p.row.Name], w.known)
		if err := w.keep(ctx, p); err != nil {
			return err
		}
		if err := w.observe(p); err != nil {
			return err
		}
	}
	return nil
}

// keep finishes a decided row, adds it to the result, and stops the walk at the first divergence.
func (w *walk) keep(ctx context.Context, p *pair) (err error) {
	row := *p.row
	expected(w.res.Expected, &row)
	allow(w.o.Limits, w.res.Allowed, &row)
	w.ancestors.blame(&row)
	if !w.decided.add(w.res, &row, p.shows.why) {
		return nil
	}
	if w.res.Divergence == nil {
		w.res.Divergence, err = w.divergence(ctx, row)
	}
	// After different inputs nothing is comparable, even if the options ask to go on.
	w.res.Stopped = w.res.Stopped || !w.o.All || row.Name == order.InputIDs
	return err
}

// inputs records the token ids of a pass and, where they differ, how.
func (w *walk) inputs(pass int) error {
	l, okL, err := sides.Integers(w.plan.Sides[local].Trace, pass, order.InputIDs)
	if err != nil {
		return err
	}
	r, okR, err := sides.Integers(w.plan.Sides[reference].Trace, pass, order.InputIDs)
	if err != nil || !okL && !okR {
		return err
	}
	in := Input{Pass: pass, Local: l, Reference: r, Match: okL && okR && slices.Equal(l, r)}
	if okL && okR && !in.Match && batched(w.plan, pass, order.InputIDs) == "" {
		in.Edits = edits(r, l)
	}
	w.res.Inputs = append(w.res.Inputs, in)
	return nil
}

// Pair holds the two compared tensors of an entry: the row with its verdict, and the part of each tensor in scope.
// For a single trace both tensors are the same. Results of later steps, such as Result.Roots, are only in the rows
// of the result.
type Pair struct {
	Row              *Row
	Local, Reference measure.View // of equal shapes
	Axes             string       // a letter an axis, see [order.Entry]; empty where they are unknown
	// Masks are the numbers below which an element of either side is masked; both −Inf where the entry has no mask.
	Masks [2]float64
	Alone bool // both are one trace, which is not compared with anything
}

// observe shows a decided pair to whoever asked for it. Tensors of different shapes have no pair of numbers.
func (w *walk) observe(p *pair) error {
	if w.o.Observe == nil || p.row.Metrics == nil {
		return nil
	}
	seen := Pair{Row: &w.res.Rows[len(w.res.Rows)-1], Local: p.l, Reference: p.r, Axes: p.axes, Alone: w.plan.Mode == sides.Alone, Masks: [2]float64{math.Inf(-1), math.Inf(-1)}}
	if p.entry.Compare != order.All {
		for side, v := range []measure.View{p.l, p.r} {
			if v.Rec.DType.Float() {
				seen.Masks[side] = measure.MaskLimit(v.Rec.DType, w.plan.Sides[side].Manifest.DType)
			}
		}
	}
	return w.o.Observe(seen)
}
