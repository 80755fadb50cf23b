package compare

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/naming"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order/op"
)

// certifier attaches certificates to the compared entries: whether the entry is right on its own inputs, and
// whether a chain of right operations leads from the token ids to the entry. Without an isolator it does nothing.
type certifier struct {
	plan      *plan.Plan
	by        *Certification
	chain     *chain.Chain      // entries of the local trace with a right way back to the token ids; nil without an isolator
	reference *chain.Chain      // the same for the reference, filled on demand
	decided   *decided          // the decided rows
	cancels   map[string]string // the entries in which a layout cancels, by the key of the row with the layout
}

// isolate certifies a pair's entry.
//
// An entry declared as derived but fired by the local engine counts as the engine's own: the next entry may be
// right on this input, so a fault here would show nowhere else.
func (c *certifier) isolate(ctx context.Context, p *pair) error {
	r := p.row
	p.isolated.standing = StandingNone
	_, argument := p.entry.Op.(op.Given)
	if argument {
		p.isolated.standing = StandingGiven
	}
	if c.chain == nil && p.seen.what == SeenPast && c.by.Certifying != Declined && c.by.NotIsolated != "" && c.plan.Mode != sides.AB {
		p.isolated.gap = c.by.NotIsolated
	}
	if c.chain == nil || p.seen.what == SeenShape || r.Derived && c.by.Isolator.Recomputed(r.Name) {
		return nil
	}
	if r.Firing > 0 {
		r.NotIsolated = "the order computes it once a pass: a second firing cannot be verified"
		return nil
	}
	got, err := c.link(ctx, r)
	if err != nil {
		return err
	}
	misfit := c.plan.Mode == sides.Alone && got.Misfit != nil && got.Misfit.Class != "" // there is no other side to differ from
	if r.Derived && (got.Cert == nil || got.Cert.Outcome != isolate.Bug && got.Cert.Outcome != isolate.Unidentified) && !misfit {
		return nil // the reference's tensor was not made by an engine, so there is nothing else to compare with
	}
	r.Derived, r.Isolated, r.NotIsolated = false, isolatedBy(got.Cert), got.Why
	switch cert := got.Cert; {
	case misfit && got.Misfit.Class == gate.Shape:
		p.see(SeenShape, "it %s", got.Misfit.Is)
	case misfit:
		p.see(SeenDType, "it %s", got.Misfit.Is)
	case argument:
		return nil
	case got.Layout != nil:
		p.isolated.standing = StandingLayout
		p.remark(OtherLayout, "%s", layoutOf(got.Layout))
		return c.inLayout(ctx, r, got)
	case c.accuses(p, got):
		p.isolated.standing = StandingWrong
		return c.named(ctx, p)
	case cert != nil && cert.Outcome == isolate.NotCertified:
		r.NotIsolated = "op unverified: the walk's " + cert.Unverified + " has not reproduced transformers, so it certifies nothing"
		p.remark(OpUnverified, "%s", r.NotIsolated)
	case cert != nil && cert.Outcome == isolate.Unidentified:
		r.NotIsolated = cert.Unidentified()
	case cert != nil && cert.Good():
		return c.chained(ctx, p, got)
	}
	if p.seen.what == SeenPast && p.isolated.standing == StandingNone {
		p.isolated.gap = got.Gap.String()
	}
	return nil
}

// link returns the certificate of a row's entry. If the entry is wrong on its own inputs, link first asks whether
// the entry is part of a layout.
func (c *certifier) link(ctx context.Context, r *Row) (*chain.Link, error) {
	got, err := c.chain.At(ctx, r.Name, r.Pass)
	if err != nil {
		return nil, err
	}
	wrong := got.Wrong
	if got.Cert != nil && got.Cert.Outcome == isolate.Bug {
		wrong = r.Key()
	} else if wrong == "" || c.decided.compared(wrong) {
		return got, nil
	}
	known, err := c.chain.Layout(ctx, wrong)
	if !known || err != nil {
		return got, err
	}
	return c.chain.At(ctx, r.Name, r.Pass)
}

// inLayout names what is done otherwise in a layout.
func (c *certifier) inLayout(ctx context.Context, r *Row, got *chain.Link) error {
	if got.Cert.Outcome == isolate.OtherLayout {
		c.cancels[r.Key()] = places(got.Layout.Cancels)
		if f, err := c.by.Isolator.Name(ctx, r.Name); f.Named() || err != nil {
			r.Isolated.Finding = f
			return err
		}
		r.Isolated.Finding = nil
	}
	return nil
}

// named names the mistake in an entry that is wrong on its own inputs, if an edit of its operation explains the
// values. If roundings could explain the values too, the finding only has the number by which the entry was found
// wrong, as a likely cause: a different edit may give the same values.
func (c *certifier) named(ctx context.Context, p *pair) error {
	isolated := p.row.Isolated
	if isolated == nil || isolated.Outcome != isolate.Bug {
		return nil
	}
	f, err := c.by.Isolator.Name(ctx, p.row.Name)
	if more := naming.Beyond(isolated.Certificate, f); more != "" {
		f = &diagnose.Finding{Likely: more}
	}
	if f.Named() || isolated.Finding == nil {
		isolated.Finding = f
	}
	if f.Named() {
		isolated.Mistake = f.Text()
	}
	return err
}

// accuses notes the wrong operation, if isolation found one: the entry's own, or an ancestor's without a row.
func (c *certifier) accuses(p *pair, got *chain.Link) bool {
	switch cert := got.Cert; {
	case cert != nil && cert.Outcome == isolate.Bug:
		p.isolated.wrong = cert.Detail()
	case got.Wrong != "" && !c.decided.compared(got.Wrong):
		p.isolated.wrong = got.Wrong + ", which it was computed from and which was not compared, is " + c.chain.Bug(got.Wrong).Detail()
	}
	return p.isolated.wrong != ""
}

// chained checks, for an entry over its limit, whether the chain back to the token ids is unbroken on both sides.
// Then both sides computed the same model from the same tokens, and the difference is rounding. A reference with a
// broken chain has other weights or settings, is damaged, or comes from a version of transformers this order does
// not describe.
func (c *certifier) chained(ctx context.Context, p *pair, got *chain.Link) error {
	p.isolated.standing = StandingRight
	if p.seen.what != SeenPast && p.seen.what != SeenNumbers {
		return nil
	}
	p.isolated.gap = p.names[local].Side + ": " + got.Gap.String()
	if got.Gap != nil {
		return nil
	}
	if form, err := c.by.Isolator.Uncertified(ctx); err != nil || form != "" {
		p.isolated.gap = "the walk's " + form + " has not reproduced transformers, so nothing is excused; compare with a trace of transformers"
		return err
	}
	if c.reference == nil {
		p.isolated.gap = p.names[reference].Side + ": it cannot be isolated"
		return nil
	}
	ref, err := c.reference.At(ctx, p.row.Name, p.row.Pass)
	if err != nil {
		return err
	}
	if ref.Gap != nil {
		p.isolated.gap = p.names[reference].Side + ": " + ref.Gap.String()
		return nil
	}
	p.isolated.standing, p.isolated.gap, p.isolated.from = StandingUnbroken, "", got.From
	if got.From != "" {
		p.isolated.standing = StandingInherited
	}
	return nil
}

// confirm asks the order about a pair that seems to show nothing: a constant that it gives from ids, positions, weights and
// inputs that are not constant is right, and was tested.
func (c *certifier) confirm(ctx context.Context, p *pair) error {
	by := c.by.Confirmer
	if by == nil && c.by.Isolator != nil {
		by = c.by.Isolator.Isolator
	}
	if p.shows.content != Untested || p.row.Firing > 0 || p.row.Derived || by == nil {
		return nil
	}
	switch p.seen.what {
	case SeenWithin, SeenWider, SeenPast:
	default:
		return nil // a mismatch, whatever its content
	}
	from, err := by.Confirms(ctx, p.row.Name, p.row.Pass)
	if err != nil || from == nil {
		return err
	}
	p.shows.content = Confirmed
	p.remark(NoteConfirmed, "%s, which is right: it follows from %s", p.shows.why, amount.Some(from, maxNamed))
	return nil
}

// maxNamed is how many keys a remark names.
const maxNamed = 3

// fault returns an uncompared ancestor of a row with a wrong result from right inputs, or nil if none is known.
func (c *certifier) fault(ctx context.Context, r *Row) (*Fault, error) {
	if c.chain == nil || r.Firing > 0 || r.Isolated == nil || !r.Isolated.Good() {
		return nil, nil
	}
	got, err := c.chain.At(ctx, r.Name, r.Pass) // known since the row was judged
	if err != nil || got.Wrong == "" || c.decided.compared(got.Wrong) {
		return nil, err
	}
	f := &Fault{Key: got.Wrong}
	if _, name, _, ok := capture.ParseKey(got.Wrong); ok {
		f.Finding, err = c.by.Isolator.Name(ctx, name)
	}
	return f, err
}

// wrongItself reports whether the walk found an entry to be a BUG.
func (c *certifier) wrongItself(key string) bool {
	if c.chain == nil || c.decided.verdicts[key] != Mismatch {
		return false
	}
	return c.chain.Bug(key) != nil
}

// sight asks which of the usual mistakes the entries that were compared would have shown, where somebody wants to know, they were
// certified and nothing is wrong.
func (c *certifier) sight(ctx context.Context, res *Result, unverified map[string]string) error {
	if !c.by.Sight || c.chain == nil || res.ExitCode() != 0 || res.Isolation == nil || res.Isolation.Bugs > 0 {
		return nil
	}
	var err error
	res.Sight, err = detectable.Find(ctx, c.by.Isolator.Forms, 0, func(name string, pass int) bool {
		return unverified[name] == "" && c.decided.compared(capture.Key(pass, name, 0))
	})
	return err
}
