package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/internal/plain"
)

const pageWidth = plain.Columns // of the short view

// printer collects a text; what it is given is cleaned on the way. The first error of a table sticks.
type printer struct {
	strings.Builder
	style Style
	width int // that a line is broken at; 0: lines are as long as they are
	label int // the width of the labels of a block; 0 for 15
	err   error
}

// writeTo writes what was collected. The error is that of a table or of w.
func (p *printer) writeTo(w io.Writer) error {
	if p.err != nil {
		return fmt.Errorf("writing the tables: %w", p.err)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// document writes a document to w.
func (p *printer) document(w io.Writer, doc *words.Document) error {
	p.sections(doc.Sections)
	return p.writeTo(w)
}

// sections collects what the length of the style has of sections.
func (p *printer) sections(all []words.Section) {
	for _, s := range all {
		if s.Apart {
			p.WriteByte('\n')
		}
		for _, f := range s.Fields {
			if f.In(p.style.length()) {
				p.write(f)
			}
		}
		if s.Table != nil {
			p.table(s.Table)
		}
	}
}

// write writes one field.
func (p *printer) write(f words.Field) {
	switch f.Kind {
	case words.Line:
		p.WriteString(p.wrapped(2, strings.TrimPrefix(f.Label+" "+f.Text, " ")))
	case words.Sub:
		p.WriteString(p.wrapped(4, "  "+f.Text))
	case words.Head:
		if f.Label != "" {
			f.Label += ":"
		}
		p.WriteString(p.wrapped(2, fmt.Sprintf("%-10s %s", f.Label, f.Text)))
	case words.Labelled:
		width := cmp.Or(p.label, 15)
		p.WriteString(p.wrapped(width+3, fmt.Sprintf("  %-*s %s", width, f.Label, f.Text)))
	case words.Said:
		p.said(f)
	case words.Titled:
		p.WriteString(paint(p.style.color(f.Tone), f.Label) + " " + f.Text + "\n")
	}
}

// said writes a field that begins with a painted word. On a page a verdict is no wider than the page, unless a name is: counts for which there is no
// room stand on a line before it.
func (p *printer) said(f words.Field) {
	if f.Segments != nil {
		if p.width > 0 {
			f = p.narrowed(f)
		}
		defer func(width int) { p.width = width }(p.width)
		p.width = 0 // a name that is wider than the page is not broken
	}
	text := p.wrapped(2, f.Label+": "+f.Text)
	p.WriteString(paint(p.style.color(f.Tone), f.Label) + text[len(f.Label):])
}

// narrowed shortens a verdict to the width of the page. The removed segments are printed on the line before.
func (p *printer) narrowed(f words.Field) words.Field {
	var out []string
	f.Segments = slices.Clone(f.Segments)
	f.Text = joined(f.Segments)
	for most := words.SpareWord; most > words.Needed; most-- {
		for i := len(f.Segments) - 1; i >= 0 && len([]rune(f.Label+": "+f.Text)) > p.width; i-- {
			s := &f.Segments[i]
			if s.Spare != most || s.Text == "" {
				continue
			}
			if most < words.SpareWord {
				text := strings.TrimLeft(s.Text, " ;,")
				if inner, ok := strings.CutPrefix(text, "("); ok {
					text = strings.TrimSuffix(inner, ")")
				}
				out = append(out, s.Apart+text)
			}
			s.Text = ""
			f.Text = joined(f.Segments)
		}
	}
	if out != nil {
		slices.Reverse(out)
		p.write(words.Spared(out))
	}
	return f
}

func joined(segments []words.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}

func (p *printer) table(t *words.Table) {
	var header []string
	var align []tw.Align
	rows := make([][]string, len(t.Rows))
	for k, c := range t.Columns {
		if c.Power && !p.style.power {
			continue
		}
		header, align = append(header, c.Title), append(align, words.Either(c.Right, tw.AlignRight, tw.AlignLeft))
		for i, row := range t.Rows {
			if k < len(row) { // a row may be shorter
				rows[i] = append(rows[i], paint(p.style.color(row[k].Tone), row[k].Text))
			}
		}
	}
	if err := Table(&p.Builder, align, header, rows); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) wrapped(indent int, text string) string {
	return plain.Wrap(text, p.width, indent) + "\n"
}
