package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
)

// NotCompared says which entries a comparison without a mismatch left out, and how to compare them. If the comparison stopped early, it
// says how to go on.
func NotCompared(doc *Document, r *compare.Result) {
	c := r.Coverage
	n := c.Entries - c.Compared
	if n <= 0 {
		return
	}
	if r.Stopped {
		doc.Line("not compared: the entries after the first divergence (--all compares them)")
		return
	}
	text := fmt.Sprintf("not compared: %d of %s", n, Count(c.Entries, "entry", "entries"))
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
		text += "; " + Count(r.Map.Open, "tensor", "tensors") + " of the dump " + Either(r.Map.Open == 1, "has", "have") + " no line in a map"
	case r.Given:
		text += "; tracediff order lists all names to dump"
	case level < 3:
		text += fmt.Sprintf("; --level %d captures more of them", level+1)
	}
	doc.Line("%s", text)
}

// Missing lists what was declared and is not there.
func Missing(doc *Document, r *compare.Result) {
	if len(r.Missing) == 0 {
		return
	}
	doc.Blank()
	doc.Line("MISSING: %s declared and not dumped", Count(len(r.Missing), "entry is", "entries are"))
	for i, m := range r.Missing {
		if i == maxListed || i == maxShort && doc.options.Brief && len(r.Missing) > maxShort+1 {
			doc.sub("and %d more", len(r.Missing)-i)
			return
		}
		where := ", " + m.Side
		switch {
		case r.Alone:
			where = ""
		case m.Side == "both":
			where = ", both sides"
		}
		doc.sub("%s%s", Key(m.Pass, m.Name), where)
	}
}

// End writes why the comparison is incomplete, which limits decided, and the coverage.
func End(doc *Document, r *compare.Result) {
	doc.Blank()
	Incomplete(doc, r)
	Expected(doc, r)
	if r.Divergence == nil { // else its block says it
		doc.Line("decided by %s%s", r.Decided, strings.TrimSuffix("; "+Uncertified(r), "; "))
	}
	if !r.Alone {
		limits(doc, r)
	}
	doc.Line("%s", Covered(r))
	NotCompared(doc, r)
}

// Covered says how much was compared, and of how many layers everything.
func Covered(r *compare.Result) string {
	c := r.Coverage
	text := fmt.Sprintf("compared %d of %s", c.Compared, Count(c.Entries, "entry", "entries"))
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

// Incomplete writes the reasons, a line each.
func Incomplete(doc *Document, r *compare.Result) {
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
