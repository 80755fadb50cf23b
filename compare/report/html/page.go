// Package html writes a report as one HTML page. The page and its script load no other file and need no network. The sentences come from
// compare/report/words. The page adds charts, maps, and a view of each tensor.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
)

// The parts of a report in HTML: layout, style and script. The data comes from the report.
var (
	//go:embed assets/page.tmpl
	pageText string
	//go:embed assets/page.css
	pageStyle string
	//go:embed assets/page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// page is a report in HTML: one file that loads nothing.
type page struct {
	Policy string // Content-Security-Policy: this style, this script, and nothing else
	Style  template.CSS
	Script template.JS
	Title  string
	Tool   report.Tool

	Verdict  said
	Good     bool
	Failed   []said // runs that could not be compared
	Matrix   *matrix
	Sight    []said
	Sections []*section
	Flags    []flag // of a check
	Data     *data
}

// said is a text and the label before the text; the label may be empty.
type said struct{ Label, Text string }

// section is one comparison.
type section struct {
	ID       string
	Name     string // of a prompt, where there are several
	Open     bool
	Good     bool
	Verdict  said
	Sides    []said
	Problem  []said // the first divergence
	Mistake  *mistake
	Summary  []said
	Evidence []said
	Chart    *chart
	Passes   []passMap
	Skipped  string // passes that are not drawn, and why
	Tokens   *tokenTable
	Untested []said
	Files    []manifest
}

// notCompared is the verdict on a run that has no result.
const notCompared = "NOT COMPARED"

// Write writes the document as one page for people. The page and its script load no other file. Names, prompts and other text of a trace
// are hostile: they are escaped for the context, and a content security policy blocks their scripts. Write returns the error of w.
func Write(w io.Writer, d *words.Report) error {
	p := newPage(d.Tool)
	budget := maxRows
	sections := make([]*section, len(d.Runs))
	for _, failing := range []bool{true, false} { // what does not match has its rows first
		for i := range d.Runs {
			if r := &d.Runs[i]; r.Result != nil && (r.Exit != 0) == failing {
				sections[i] = p.section(r, i, &budget)
			}
		}
	}
	for i := range d.Runs {
		if r := &d.Runs[i]; r.Result == nil {
			if r.Name != "" { // else the verdict has it
				p.Failed = append(p.Failed, said{words.Clean(r.Name), words.Clean(r.Error)})
			}
			if r.Hint != "" {
				p.Failed = append(p.Failed, said{"", words.Clean(r.Hint)})
			}
		} else {
			p.Sections = append(p.Sections, sections[i])
		}
	}
	if d.Weights != nil {
		p.weights(d.Weights)
	}
	p.Good = d.Exit == 0
	p.verdict(d)
	if len(d.Runs) > 1 || len(d.Runs) == 1 && d.Runs[0].Name != "" {
		p.Matrix = p.matrix(d)
		p.Sight = collect(words.Fields(words.SightOf(d.Sight).Sections))
	}
	return p.write(w)
}

func newPage(tool report.Tool) *page {
	p := &page{Style: template.CSS(pageStyle), Script: template.JS(pageScript), Tool: tool, Data: &data{}}
	p.Policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		digest(pageStyle), digest(pageScript))
	return p
}

// digest is what a policy calls a text by.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// verdict is the first line of the page.
func (p *page) verdict(d *words.Report) {
	if len(d.Runs) == 1 && d.Runs[0].Name == "" {
		p.Title = "tracediff compare"
		if len(p.Sections) == 1 {
			p.Verdict = p.Sections[0].Verdict
		} else {
			p.Verdict = said{notCompared, words.Clean(d.Runs[0].Error)}
		}
		return
	}
	p.Title = "tracediff gate"
	word := string(compare.Match)
	for _, s := range p.Sections {
		if !s.Good && word == string(compare.Match) {
			word = s.Verdict.Label
		}
	}
	if len(p.Failed) > 0 {
		word = notCompared
	}
	p.Verdict = said{word, words.Matching(d.Document)}
}

func (p *page) write(w io.Writer) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// collect returns fields as they are in a whole document.
func collect(fields []words.Field) []said {
	var all []said
	for _, f := range fields {
		if f.In(words.Whole) {
			all = append(all, saidOf(f))
		}
	}
	return all
}

func saidOf(f words.Field) said { return said{f.Label, f.Text} }

// section shows one comparison.
func (p *page) section(r *words.Run, at int, budget *int) *section {
	res := r.Result
	s := &section{ID: fmt.Sprintf("run%d", at), Name: words.Clean(r.Name), Good: r.Exit == 0, Open: r.Exit != 0 || r.Name == ""}
	of := func(parts ...words.Part) []said { return collect(words.Fields(r.Words.Show(parts...))) }
	s.Verdict = saidOf(words.Verdict(res, true))
	for _, side := range []compare.Side{res.Local, res.Reference} {
		if side.Path != "" || side.Producer.Name != "" {
			s.Sides = append(s.Sides, said{side.Name.Label, sideOf(side)})
		}
	}
	if res.Map != nil {
		s.Sides = append(s.Sides, said{"map", words.Clean(words.MapText(res.Map))})
	}
	s.Sides = append(s.Sides, of(words.FirstTokens)...)
	s.Problem = of(words.Divergence)
	s.Mistake = newMistake(res)
	s.Summary = of(words.Others, words.Checked, words.NextToken, words.FirstNotes)
	s.Evidence = of(words.Evidence)
	s.Untested = of(words.Untested)
	s.Tokens = newTokens(r.Words)
	s.Files = newManifests(res, r.Pictures != nil)
	run := p.Data.run(r.Run, *budget)
	*budget -= len(run.Rows)
	if r.Exit != 0 || len(run.Rows) > 0 { // of hundreds of matching prompts, the last have text only
		s.Chart = newChart(res)
		s.Passes, s.Skipped = newPasses(res, run, len(p.Data.Runs)-1)
	}
	s.Skipped += run.left(res)
	s.Skipped += r.Pictures.Left()
	return s
}

// sideOf names a trace by what made it and by its file.
func sideOf(s compare.Side) string {
	text := words.SideOf(s)
	if s.Path != "" && !strings.Contains(text, s.Path) {
		text += " (" + s.Path + ")"
	}
	return words.Clean(text)
}
