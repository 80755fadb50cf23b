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
	compared := count(c.Compared, "entry", "entries") + " compared" + over(r, " ")
	wrong := fmt.Sprintf("%d of %s%s", r.Mismatches, count(c.Compared, "compared entry", "compared entries"), over(r, " "))
	switch {
	case r.Mismatches > 0 && r.Divergence != nil:
		p.say(p.style.bad, "MISMATCH", "%s, first %s%s", wrong, r.Divergence.Row.Key(), besides(r))
	case r.ExitCode() == 0:
		p.say(p.style.good, either(r.Baseline != nil && r.Baseline.Accepted > 0, "ACCEPTED", "MATCH"), "%s %s%s%s%s", all(r), either(r.Alone, "are right on their own inputs", "match"), but(r), excusedBy(r), left(r))
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
	case len(r.Baseline.Failing()) > 0:
		p.say(p.style.bad, "BASELINE", "%s no longer %s; %s, %s", failing(r), either(len(r.Baseline.Failing()) == 1, "holds", "hold"), compared, none(r))
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
	if n := len(r.Baseline.Failing()); n > 0 {
		parts = append(parts, failing(r)+" no longer "+either(n == 1, "holds", "hold"))
	}
	if parts == nil {
		return excusedBy(r)
	}
	return "; " + strings.Join(parts, ", ") + excusedBy(r)
}

// failing counts the lines of the baseline that no longer hold.
func failing(r *compare.Result) string {
	return count(len(r.Baseline.Failing()), "accepted divergence", "accepted divergences") + " of " + r.Baseline.File
}

// all says how many entries a success is about: all, but for those that the baseline speaks for.
func all(r *compare.Result) string {
	n := r.Coverage.Compared
	b := r.Baseline
	if b == nil || b.Accepted+b.Inherited == 0 {
		return "all " + count(n, "entry", "entries") + " compared" + over(r, " ")
	}
	return fmt.Sprintf("%d of %s compared%s", n-b.Accepted-b.Inherited, count(n, "entry", "entries"), over(r, " "))
}

// excusedBy counts what the baseline accepted.
func excusedBy(r *compare.Result) string {
	b := r.Baseline
	if b == nil || b.Accepted == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s (%s)", count(b.Accepted, "accepted divergence", "accepted divergences"), b.File)
	if b.Inherited > 0 {
		text += fmt.Sprintf(", %d inherited", b.Inherited)
	}
	return text
}

// Accepted counts what the baselines of several runs accepted; empty where they accepted nothing.
func Accepted(d *Document) string {
	n, file := 0, ""
	for _, r := range d.Runs {
		if r.Result != nil && r.Result.Baseline != nil {
			n += r.Result.Baseline.Accepted
			file = r.Result.Baseline.File
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s (%s)", count(n, "accepted divergence", "accepted divergences"), clean(file))
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

// left says how many entries and tensors a success is not about, and that it rests on limits alone where it does.
func left(r *compare.Result) string {
	text := ""
	if n := r.Coverage.Entries - r.Coverage.Compared; n > 0 {
		text += fmt.Sprintf("; %d not compared", n)
	}
	if n := r.Coverage.Unknown; n > 0 {
		text += fmt.Sprintf("; the order does not know %s", count(n, "tensor", "tensors"))
	}
	if !r.Alone && !r.AB && (r.Isolation == nil || r.Uncertified != "") {
		text += "; within limits only"
	}
	if r.Same != "" {
		same, _, _ := strings.Cut(r.Same, ":")
		text += "; " + same
	}
	return text
}

// over says how many passes were compared, where there are several.
func over(r *compare.Result, before string) string {
	if r.Coverage.Passes < 2 {
		return ""
	}
	compared := map[int]bool{}
	for i := range r.Rows {
		compared[r.Rows[i].Pass] = true
	}
	if n := len(compared); n < r.Coverage.Passes {
		return fmt.Sprintf("%sin %d of %d passes", before, n, r.Coverage.Passes)
	}
	return fmt.Sprintf("%sover %d passes", before, r.Coverage.Passes)
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
