// Package report renders the result of a comparison. It decides nothing: every word and number comes out of the
// compare.Result, and a report leaves out only what repeats itself.
//
// The text is made to be read from its end: the last line is always the verdict with counts, before it stands why the comparison
// is incomplete and what was not compared, before that the divergence. The first line names the reference. Everything that comes
// out of a trace is stripped of control characters, so that no file can write to the terminal. Docs/glossary.md defines its words.
package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/fatih/color"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/plain"
)

// Text writes a report for people. The error is that of w.
func Text(w io.Writer, r *compare.Result, s Style) error {
	p := &printer{style: s}
	var err error
	switch s.view {
	case VerdictOnly:
		p.verdictLine(r, true)
	case Evidence, Everything:
		err = p.full(r)
	default:
		err = p.short(r)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, p.String())
	return err
}

// full writes all that is known.
func (p *printer) full(r *compare.Result) error {
	p.sides(r)
	p.scope(r)
	p.tokens(r)
	if len(r.Rows) > 0 {
		p.blank()
		table := p.summary
		if p.style.view == Everything {
			table = p.table
		}
		if err := table(r); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	p.divergence(r)
	p.roots(r)
	p.missing(r)
	p.allowed(r)
	p.baseline(r)
	p.notes(r)
	p.isolation(r)
	p.sight(r.Sight)
	if err := p.final(r); err != nil {
		return err
	}
	p.end(r)
	p.since()
	p.verdictLine(r, false)
	return nil
}

// printer collects the report; what it is given is cleaned on the way.
type printer struct {
	strings.Builder
	style Style
	width int // that a line is broken at; 0: lines are as long as they are
	label int // the width of the labels of a block; 0 for 15

	// said, where it is not nil, is given each labelled text instead of the page: a report that lays words out by itself.
	said func(label, text string)
}

// clean replaces what a terminal would act upon or not show.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

func (p *printer) blank() { p.WriteByte('\n') }

func (p *printer) line(format string, args ...any) { p.broken(2, fmt.Sprintf(format, args...)) }

// field writes a labelled line of a block.
func (p *printer) field(label, format string, args ...any) {
	if p.said != nil {
		p.said(label, clean(fmt.Sprintf(format, args...)))
		return
	}
	width := cmp.Or(p.label, 15)
	p.broken(width+3, fmt.Sprintf("  %-*s %s", width, label, fmt.Sprintf(format, args...)))
}

// broken writes a text, broken between words where it is wider than the page, the lines after the first indented.
func (p *printer) broken(indent int, text string) {
	if p.said != nil {
		p.said("", clean(strings.TrimSpace(text)))
		return
	}
	p.WriteString(p.wrapped(indent, text))
}

func (p *printer) wrapped(indent int, text string) string {
	return plain.Wrap(clean(text), p.width, indent) + "\n"
}

// say writes a line that begins with a painted word and a colon.
func (p *printer) say(c *color.Color, word, format string, args ...any) {
	if p.said != nil {
		p.said(word, clean(fmt.Sprintf(format, args...)))
		return
	}
	text := p.wrapped(2, word+": "+fmt.Sprintf(format, args...))
	p.WriteString(paint(c, word) + text[len(word):])
}

func (p *printer) sides(r *compare.Result) {
	if r.Alone {
		p.line("reference: none, every entry is computed from the trace's own inputs")
		p.line("trace:     %s", side(r.Local))
	} else {
		first, second := r.Reference, r.Local
		if r.AB {
			first, second = second, first
		}
		p.line("%-10s %s", first.Name.Label+":", side(first))
		p.line("%-10s %s", second.Name.Label+":", side(second))
	}
	for _, d := range r.Differences {
		p.line("differs:   %s", d)
	}
	p.mapped(r.Map)
}

// mapped says by which map the local side was read; the short view has a part of what it changed.
func (p *printer) mapped(m *compare.Map) {
	if m == nil {
		return
	}
	if m.File == "" {
		p.line("map:       %s", withoutMap(m))
		return
	}
	p.line("map:       %s, %s", m.File, count(m.Patterns, "pattern", "patterns"))
	for _, text := range unmapped(m) {
		p.line("           %s", text)
	}
	for k, c := range m.Changes {
		if k == maxShort && p.width > 0 {
			p.line("           --verbose has %d more", len(m.Changes)-k)
			return
		}
		p.line("           %s", c)
	}
}

// unmapped says what a map leaves open, and what to do.
func unmapped(m *compare.Map) (texts []string) {
	if m.Open > 0 {
		texts = append(texts, openTensors(m)+" "+either(m.Open == 1, "has", "have")+" no line: not compared; give each a line, or leave it out with to = []")
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m.Absent)) {
		if line := m.Absent[name]; !slices.Contains(lines, line) {
			lines = append(lines, line)
			texts = append(texts, line+" matches no tensor of the dump: its entries are MISSING")
		}
	}
	return texts
}

// withoutMap says that a dump in names of its own needs a map.
func withoutMap(m *compare.Map) string {
	return "none; the order does not know " + openTensors(m) + ": not compared; tracediff map LOCAL REFERENCE proposes a map, and --map reads the dump by it"
}

// openTensors are the tensors of the dump that have no line: how many there are, and the names of some.
func openTensors(m *compare.Map) string {
	var quoted []string
	for _, name := range m.Examples {
		quoted = append(quoted, fmt.Sprintf("%.80q", name))
	}
	text := count(m.Open, "tensor", "tensors") + " of the dump"
	switch {
	case len(quoted) == 0:
	case len(quoted) == m.Open:
		text += " (" + strings.Join(quoted, ", ") + ")"
	default:
		text += " (such as " + strings.Join(quoted, ", ") + ")"
	}
	return text
}

// mapText is a map and all that it changed, in one text.
func mapText(m *compare.Map) string {
	if m.File == "" {
		return withoutMap(m)
	}
	text := strings.Join(append([]string{m.File + ", " + count(m.Patterns, "pattern", "patterns")}, unmapped(m)...), "; ")
	if len(m.Changes) > 0 {
		text += ": " + strings.Join(m.Changes, "; ")
	}
	return text
}

// scope writes what limited the comparison.
func (p *printer) scope(r *compare.Result) { p.line("scope:     %s", scopes(r)) }

// side names a trace by what made it, or by its file when it does not say.
func side(s compare.Side) string {
	name := strings.TrimSpace(s.Producer.Name + " " + s.Producer.Version)
	if name == "" {
		name = s.Path
	}
	if s.DType != "" {
		name += ", " + s.DType
	}
	if s.Model != "" {
		name += ", " + s.Model
	}
	if s.Label != "" {
		name += " (" + s.Label + ")"
	}
	return name
}

// scopes says what limited the comparison; equal limits of both traces, or those of one, once.
func scopes(r *compare.Result) string {
	l, ref, typed := limitsOf(r.Local.Scope), limitsOf(r.Reference.Scope), limitsOf(r.Typed)
	text := r.Local.Name.Label + " " + l + "; " + r.Reference.Name.Label + " " + ref
	if l == ref || r.Alone {
		text = l
	}
	if typed != "undeclared" {
		text += "; asked for: " + typed
	}
	return text
}

func limitsOf(s capture.Scope) string {
	var parts []string
	if s.Level > 0 {
		parts = append(parts, fmt.Sprintf("level %d", s.Level))
	}
	for _, part := range []struct {
		name   string
		ranges capture.Ranges
	}{{"layers", s.Layers}, {"passes", s.Passes}, {"positions", s.Positions}} {
		if len(part.ranges) > 0 {
			parts = append(parts, part.name+" "+part.ranges.String())
		}
	}
	if len(s.Tensors) > 0 {
		parts = append(parts, "tensors "+strings.Join(s.Tensors, " "))
	}
	if parts == nil {
		return "undeclared"
	}
	return strings.Join(parts, ", ")
}

// missing lists what was declared and is not there.
func (p *printer) missing(r *compare.Result) {
	if len(r.Missing) == 0 {
		return
	}
	p.blank()
	p.line("MISSING: %s declared but not there", count(len(r.Missing), "entry is", "entries are"))
	for i, m := range r.Missing {
		if i == maxListed || i == maxShort && p.width > 0 && len(r.Missing) > maxShort+1 {
			p.line("  and %d more", len(r.Missing)-i)
			return
		}
		where := m.Side
		if where == "both" {
			where = "both sides"
		}
		p.line("  %s, %s", key(m.Pass, m.Name), where)
	}
}

// maxListed is how many of many are listed before "and more".
const maxListed = 8

// key is a key in a trace, from a name that may have its firing already.
func key(pass int, name string) string { return capture.Key(pass, name, 0) }

// end writes why the comparison is incomplete, which limits decided, and the coverage.
func (p *printer) end(r *compare.Result) {
	p.blank()
	p.incomplete(r)
	p.expected(r)
	if r.Divergence == nil { // else its block says it
		p.line("decided by %s%s", r.Decided, uncertified(r))
	}
	if !r.Alone {
		p.limits(r)
	}
	p.line("%s", covered(r))
	p.notCompared(r)
}

// covered says how much was compared, and of how many layers everything.
func covered(r *compare.Result) string {
	c := r.Coverage
	text := fmt.Sprintf("compared %d of %s", c.Compared, count(c.Entries, "entry", "entries"))
	switch {
	case c.Layers == 0:
	case c.LayersComplete == 0:
		text += "; no layer in full"
	case c.LayersComplete == c.Layers:
		text += "; every layer in full"
	default:
		text += fmt.Sprintf("; %d of %d layers in full", c.LayersComplete, c.Layers)
	}
	return text + beside(r)
}

// incomplete writes the reasons, a line each.
func (p *printer) incomplete(r *compare.Result) {
	for _, reason := range r.Incomplete {
		p.say(p.style.bad, "INCOMPLETE", "%s", reason)
	}
}

// beside is what the coverage counts apart.
func beside(r *compare.Result) string {
	c := r.Coverage
	text := over(r, ", ")
	if c.DerivedEntries > 0 {
		text += fmt.Sprintf("; %d of %d derived entries", c.Derived, c.DerivedEntries)
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
