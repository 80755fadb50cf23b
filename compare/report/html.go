package report

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
)

// The parts of a report in HTML. What they show is data; these say how it looks.
var (
	//go:embed html/page.tmpl
	pageText string
	//go:embed html/page.css
	pageStyle string
	//go:embed html/page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// htmlPage is a report in HTML: one file that loads nothing.
type htmlPage struct {
	Policy string // Content-Security-Policy: this style, this script, and nothing else
	Style  template.CSS
	Script template.JS
	Title  string
	Tool   Tool

	Verdict  said
	Good     bool
	Failed   []said // runs that could not be compared
	Matrix   *htmlMatrix
	Sight    []said
	Sections []*htmlSection
	Flags    []htmlFlag // of a check
	Data     *htmlData
}

// said is a text with the label that it stands behind; the label may be empty.
type said struct{ Label, Text string }

// htmlSection is one comparison.
type htmlSection struct {
	ID       string
	Name     string // of a prompt, where there are several
	Open     bool
	Good     bool
	Verdict  said
	Sides    []said
	Problem  []said // the first divergence
	Mistake  *htmlMistake
	Summary  []said
	Evidence []said
	Chart    *htmlChart
	Passes   []htmlPass
	Skipped  string // passes that are not drawn, and why
	Tokens   *htmlTokens
	Untested []said
	Files    []htmlManifest
}

// notCompared is the verdict on a run that has no result.
const notCompared = "NOT COMPARED"

// HTML writes the document as one page for people: it needs no network, and its script no other file. Names, prompts and whatever
// else comes out of a trace are hostile text: they are escaped for where they stand, and no policy lets them run. The error is that
// of w.
func HTML(w io.Writer, d *Document) error {
	p := newPage(d.Tool)
	budget := maxHTMLRows
	sections := make([]*htmlSection, len(d.Runs))
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
				p.Failed = append(p.Failed, said{clean(r.Name), clean(r.Error)})
			}
			if r.Hint != "" {
				p.Failed = append(p.Failed, said{"", clean(r.Hint)})
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
		p.Sight = collect(func(p *printer) { p.sight(d.Sight) })
	}
	return p.write(w)
}

func newPage(tool Tool) *htmlPage {
	p := &htmlPage{Style: template.CSS(pageStyle), Script: template.JS(pageScript), Tool: tool, Data: &htmlData{}}
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
func (p *htmlPage) verdict(d *Document) {
	if len(d.Runs) == 1 && d.Runs[0].Name == "" {
		p.Title = "tracediff compare"
		if len(p.Sections) == 1 {
			p.Verdict = p.Sections[0].Verdict
		} else {
			p.Verdict = said{notCompared, clean(d.Runs[0].Error)}
		}
		return
	}
	p.Title = "tracediff gate"
	matching := 0
	for _, r := range d.Runs {
		if r.Exit == 0 {
			matching++
		}
	}
	word := string(compare.Match)
	for _, s := range p.Sections {
		if !s.Good && word == string(compare.Match) {
			word = s.Verdict.Label
		}
	}
	if len(p.Failed) > 0 {
		word = notCompared
	}
	p.Verdict = said{word, fmt.Sprintf("%d of %s match", matching, count(len(d.Runs), "prompt", "prompts"))}
}

func (p *htmlPage) write(w io.Writer) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// collect are the texts that a part of the text report has.
func collect(write func(p *printer)) []said {
	var all []said
	p := &printer{said: func(label, text string) { all = append(all, said{label, text}) }}
	p.style.view = Evidence // what the short page leaves to --verbose is here
	write(p)
	return all
}

// section shows one comparison.
func (p *htmlPage) section(r *Run, at int, budget *int) *htmlSection {
	res := r.Result
	s := &htmlSection{ID: fmt.Sprintf("run%d", at), Name: clean(r.Name), Good: r.Exit == 0, Open: r.Exit != 0 || r.Name == ""}
	s.Verdict = collect(func(p *printer) { p.verdictLine(res, true) })[0]
	for _, side := range []compare.Side{res.Local, res.Reference} {
		if side.Path != "" || side.Producer.Name != "" {
			s.Sides = append(s.Sides, said{side.Name.Label, sideOf(side)})
		}
	}
	if res.Map != nil {
		s.Sides = append(s.Sides, said{"map", clean(mapText(res.Map))})
	}
	s.Sides = append(s.Sides, collect(func(p *printer) { p.shortTokens(res) })...)
	for i, t := range s.Sides { // "tokens:    2, 5" has its label in the text
		if label, text, ok := strings.Cut(t.Text, ": "); ok && t.Label == "" {
			s.Sides[i] = said{label, strings.TrimSpace(text)}
		}
	}
	s.Problem = collect(func(p *printer) { p.shortDivergence(res) })
	s.Mistake = newMistake(res)
	s.Summary = collect(func(p *printer) {
		p.others(res)
		p.checked(res)
		p.nextToken(res)
		p.shortNotes(res)
	})
	s.Evidence = collect(func(p *printer) { p.divergence(res) })
	s.Untested = collect(func(p *printer) { p.untested(res) })
	s.Tokens = newTokens(res)
	s.Files = newManifests(res, r.Pictures)
	run := p.Data.run(r, *budget)
	*budget -= len(run.Rows)
	if r.Exit != 0 || len(run.Rows) > 0 { // of hundreds of prompts that match, the last have words alone
		s.Chart = newChart(res)
		s.Passes, s.Skipped = newPasses(res, run, len(p.Data.Runs)-1)
	}
	s.Skipped += run.left(res)
	s.Skipped += r.Pictures.Left()
	return s
}

// sideOf names a trace by what made it and by its file.
func sideOf(s compare.Side) string {
	text := side(s)
	if s.Path != "" && !strings.Contains(text, s.Path) {
		text += " (" + s.Path + ")"
	}
	return clean(text)
}

// untested says all that a comparison did not look at.
func (p *printer) untested(r *compare.Result) {
	p.line("%s", covered(r))
	p.notCompared(r)
	p.incomplete(r)
	p.expected(r)
	p.missing(r)
	if n := len(r.Untested); n > 0 {
		p.field("untested", "constant, zero or empty: %s", some(r.Untested))
	}
	if n := len(r.Unverified); n > 0 {
		p.field("not judged", "%s", some(r.Unverified))
	}
	if r.Isolation != nil {
		p.reasons(r.Isolation)
	}
	if r.Sight == nil {
		return
	}
	p.sight(r.Sight)
}

// some are the first of many keys.
func some(keys []string) string {
	text := strings.Join(keys[:min(len(keys), maxListed)], ", ")
	if n := len(keys) - maxListed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
