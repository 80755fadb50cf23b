package words

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report"
)

// Report is the outcome of a command in words: the document of each run is made once, for all formats.
type Report struct {
	*report.Document
	Runs []Run
}

// Run is one comparison, and its document; nil where it has no result.
type Run struct {
	*report.Run
	Words *Document
}

// New is a report in words.
func New(d *report.Document) *Report {
	all := &Report{Document: d, Runs: make([]Run, len(d.Runs))}
	for i := range d.Runs {
		all.Runs[i].Run = &d.Runs[i]
		if r := d.Runs[i].Result; r != nil {
			all.Runs[i].Words = Of(r)
		}
	}
	return all
}

const notComparedRun = "not compared"

// Outcome is the first word of the verdict on a run.
func Outcome(r *report.Run) string {
	if r.Result == nil {
		return notComparedRun
	}
	return Verdict(r.Result, true).Label
}

// Refused says why a run that has no result could not be compared, and what to do.
func Refused(r *report.Run) []Field {
	return []Field{{Kind: Said, Label: notComparedRun, Text: Clean(r.Error)}, {Kind: Said, Label: "hint", Text: Clean(r.Hint)}}
}

// Since says how the first divergence moved since the last comparison.
func Since(text string) Field { return lead("since the last compare:", text) }

// Spared is what a narrow page leaves out of a verdict.
func Spared(counts []string) Field { return lead("also:", strings.Join(counts, "; ")) }

// Named is the name of a prompt in front of what is said of it.
func Named(r *report.Run) string { return Either(r.Name == "", "", r.Name+": ") }

// Heading is a run that does not match, in a line.
func Heading(r *report.Run) string {
	title := "tracediff: " + Named(r) + Outcome(r)
	if r.Result != nil && r.Result.Divergence != nil {
		title += " at " + r.Result.Divergence.Row.Key()
	}
	return title
}

// Further is a bug of a run other than the first divergence.
type Further struct {
	Where, What string
	Key         string // of the first entry
	Page        string // of docs/mistakes.md
}

// FurtherBugs are the bugs of a run other than the first divergence.
func FurtherBugs(r *report.Run) (all []Further) {
	if r.Result == nil || r.Result.Isolation == nil {
		return nil
	}
	for _, f := range r.Result.Isolation.Findings {
		if d := r.Result.Divergence; f.Bug == nil || d != nil && d.Row.Key() == f.First {
			continue
		}
		all = append(all, Further{Named(r) + "bug in " + f.Where(), Clean(f.What) + "\nfirst " + Clean(f.First), f.First, f.Bug.Page})
	}
	return all
}

// Matching counts the prompts of a gate that match.
func Matching(d *report.Document) string {
	matching := countOf(d.Runs, func(r *report.Run) bool { return r.Exit == 0 })
	return fmt.Sprintf("%d of %s match", matching, count(len(d.Runs), "prompt", "prompts"))
}

// Besides ends the last line of a gate: that a prompt ran the built-in model, and what baselines accepted.
func Besides(d *report.Document) string {
	demo, n, file := "", 0, ""
	for i := range d.Runs {
		if r := d.Runs[i].Result; r != nil {
			demo = cmp.Or(demo, demoOf(r))
			if r.Baseline != nil {
				n, file = n+r.Baseline.Accepted, r.Baseline.File
			}
		}
	}
	return Clean(demo + acceptedOf(n, file))
}

// Gate has a row for each prompt: what does not match comes first.
func Gate(d *report.Document) *Document {
	doc := &Document{}
	title := "tracediff gate"
	if d.Shard != nil {
		title += ", shard " + d.Shard.String()
	}
	doc.say(Plain, title, "%s", Matching(d))
	var rows [][]Cell
	for _, failed := range []bool{true, false} {
		for i := range d.Runs {
			if r := &d.Runs[i]; (r.Exit != 0) == failed {
				first, what := whatIsWrong(r)
				rows = append(rows, plainCells(r.Name, Outcome(r), first, what))
			}
		}
	}
	doc.table([]Column{{Title: "prompt"}, {}, {Title: FirstDivergence}, {Title: "what is wrong"}}, rows)
	return doc
}

// whatIsWrong is the first divergence of a run, and what is wrong there or with the run.
func whatIsWrong(r *report.Run) (first, what string) {
	switch {
	case r.Result == nil:
		what = r.Error
	case r.Result.Divergence != nil:
		d := r.Result.Divergence
		first, what = d.Row.Key(), d.Row.Detail
		if !unnamed(d) {
			what = cmp.Or(bugText(d), what)
		}
	case len(r.Result.Incomplete) > 0:
		what = r.Result.Incomplete[0]
	}
	return first, what
}

// LeftOut says that blocks of a summary were left out.
func LeftOut(n int) string {
	return fmt.Sprintf("%d more did not fit into the summary: the report has them.", n)
}

// Rule is a kind of what is wrong, for a view of code.
type Rule struct{ ID, Title string }

// The rules for outcomes other than a mismatch of an entry.
var (
	IncompleteRule = Rule{"incomplete", "the comparison is incomplete"}
	WeightsRule    = Rule{"weights", "weights that differ from the original's"}
)

// What formats say of other weights, of a line of source of the reference, and of what GitHub does not show.
const (
	InSummary     = "The summary of this step has all of them."
	OtherWeights  = "the port's weights are not the original's; tracediff weights says which"
	ReferenceHere = "the reference computes it here"
)

// ClassRule is that of a class of mismatch.
func ClassRule(c gate.Class) Rule {
	return Rule{strings.ToLower(string(c)), "a tensor that differs from the reference: " + string(c)}
}
