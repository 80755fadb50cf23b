package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

// Verdict is the last line of every view: the verdict with counts. whole adds the first reason why a comparison is incomplete, which stands above it in a longer text.
func Verdict(r *compare.Result, whole bool) Field {
	c := r.Coverage
	v := Field{Kind: Said, Label: "INCOMPLETE", Tone: Bad}
	compared := Segment{Text: count(c.Compared, "entry", "entries") + " compared"}
	counted := Segment{Text: "; " + compared.Text, Spare: SpareFacts} // beside what is wrong
	passes := Segment{Text: over(r, " "), Spare: SpareCounts, Apart: "compared "}
	switch {
	case r.Mismatches > 0 && r.Divergence != nil:
		v.Label = "MISMATCH"
		v.Segments = []Segment{
			{Text: fmt.Sprintf("%d of %d ", r.Mismatches, c.Compared)},
			{Text: "compared ", Spare: SpareWord},
			{Text: Either(c.Compared == 1, "entry", "entries")},
			passes,
			{Text: ", first " + r.Divergence.Row.Key() + overflowed(&r.Divergence.Row)},
			{Text: besides(r), Spare: SpareFacts},
			{Text: demoOf(r), Spare: SpareCounts},
		}
	case r.ExitCode() == 0:
		v.Tone, v.Label = Good, Either(r.Baseline != nil && r.Baseline.Accepted > 0, "ACCEPTED", "MATCH")
		v.Segments = append([]Segment{
			{Text: allOf(r)},
			passes,
			{Text: " " + Either(r.Alone, "are right on their own inputs", "match")},
			{Text: but(r), Spare: SpareFacts},
			{Text: excusedBy(r), Spare: SpareFacts},
		}, left(r)...)
	case len(r.Incomplete) > 0:
		v.Segments = []Segment{compared, passes, {Text: ", " + noneWrong(r)}, {Text: besides(r), Spare: SpareFacts}}
		if r.CommonPasses != "" {
			v.Segments = append(v.Segments, Segment{Text: "; --passes " + r.CommonPasses + " compares only these"})
		}
		if whole {
			v.Segments = append(v.Segments, Segment{Text: ": " + r.Incomplete[0]})
			if n := len(r.Incomplete) - 1; n > 0 {
				v.Segments = append(v.Segments, Segment{Text: fmt.Sprintf(" (and %s)", count(n, "more reason", "more reasons"))})
			}
		}
	case len(r.Missing) > 0:
		v.Label = "MISSING"
		v.Segments = []Segment{{Text: count(len(r.Missing), "entry is", "entries are") + " missing"}, counted, passes, {Text: ", " + noneWrong(r), Spare: SpareFacts}}
	case len(r.Baseline.Failing()) > 0:
		v.Label = "BASELINE"
		v.Segments = []Segment{{Text: failing(r)}, counted, passes, {Text: ", " + noneWrong(r), Spare: SpareFacts}}
	case unmet(r) > 0:
		v.Label = "NOT DIFFERENT"
		v.Segments = []Segment{{Text: count(unmet(r), "pattern", "patterns") + " expected a difference and found none"}, counted, passes}
	default:
		v.Segments = []Segment{compared, passes, {Text: ", but " + compare.NothingTested}}
	}
	for i := range v.Segments {
		v.Segments[i].Text = Clean(v.Segments[i].Text)
		v.Text += v.Segments[i].Text
	}
	return v
}

// demoOf says that the built-in model ran, since no model was named: the line is not about a port of a person.
func demoOf(r *compare.Result) string {
	if r.Demo == "" {
		return ""
	}
	return "; built-in model"
}

// overflowed says that the dtype of the local tensor is what is wrong with a row, where it is.
func overflowed(r *compare.Row) string {
	if !r.Overflowed() {
		return ""
	}
	return " (" + r.Overflow.DType + " overflowed)"
}

// Segment is a part of a verdict.
type Segment struct {
	Text  string
	Spare Spare
	Apart string // what has to stand before it where it stands apart from the rest
}

// Spare ranks the parts of a last line. A narrow page drops the parts with the highest rank first.
type Spare int

// What is spared.
const (
	Needed      Spare = iota // stays, whatever the width
	SpareFacts               // what the verdict rests on
	SpareCounts              // what was not looked at
	SpareWord                // goes without saying
)

// noneWrong says that nothing was found wrong, and whether everything was looked at.
func noneWrong(r *compare.Result) string {
	if s := r.Isolation; s != nil && s.Unidentified > 0 {
		return fmt.Sprintf("none wrong, %d %s", s.Unidentified, isolate.Unidentified)
	}
	return "none wrong"
}

// besides lists the failures other than the failure that the line reports.
func besides(r *compare.Result) string {
	var parts []string
	if r.Mismatches > 0 && len(r.Incomplete) > 0 {
		parts = append(parts, "incomplete")
	}
	if n := len(r.Missing); n > 0 {
		parts = append(parts, fmt.Sprintf("%d missing", n))
	}
	if len(r.Baseline.Failing()) > 0 {
		parts = append(parts, failing(r))
	}
	if parts == nil {
		return excusedBy(r)
	}
	return "; " + strings.Join(parts, ", ") + excusedBy(r)
}

// failing counts the lines of the baseline that no longer hold.
func failing(r *compare.Result) string {
	n := len(r.Baseline.Failing())
	return divergences(n) + " of " + r.Baseline.File + " no longer " + Either(n == 1, "holds", "hold")
}

func divergences(n int) string { return count(n, "accepted divergence", "accepted divergences") }

// allOf says how many entries a success covers: all compared entries, without the entries that the baseline accepts or inherits.
func allOf(r *compare.Result) string {
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
	text := acceptedOf(b.Accepted, b.File)
	if b.Inherited > 0 {
		text += fmt.Sprintf(", %d inherited", b.Inherited)
	}
	return text
}

// acceptedOf counts what a baseline accepted; empty where it accepted nothing.
func acceptedOf(n int, file string) string {
	return Either(n == 0, "", fmt.Sprintf("; %s (%s)", divergences(n), file))
}

// but counts the entries of a success that are not plain matches. By its limit or its certificate only, such an entry would be wrong.
func but(r *compare.Result) string {
	var all []number
	if s := r.Isolation; s != nil {
		all = append(all, number{int64(s.Drift), "by drift"}, number{int64(inLayouts(r)), "in another layout"}, number{int64(s.Unidentified), string(isolate.Unidentified)})
	}
	different := 0
	for _, e := range r.Expected {
		different += e.Differ
	}
	all = append(all, number{int64(accepted(r)), allowedToDiffer}, number{int64(different), expectedToDiffer + ", and do"})
	if text := counts(", ", all...); text != "" {
		return " (" + strings.TrimPrefix(text, ", ") + ")"
	}
	return ""
}

// inLayouts counts the rows that match in other numbers.
func inLayouts(r *compare.Result) int {
	return countOf(r.Rows, func(row *compare.Row) bool { return row.Facts.Standing == compare.StandingLayout })
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
	return countOf(r.Expected, func(e *compare.Expectation) bool { return e.Unmet })
}

// left says how many entries and tensors were not compared, and whether a success rests on limits only.
func left(r *compare.Result) []Segment {
	var list []Segment
	add := func(s Spare, text string) { list = append(list, Segment{Text: "; " + text, Spare: s}) }
	if n := r.Coverage.Entries - r.Coverage.Compared; n > 0 {
		add(SpareCounts, fmt.Sprintf("%d not compared", n))
	}
	if n := r.Coverage.Unknown; n > 0 {
		add(SpareCounts, "the order does not know "+count(n, "tensor", "tensors"))
	}
	if !r.Alone && !r.AB && (r.Isolation == nil || r.Uncertified != "") {
		add(Needed, "within limits only")
	}
	if r.Demo != "" {
		list = append(list, Segment{Text: demoOf(r)})
	}
	switch {
	case r.Same == compare.SameFile:
		add(Needed, "compared with itself")
	case r.Same != "":
		add(Needed, "perhaps one run")
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
