package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
)

// Isolation is what certifying found over all rows.
type Isolation struct {
	Certified int `json:"certified"` // rows with a certificate
	Exact     int `json:"exact"`
	Rounding  int `json:"rounding"`
	Bugs      int `json:"bugs"`
	// Layout counts the rows that are wrong on their own inputs without a mistake: the difference cancels further
	// on.
	Layout int `json:"layout,omitempty"`
	// Unverified rows depend on an operation that may not produce a BUG. NotIsolated rows cannot be computed from
	// the captured tensors.
	Unverified int `json:"unverified,omitempty"`
	// Unidentified rows may be rounding of an unknown arithmetic: neither right nor wrong.
	Unidentified int `json:"unidentified,omitempty"`
	NotIsolated  int `json:"not_isolated,omitempty"`
	Drift        int `json:"drift,omitempty"`
	// Reasons are why rows are UNIDENTIFIED, UNVERIFIED or not isolated, those of most rows first.
	Reasons []Reason `json:"reasons,omitempty"`
	// Sampled rows have the reach, the power and the scale of a sample of their elements: see Sampled of [isolate.Certificate].
	Sampled int `json:"sampled,omitempty"`
	// Arithmetic and Bound are what was asked for; see isolate.Options.
	Arithmetic isolate.Engines `json:"arithmetic"`
	Bound      string          `json:"bound"` // "probabilistic" or "rigorous"
	// Findings lists, for each kind of operation, the engine's differences from transformers in rounding and
	// summation, and the named bugs.
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
	// Outcome is the outcome of the rows' certificates. It is empty for rows without a certificate, which could not be recomputed.
	Outcome isolate.Outcome `json:"outcome,omitempty"`
	Roles   []RoleCount     `json:"roles,omitempty"` // which entries they are, those of most rows first
}

// RoleCount is how many rows are of the entries of one name, in any layer.
type RoleCount struct {
	Role string `json:"role"` // such as "layers.*.self_attn.context"
	Rows int    `json:"rows"`
}

// Finding is one cause, either an engine's arithmetic or a bug, and every row explained by this cause.
type Finding struct {
	Kind  FindingKind `json:"kind"`
	Form  string      `json:"form"`            // of the first row
	Place string      `json:"where,omitempty"` // of arithmetic: see Where of [isolate.Certificate]
	What  string      `json:"what"`
	Rows  int         `json:"rows"`
	First string      `json:"first"` // key
	// Names are the names of a bug's rows, without duplicates, and Layers their layers.
	Names  []string `json:"names,omitempty"`
	Layers []int    `json:"layers,omitempty"`
	// Cancels are the entries in which a layout cancels.
	Cancels string `json:"cancels,omitempty"`
	// Bug is the name of a bug with its numbers, fields of the configuration, proof and page. The evidence of
	// several roles is added up.
	Bug *diagnose.Finding `json:"bug,omitempty"`

	roles []string
}

// FindingKind is what an engine does in its own way, or wrongly.
type FindingKind string

// The kinds of findings. A permutation of cached keys is a note of the result instead, since it concerns more than
// one operation.
const (
	OtherArithmetic FindingKind = "arithmetic"  // it rounds elsewhere
	OtherSummation  FindingKind = "summation"   // it adds in an order that usual bounds do not cover
	NamedBug        FindingKind = "bug"         // it computes something else
	LayoutFound     FindingKind = "layout"      // it computes something else, which cancels further on: no mistake
	Unexplained     FindingKind = "unexplained" // it computes something else, and no edit that was tried gives it
)

// isolationOf sums up what certifying found over all rows. cancels says where a layout cancels, by the keys of rows that are wrong by themselves.
func isolationOf(rows []Row, by *Isolator, cancels map[string]string) *Isolation {
	s := &Isolation{Arithmetic: by.Options().Arithmetic, Bound: "probabilistic"}
	if by.Options().Rigorous {
		s.Bound = "rigorous"
	}
	own := by.Own() // of the arithmetic that was asked for: no finding
	note := func(f Finding) {
		at := slices.IndexFunc(s.Findings, func(g Finding) bool { return g.Form == f.Form && g.Place == f.Place && g.What == f.What })
		if at < 0 {
			at = len(s.Findings)
			s.Findings = append(s.Findings, f)
		}
		s.Findings[at].Rows++
	}
	for i := range rows {
		r := &rows[i]
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
		if c.Sampled > 0 {
			s.Sampled++
		}
		switch c.Outcome {
		case isolate.Exact:
			s.Exact++
		case isolate.Rounding:
			s.Rounding++
		case isolate.Bug:
			s.Bugs++
			s.bug(r, NamedBug, "")
		case isolate.OtherLayout:
			s.Layout++
			s.bug(r, LayoutFound, cancels[r.Key()])
		case isolate.NotCertified:
			s.Unverified++
			s.reason(r)
		case isolate.Unidentified:
			s.Unidentified++
			s.reason(r)
		}
		if c.Good() && c.Arithmetic != own {
			note(Finding{Kind: OtherArithmetic, Form: c.Form, Place: c.Where, What: c.Arithmetic, First: r.Key()})
		}
		if c.Good() && c.Summation != "" {
			note(Finding{Kind: OtherSummation, Form: c.Form, What: "adds in the order: " + c.Summation, First: r.Key()})
		}
		if c.Good() && c.Power > s.WeakestPower {
			s.WeakestPower, s.Weakest = c.Power, r.Key()
		}
	}
	slices.SortStableFunc(s.Reasons, func(a, b Reason) int { return b.Rows - a.Rows })
	for i := range s.Reasons {
		slices.SortStableFunc(s.Reasons[i].Roles, func(a, b RoleCount) int { return b.Rows - a.Rows })
	}
	return s
}

// layouts returns a sentence for each layout: the change, and the entries in which it cancels.
func (s *Isolation) layouts() []string {
	var all, cancels []string
	for _, f := range s.Findings {
		if f.Kind != LayoutFound {
			continue
		}
		text := fmt.Sprintf("%s: %s", f.Where(), f.What)
		if at := slices.Index(cancels, f.Cancels); at >= 0 {
			all[at] += "; " + text
			continue
		}
		all, cancels = append(all, text), append(cancels, f.Cancels)
	}
	for k := range all {
		all[k] += "; this cancels in " + cancels[k]
	}
	return all
}

// bug adds a row with a BUG to the findings. Roles changed by one setting form one finding.
func (s *Isolation) bug(r *Row, kind FindingKind, cancels string) {
	bug := r.Isolated.Finding
	if bug == nil {
		return
	}
	role := order.NameOf(r.Name).Role()
	if !bug.Named() {
		kind = Unexplained
	}
	at := slices.IndexFunc(s.Findings, func(f Finding) bool {
		return f.Kind == kind && f.Bug.Same(bug) && f.Cancels == cancels && (kind != Unexplained || bug.Likely != "" || f.roles[0] == role)
	})
	if at < 0 {
		at = len(s.Findings)
		sum := *bug
		s.Findings = append(s.Findings, Finding{
			Kind: kind, Form: r.Isolated.Form, What: bug.Text(), First: r.Key(), Bug: &sum, Cancels: cancels, roles: []string{role},
		})
	}
	f := &s.Findings[at]
	f.Rows++
	if !slices.Contains(f.roles, role) {
		f.roles = append(f.roles, role)
		f.Bug.Entries += bug.Entries
		f.Bug.Elements += bug.Elements
		f.Bug.Shown += bug.Shown
	}
	if !slices.Contains(f.Names, r.Name) {
		f.Names = append(f.Names, r.Name)
	}
	if r.Layer >= 0 && !slices.Contains(f.Layers, r.Layer) {
		f.Layers = append(f.Layers, r.Layer)
		slices.Sort(f.Layers)
	}
}

// Where says which entries a finding is of: "self_attn.q_norm and self_attn.k_norm, layers 0 to 2".
func (f *Finding) Where() string {
	var names []string
	for _, n := range f.Names {
		if n = order.NameOf(n).Module(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	text := names[0]
	if n := len(names); n > 3 {
		text = amount.Some(names, 3)
	} else if n > 1 {
		text = strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	if len(f.Layers) == 0 {
		return text
	}
	var runs []string
	for a := 0; a < len(f.Layers); {
		b := a
		for b+1 < len(f.Layers) && f.Layers[b+1] == f.Layers[b]+1 {
			b++
		}
		switch b - a {
		case 0:
			runs = append(runs, fmt.Sprint(f.Layers[a]))
		case 1:
			runs = append(runs, fmt.Sprint(f.Layers[a]), fmt.Sprint(f.Layers[b]))
		default:
			runs = append(runs, fmt.Sprintf("%d to %d", f.Layers[a], f.Layers[b]))
		}
		a = b + 1
	}
	if len(f.Layers) == 1 {
		return text + ", layer " + runs[0]
	}
	if n := len(runs); n > 1 {
		return text + ", layers " + strings.Join(runs[:n-1], ", ") + " and " + runs[n-1]
	}
	return text + ", layers " + runs[0]
}

// reason counts a row without a verdict of isolation under its reason.
func (s *Isolation) reason(r *Row) {
	form, outcome := "", isolate.Outcome("")
	if c := r.Isolated; c != nil {
		if outcome = c.Outcome; outcome == isolate.Unidentified {
			form = c.Form
		}
	}
	at := slices.IndexFunc(s.Reasons, func(k Reason) bool { return k.Why == r.NotIsolated && k.Form == form && k.Outcome == outcome })
	if at < 0 {
		at = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{Why: r.NotIsolated, Form: form, Outcome: outcome, First: r.Key()})
	}
	s.Reasons[at].Rows++
	s.Reasons[at].Roles = CountRole(s.Reasons[at].Roles, order.NameOf(r.Name).Role(), 1)
}

// CountRole adds rows of a role to a list.
func CountRole(list []RoleCount, role string, rows int) []RoleCount {
	at := slices.IndexFunc(list, func(c RoleCount) bool { return c.Role == role })
	if at < 0 {
		return append(list, RoleCount{role, rows})
	}
	list[at].Rows += rows
	return list
}

// layoutOf says what is in other numbers and where that cancels.
func layoutOf(l *chain.Reparametrisation) string {
	return strings.Join(l.What, "; ") + "; this cancels in " + places(l.Cancels)
}

// places are the modules of some keys, each once.
func places(keys []string) string {
	var names []string
	for _, k := range keys {
		_, name, _, _ := capture.ParseKey(k)
		if module := order.NameOf(name).Module(); !slices.Contains(names, module) {
			names = append(names, module)
		}
	}
	return strings.Join(names, ", ")
}
