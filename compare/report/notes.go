package report

import (
	"strings"

	"github.com/tracediff/tracediff/compare"
)

// notes writes what decides nothing: of the notes on rows each kind once, with the first row that has it.
func (p *printer) notes(r *compare.Result) {
	type group struct {
		first *compare.Row
		text  string
		rows  int
	}
	groups := map[compare.NoteKind]*group{}
	var kinds []compare.NoteKind
	for i := range r.Rows {
		for _, n := range r.Rows[i].Notes {
			if n.Kind == compare.Vacuous {
				continue
			}
			if groups[n.Kind] == nil {
				groups[n.Kind] = &group{first: &r.Rows[i], text: n.Text}
				kinds = append(kinds, n.Kind)
			}
			groups[n.Kind].rows++
		}
	}
	if len(kinds) == 0 && len(r.Untested) == 0 && len(r.Layouts) == 0 && len(r.Notes) == 0 {
		return
	}
	p.blank()
	for _, kind := range kinds {
		g := groups[kind]
		more := ""
		if g.rows > 1 {
			more = "; " + count(g.rows-1, "entry", "entries") + " more"
		}
		p.line("note (%s): %s: %s%s", kind, g.first.Key(), g.text, more)
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
		p.line("untested: %s constant, zero or empty in %s: %s", count(n, "entry is", "entries are"), where, names)
	}
	for _, l := range r.Layouts {
		p.line("layout: %s", l)
	}
	for _, n := range r.Notes {
		p.line("note: %s", n)
	}
}

// expected writes what the patterns of entries that were to differ came to.
func (p *printer) expected(r *compare.Result) {
	for _, e := range r.Expected {
		switch {
		case e.Differ > 0:
			p.line("different, as expected by %q: %d of %s compared, the first is %s", e.Pattern, e.Differ, count(e.Compared, "entry", "entries"), e.First)
		case e.Unmet && e.Compared == 0:
			p.say(p.style.bad, "NOT DIFFERENT", "%q was expected to differ, and none of the %s that it matches was compared", e.Pattern, count(e.Entries, "entry", "entries"))
		case e.Unmet:
			p.say(p.style.bad, "NOT DIFFERENT", "%q was expected to differ, and does not: %s compared, all within their limits; the largest relative L2 is %s", e.Pattern, count(e.Compared, "entry", "entries"), number(e.Largest))
		}
	}
}
