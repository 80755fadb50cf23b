package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

// notCompared says which entries a comparison without a mismatch left out, and how to compare them. If the comparison stopped early, it
// says how to go on.
func notCompared(doc *Document, r *compare.Result) {
	c := r.Coverage
	n := c.Entries - c.Compared
	if n <= 0 {
		return
	}
	if r.Stopped {
		doc.Line("not compared: the entries after the first divergence (--all compares them)")
		return
	}
	text := fmt.Sprintf("not compared: %d of %s", n, count(c.Entries, "entry", "entries"))
	level := 3
	for _, s := range []capture.Scope{r.Local.Scope, r.Reference.Scope, r.Typed} {
		if s.Level > 0 {
			level = min(level, s.Level)
		}
	}
	switch {
	case narrow(r.Typed):
		text += ", as asked for: --" + strings.ReplaceAll(LimitsOf(r.Typed), ", ", ", --")
	case narrowed(r):
		text += ", as captured: " + scopes(r)
	case r.Map != nil && r.Map.Open > 0: // no other capture shows what has no name
		text += "; " + ofDump(r.Map) + haveNoLine(r.Map) + " in a map"
	case r.Given:
		text += "; tracediff order lists all names to dump"
	case level < 3:
		text += fmt.Sprintf("; --level %d captures more of them", level+1)
	}
	doc.Line("%s", text)
}

// NotDumped is said of an entry that is missing.
const NotDumped = "declared and not dumped"

// missing lists what was declared and is not there.
func missing(doc *Document, r *compare.Result) {
	if len(r.Missing) == 0 {
		return
	}
	doc.blank()
	doc.Line("MISSING: %s %s", count(len(r.Missing), "entry is", "entries are"), NotDumped)
	n := len(r.Missing)
	for i, m := range r.Missing[:min(n, maxListed)] {
		where := ", " + m.Side
		switch {
		case r.Alone:
			where = ""
		case m.Side == "both":
			where = ", both sides"
		}
		doc.only(Either(i >= maxShort && n > maxShort+1, Whole, Any), func() { doc.sub("%s%s", Key(m.Pass, m.Name), where) })
	}
	if n > maxShort+1 {
		doc.only(Brief, func() { doc.sub(andMore, n-maxShort) })
	}
	if n > maxListed {
		doc.only(Whole, func() { doc.sub(andMore, n-maxListed) })
	}
}

// end writes why the comparison is incomplete, which limits decided, and the coverage.
func end(doc *Document, r *compare.Result) {
	doc.blank()
	incomplete(doc, r)
	expected(doc, r)
	if r.Divergence == nil { // else its block says it
		doc.Line("decided by %s%s", r.Decided, strings.TrimSuffix("; "+uncertified(r), "; "))
	}
	if !r.Alone {
		limits(doc, r)
	}
	doc.Line("%s", covered(r))
	notCompared(doc, r)
}

// covered says how much was compared, and of how many layers everything.
func covered(r *compare.Result) string {
	c := r.Coverage
	text := fmt.Sprintf("compared %d of %s", c.Compared, count(c.Entries, "entry", "entries"))
	switch {
	case c.Layers == 0:
	case c.LayersComplete == 0:
		text += "; no layer in full"
	case c.LayersComplete == c.Layers:
		text += "; every layer in full"
	default:
		text += fmt.Sprintf("; %d of %d layers in full", c.LayersComplete, c.Layers)
	}
	return text + beside(r)
}

// Rests says why a comparison is incomplete, how much of it tests something, and what it rests on where that is not every operation. An empty
// text has nothing to say.
func Rests(r *compare.Result) (incomplete, tested, on string) {
	incomplete, tested, on = strings.Join(r.Incomplete, "; "), fmt.Sprintf("%s; %d test something", covered(r), r.Coverage.Tested), uncertified(r)
	if len(r.Incomplete) == 0 && r.Coverage.Tested == 0 {
		incomplete = compare.NothingTested
	}
	if s := r.Isolation; on == "" && s != nil && s.Unidentified > 0 {
		on = fmt.Sprintf("%s %s", count(s.Unidentified, "entry is", "entries are"), isolate.Unidentified)
	}
	return incomplete, tested, on
}

// incomplete writes the reasons, a line each.
func incomplete(doc *Document, r *compare.Result) {
	for _, reason := range r.Incomplete {
		doc.say(Bad, "INCOMPLETE", "%s", reason)
	}
}

// beside is what the coverage counts apart.
func beside(r *compare.Result) string {
	c := r.Coverage
	text := over(r, ", ")
	if c.DerivedEntries > 0 {
		text += fmt.Sprintf("; %d of %d derived entries", c.Derived, c.DerivedEntries)
	}
	return text
}

// untested says all that a comparison did not look at.
func untested(doc *Document, r *compare.Result) {
	doc.Line("%s", covered(r))
	notCompared(doc, r)
	incomplete(doc, r)
	expected(doc, r)
	missing(doc, r)
	if n := len(r.Untested); n > 0 {
		doc.field("untested", "constant, zero or empty: %s", some(r.Untested))
	}
	if n := len(r.Unverified); n > 0 {
		doc.field("not judged", "%s", some(r.Unverified))
	}
	if r.Isolation != nil {
		reasons(doc, r.Isolation)
	}
	if r.Sight == nil {
		return
	}
	sight(doc, r.Sight)
}
