// Package words says what a command found. It decides nothing: every word and number comes out of a result, and a document leaves out
// only what repeats itself. Every sentence of a report stands here, once.
//
// A [Document] has sections, a section has fields and a table. [Of] is the document of a comparison: it has every [Part], such as
// [Sides] and [Divergence], and makes a part when the part is first shown. A renderer chooses parts, whether it shows a document in
// brief, and how a document looks: compare/report/text prints sections, compare/report/html puts them on a page. A part is made by a
// function without a state, which adds nothing where there is nothing to say. All text is stripped of control characters, since it may
// come out of a trace that nobody trusts. docs/report.md defines its words.
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

	// Result is the comparison that the document is about; nil for other documents.
	Result *compare.Result
	made   map[Part][]Section

	length Length // of the fields that are added
}

// Section is a group of lines, with an optional table after the lines.
type Section struct {
	Apart  bool // a blank line stands before it
	Fields []Field
	Table  *Table
}

// Field is one line of a document.
type Field struct {
	Kind   Kind
	Label  string // may be empty
	Text   string
	Tone   Tone // of the label
	Length Length
	// Segments are the parts of a verdict's text. A narrow page leaves some parts out.
	Segments []Segment
}

// Length says how much a renderer shows, and of a field which renderers show it.
type Length int

// The lengths. A field of Any is shown in both.
const (
	Any   Length = iota
	Brief        // of many lines of a kind the first, and where the others are
	Whole
)

// In reports whether a field is shown in a length.
func (f *Field) In(l Length) bool { return f.Length == Any || f.Length == l }

// Kind says how a field stands among others.
type Kind int

// The kinds.
const (
	Line     Kind = iota // a sentence, without a label
	Sub                  // a sentence that belongs to the one before
	Head                 // at the head of a document: "reference: ..."
	Labelled             // of a block: "what ..."
	Said                 // begins with a word that is painted: "MISSING: ..."
	Titled               // as Said, without the colon: "RED FLAG ..."
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

// Column is the title of a column. Right: its cells are numbers. Power: the column has how small an error of scale would have shown in an
// entry, or the scale that fits the entry, and is shown to those who ask.
type Column struct {
	Title        string
	Right, Power bool
}

// Cell is a text in a table.
type Cell struct {
	Text  string
	Tone  Tone
	First bool // of the numbers in its column the one that is chosen
}

// Part is the name of a part of the document of a comparison. What a part has stands at the function that makes it.
type Part string

// The parts.
const (
	Sides, Scope, NarrowScope, Tokens, FirstTokens Part = "sides", "scope", "narrow scope", "tokens", "first tokens"
	Layers, Legend, Rows                           Part = "layers", "legend", "rows"
	Divergence, Evidence, Roots                    Part = "divergence", "evidence", "roots"
	Others, Allowances, Baseline                   Part = "others", "allowances", "baseline"
	Checked, Isolation, Sight                      Part = "checked", "isolation", "sight"
	NextToken, Final, Choice                       Part = "next token", "final", "choice"
	FirstNotes, Notes                              Part = "first notes", "notes"
	Missing, NotCompared, Untested                 Part = "missing", "not compared", "untested"
	Incomplete, Expected, End, Gap                 Part = "incomplete", "expected", "end", "gap"
)

var makers = map[Part]func(doc *Document, r *compare.Result){
	Sides: traces, Scope: scope, NarrowScope: narrowScope, Tokens: tokens, FirstTokens: firstTokens, Layers: layers, Legend: legend, Rows: rows,
	Divergence: divergence, Evidence: evidence, Roots: roots, Others: others, Allowances: allowances, Baseline: baseline,
	Checked: checked, Isolation: isolation, Sight: sightOf, NextToken: nextToken, Final: final, Choice: choice, FirstNotes: firstNotes, Notes: notes,
	Missing: missing, NotCompared: notCompared, Untested: untested, Incomplete: incomplete, Expected: expected, End: end,
	Gap: func(doc *Document, _ *compare.Result) { doc.blank() },
}

// Of is the document of a comparison. It is not safe for concurrent use.
func Of(r *compare.Result) *Document { return &Document{Result: r, made: map[Part][]Section{}} }

// Show are the sections of parts of a comparison, in the order of the parts.
func (d *Document) Show(parts ...Part) []Section {
	var all []Section
	for _, part := range parts {
		if _, ok := d.made[part]; !ok {
			made := &Document{}
			makers[part](made, d.Result)
			d.made[part] = made.Sections
		}
		all = append(all, d.made[part]...)
	}
	return all
}

// Fields are those of sections, without the tables.
func Fields(sections []Section) (all []Field) {
	for _, s := range sections {
		all = append(all, s.Fields...)
	}
	return all
}

// blank begins a section after a blank line.
func (d *Document) blank() { d.Sections = append(d.Sections, Section{Apart: true}) }

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
	f.Length = max(f.Length, d.length)
	s := d.last()
	s.Fields = append(s.Fields, f)
}

// only adds in one length what add adds.
func (d *Document) only(l Length, add func()) {
	d.length = l
	add()
	d.length = Any
}

func (d *Document) fields(all ...Field) {
	for _, f := range all {
		d.add(f)
	}
}

func (d *Document) put(k Kind, label, format string, args []any) {
	d.add(Field{Kind: k, Label: label, Text: fmt.Sprintf(format, args...)})
}

// Line adds a sentence.
func (d *Document) Line(format string, args ...any) { d.put(Line, "", format, args) }

// lead is a line that begins with a label.
func lead(label, text string) Field { return Field{Label: label, Text: Clean(text)} }

// sub adds a sentence that belongs to the one before.
func (d *Document) sub(format string, args ...any) { d.put(Sub, "", format, args) }

// head adds a labelled line of the head of a document. A line without a label belongs to the one before.
func (d *Document) head(label, format string, args ...any) { d.put(Head, label, format, args) }

// field adds a labelled line of a block. A line without a label belongs to the one before.
func (d *Document) field(label, format string, args ...any) { d.put(Labelled, label, format, args) }

// block adds labelled lines, and the label to the first.
func (d *Document) block(label string, texts ...string) {
	for i, text := range texts {
		d.field(Either(i == 0, label, ""), "%s", text)
	}
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

// count is a number with its noun, in one form or the other.
func count(n int, one, many string) string { return amount.Count(n, one, many) }

// More is how many there are beyond those that are named.
func More(n int) string { return fmt.Sprintf("%d more", n) }

// Either is yes where something is so, and else no.
func Either[T any](is bool, yes, no T) T {
	if is {
		return yes
	}
	return no
}

const (
	maxShort  = 3 // of many lines of a sort before "--verbose has N more"
	maxListed = 8 // of many names before "and N more"

	verboseHas = "--verbose has %s more"
	andMore    = "and %d more"

	// FirstDivergence is the label of the first row that does not match.
	FirstDivergence  = "first divergence"
	ownInputs        = "on its own inputs"
	otherRounding    = "rounds differently"
	noBug            = ", no bug"
	allowedToDiffer  = "allowed to differ"
	expectedToDiffer = "expected to differ"
)

// some are the first of many names.
func some(names []string) string { return amount.Some(names, maxListed) }

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

// countOf counts what is so.
func countOf[T any](all []T, is func(*T) bool) (n int) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// groups are lists by a key, in the order in which the keys came.
type groups[T any] struct {
	keys []string
	of   map[string][]T
}

func (g *groups[T]) add(key string, x T) {
	if g.of == nil {
		g.of = map[string][]T{}
	}
	if g.of[key] == nil {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], x)
}
