// Package report renders the result of a comparison. It decides nothing: every word and number comes out of the
// compare.Result, and a report leaves out only what repeats itself.
//
// The text is made to be read from its end: the last line is always the coverage, before it stands why the comparison
// is incomplete, before that the divergence. The first line names the reference. Everything that comes out of a trace is
// stripped of control characters, so that no file can write to the terminal.
package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
)

// Text writes a report for people. The error is that of w.
func Text(w io.Writer, r *compare.Result, s Style) error {
	p := &printer{style: s}
	p.sides(r)
	p.tokens(r)
	if len(r.Rows) > 0 {
		p.blank()
		if err := p.table(r); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	p.divergence(r)
	p.roots(r)
	p.missing(r)
	p.allowed(r)
	p.notes(r)
	p.isolation(r)
	p.sight(r.Sight)
	if err := p.final(r); err != nil {
		return err
	}
	p.end(r)
	_, err := io.WriteString(w, p.String())
	return err
}

// printer collects the report; what it is given is cleaned on the way.
type printer struct {
	strings.Builder
	style Style
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

func (p *printer) line(format string, args ...any) {
	p.WriteString(clean(fmt.Sprintf(format, args...)))
	p.WriteByte('\n')
}

// field writes a labelled line of a block.
func (p *printer) field(label, format string, args ...any) {
	p.line("  %-15s %s", label, fmt.Sprintf(format, args...))
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
	p.line("scope:     %s", scopes(r))
	for _, d := range r.Differences {
		p.line("differs:   %s", d)
	}
}

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
	l, ref, typed := scope(r.Local.Scope), scope(r.Reference.Scope), scope(r.Typed)
	text := r.Local.Name.Label + " " + l + "; " + r.Reference.Name.Label + " " + ref
	if l == ref || r.Alone {
		text = l
	}
	if typed != "undeclared" {
		text += "; asked for: " + typed
	}
	return text
}

func scope(s capture.Scope) string {
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
	p.line("MISSING: %s declared and not there", count(len(r.Missing), "entry is", "entries are"))
	for i, m := range r.Missing {
		if i == maxListed {
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

// end writes what is to be read first: the outcome, why it is incomplete, and the coverage as the last line.
func (p *printer) end(r *compare.Result) {
	p.blank()
	for _, reason := range r.Incomplete {
		p.WriteString(paint(p.style.bad, "INCOMPLETE") + ": ")
		p.line("%s", reason)
	}
	p.expected(r)
	if r.Mismatches > 0 && r.Divergence != nil {
		p.WriteString(paint(p.style.bad, "MISMATCH") + ": ")
		p.line("first at %s, %s in all", r.Divergence.Row.Key(), count(r.Mismatches, "entry", "entries"))
	} else if r.ExitCode() == 0 {
		p.WriteString(paint(p.style.good, "MATCH") + ": ")
		p.line("%s%s", matched(r), uncertified(r))
	}
	if r.Divergence == nil { // else its block says it
		p.line("decided by %s", r.Decided)
	}
	if !r.Alone {
		p.limits(r)
	}
	c := r.Coverage
	p.line("compared %d of %d entries, %d of %d layers complete%s", c.Compared, c.Entries, c.LayersComplete, c.Layers, beside(c))
}

// matched is what a success rests on, with everything that a limit or a certificate alone would have called wrong.
func matched(r *compare.Result) string {
	text := "every entry that was compared"
	if r.Alone {
		text = "every entry is right on its own inputs"
	}
	if s := r.Isolation; s != nil && s.Drift > 0 {
		text += fmt.Sprintf(", %d of them past %s by drift alone", s.Drift, either(s.Drift == 1, "its limit", "their limits"))
	}
	if s := r.Isolation; s != nil && s.Unidentified > 0 {
		text += fmt.Sprintf(", %d of them %s: within %s limits, and not certified", s.Unidentified, certify.Unidentified, either(s.Unidentified == 1, "its", "their"))
	}
	text += butFor(r)
	if len(r.Expected) > 0 {
		text += ", but for those that were expected to differ, and these do"
	}
	return text
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// beside is what the coverage counts apart.
func beside(c compare.Coverage) string {
	var text string
	if c.Passes > 1 {
		text += fmt.Sprintf(", over %d passes", c.Passes)
	}
	if c.DerivedEntries > 0 {
		text += fmt.Sprintf("; %d of %d derived", c.Derived, c.DerivedEntries)
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
