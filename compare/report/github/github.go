// Package github writes reports for GitHub Actions: annotations, and the summary of a step.
package github

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
)

// The limits of GitHub Actions, from "Workflow commands for GitHub Actions" and "Usage limits": what is beyond them is not shown.
const (
	maxAnnotations = 10      // errors of one step
	MaxSummary     = 1 << 20 // bytes of the summary of one step

	maxMessage = 4 << 10 // bytes of one annotation: more is not read
	maxCell    = 240     // runes of a cell of the table
)

// annotation is one error that GitHub shows next to a line of a file.
type annotation struct{ title, message string }

// Annotations writes errors as workflow commands of GitHub Actions, ten at most: an error for each run that does not match, and for each
// further known bug. file is the file to annotate; it may be empty. It returns the error of w.
func Annotations(w io.Writer, d *words.Report, file string) error {
	var all, further []annotation
	for i := range d.Runs {
		r := &d.Runs[i]
		if r.Exit != 0 {
			title, message := text.Failure(r)
			all = append(all, annotation{title, message})
			for _, f := range words.FurtherBugs(r.Run) {
				further = append(further, annotation{"tracediff: " + f.Where, f.What})
			}
		}
	}
	return annotate(w, file, append(all, further...))
}

// CheckAnnotations is Annotations for the red flags of a trace.
func CheckAnnotations(w io.Writer, r *redflag.Result, file string) error {
	var all []annotation
	for i := range r.Flags {
		title := words.FlagTitle(&r.Flags[i])
		all = append(all, annotation{"tracediff: " + title.Label + " " + title.Text, words.FlagMessage(&r.Flags[i])})
	}
	return annotate(w, file, all)
}

func annotate(w io.Writer, file string, all []annotation) error {
	if n := len(all); n > maxAnnotations {
		rest := n - maxAnnotations + 1
		all = append(all[:maxAnnotations-1:maxAnnotations-1], annotation{"tracediff: " + words.More(rest), words.InSummary})
	}
	var b strings.Builder
	for _, a := range all {
		b.WriteString("::error ")
		if file != "" {
			b.WriteString("file=" + property(file) + ",")
		}
		b.WriteString("title=" + property(words.Clean(a.title)) + "::" + data(clip(a.message, maxMessage)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// data escapes the message of a workflow command, as the runner's toolkit does.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// property escapes the value of a property of a workflow command.
func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// clip leaves at most n bytes of a text, and says where something was left out.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " ..."
}

// Summary writes the Markdown that GitHub shows below a step. A document with several runs or a named run gets a table of the runs, and a
// page for each run that does not match. A single unnamed run gets its page in any case. Summary writes at most room bytes and counts the
// omitted pages. It returns the error of w.
func Summary(w io.Writer, d *words.Report, room int) error {
	s := &summaryPage{room: room}
	named := len(d.Runs) != 1 || d.Runs[0].Name != ""
	if d.Weights != nil && !d.Weights.Right() {
		s.show("weights", func(w io.Writer) error { return text.Weights(w, d.Weights, text.Style{}) })
	}
	if named {
		s.table(words.Gate(d.Document))
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		title := words.Either(named, r.Name, "tracediff: "+words.Outcome(r.Run))
		if r.Result == nil && !named { // else the table has the error
			s.show(title, func(w io.Writer) error { return text.NotCompared(w, r) })
		} else if r.Result != nil && (!named || r.Exit != 0) {
			s.show(title, func(w io.Writer) error { return text.Write(w, r.Words, text.Style{}) })
		}
	}
	return s.write(w)
}

// CheckSummary is Summary for the red flags of a trace.
func CheckSummary(w io.Writer, r *redflag.Result, room int) error {
	s := &summaryPage{room: room}
	s.show("tracediff check: "+words.FlagCount(r), func(w io.Writer) error { return text.Check(w, r, text.Style{}) })
	return s.write(w)
}

// summaryPage is Markdown of a limited size.
type summaryPage struct {
	strings.Builder
	room int
	left int // blocks that did not fit
	err  error
}

const roomAtEnd = 100 // for the sentence about them

// add writes a block, or counts it as left out.
func (s *summaryPage) add(text string) {
	if s.left > 0 || s.Len()+len(text)+roomAtEnd > s.room {
		s.left++
		return
	}
	s.WriteString(text)
}

func (s *summaryPage) write(w io.Writer) error {
	if s.left > 0 && s.Len()+roomAtEnd <= s.room {
		s.WriteString("\n" + words.LeftOut(s.left) + "\n")
	}
	if s.err != nil {
		return s.err
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// table writes a line a run, those that do not match first.
func (s *summaryPage) table(gate *words.Document) {
	for _, section := range gate.Sections {
		for _, f := range section.Fields {
			head := rowOf(section.Table.Columns, func(c words.Column) string { return c.Title })
			s.add("### " + f.Label + ": " + f.Text + "\n\n" + strings.ReplaceAll(head, "  ", " ") + "|---|---|---|---|\n")
		}
		for _, row := range section.Table.Rows {
			s.add(rowOf(row, func(c words.Cell) string { return markdown(c.Text) }))
		}
	}
	s.add("\n")
}

// rowOf is a row of a table.
func rowOf[T any](cells []T, text func(T) string) string {
	var b strings.Builder
	for _, cell := range cells {
		b.WriteString("| " + text(cell) + " ")
	}
	return b.String() + "|\n"
}

// show adds a text as it is, folded away. The first error sticks.
func (s *summaryPage) show(title string, write func(io.Writer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		s.err = cmp.Or(s.err, err)
		return
	}
	s.add(fmt.Sprintf("<details open><summary>%s</summary>\n\n<pre>%s</pre>\n\n</details>\n", html.EscapeString(words.Clean(title)), html.EscapeString(b.String())))
}

// markdown is a text in a cell of a table, in which nothing is markup, a link or a mention.
func markdown(text string) string {
	var b strings.Builder
	for i, r := range []rune(words.Clean(text)) {
		switch {
		case i == maxCell:
			b.WriteString(" ...")
			return b.String()
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" .,-/()='", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return strings.ReplaceAll(b.String(), "www.", "www&#46;")
}
