package compare

import (
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
)

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
		p.remark(Drift, "every operation from the token ids to here is right on the local side's own inputs, and on the reference's; accumulated, %s", p.seen.detail)
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
	limits   map[string]*gate.Gate     // of the rows that are certified, before they are decided
	// different are the keys of rows that differ and were expected to.
	different map[string]bool

	lastMatch string   // key of the last row that matched and gates
	untested  string   // why the first of Result.Untested shows nothing
	nanBoth   []string // keys of rows that are NaN on both sides
}

func newDecided() *decided {
	return &decided{verdicts: map[string]Verdict{}, errors: map[string]measure.Number{}, limits: map[string]*gate.Gate{}, different: map[string]bool{}}
}

// Compared reports whether there is a row with this key.
func (d *decided) Compared(key string) bool {
	_, compared := d.verdicts[key]
	return compared
}

// Limit returns the limit on a row's whole tensor, or 0 for an unknown row and for a row without a limit.
func (d *decided) Limit(key string) float64 {
	if g := d.limits[key]; g.Tolerant() {
		return float64(g.Checks[0].Limit)
	}
	return 0
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
