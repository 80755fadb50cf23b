package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/amount"
)

// maxWeightFindings is the largest number of findings in a document.
const maxWeightFindings = 20

// Weights is a comparison of weights: what is wrong, the worst first, and how the others are. The last line has the counts.
func Weights(r *weights.Result) *Document {
	doc := &Document{}
	doc.Line("original: %s", WeightsPlace(r.Original))
	doc.Line("port:     %s", WeightsPlace(r.Local))
	for i := range r.Findings {
		doc.Blank()
		if i == maxWeightFindings {
			doc.Line("%s more; --format json has all", Count(len(r.Findings)-i, "finding", "findings"))
			break
		}
		f := &r.Findings[i]
		doc.add(Field{Kind: Titled, Label: string(f.Class), Tone: Bad, Text: f.Name()})
		doc.fields(WeightFields(f)...)
	}
	doc.Blank()
	doc.fields(WeightsSummary(r)...)
	doc.fields(WeightsVerdict(r))
	return doc
}

// WeightsPlace describes a checkpoint.
func WeightsPlace(x weights.Place) string {
	return fmt.Sprintf("%s: %s, %s in %s, %s", x.Path, x.Format, Count(x.Tensors, "tensor", "tensors"), strings.Join(x.Stored, ", "), amount.Bytes(x.Bytes))
}

// WeightFields are what is wrong with a tensor, where first, and what to try.
func WeightFields(f *weights.Finding) []Field {
	doc := &Document{}
	doc.field("found", "%s", f.What)
	if a := f.At; a != nil {
		doc.field("first", "%s", weightAt(a))
		if a.File != nil && a.File.Row != a.Row && strings.Contains(f.What, "row") {
			doc.only(Brief, func() {
				doc.field("note", "rows are counted as in the original; the port's file has them in other places")
			})
		}
	}
	doc.only(Whole, func() {
		if len(f.Also) > 0 {
			doc.field("also", "%s", Some(f.Also))
		}
		doc.field("try", "%s", strings.Join(f.Steps(), "; "))
	})
	doc.only(Brief, func() { doc.block("try", f.Steps()...) })
	return doc.last().Fields
}

// FirstWrong is where a tensor is wrong first, and in how many elements; empty where no element was compared.
func FirstWrong(t *weights.Row) string {
	if t.At == nil {
		return ""
	}
	return fmt.Sprintf("first at %s; %d of %d elements", weightAt(t.At), t.Unequal, t.Elements)
}

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
		text += " (the file should have 1+w)"
	}
	return text
}

// WeightsSummary says how many tensors are right, and how, and has remarks.
func WeightsSummary(r *weights.Result) (all []Field) {
	for _, line := range weightsRight(r) {
		all = append(all, lead("", line))
	}
	return append(all, Remarks(weightNotes(r))...)
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
			text = "divided by factors, and the columns of other tensors are multiplied by them"
		default:
			continue
		}
		if counts[text]++; counts[text] == 1 {
			order = append(order, text)
		}
	}
	var lines []string
	for _, text := range order {
		line := fmt.Sprintf("%s: %s", Count(counts[text], "tensor", "tensors"), text)
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
			notes[i] = fmt.Sprintf("%s and %s: %s", first[n], Count(count[n]-1, "other", "others"), n)
		}
	}
	notes = append(append([]string{}, r.Notes...), notes...)
	if len(notes) > maxWeightNotes {
		notes = append(notes[:maxWeightNotes], fmt.Sprintf("%d more notes: --format json has all", len(notes)-maxWeightNotes))
	}
	return notes
}

// WeightsVerdict is the last line.
func WeightsVerdict(r *weights.Result) Field {
	c := r.Counts
	all := c.Equal + c.Cast + c.Quantised + c.Rescaled + c.Unidentified + c.Wrong
	right, tensors := fmt.Sprintf("%d equal, %d cast, %d quantised", c.Equal, c.Cast, c.Quantised), Count(all, "tensor", "tensors")
	if c.Rescaled > 0 {
		right += fmt.Sprintf(", %d rescaled", c.Rescaled)
	}
	switch {
	case r.Right():
		return Field{Kind: Said, Label: "MATCH", Tone: Good, Text: fmt.Sprintf("%s compared: %s", tensors, right)}
	case c.Wrong+c.Unidentified == 0:
		return Field{Kind: Said, Label: "INCOMPLETE", Tone: Bad, Text: weights.NothingCompared}
	case c.Wrong == 0:
		return Field{Kind: Said, Label: "INCOMPLETE", Tone: Bad, Text: fmt.Sprintf("%d of %s %s UNIDENTIFIED: %s", c.Unidentified, tensors, Either(c.Unidentified == 1, "is", "are"), right)}
	case c.Unidentified > 0:
		right += fmt.Sprintf(", %d UNIDENTIFIED", c.Unidentified)
	}
	return Field{Kind: Said, Label: "MISMATCH", Tone: Bad, Text: fmt.Sprintf("%d of %s %s wrong: %s", c.Wrong, tensors, Either(c.Wrong == 1, "is", "are"), right)}
}
