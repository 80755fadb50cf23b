// Package text prints reports for people.
//
// The text is made to be read from its end: the last line is always the verdict with counts, before it stands why the comparison
// is incomplete and what was not compared, before that the divergence, which begins with what is wrong, where, the proof, and what to do. The
// first line names the reference.
package text

import (
	"io"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/compare/weights"
)

// The parts of the views, in their order. The verdict comes last.
var (
	// page is the short view: what was compared, a line a layer, the first divergence, and what to do next.
	page = []words.Part{
		words.Sides, words.NarrowScope, words.FirstTokens, words.Layers, words.Legend, words.Divergence, words.Missing, words.Gap, words.Others,
		words.Checked, words.NextToken, words.FirstNotes, words.Sight, words.NotCompared, words.Incomplete, words.Expected,
	}
	// beforeRows and behindRows are the evidence. Between them stands a line a layer, or an entry.
	beforeRows = []words.Part{words.Sides, words.Scope, words.Tokens}
	behindRows = []words.Part{
		words.Evidence, words.Roots, words.Missing, words.Allowances, words.Baseline, words.Notes, words.Isolation, words.Sight, words.Final, words.End,
	}
	// screen is what is to be mended, most important first.
	screen = []words.Part{words.Divergence, words.Missing, words.Gap, words.Others, words.Incomplete, words.Sides, words.NextToken}
)

// Write writes a comparison. The error is that of w.
func Write(w io.Writer, doc *words.Document, s Style) error {
	p := &printer{style: s}
	if s.view == VerdictOnly {
		p.write(words.Verdict(doc.Result, true))
		return p.writeTo(w)
	}
	if s.view == Short {
		p.width, p.label = pageWidth, 13
	}
	p.sections(doc.Show(partsOf(s)...))
	if s.since != "" {
		p.write(words.Since(s.since))
	}
	p.write(words.Verdict(doc.Result, false))
	return p.writeTo(w)
}

// partsOf are the parts of a view.
func partsOf(s Style) []words.Part {
	switch s.view {
	case Evidence:
		return slices.Concat(beforeRows, []words.Part{words.Layers}, behindRows)
	case Everything:
		return slices.Concat(beforeRows, []words.Part{words.Rows}, behindRows)
	}
	return page
}

// Verdict is the last line of every view, without its end.
func Verdict(r *compare.Result, s Style) string {
	p := &printer{style: s}
	p.write(words.Verdict(r, true))
	return strings.TrimSuffix(p.String(), "\n")
}

// Screen are the lines about what is to be mended, most important first, for a terminal of some columns: the first divergence, what
// was accepted or no longer is, and what was not compared.
func Screen(doc *words.Document, s Style, columns int) []string {
	p := &printer{style: s.WithView(Short), width: min(pageWidth, columns), label: 13}
	p.sections(doc.Show(screen...))
	return strings.Split(strings.Trim(p.String(), "\n"), "\n")
}

// Sight writes which of the usual mistakes runs would have shown; nothing for nil. The error is that of w.
func Sight(w io.Writer, s *detectable.Sight, style Style) error {
	return (&printer{style: style, width: pageWidth}).document(w, words.SightOf(s))
}

// Check writes the red flags of a trace for people. The last line has how many there are. The error is that of w.
func Check(w io.Writer, r *redflag.Result, s Style) error {
	return (&printer{style: s.WithView(Short), width: pageWidth, label: 6}).document(w, words.Check(r))
}

// Weights writes a comparison of weights for people: what is wrong, the worst first, and how the others are. The last line has the
// counts. The error is that of w.
func Weights(w io.Writer, r *weights.Result, s Style) error {
	if s.Terse() {
		p := &printer{style: s}
		p.write(words.WeightsVerdict(r))
		return p.writeTo(w)
	}
	return (&printer{style: s.WithView(Short), label: 6}).document(w, words.Weights(r))
}

// Prompts writes each prompt for people, as the command that captures it. model is the value of --model; empty for the embedded checkpoint.
// It returns the error of w.
func Prompts(w io.Writer, r *report.Prompts, model string, s Style) error {
	return (&printer{style: s.WithView(Evidence)}).document(w, words.Prompts(r, model)) // what is not shown is what is asked for
}

// Inspection writes a result for people, at most 80 columns wide but for names, tables of many columns and the values
// of a slice. The error is that of w.
func Inspection(w io.Writer, r *inspect.Result) error {
	return (&printer{}).document(w, words.Inspection(r))
}

// NotCompared writes why a run that has no result could not be compared, and what to do. The error is that of w.
func NotCompared(w io.Writer, r *words.Run) error {
	p := &printer{}
	for _, f := range words.Refused(r.Run) {
		p.write(f)
	}
	return p.writeTo(w)
}

// Failure is a run that does not match, in a title and the block about its first divergence.
func Failure(r *words.Run) (title, message string) {
	title = words.Heading(r.Run)
	if r.Result == nil {
		refused := words.Refused(r.Run)
		return title, refused[0].Text + "\n" + refused[1].Label + ": " + refused[1].Text
	}
	p := &printer{}
	p.write(words.Verdict(r.Result, true))
	p.sections(r.Words.Show(words.Divergence, words.Incomplete))
	return title, strings.TrimSpace(p.String())
}
