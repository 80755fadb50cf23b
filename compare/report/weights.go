package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/plain"
)

// WeightsSchema names the format of [WeightsDocument]; docs/schema has it as JSON Schema. Its number is raised as that of
// [Schema] is.
const WeightsSchema = "tracediff/weights/1"

// WeightsDocument is the outcome of tracediff weights.
type WeightsDocument struct {
	Schema string          `json:"schema"` // "tracediff/weights/1"
	Tool   Tool            `json:"tool"`   // that wrote the report
	Exit   int             `json:"exit"`   // 0 where every tensor is right, else 1
	Result *weights.Result `json:"result"`
}

// WeightsExit is the exit status of a comparison of weights: 0 where every tensor is right, else 1.
func WeightsExit(r *weights.Result) int {
	if r.Right() {
		return 0
	}
	return 1
}

// WeightsJSON writes a comparison of weights as one indented object. The error is that of w.
func WeightsJSON(w io.Writer, version string, r *weights.Result) error {
	d := WeightsDocument{Schema: WeightsSchema, Tool: Tool{"tracediff", version}, Exit: WeightsExit(r), Result: r}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// maxWeightFindings is how many things that are wrong the text has. The other formats have all.
const maxWeightFindings = 20

// WeightsText writes a comparison of weights for people: what is wrong, the worst first, and how the others are. The last line has the
// counts. The error is that of w.
func WeightsText(w io.Writer, r *weights.Result, s Style) error {
	p := &printer{style: s}
	if s.Terse() {
		p.line("%s", weightsVerdict(r, s))
		_, err := io.WriteString(w, p.String())
		return err
	}
	p.line("original: %s", weightsPlace(r.Original))
	p.line("port:     %s", weightsPlace(r.Local))
	for i := range r.Findings {
		if i == maxWeightFindings {
			p.blank()
			p.line("%s more; --format json has all", plural(len(r.Findings)-i, "finding", "findings"))
			break
		}
		p.weightFinding(&r.Findings[i])
	}
	p.blank()
	for _, line := range weightsRight(r) {
		p.line("%s", line)
	}
	for _, n := range weightNotes(r) {
		p.line("note: %s", n)
	}
	p.line("%s", weightsVerdict(r, s))
	_, err := io.WriteString(w, p.String())
	return err
}

// weightsPlace describes a checkpoint.
func weightsPlace(x weights.Place) string {
	return fmt.Sprintf("%s: %s, %s in %s, %s", x.Path, x.Format, plural(x.Tensors, "tensor", "tensors"), strings.Join(x.Stored, ", "), amount(x.Bytes))
}

// weightFinding writes one thing that is wrong as a block.
func (p *printer) weightFinding(f *weights.Finding) {
	p.blank()
	p.WriteString(paint(p.style.bad, string(f.Class)) + " ")
	p.line("%s", f.Name())
	p.line("  found  %s", f.What)
	if a := f.At; a != nil {
		p.line("  first  %s", weightAt(a))
		if a.File != nil && a.File.Row != a.Row && strings.Contains(f.What, "row") {
			p.line("  note   %s", rowsOfOriginal)
		}
	}
	for i, step := range f.Steps() {
		label := "try "
		if i > 0 {
			label = "    "
		}
		p.line("  %s   %s", label, step)
	}
}

// rowsOfOriginal is said of sentences about a tensor whose rows the port's file has elsewhere.
const rowsOfOriginal = "rows are counted as in the original; the port's file has them in other places"

// weightAt gives the place of the first wrong element, and the two values there.
func weightAt(a *weights.Element) string {
	of, at := "", weights.Spot{Row: a.Row, Column: a.Column}
	if a.File != nil {
		at = *a.File
		of = " of " + at.Key
	}
	text := fmt.Sprintf("row %d, column %d%s: %s, where the original has %s", at.Row, at.Column, of, a.Local, a.Original)
	if at.Row != a.Row || at.Column != a.Column {
		text += fmt.Sprintf(" in row %d, column %d", a.Row, a.Column)
	}
	if a.Folded {
		text += " (the file is to have 1+w)"
	}
	return text
}

// weightsRight says how many tensors are right, and how.
func weightsRight(r *weights.Result) []string {
	counts, worst := map[string]int{}, map[string]float64{}
	var order []string
	for i := range r.Tensors {
		t := &r.Tensors[i]
		text := ""
		switch t.Class {
		case weights.Equal:
			text = "equal"
		case weights.Cast:
			text = "cast to " + t.Rounding
		case weights.Quantised:
			text = t.Rounding + ": every code is right for its format"
			if format, alone := strings.CutSuffix(t.Rounding, weights.SizeAlone); alone {
				text = format + ": the size of the errors is right, no single code was checked"
			}
			worst[text] = max(worst[text], t.Relative)
		case weights.Rescaled:
			text = "divided by factors that the columns of other tensors are multiplied by"
		default:
			continue
		}
		if counts[text]++; counts[text] == 1 {
			order = append(order, text)
		}
	}
	var lines []string
	for _, text := range order {
		line := fmt.Sprintf("%s: %s", plural(counts[text], "tensor", "tensors"), text)
		if w := worst[text]; w > 0 {
			line += fmt.Sprintf(", relative L2 distance up to %.2g", w)
		}
		lines = append(lines, line)
	}
	return lines
}

// maxWeightNotes bounds the notes of a text.
const maxWeightNotes = 8

// weightNotes are remarks on the files, and on tensors: what is the same of several once.
func weightNotes(r *weights.Result) []string {
	var notes []string
	at := map[string]int{}
	count := map[string]int{}
	first := map[string]string{}
	for i := range r.Tensors {
		t := &r.Tensors[i]
		if t.Local == nil || !t.Class.Right() {
			continue
		}
		for _, n := range t.Notes {
			if strings.HasPrefix(n, t.Local.Key+": ") { // what a map did to the tensor
				continue
			}
			if count[n]++; count[n] == 1 {
				first[n] = t.Name
				at[n] = len(notes)
				notes = append(notes, n)
			}
		}
	}
	for n, i := range at {
		notes[i] = first[n] + ": " + n
		if count[n] > 1 {
			notes[i] = fmt.Sprintf("%s and %s: %s", first[n], plural(count[n]-1, "other", "others"), n)
		}
	}
	notes = append(append([]string{}, r.Notes...), notes...)
	if len(notes) > maxWeightNotes {
		notes = append(notes[:maxWeightNotes], fmt.Sprintf("%d more notes: --format json has all", len(notes)-maxWeightNotes))
	}
	return notes
}

// weightsVerdict is the last line.
func weightsVerdict(r *weights.Result, s Style) string {
	c := r.Counts
	all := c.Equal + c.Cast + c.Quantised + c.Rescaled + c.Unidentified + c.Wrong
	right := fmt.Sprintf("%d equal, %d cast, %d quantised", c.Equal, c.Cast, c.Quantised)
	if c.Rescaled > 0 {
		right += fmt.Sprintf(", %d rescaled", c.Rescaled)
	}
	switch {
	case r.Right():
		return paint(s.good, "MATCH") + fmt.Sprintf(": %s compared: %s", plural(all, "tensor", "tensors"), right)
	case c.Wrong+c.Unidentified == 0:
		return paint(s.bad, "INCOMPLETE") + ": no tensor was compared"
	case c.Wrong == 0:
		return paint(s.bad, "INCOMPLETE") + fmt.Sprintf(": %d of %s %s UNIDENTIFIED: %s", c.Unidentified, plural(all, "tensor", "tensors"), isAre(c.Unidentified), right)
	case c.Unidentified > 0:
		right += fmt.Sprintf(", %d UNIDENTIFIED", c.Unidentified)
	}
	return paint(s.bad, "MISMATCH") + fmt.Sprintf(": %d of %s %s wrong: %s", r.Counts.Wrong, plural(all, "tensor", "tensors"), isAre(r.Counts.Wrong), right)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// WeightsJUnit writes a comparison of weights as JUnit XML: one suite, a case a tensor. The error is that of w.
func WeightsJUnit(w io.Writer, r *weights.Result) error {
	s := junitSuite{Name: "tracediff.weights"}
	s.addWeights(r)
	all := junitSuites{Name: "tracediff", Tests: s.Tests, Failures: s.Failures, Suites: []junitSuite{s}}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// addWeights puts a case for each tensor into a suite, and one that fails where none was compared.
func (s *junitSuite) addWeights(r *weights.Result) {
	for i := range r.Tensors {
		t := &r.Tensors[i]
		c := junitCase{Name: plain.Text(t.Name)}
		if !t.Class.Right() {
			c.Failure = &junitOutcome{Message: plain.Text(t.What), Type: string(t.Class)}
			if a := t.At; a != nil {
				c.Failure.Text = fmt.Sprintf("first at %s; %d of %d elements", weightAt(a), t.Unequal, t.Elements)
			}
		} else {
			c.Said = strings.TrimSpace(string(t.Class) + " " + t.Rounding)
		}
		s.add(c)
	}
	if len(r.Tensors) == 0 {
		s.add(junitCase{Name: "coverage", Failure: &junitOutcome{Message: "no tensor was compared", Type: "INCOMPLETE"}})
	}
}

// WeightsHTML writes a comparison of weights as one page: what is wrong, and the others by how they are. The error is that of w.
func WeightsHTML(w io.Writer, version string, r *weights.Result) error {
	p := newPage(Tool{"tracediff", version})
	p.Title, p.Good = "tracediff weights", r.Right()
	label, text, _ := strings.Cut(weightsVerdict(r, Style{}), ": ")
	p.Verdict = said{label, text}
	p.weights(r)
	s := &htmlSection{ID: "run0", Sides: []said{{"original", clean(weightsPlace(r.Original))}, {"port", clean(weightsPlace(r.Local))}}}
	for _, line := range weightsRight(r) {
		s.Summary = append(s.Summary, said{"", clean(line)})
	}
	for _, n := range weightNotes(r) {
		s.Summary = append(s.Summary, said{"note:", clean(n)})
	}
	p.Sections = []*htmlSection{s}
	return p.write(w)
}

// weights adds what is wrong with weights to a page.
func (p *htmlPage) weights(r *weights.Result) {
	for i := range r.Findings {
		f := &r.Findings[i]
		flag := htmlFlag{Kind: string(f.Class), Entry: clean(f.Name()), Fields: []said{{"found", clean(f.What)}}}
		if a := f.At; a != nil {
			flag.Fields = append(flag.Fields, said{"first", clean(weightAt(a))})
		}
		if len(f.Also) > 0 {
			flag.Fields = append(flag.Fields, said{"also", clean(some(f.Also))})
		}
		flag.Fields = append(flag.Fields, said{"try", clean(strings.Join(f.Steps(), "; "))})
		p.Flags = append(p.Flags, flag)
	}
}
