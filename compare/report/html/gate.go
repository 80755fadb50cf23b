package html

import (
	"slices"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report/words"
)

// matrix is what a gate found: a line an entry, whatever its layer and pass, and a column a prompt.
type matrix struct {
	Prompts []prompt
	Lines   []mapLine
}

type prompt struct {
	ID      string // of its section; empty where it was not compared
	Name    string
	Good    bool
	Verdict said
}

// matrix shows of each prompt and entry the layer and pass that is worst.
func (p *page) matrix(d *words.Report) *matrix {
	m := &matrix{}
	worst := make([]map[string]*compare.Row, len(d.Runs))
	var names []string
	for i := range d.Runs {
		r := &d.Runs[i]
		column := prompt{Name: words.Clean(r.Name), Good: r.Exit == 0, Verdict: said{notCompared, words.Clean(r.Error)}}
		worst[i] = map[string]*compare.Row{}
		if r.Result != nil {
			s := p.sectionOf(column.Name)
			column.ID, column.Verdict = s.ID, s.Verdict
			names = worstRows(r.Result, worst[i], names)
		}
		m.Prompts = append(m.Prompts, column)
	}
	at := map[string]int{} // the data of a prompt
	for i, h := range p.Data.Runs {
		at[h.Name] = i
	}
	for _, name := range names {
		line := mapLine{Name: words.Clean(name)}
		for i := range d.Runs {
			e, z := missingCell, missingCell
			if row := worst[i][name]; row != nil {
				run := at[d.Runs[i].Name]
				e, z = cells(row, p.Data.Runs[run], run)
			}
			line.Error, line.Isolated = append(line.Error, e), append(line.Isolated, z)
		}
		m.Lines = append(m.Lines, line)
	}
	return m
}

func (p *page) sectionOf(name string) *section {
	return p.Sections[slices.IndexFunc(p.Sections, func(s *section) bool { return s.Name == name })]
}

// worstRows finds the worst row of every entry, and adds the names that are new.
func worstRows(r *compare.Result, worst map[string]*compare.Row, names []string) []string {
	last := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		name := words.CapturedName(row)
		if row.Layer >= 0 {
			name = layerless(row)
		}
		if !slices.Contains(names, name) {
			names = slices.Insert(names, slices.Index(names, last)+1, name)
		}
		last = name
		if have := worst[name]; have == nil || worse(row, have) {
			worst[name] = row
		}
	}
	return names
}

// worse reports whether the matrix shows a in place of b. A mismatch comes first, then a row other than a plain match, then the row nearer
// to its limit.
func worse(a, b *compare.Row) bool {
	rank := func(r *compare.Row) int {
		switch {
		case r.Verdict == compare.Mismatch && words.TakesPart(r):
			return 2
		case !plainRow(r):
			return 1
		}
		return 0
	}
	if x, y := rank(a), rank(b); x != y {
		return x > y
	}
	return rank(a) == 0 && words.Nearness(a) > words.Nearness(b)
}
