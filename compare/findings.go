package compare

import (
	"slices"

	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/compare/measure"
)

// Isolation is what certifying found over all rows.
type Isolation struct {
	Certified int `json:"certified"` // rows with a certificate
	Exact     int `json:"exact"`
	Rounding  int `json:"rounding"`
	Bugs      int `json:"bugs"`
	// Unverified rows have an operation on the way that may not accuse; NotIsolated ones cannot be computed from what was
	// captured.
	Unverified int `json:"unverified,omitempty"`
	// Unidentified rows may be rounding, of an arithmetic that is not known: they are neither right nor wrong.
	Unidentified int `json:"unidentified,omitempty"`
	NotIsolated  int `json:"not_isolated,omitempty"`
	Drift        int `json:"drift,omitempty"`
	// Reasons are why rows are UNIDENTIFIED, UNVERIFIED or not isolated, those of most rows first.
	Reasons []Reason `json:"reasons,omitempty"`
	// Arithmetic and Bound are what was asked for; see certify.IsolateOptions.
	Arithmetic certify.Arithmetic `json:"arithmetic"`
	Bound      string             `json:"bound"` // "probabilistic" or "rigorous"
	// Findings says of each kind of operation how the engine rounds or adds otherwise than transformers, and what is wrong with it
	// where that has a name.
	Findings []Finding `json:"findings,omitempty"`
	// Weakest is the key of the certified row with the largest Power: the smallest error of scale that would show
	// everywhere is WeakestPower.
	Weakest      string         `json:"weakest,omitempty"`
	WeakestPower measure.Number `json:"weakest_power,omitempty"`
}

// Reason is why some rows are neither right nor wrong by themselves.
type Reason struct {
	Why   string `json:"why"`
	Form  string `json:"form,omitempty"` // of UNIDENTIFIED rows: that of their operation
	Rows  int    `json:"rows"`
	First string `json:"first"` // key
}

// Finding is a way of an engine, or a bug with a name.
type Finding struct {
	Kind  FindingKind `json:"kind"`
	Form  string      `json:"form"`
	Where string      `json:"where,omitempty"` // of arithmetic: see [certify.Certificate]
	What  string      `json:"what"`
	Rows  int         `json:"rows"`
	First string      `json:"first"` // key
}

// FindingKind is what an engine does in its own way, or wrongly.
type FindingKind string

// The kinds of findings. Another layout is a note of the result: it is no matter of one operation.
const (
	OtherArithmetic FindingKind = "arithmetic" // it rounds elsewhere
	OtherSummation  FindingKind = "summation"  // it adds in an order that usual bounds do not cover
	NamedBug        FindingKind = "bug"        // it computes something else
)

// isolation sums up.
func (w *walker) isolation() {
	if w.chain == nil {
		return
	}
	s := &Isolation{Arithmetic: w.o.Isolator.Options().Arithmetic, Bound: "probabilistic"}
	if w.o.Isolator.Options().Rigorous {
		s.Bound = "rigorous"
	}
	w.res.Isolation = s
	own := w.o.Isolator.Own() // of the arithmetic that was asked for: no finding
	note := func(f Finding) {
		at := slices.IndexFunc(s.Findings, func(g Finding) bool { return g.Form == f.Form && g.Where == f.Where && g.What == f.What })
		if at < 0 {
			at = len(s.Findings)
			s.Findings = append(s.Findings, f)
		}
		s.Findings[at].Rows++
	}
	for i := range w.res.Rows {
		r := &w.res.Rows[i]
		if r.has(Drift) {
			s.Drift++
		}
		c := r.Isolated
		if c == nil {
			if r.NotIsolated != "" {
				s.NotIsolated++
				s.reason(r)
			}
			continue
		}
		s.Certified++
		switch c.Outcome {
		case certify.Exact:
			s.Exact++
		case certify.Rounding:
			s.Rounding++
		case certify.Bug:
			if s.Bugs++; c.Finding != nil {
				note(Finding{Kind: NamedBug, Form: c.Form, What: c.Finding.Text(), First: r.Key()})
			}
		case certify.NotCertified:
			s.Unverified++
			s.reason(r)
		case certify.Unidentified:
			s.Unidentified++
			s.reason(r)
		}
		if c.Good() && c.Arithmetic != own {
			note(Finding{Kind: OtherArithmetic, Form: c.Form, Where: c.Where, What: c.Arithmetic, First: r.Key()})
		}
		if c.Good() && c.Summation != "" {
			note(Finding{Kind: OtherSummation, Form: c.Form, What: "adds in the order: " + c.Summation, First: r.Key()})
		}
		if c.Good() && c.Power > s.WeakestPower {
			s.WeakestPower, s.Weakest = c.Power, r.Key()
		}
	}
	slices.SortStableFunc(s.Reasons, func(a, b Reason) int { return b.Rows - a.Rows })
}

// reason counts a row that is neither right nor wrong by itself.
func (s *Isolation) reason(r *Row) {
	form := ""
	if c := r.Isolated; c != nil && c.Outcome == certify.Unidentified {
		form = c.Form
	}
	at := slices.IndexFunc(s.Reasons, func(k Reason) bool { return k.Why == r.NotIsolated && k.Form == form })
	if at < 0 {
		at = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{Why: r.NotIsolated, Form: form, First: r.Key()})
	}
	s.Reasons[at].Rows++
}
