package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

// since writes how the first divergence moved since the last comparison, where that is known.
func (p *printer) since() {
	if p.style.since != "" {
		p.line("since the last compare: %s", p.style.since)
	}
}

// verdictLine writes the verdict with counts. It is the last line of every view; alone it also has the first reason why a
// comparison is incomplete, which otherwise stands above it. On a page it is no wider than the page, unless a name is: counts for
// which there is no room stand on a line before it.
func (p *printer) verdictLine(r *compare.Result, alone bool) {
	c := r.Coverage
	v := verdict{colour: p.style.bad, word: "INCOMPLETE"}
	compared := segment{text: count(c.Compared, "entry", "entries") + " compared"}
	counted := segment{text: "; " + compared.text, spare: spareFacts} // beside what is wrong
	passes := segment{text: over(r, " "), spare: spareCounts, apart: "compared "}
	switch {
	case r.Mismatches > 0 && r.Divergence != nil:
		v.word = "MISMATCH"
		v.segments = []segment{
			{text: fmt.Sprintf("%d of %d ", r.Mismatches, c.Compared)},
			{text: "compared ", spare: spareWord},
			{text: either(c.Compared == 1, "entry", "entries")},
			passes,
			{text: ", first " + r.Divergence.Row.Key() + overflowed(&r.Divergence.Row)},
			{text: besides(r), spare: spareFacts},
			{text: demo(r), spare: spareCounts},
		}
	case r.ExitCode() == 0:
		v.colour, v.word = p.style.good, either(r.Baseline != nil && r.Baseline.Accepted > 0, "ACCEPTED", "MATCH")
		v.segments = append([]segment{
			{text: all(r)},
			passes,
			{text: " " + either(r.Alone, "are right on their own inputs", "match")},
			{text: but(r), spare: spareFacts},
			{text: excusedBy(r), spare: spareFacts},
		}, left(r)...)
	case len(r.Incomplete) > 0:
		v.segments = []segment{compared, passes, {text: ", " + none(r)}, {text: besides(r), spare: spareFacts}}
		if r.CommonPasses != "" {
			v.segments = append(v.segments, segment{text: "; --passes " + r.CommonPasses + " compares these alone"})
		}
		if alone {
			v.segments = append(v.segments, segment{text: ": " + r.Incomplete[0]})
			if n := len(r.Incomplete) - 1; n > 0 {
				v.segments = append(v.segments, segment{text: fmt.Sprintf(" (and %s)", count(n, "more reason", "more reasons"))})
			}
		}
	case len(r.Missing) > 0:
		v.word = "MISSING"
		v.segments = []segment{{text: count(len(r.Missing), "entry is", "entries are") + " missing"}, counted, passes, {text: ", " + none(r), spare: spareFacts}}
	case len(r.Baseline.Failing()) > 0:
		v.word = "BASELINE"
		v.segments = []segment{{text: failing(r) + " no longer " + either(len(r.Baseline.Failing()) == 1, "holds", "hold")}, counted, passes, {text: ", " + none(r), spare: spareFacts}}
	case unmet(r) > 0:
		v.word = "NOT DIFFERENT"
		v.segments = []segment{{text: count(unmet(r), "pattern", "patterns") + " expected a difference and found none"}, counted, passes}
	default:
		v.segments = []segment{compared, passes, {text: ", none of them tests anything"}}
	}
	p.closing(v)
}

// demo names the embedded model, where it ran since no other was named: what the line says is not about anybody's port.
func demo(r *compare.Result) string {
	if r.Demo == "" {
		return ""
	}
	return "; demo model " + r.Demo
}

// Demo is the end of a gate's last line where a prompt ran the embedded model, since the file names no other; else it is empty.
func Demo(d *Document) string {
	for i := range d.Runs {
		if r := d.Runs[i].Result; r != nil && r.Demo != "" {
			return demo(r)
		}
	}
	return ""
}

// overflowed says that the dtype of the local tensor is what is wrong with a row, where it is.
func overflowed(r *compare.Row) string {
	if !r.Overflowed() {
		return ""
	}
	return " (" + r.Overflow.DType + " overflowed)"
}

// verdict is the last line in its parts.
type verdict struct {
	colour   *color.Color
	word     string
	segments []segment
}

type segment struct {
	text  string
	spare spare
	apart string // what has to stand before it where it stands apart from the rest
}

// spare is what a page that is too narrow does without in its last line, the highest first.
type spare int

const (
	needed      spare = iota // stays, whatever the width
	spareFacts               // what the verdict rests on
	spareCounts              // what was not looked at
	spareWord                // goes without saying
)

// closing writes the line, and before it what does not fit a page.
func (p *printer) closing(v verdict) {
	defer func(width int) { p.width = width }(p.width)
	var out []string
	for most := spareWord; most > needed && p.width > 0; most-- {
		for i := len(v.segments) - 1; i >= 0 && len([]rune(v.word+": "+v.line())) > p.width; i-- {
			s := &v.segments[i]
			if s.spare != most || s.text == "" {
				continue
			}
			if most < spareWord {
				text := strings.TrimLeft(s.text, " ;,")
				if inner, ok := strings.CutPrefix(text, "("); ok {
					text = strings.TrimSuffix(inner, ")")
				}
				out = append(out, s.apart+text)
			}
			s.text = ""
		}
	}
	if out != nil {
		slices.Reverse(out)
		p.line("counts: %s", strings.Join(out, "; "))
	}
	p.width = 0 // a name that is wider than the page is not broken
	p.say(v.colour, v.word, "%s", v.line())
}

func (v verdict) line() string {
	var b strings.Builder
	for _, s := range v.segments {
		b.WriteString(s.text)
	}
	return b.String()
}

// none says that nothing was found wrong, and whether everything was looked at.
func none(r *compare.Result) string {
	if s := r.Isolation; s != nil && s.Unidentified > 0 {
		return fmt.Sprintf("none wrong, %d %s", s.Unidentified, isolate.Unidentified)
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
		return "all " + count(n, "entry", "entries") + " compared"
	}
	return fmt.Sprintf("%d of %s compared", n-b.Accepted-b.Inherited, count(n, "entry", "entries"))
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
		add(s.Unidentified, string(isolate.Unidentified))
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
func left(r *compare.Result) []segment {
	var list []segment
	add := func(s spare, text string) { list = append(list, segment{text: "; " + text, spare: s}) }
	if n := r.Coverage.Entries - r.Coverage.Compared; n > 0 {
		add(spareCounts, fmt.Sprintf("%d not compared", n))
	}
	if n := r.Coverage.Unknown; n > 0 {
		add(spareCounts, "the order does not know "+count(n, "tensor", "tensors"))
	}
	if !r.Alone && !r.AB && (r.Isolation == nil || r.Uncertified != "") {
		add(needed, "within limits only")
	}
	if r.Demo != "" {
		list = append(list, segment{text: demo(r)})
	}
	switch {
	case r.Same == compare.SameFile:
		add(needed, "compared with itself")
	case r.Same != "":
		add(needed, "perhaps with a copy")
	}
	return list
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
