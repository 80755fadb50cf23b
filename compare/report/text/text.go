// Package text prints reports for people.
//
// The text is made to be read from its end: the last line is always the verdict with counts, before it stands why the comparison
// is incomplete and what was not compared, before that the divergence, which begins with what is wrong, where, the proof, and what to do. The
// first line names the reference.
package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
)

// The parts of the views, in their order. The verdict comes last.
var (
	// page is the short view: what was compared, a line a layer, the first divergence, and what to do next.
	page = []words.Part{
		words.Sides, words.NarrowScope, words.FirstTokens, words.Layers, words.Legend, words.Divergence, words.Missing, blank, words.Others,
		words.Checked, words.NextToken, words.FirstNotes, words.Sight, words.NotCompared, words.Incomplete, words.Expected,
	}
	// beforeRows and behindRows are the evidence. Between them stands a line a layer, or an entry.
	beforeRows = []words.Part{words.Sides, words.Scope, words.Tokens}
	behindRows = []words.Part{
		words.Evidence, words.Roots, words.Missing, words.Allowances, words.Baseline, words.Notes, words.Isolation, words.Sight, words.Final, words.End,
	}
	// screen is what is to be mended, most important first.
	screen = []words.Part{words.Divergence, words.Missing, blank, words.Others, words.Incomplete, words.Sides, words.NextToken}
)

func blank(doc *words.Document, _ *compare.Result) { doc.Blank() }

// Write writes a comparison. The error is that of w.
func Write(w io.Writer, r *compare.Result, s Style) error {
	p := &printer{style: s}
	if s.view == VerdictOnly {
		p.write(words.VerdictOf(r, true))
		return p.writeTo(w)
	}
	if s.view == Short {
		p.width, p.label = pageWidth, 13
	}
	p.document(words.Make(r, words.Options{Brief: s.view == Short, Power: s.power}, append(partsOf(s), words.Verdict)...))
	return p.writeTo(w)
}

// partsOf are the parts of a view, without the verdict.
func partsOf(s Style) (parts []words.Part) {
	switch s.view {
	case Evidence:
		parts = append(append(append(parts, beforeRows...), words.Layers), behindRows...)
	case Everything:
		parts = append(append(append(parts, beforeRows...), words.Rows), behindRows...)
	default:
		parts = append(parts, page...)
	}
	return append(parts, func(doc *words.Document, _ *compare.Result) {
		if s.since != "" {
			doc.Line("since the last compare: %s", s.since)
		}
	})
}

// Verdict is the last line of every view, without its end.
func Verdict(r *compare.Result, s Style) string {
	p := &printer{style: s}
	p.write(words.VerdictOf(r, true))
	return strings.TrimSuffix(p.String(), "\n")
}

// Screen are the lines about what is to be mended, most important first, for a terminal of some columns: the first divergence, what
// was accepted or no longer is, and what was not compared.
func Screen(r *compare.Result, s Style, columns int) []string {
	p := &printer{style: s, width: min(pageWidth, columns), label: 13}
	p.document(words.Make(r, words.Options{Brief: true}, screen...))
	return strings.Split(strings.Trim(p.String(), "\n"), "\n")
}

// Sight writes which of the usual mistakes runs would have shown; nothing for nil. The error is that of w.
func Sight(w io.Writer, s *detectable.Sight, style Style) error {
	p := &printer{style: style, width: pageWidth}
	p.document(words.SightOf(s, words.Options{Brief: style.view != Evidence && style.view != Everything}))
	return p.writeTo(w)
}

// NotCompared writes why a run that has no result could not be compared, and what to do. The error is that of w.
func NotCompared(w io.Writer, r *report.Run) error {
	_, err := fmt.Fprintf(w, "not compared: %s\nhint: %s\n", words.Clean(r.Error), words.Clean(r.Hint))
	return err
}

// Failure is a run that does not match, in a title and the block about its first divergence.
func Failure(r *report.Run) (title, message string) {
	title = "tracediff: "
	if r.Name != "" {
		title += r.Name + ": "
	}
	if r.Result == nil {
		return title + "not compared", words.Clean(r.Error) + "\nhint: " + words.Clean(r.Hint)
	}
	p := &printer{}
	verdict := words.VerdictOf(r.Result, true)
	p.write(verdict)
	title += verdict.Label
	if d := r.Result.Divergence; d != nil {
		title += " at " + d.Row.Key()
	}
	p.document(words.Make(r.Result, words.Options{Brief: true}, words.Divergence, words.Incomplete))
	return title, strings.TrimSpace(p.String())
}

// Demo is the end of a gate's last line where a prompt ran the built-in model, since the file names no other; else it is empty.
func Demo(d *report.Document) string {
	for i := range d.Runs {
		if r := d.Runs[i].Result; r != nil && r.Demo != "" {
			return words.Demo(r)
		}
	}
	return ""
}

// Accepted counts what the baselines of several runs accepted; empty where they accepted nothing.
func Accepted(d *report.Document) string {
	n, file := 0, ""
	for _, r := range d.Runs {
		if r.Result != nil && r.Result.Baseline != nil {
			n += r.Result.Baseline.Accepted
			file = r.Result.Baseline.File
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s (%s)", words.Count(n, "accepted divergence", "accepted divergences"), words.Clean(file))
}
