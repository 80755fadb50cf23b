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
	if len(kinds) == 0 && len(r.Untested) == 0 && len(r.Notes) == 0 {
		return
	}
	p.blank()
	for _, kind := range kinds {
		g := groups[kind]
		more := ""
		if g.rows > 1 {
			more = ", and " + count(g.rows-1, "row", "rows") + " more"
		}
		p.line("note (%s): %s: %s%s", kind, g.first.Key(), g.text, more)
	}
	if n := len(r.Untested); n > 0 {
		names := strings.Join(r.Untested[:min(n, maxListed)], ", ")
		if n > maxListed {
			names += ", ..."
		}
		p.line("untested: %s constant, zero or empty in the reference: %s", count(n, "entry is", "entries are"), names)
	}
	for _, n := range r.Notes {
		p.line("note: %s", n)
	}
}
