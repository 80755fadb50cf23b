package compare

import (
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/naming"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// isolate asks what isolation has to say of a pair's entry.
//
// An entry that the order has the capturing side recompute, and that the local engine fired all the same, is the engine's
// own: the next one may be right given it, so that its fault would be seen nowhere else.
func (w *walker) isolate(p *pair) error {
	r := p.row
	p.standing = StandingNone
	_, argument := p.entry.Op.(op.Given)
	if argument {
		p.standing = StandingGiven
	}
	if w.chain == nil && argument {
		return w.positions(p)
	}
	if w.chain == nil && p.seen == SeenPast && w.o.Certifying != Declined && w.o.NotIsolated != "" && !w.o.AB {
		p.gap = w.o.NotIsolated
	}
	if w.chain == nil || p.seen == SeenShape || r.Derived && w.o.Isolator.Recomputed(r.Name) {
		return nil
	}
	if r.Firing > 0 {
		r.NotIsolated = "the order computes it once a pass: a second firing cannot be verified"
		return nil
	}
	w.limits[r.Key()] = r.Gate
	got, err := w.link(r)
	if err != nil {
		return err
	}
	misfit := w.o.Alone && got.Misfit != nil && got.Misfit.Class != "" // there is no other side to differ from
	if r.Derived && (got.Cert == nil || got.Cert.Outcome != isolate.Bug && got.Cert.Outcome != isolate.Unidentified) && !misfit {
		return nil // the reference's is no tensor of an engine, so that there is nothing else to hold it to
	}
	r.Derived, r.Isolated, r.NotIsolated = false, isolatedBy(got.Cert), got.Why
	switch c := got.Cert; {
	case misfit && got.Misfit.Class == gate.Shape:
		p.see(SeenShape, "it %s", got.Misfit.Is)
	case misfit:
		p.see(SeenDType, "it %s", got.Misfit.Is)
	case argument:
		return w.positions(p)
	case got.Layout != nil:
		p.standing = StandingLayout
		p.remark(OtherLayout, "%s", layoutOf(got.Layout))
		return w.inLayout(r, got)
	case w.accuses(p, got):
		p.standing = StandingWrong
		return w.named(p)
	case c != nil && c.Outcome == isolate.NotCertified:
		r.NotIsolated = "op unverified: the walk's " + c.Unverified + " has not reproduced transformers, so it certifies nothing"
		p.remark(OpUnverified, "%s", r.NotIsolated)
	case c != nil && c.Outcome == isolate.Unidentified:
		r.NotIsolated = c.Unidentified()
	case c != nil && c.Good():
		return w.chained(p, got)
	}
	if p.seen == SeenPast && p.standing == StandingNone {
		p.gap = got.Gap.String()
	}
	return nil
}

// link is the certificate of a row's entry. What is wrong by itself may be part of a layout.
func (w *walker) link(r *Row) (*chain.Link, error) {
	got, err := w.chain.At(w.ctx, r.Name, r.Pass)
	if err != nil {
		return nil, err
	}
	wrong := got.Wrong
	if got.Cert != nil && got.Cert.Outcome == isolate.Bug {
		wrong = r.Key()
	} else if wrong == "" || w.Compared(wrong) {
		return got, nil
	}
	known, err := w.chain.Layout(w.ctx, wrong)
	if !known || err != nil {
		return got, err
	}
	return w.chain.At(w.ctx, r.Name, r.Pass)
}

// inLayout names what is done otherwise in a layout.
func (w *walker) inLayout(r *Row, got *chain.Link) error {
	if got.Cert.Outcome == isolate.OtherLayout {
		w.cancels[r.Key()] = places(got.Layout.Cancels)
		if f, err := w.o.Isolator.Name(w.ctx, r.Name); f.Named() || err != nil {
			r.Isolated.Finding = f
			return err
		}
		r.Isolated.Finding = nil
	}
	return nil
}

// named names what is wrong with an entry that is wrong by itself, where an edit of its operation explains it. Of one that
// roundings could explain, too, a number is known by which it was found to be wrong; another edit may give the same.
func (w *walker) named(p *pair) error {
	c := p.row.Isolated
	if c == nil || c.Outcome != isolate.Bug {
		return nil
	}
	f, err := w.o.Isolator.Name(w.ctx, p.row.Name)
	if more := naming.Beyond(c.Certificate, f); more != "" {
		f = &diagnose.Finding{Likely: more}
	}
	if f.Named() || c.Finding == nil {
		c.Finding = f
	}
	if f.Named() {
		c.Mistake = f.Text()
	}
	return err
}

// accuses notes what isolation accuses, if anything: the operation itself, or one before it that no row stands for.
func (w *walker) accuses(p *pair, got *chain.Link) bool {
	switch c := got.Cert; {
	case c != nil && c.Outcome == isolate.Bug:
		p.wrong = c.Detail()
	case got.Wrong != "" && !w.Compared(got.Wrong):
		p.wrong = got.Wrong + ", which it was computed from and which was not compared, is " + w.chain.Bug(got.Wrong).Detail()
	}
	return p.wrong != ""
}

// chained finds out, where it matters, whether the chain back to the token ids is unbroken on both sides. Then both computed
// the same model from the same tokens, and only rounding is between them. A reference that is not right by itself has other
// weights or settings, is damaged, or is of a transformers that this order does not describe.
func (w *walker) chained(p *pair, got *chain.Link) error {
	p.standing = StandingRight
	if p.seen != SeenPast && p.seen != SeenNumbers {
		return nil
	}
	p.gap = w.names[local].Side + ": " + got.Gap.String()
	if got.Gap != nil {
		return nil
	}
	if form, err := w.o.Isolator.Uncertified(); err != nil || form != "" {
		p.gap = "the walk's " + form + " has not reproduced transformers, so that nothing is excused; compare with a trace of transformers"
		return err
	}
	if w.refChain == nil {
		p.gap = w.names[reference].Side + ": it cannot be isolated"
		return nil
	}
	ref, err := w.refChain.At(w.ctx, p.row.Name, p.row.Pass)
	if err != nil {
		return err
	}
	if ref.Gap != nil {
		p.gap = w.names[reference].Side + ": " + ref.Gap.String()
		return nil
	}
	p.standing, p.gap, p.from = StandingUnbroken, "", got.From
	if got.From != "" {
		p.standing = StandingInherited
	}
	return nil
}

// settle gives a row its verdict, and puts that into words. Nothing changes it afterwards.
func (w *walker) settle(p *pair) {
	r := p.row
	form := w.unverified[r.Name]
	r.Facts = Facts{p.seen, p.standing, p.content, Policy{Unverified: form != "" && !r.Derived, Derived: r.Derived, Alone: w.o.Alone, Printed: p.printed() != nil}}
	r.Facts.Policy.Accepted = w.known(p, Judge(r.Facts))
	j := Judge(r.Facts)
	r.Verdict, r.Class, r.Decided, r.Excused, r.Tested = j.Verdict, j.Class, j.By, j.Excused, j.Tested
	r.Allowed = w.excuse(p)
	if j.By == ByLimit {
		r.Gap = p.gap
	}
	switch {
	case j.Verdict == Mismatch:
		r.Detail = w.mismatch(p)
	case j.Drift && p.seen == SeenNumbers:
		p.remark(Drift, "every operation from the token ids to here is right on both sides, and rounding leaves this choice open: %s", p.detail)
	case j.Drift:
		p.remark(Drift, "every operation from the token ids to here is right on the local side's own inputs, and on the reference's; accumulated, %s", p.detail)
	case j.Verdict == Unverified && r.Facts.Policy.Unverified:
		if r.Detail = "op unverified: the walk's " + form + " has not reproduced transformers"; p.detail != "" {
			r.Detail += "; it differs: " + p.detail
		}
		p.remark(OpUnverified, "%s", r.Detail)
	case j.Verdict == Unverified && r.Facts.Policy.Printed:
		r.Detail = "the printed numbers agree, which does not show that the tensor is right"
	case j.Verdict == Unverified:
		r.Detail = r.NotIsolated
	case j.Verdict == Match && p.content == Untested:
		p.remark(Vacuous, "%s", p.untested)
	}
}

// mismatch is what is wrong with a row, in words.
func (w *walker) mismatch(p *pair) string {
	wrong := p.wrong
	if w.o.Alone && p.content == NotFinite {
		wrong = "NaN or infinite where it should not be; " + wrong
	}
	switch p.row.Decided {
	case ByIsolation:
		return wrong
	case ByBoth:
		return p.detail + "; " + wrong
	}
	return p.detail
}

// Given reports whether both sides have the same argument of the model. One that is out of scope has no row, and is compared here.
func (w *walker) Given(name string, pass int) (bool, error) {
	if v, compared := w.verdicts[capture.Key(pass, name, 0)]; compared {
		return v == Match, nil
	}
	var values [2][]int64
	for side := range values {
		v, ok, err := integers(w.sides[side].trace, pass, name)
		if !ok && err == nil && name == order.PositionIDs {
			v, ok = w.assumed(side, pass)
		}
		if err != nil || !ok {
			return false, err
		}
		values[side] = v
	}
	return slices.Equal(values[local], values[reference]), nil
}

// assumed are where the tokens of a pass are taken to stand on a side that does not say so; ok is false where it does, or nothing of it is
// certified.
func (w *walker) assumed(side, pass int) (positions []int64, ok bool) {
	i := w.o.Isolator
	if side == reference && !w.o.Alone {
		i = w.o.ReferenceIsolator
	}
	if i == nil {
		return nil, false
	}
	return i.AssumedPositions(pass)
}

// Compared reports whether there is a row with this key.
func (w *walker) Compared(key string) bool {
	_, compared := w.verdicts[key]
	return compared
}

// Limit is the limit on a row's whole tensor; 0 where there is no such row, or it has none.
func (w *walker) Limit(key string) float64 {
	if g := w.limits[key]; g.Tolerant() {
		return float64(g.Checks[0].Limit)
	}
	return 0
}
