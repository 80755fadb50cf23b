package report

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
)

// since writes how the first divergence moved since the last comparison, where that is known.
func (p *printer) since() {
	if p.style.since != "" {
		p.line("since the last compare: %s", p.style.since)
	}
}

// verdictLine writes the verdict with counts. It is the last line of every view; alone it also has the first reason why a
// comparison is incomplete, which otherwise stands above it.
func (p *printer) verdictLine(r *compare.Result, alone bool) {
	defer func(width int) { p.width = width }(p.width)
	p.width = 0 // one line, whatever its length
	c := r.Coverage
	compared := count(c.Compared, "entry", "entries") + " compared" + over(c)
	switch {
	case r.Mismatches > 0 && r.Divergence != nil:
		p.say(p.style.bad, "MISMATCH", "%d of %s, first %s%s", r.Mismatches, compared, r.Divergence.Row.Key(), besides(r))
	case r.ExitCode() == 0:
		p.say(p.style.good, "MATCH", "all %s %s%s%s", compared, either(r.Alone, "are right on their own inputs", "match"), but(r), left(r))
	case len(r.Incomplete) > 0:
		why := ""
		if alone {
			why = ": " + r.Incomplete[0]
			if n := len(r.Incomplete) - 1; n > 0 {
				why += fmt.Sprintf(" (and %s)", count(n, "reason more", "reasons more"))
			}
		}
		p.say(p.style.bad, "INCOMPLETE", "%s, %s%s%s", compared, none(r), besides(r), why)
	case len(r.Missing) > 0:
		p.say(p.style.bad, "MISSING", "%s missing; %s, %s", count(len(r.Missing), "entry is", "entries are"), compared, none(r))
	case unmet(r) > 0:
		p.say(p.style.bad, "NOT DIFFERENT", "%s expected a difference and found none; %s", count(unmet(r), "pattern", "patterns"), compared)
	default:
		p.say(p.style.bad, "INCOMPLETE", "%s, none of them tests anything", compared)
	}
}

// none says that nothing was found wrong, and whether everything was looked at.
func none(r *compare.Result) string {
	if s := r.Isolation; s != nil && s.Unidentified > 0 {
		return fmt.Sprintf("none wrong, %d %s", s.Unidentified, certify.Unidentified)
	}
	return "none wrong"
}

// besides are the failures beside the one that the line is about.
func besides(r *compare.Result) string {
	var parts []string
	if r.Mismatches > 0 && len(r.Incomplete) > 0 {
		parts = append(parts, "incomplete")
	}
	if n := len(r.Missing); n > 0 {
		parts = append(parts, fmt.Sprintf("%d missing", n))
	}
	if parts == nil {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// but counts what a success rests on that is no plain match: a limit or a certificate alone would have called it wrong.
func but(r *compare.Result) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if s := r.Isolation; s != nil {
		add(s.Drift, "by drift")
		add(inLayouts(r), "in another layout")
		add(s.Unidentified, string(certify.Unidentified))
	}
	add(accepted(r), "allowed to differ")
	if len(r.Expected) > 0 {
		different := 0
		for _, e := range r.Expected {
			different += e.Differ
		}
		add(different, "expected to differ, and do")
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// inLayouts counts the rows that match in other numbers.
func inLayouts(r *compare.Result) int {
	n := 0
	for i := range r.Rows {
		if r.Rows[i].Facts.Standing == compare.StandingLayout {
			n++
		}
	}
	return n
}

// accepted counts the mismatches that the allow-list accepts.
func accepted(r *compare.Result) int {
	n := 0
	for _, a := range r.Allowed {
		n += len(a.Keys)
	}
	return n
}

// unmet counts the patterns that expected a difference that is not there.
func unmet(r *compare.Result) int {
	n := 0
	for _, e := range r.Expected {
		if e.Unmet {
			n++
		}
	}
	return n
}

// left says how many entries a success is not about, and that it rests on limits alone where it does.
func left(r *compare.Result) string {
	text := ""
	if n := r.Coverage.Entries - r.Coverage.Compared; n > 0 {
		text += fmt.Sprintf("; %d not compared", n)
	}
	if !r.Alone && !r.AB && (r.Isolation == nil || r.Uncertified != "") {
		text += "; within limits only"
	}
	return text
}

// over says how many passes were compared, where there are several.
func over(c compare.Coverage) string {
	if c.Passes > 1 {
		return fmt.Sprintf(" over %d passes", c.Passes)
	}
	return ""
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
