package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare"
)

// notes writes what decides nothing: of the notes on rows each kind once, with the first row that has it.
func notes(doc *Document, r *compare.Result) {
	var kinds groups[string] // the notes
	for i := range r.Rows {
		for _, n := range r.Rows[i].Notes {
			if n.Kind != compare.Vacuous {
				kinds.add(string(n.Kind), noteOn(&r.Rows[i], n))
			}
		}
	}
	if len(kinds.keys) == 0 && len(r.Untested) == 0 && len(r.Layouts) == 0 && len(r.Notes) == 0 {
		return
	}
	doc.blank()
	for _, kind := range kinds.keys {
		more := ""
		if n := len(kinds.of[kind]); n > 1 {
			more = "; " + count(n-1, "entry", "entries") + " more"
		}
		doc.Line("%s%s", kinds.of[kind][0], more)
	}
	if n := len(r.Untested); n > 0 {
		where := r.Reference.Name.Side
		if r.Alone {
			where = r.Local.Name.Side
		}
		names := strings.Join(r.Untested[:min(n, maxListed)], ", ")
		if n > maxListed {
			names += ", ..."
		}
		doc.Line("untested: %s constant, zero or empty in %s: %s", count(n, "entry is", "entries are"), where, names)
	}
	for _, l := range r.Layouts {
		doc.Line("layout: %s", l)
	}
	for _, n := range r.Notes {
		doc.Line("note: %s", n)
	}
}

func noteOn(r *compare.Row, n compare.Note) string {
	return fmt.Sprintf("note (%s): %s: %s", n.Kind, r.Key(), n.Text)
}

// expected writes what the patterns of entries that were to differ came to.
func expected(doc *Document, r *compare.Result) {
	for _, e := range r.Expected {
		switch {
		case e.Differ > 0:
			doc.Line("different, as expected by %q: %d of %s compared, the first is %s", e.Pattern, e.Differ, count(e.Compared, "entry", "entries"), e.First)
		case e.Unmet && e.Compared == 0:
			doc.say(Bad, "NOT DIFFERENT", "%q was expected to differ, but none of the %s that it matches was compared", e.Pattern, count(e.Entries, "entry", "entries"))
		case e.Unmet:
			doc.say(Bad, "NOT DIFFERENT", "%q was expected to differ, but does not: %s compared, all within their limits; the largest relative L2 is %s", e.Pattern, count(e.Compared, "entry", "entries"), rough(e.Largest))
		}
	}
}

// firstNotes are the remarks that a person has to know of to read the verdict.
func firstNotes(doc *Document, r *compare.Result) {
	var lines []string
	seen := map[compare.NoteKind]bool{}
	for i := range r.Rows {
		for _, n := range r.Rows[i].Notes {
			if seen[n.Kind] {
				continue
			}
			switch n.Kind {
			case compare.Drift, compare.MixedDType, compare.BothNaN, compare.OpUnverified, compare.NotePrinted:
				seen[n.Kind] = true
				lines = append(lines, noteOn(&r.Rows[i], n))
			}
		}
	}
	for _, l := range r.Layouts {
		lines = append(lines, "layout: "+l)
	}
	for _, n := range r.Notes {
		if strings.HasPrefix(n, compare.AskedFor) && r.Coverage.Entries > r.Coverage.Compared && !r.Stopped { // see notCompared
			continue
		}
		lines = append(lines, "note: "+n)
	}
	for i, l := range lines {
		if i == 2*maxShort {
			doc.Line(verboseHas, count(len(lines)-i, "note", "notes"))
			return
		}
		doc.Line("%s", l)
	}
}
