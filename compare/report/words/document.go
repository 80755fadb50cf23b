// Package words says what a comparison found. It decides nothing: every word and number comes out of the compare.Result, and a
// document leaves out only what repeats itself.
//
// A [Document] has sections, a section has fields and a table. [Make] makes it of a result by a list of parts, such as [Sides] and
// [Divergence]; every sentence stands in one part. A renderer chooses parts, and how they look: compare/report/text prints them,
// compare/report/html puts them on a page. The parts are functions without a state: each adds to a document what it has to say, and
// nothing where there is nothing to say. All text is stripped of control characters, since it may come out of a trace that nobody trusts.
// docs/report.md defines its words.
package words

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/amount"
)

// Document is a result in words.
type Document struct {
	Sections []Section
	options  Options
}

// Section is a group of lines, with an optional table after the lines.
type Section struct {
	Apart  bool // a blank line stands before it
	Fields []Field
	Table  *Table
}

// Field is one line of a document.
type Field struct {
	Kind  Kind
	Label string // may be empty
	Text  string
	Tone  Tone // of the label
	// Segments are the parts of a verdict's text. A narrow page leaves some parts out.
	Segments []Segment
}

// Kind says how a field stands among others.
type Kind int

// The kinds.
const (
	Line     Kind = iota // a sentence, without a label
	Sub                  // a sentence that belongs to the one before
	Head                 // at the head of a document: "reference: ..."
	Labelled             // of a block: "what ..."
	Said                 // begins with a word that is painted: "MISSING: ..."
)

// Tone is what a word says without being read.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Bad
	Quiet
)

// Table is columns and rows of cells. A row may be shorter than the columns.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Column is the title of a column. Right: its cells are numbers.
type Column struct {
	Title string
	Right bool
}

// Cell is a text in a table.
type Cell struct {
	Text string
	Tone Tone
}

// Options say how much is said.
type Options struct {
	Brief bool // of many lines of a kind the first, and where the others are
	Power bool // in a table of all entries: how small an error of scale would have shown in each, and the scale that fits it
}

// Part adds to a document what it has to say of a result.
type Part func(doc *Document, r *compare.Result)

// Make makes a document of a result: the parts in their order.
func Make(r *compare.Result, o Options, parts ...Part) *Document {
	doc := &Document{options: o}
	for _, part := range parts {
		part(doc, r)
	}
	return doc
}

// Fields are those of all sections, without the tables.
func (d *Document) Fields() []Field {
	var all []Field
	for i := range d.Sections {
		all = append(all, d.Sections[i].Fields...)
	}
	return all
}

// Blank begins a section after a blank line.
func (d *Document) Blank() { d.Sections = append(d.Sections, Section{Apart: true}) }

// last is the section that is added to.
func (d *Document) last() *Section {
	if n := len(d.Sections); n == 0 || d.Sections[n-1].Table != nil {
		d.Sections = append(d.Sections, Section{})
	}
	return &d.Sections[len(d.Sections)-1]
}

func (d *Document) add(f Field) {
	f.Text = Clean(f.Text)
	f.Label = Clean(f.Label)
	s := d.last()
	s.Fields = append(s.Fields, f)
}

// Line adds a sentence.
func (d *Document) Line(format string, args ...any) {
	d.add(Field{Kind: Line, Text: fmt.Sprintf(format, args...)})
}

// sub adds a sentence that belongs to the one before.
func (d *Document) sub(format string, args ...any) {
	d.add(Field{Kind: Sub, Text: fmt.Sprintf(format, args...)})
}

// head adds a labelled line of the head of a document. A line without a label belongs to the one before.
func (d *Document) head(label, format string, args ...any) {
	d.add(Field{Kind: Head, Label: label, Text: fmt.Sprintf(format, args...)})
}

// field adds a labelled line of a block. A line without a label belongs to the one before.
func (d *Document) field(label, format string, args ...any) {
	d.add(Field{Kind: Labelled, Label: label, Text: fmt.Sprintf(format, args...)})
}

// say adds a line that begins with a painted word and a colon.
func (d *Document) say(tone Tone, word, format string, args ...any) {
	d.add(Field{Kind: Said, Label: word, Text: fmt.Sprintf(format, args...), Tone: tone})
}

// table ends the section with a table.
func (d *Document) table(columns []Column, rows [][]Cell) {
	for _, row := range rows {
		for i := range row {
			row[i].Text = Clean(row[i].Text)
		}
	}
	d.last().Table = &Table{columns, rows}
}

// plainCells are plain texts as cells.
func plainCells(texts ...string) []Cell {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	return row
}

// Clean replaces what a terminal would act upon or not show.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Count is a number with its noun, in one form or the other.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Either is yes where something is so, and else no.
func Either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

const (
	maxShort  = 3 // of many lines of a sort before "--verbose has N more"
	maxListed = 8 // of many names before "and N more"
)

// Some are the first of many names.
func Some(names []string) string { return amount.Some(names, maxListed) }

// number is how many there are of a kind.
type number struct {
	n    int64
	what string
}

// counts writes the numbers other than 0, each after before: ", 2 NaN".
func counts(before string, all ...number) string {
	var b strings.Builder
	for _, c := range all {
		if c.n > 0 {
			fmt.Fprintf(&b, "%s%d %s", before, c.n, c.what)
		}
	}
	return b.String()
}
