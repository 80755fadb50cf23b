package compare

import (
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
)

// Facts are the complete input of the verdict on a row. The facts are independent of each other; [Judge] combines
// them.
type Facts struct {
	Seen     Seen     `json:"seen"`
	Standing Standing `json:"standing"`
	Content  Content  `json:"content"`
	Policy   Policy   `json:"policy,omitzero"`
}

// Seen is the first visible difference between two tensors, in the order of the constants. For a single trace it is
// the difference between the tensor and the order.
type Seen string

// What may be seen.
const (
	SeenShape     Seen = "shape"     // another shape, on either side, than the other side's or than the order and the ids give
	SeenNonFinite Seen = "nonfinite" // NaN or infinity on one side only
	SeenKeys      Seen = "keys"      // other keys are masked
	SeenNumbers   Seen = "numbers"   // integers or booleans differ
	SeenDType     Seen = "dtype"     // a dtype that the order does not have, or any difference with [Options].StrictDType
	SeenPast      Seen = "past"      // an accumulated error is past its limit
	SeenWider     Seen = "wider"     // only the local side has more digits than the order
	SeenWithin    Seen = "within"    // none of these
)

// Standing is the result of isolation for the local tensor and all of its ancestors.
type Standing string

// The standings.
const (
	StandingNone     Standing = "none"     // nothing: nobody asked, it cannot be isolated, it is UNIDENTIFIED, or its operation may not accuse
	StandingGiven    Standing = "given"    // an argument of the model: nobody computes it
	StandingRight    Standing = "right"    // right on its own inputs; the chain back to the token ids is broken on at least one side
	StandingUnbroken Standing = "unbroken" // right on its own inputs, on an unbroken chain, on both sides
	// StandingInherited is an unbroken chain after the divergences accepted by a baseline; the accepted tensors
	// count as given.
	StandingInherited Standing = "inherited"
	StandingLayout    Standing = "layout" // the same model in other numbers: wrong, or computed from what is, and all of it cancels further on
	StandingWrong     Standing = "wrong"  // wrong on its own inputs, or computed from such an entry without a row
)

// Content is whether the tensors can show anything.
type Content string

// The contents.
const (
	Tested    Content = "tested"
	Confirmed Content = "confirmed" // constant, and the order gives that constant from ids, weights and inputs that are not constant
	Untested  Content = "vacuous"   // constant, zero or empty, and nothing says that it has to be
	NotFinite Content = "nan"       // NaN or overflow on both sides
)

// Policy is what was said about the comparison, and what the row is.
type Policy struct {
	// Unverified: the reference is the walk, and an operation that leads to the row has not reproduced transformers.
	Unverified bool `json:"unverified,omitempty"`
	Derived    bool `json:"derived,omitempty"` // recomputed by a capturing side
	Alone      bool `json:"alone,omitempty"`   // there is one trace
	// Printed: one side is a text with some elements of each tensor, and those rounded. Agreement proves nothing.
	Printed bool `json:"printed,omitempty"`
	// Accepted: a line of the baseline covers what the row shows; see [Baseline].
	Accepted bool `json:"accepted,omitempty"`
}

// Excuse is why a mismatch does not fail the comparison.
type Excuse string

// The excuses.
const (
	Accepted Excuse = "accepted" // a known divergence, which a line of the baseline covers
	// Passed: the error of a known divergence, passed on by operations that are right.
	Passed Excuse = "inherited"
)

// Judgement is the verdict on a row.
type Judgement struct {
	Verdict Verdict
	Class   gate.Class // of a mismatch
	By      Decider    // of a mismatch
	Drift   bool       // a match despite an accumulated error over its limit, or despite a different choice (argmax, top-k) within rounding
	Excused Excuse     // of a mismatch that does not fail the comparison
	Layout  bool       // a match in other numbers, whatever its accumulated error
	Tested  bool       // the row counts as one that was tested
}

// Judge returns the verdict of a row. The table in docs/verdict.md lists every combination of facts, and a test
// checks each cell.
func Judge(f Facts) Judgement {
	j := verdict(f)
	if f.Policy.Printed && j.Verdict == Match {
		j = Judgement{Verdict: Unverified}
	}
	j.Excused = excuse(f, j)
	j.Tested = !f.Policy.Derived && j.Excused == "" && (j.Verdict == Mismatch || j.Verdict == Match && f.tested())
	return j
}

// verdict is the first of these rules that applies.
func verdict(f Facts) Judgement {
	switch {
	case f.Policy.Alone && f.Policy.Derived:
		return Judgement{Verdict: Recomputed}
	case f.Standing == StandingWrong && f.Seen != SeenShape:
		j := Judgement{Verdict: Mismatch, Class: gate.Value, By: ByIsolation}
		if f.Seen == SeenNonFinite || f.Policy.Alone && f.Content == NotFinite {
			j.Class = gate.NonFinite // an allow-list tells it from a wrong number
		}
		if f.Seen != SeenWithin && f.Seen != SeenWider {
			j.By = ByBoth
		}
		return j
	case f.Policy.Unverified:
		return Judgement{Verdict: Unverified}
	case f.Standing == StandingLayout && (f.Seen == SeenPast || f.Seen == SeenWider || f.Seen == SeenWithin):
		return Judgement{Verdict: Match, Layout: true}
	case (f.Seen == SeenPast || f.Seen == SeenNumbers && !f.Policy.Alone) && f.Standing == StandingUnbroken:
		return Judgement{Verdict: Match, Drift: true}
	case f.Seen == SeenPast:
		return Judgement{Verdict: Mismatch, Class: gate.Value, By: ByLimit}
	case f.Seen == SeenWider && f.right():
		return Judgement{Verdict: Match}
	case f.Seen != SeenWithin:
		return Judgement{Verdict: Mismatch, Class: f.Seen.class(), By: ByEquality}
	case f.Policy.Alone && f.Standing == StandingNone:
		return Judgement{Verdict: Unverified}
	}
	return Judgement{Verdict: Match}
}

// excuse is why a mismatch does not fail the comparison. What is inherited is an error of some size: another shape, NaN, keys and
// integers are not excused by what they were computed from.
func excuse(f Facts, j Judgement) Excuse {
	switch {
	case j.Verdict != Mismatch || f.Policy.Derived:
		return ""
	case f.Policy.Accepted:
		return Accepted
	case f.Seen == SeenPast && f.Standing == StandingInherited:
		return Passed
	}
	return ""
}

// right reports whether the operation is right on its own inputs.
func (f Facts) right() bool {
	return f.Standing == StandingRight || f.Standing == StandingUnbroken || f.Standing == StandingInherited
}

// tested reports whether a match shows something: an argument says nothing about a model.
func (f Facts) tested() bool {
	return f.Standing != StandingGiven && (f.Content == Tested || f.Content == Confirmed)
}

// class is the class of a mismatch that is seen.
func (s Seen) class() gate.Class {
	switch s {
	case SeenShape:
		return gate.Shape
	case SeenNonFinite:
		return gate.NonFinite
	case SeenDType, SeenWider:
		return gate.DType
	}
	return gate.Value
}

// settle decides the verdict of a row and its sentence. Later steps do not change the verdict. form names an
// operation before the row that has not reproduced transformers, so the row is not judged; it is empty otherwise.
// known are the divergences accepted by a baseline.
func settle(p *pair, form string, known *knownLines) {
	r := p.row
	r.Facts = Facts{p.seen.what, p.isolated.standing, p.shows.content, Policy{Unverified: form != "" && !r.Derived, Derived: r.Derived, Alone: p.names.Alone(), Printed: p.printed() != nil}}
	r.Facts.Policy.Accepted = known.cover(r, Judge(r.Facts))
	j := Judge(r.Facts)
	r.Verdict, r.Class, r.Decided, r.Excused, r.Tested = j.Verdict, j.Class, j.By, j.Excused, j.Tested
	r.Allowed = known.excuse(p)
	if j.By == ByLimit {
		r.Gap = p.isolated.gap
	}
	switch {
	case j.Verdict == Mismatch:
		r.Detail = mismatch(p)
	case j.Drift && p.seen.what == SeenNumbers:
		p.remark(Drift, "every operation from the token ids to here is right on both sides, and rounding leaves this choice open: %s", p.seen.detail)
	case j.Drift:
		p.remark(Drift, "every operation from the token ids to here is right on your port's own inputs, and on the reference's; accumulated, %s", p.seen.detail)
	case j.Verdict == Unverified && r.Facts.Policy.Unverified:
		if r.Detail = "op unverified: the walk's " + form + " has not reproduced transformers"; p.seen.detail != "" {
			r.Detail += "; it differs: " + p.seen.detail
		}
		p.remark(OpUnverified, "%s", r.Detail)
	case j.Verdict == Unverified && r.Facts.Policy.Printed:
		r.Detail = "the printed numbers agree, which does not show that the tensor is right"
	case j.Verdict == Unverified:
		r.Detail = r.NotIsolated
	case j.Verdict == Match && p.shows.content == Untested:
		p.remark(Vacuous, "%s", p.shows.why)
	}
}

// mismatch is what is wrong with a row, in words.
func mismatch(p *pair) string {
	wrong := p.isolated.wrong
	if p.names.Alone() && p.shows.content == NotFinite {
		wrong = "NaN or infinite where it should not be; " + wrong
	}
	switch p.row.Decided {
	case ByIsolation:
		return wrong
	case ByBoth:
		return p.seen.detail + "; " + wrong
	}
	return p.seen.detail
}

// decided holds the decided rows of the walk, by key.
type decided struct {
	verdicts map[string]Verdict
	errors   map[string]measure.Number // relative L2
	// different are the keys of rows that differ and were expected to.
	different map[string]bool

	lastMatch string   // key of the last row that matched and gates
	untested  string   // why the first of Result.Untested shows nothing
	nanBoth   []string // keys of rows that are NaN on both sides
}

func newDecided() *decided {
	return &decided{verdicts: map[string]Verdict{}, errors: map[string]measure.Number{}, different: map[string]bool{}}
}

// compared reports whether there is a row with this key.
func (d *decided) compared(key string) bool {
	_, compared := d.verdicts[key]
	return compared
}

// add adds a row to the result. why is the reason for an untested row, or "". It reports whether the row fails the
// comparison.
func (d *decided) add(res *Result, row *Row, why string) (fails bool) {
	key := row.Key()
	if row.Facts.Policy.Unverified && row.Verdict == Unverified {
		res.Unverified = append(res.Unverified, key)
	}
	if row.Metrics != nil {
		d.errors[key] = row.Metrics.RelL2
	}
	if row.Blame == Root && row.Allowed == "" {
		res.Roots = append(res.Roots, key)
	}
	res.Rows = append(res.Rows, *row)
	d.verdicts[key] = row.Verdict
	if row.Derived {
		return false
	}
	if row.Verdict == Match && row.Facts.Content == Untested {
		if d.untested == "" {
			d.untested = why
		}
		res.Untested = append(res.Untested, key)
	}
	if row.Facts.Content == NotFinite {
		d.nanBoth = append(d.nanBoth, key)
	}
	if row.has(Expected) {
		d.different[key] = true
		return false
	}
	if row.Verdict == Match {
		d.lastMatch = key
	}
	if row.Verdict == Match || row.Verdict == Unverified || row.Allowed != "" {
		return false
	}
	res.Mismatches++
	return true
}
