package words

import (
	"fmt"
	"strconv"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

// checked says how many operations were recomputed, with the outcomes, or why no operation was verified.
func checked(doc *Document, r *compare.Result) {
	s := r.Isolation
	switch {
	case r.Uncertified != "":
		why := ": " + r.Uncertified
		if d := r.Divergence; d != nil && d.Row.Gap == r.Uncertified { // its block says why
			why = ""
		}
		doc.Line("operations: not verified, only the limits decide%s", why)
	case s == nil && r.NotIsolated != "":
		doc.Line("operations: not verified: %s", r.NotIsolated)
	case s == nil:
	default:
		text := fmt.Sprintf("operations: %d recomputed on %s inputs: %d EXACT, %d ROUNDING", s.Certified, whose(r), s.Exact, s.Rounding)
		text += counts(", ", number{int64(s.Bugs), "BUG"}, number{int64(s.Layout), string(isolate.OtherLayout)}, number{int64(s.Unidentified), string(isolate.Unidentified)},
			number{int64(s.Unverified), string(isolate.NotCertified)})
		if s.NotIsolated > 0 {
			text += fmt.Sprintf("; %d could not be recomputed", s.NotIsolated)
		}
		doc.Line("%s", text)
		notRecomputed(doc, s)
		askedFor(doc, s)
		bugsOf(doc, s)
		ways(doc, s)
	}
}

// askedFor says what was asked for in place of what is usual.
func askedFor(doc *Document, s *compare.Isolation) {
	if s.Arithmetic != isolate.Auto || s.Bound != "probabilistic" {
		doc.Line("as asked for: %s arithmetic, %s bounds", s.Arithmetic, s.Bound)
	}
}

// bugsOf lists the causes of the mismatches, with the number of entries per cause. It writes nothing for a single cause with a single
// entry.
func bugsOf(doc *Document, s *compare.Isolation) {
	var bugs []compare.Finding
	for _, f := range s.Findings {
		if f.Bug != nil && f.Kind != compare.LayoutFound {
			bugs = append(bugs, f)
		}
	}
	if len(bugs) == 1 && bugs[0].Rows == 1 {
		return
	}
	for i, f := range bugs {
		if i == 2*maxShort {
			doc.sub(verboseHas, count(len(bugs)-i, "bug", "bugs"))
			return
		}
		doc.sub("bug in %s: %s (%s)", f.Where(), f.What, count(f.Rows, "entry", "entries"))
	}
}

// whose says whose inputs the operations were recomputed on: your port's, or, for a single trace, the operations' own.
func whose(r *compare.Result) string {
	if r.Alone {
		return "their own"
	}
	return r.Local.Name.Side + "'s"
}

// ways are what the engine does otherwise than transformers without being wrong.
func ways(doc *Document, s *compare.Isolation) {
	var ways []compare.Finding
	for _, f := range s.Findings {
		if f.Bug == nil {
			ways = append(ways, f)
		}
	}
	lines := joined(ways)
	for i, f := range lines {
		if i == maxShort {
			doc.sub(verboseHas, strconv.Itoa(len(lines)-i))
			return
		}
		way := Either(f.Kind == compare.OtherSummation, "adds in another order", otherRounding)
		doc.sub("%s%s: %s: %s (%s)", way, noBug, wayOf(f), f.What, count(f.Rows, "entry", "entries"))
	}
}
