package words

import (
	"fmt"
	"slices"
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
		doc.blank()
		if i == maxWeightFindings {
			doc.Line("%s more; --format json has all", count(len(r.Findings)-i, "finding", "findings"))
			break
		}
		f := &r.Findings[i]
		doc.add(Field{Kind: Titled, Label: string(f.Class), Tone: Bad, Text: f.Name()})
		doc.fields(WeightFields(f)...)
	}
	doc.blank()
	doc.fields(WeightsSummary(r)...)
	doc.fields(WeightsVerdict(r))
	return doc
}

// WeightsPlace describes a checkpoint.
func WeightsPlace(x weights.Place) string {
	return fmt.Sprintf("%s: %s, %s in %s, %s", x.Path, x.Format, count(x.Tensors, "tensor", "tensors"), strings.Join(x.Stored, ", "), amount.Bytes(x.Bytes))
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
			doc.field("also", "%s", some(f.Also))
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
func weightsRight(r *weights.Result) (lines []string) {
	var right groups[float64] // errors of codes, by what is right
	for i := range r.Tensors {
		switch t := &r.Tensors[i]; t.Class {
		case weights.Equal:
			right.add("equal", 0)
		case weights.Cast:
			right.add("cast to "+t.Rounding, 0)
		case weights.Quantised:
			text := t.Rounding + ": every code is right for its format"
			if format, alone := strings.CutSuffix(t.Rounding, weights.SizeAlone); alone {
				text = format + ": the size of the errors is right, no single code was checked"
			}
			right.add(text, t.Relative)
		case weights.Rescaled:
			right.add("divided by factors, and the columns of other tensors are multiplied by them", 0)
		}
	}
	for _, text := range right.keys {
		sizes := right.of[text]
		line := fmt.Sprintf("%s: %s", count(len(sizes), "tensor", "tensors"), text)
		if worst := slices.Max(sizes); worst > 0 {
			line += fmt.Sprintf(", relative L2 distance up to %.2g", worst)
		}
		lines = append(lines, line)
	}
	return lines
}

// maxWeightNotes bounds the notes of a text.
const maxWeightNotes = 8

// weightNotes are remarks on the files, and on tensors: what is the same of several once.
func weightNotes(r *weights.Result) []string {
	var tensors groups[string] // by their notes
	for i := range r.Tensors {
		t := &r.Tensors[i]
		if t.Local == nil || !t.Class.Right() {
			continue
		}
		for _, n := range t.Notes {
			if !strings.HasPrefix(n, t.Local.Key+": ") { // what a map did to the tensor
				tensors.add(n, t.Name)
			}
		}
	}
	notes := slices.Clone(r.Notes)
	for _, n := range tensors.keys {
		which := tensors.of[n][0]
		if more := len(tensors.of[n]) - 1; more > 0 {
			which += " and " + count(more, "other", "others")
		}
		notes = append(notes, which+": "+n)
	}
	if len(notes) > maxWeightNotes {
		notes = append(notes[:maxWeightNotes], fmt.Sprintf("%d more notes: --format json has all", len(notes)-maxWeightNotes))
	}
	return notes
}

// WeightsVerdict is the last line.
func WeightsVerdict(r *weights.Result) Field {
	c := r.Counts
	all := c.Equal + c.Cast + c.Quantised + c.Rescaled + c.Unidentified + c.Wrong
	right, tensors := fmt.Sprintf("%d equal, %d cast, %d quantised", c.Equal, c.Cast, c.Quantised), count(all, "tensor", "tensors")
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
