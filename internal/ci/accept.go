package ci

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// maxReport bounds a report that is read: some KiB for each of the entries of 2,000 a pass, of hundreds of passes.
const maxReport = 1 << 30

// Acceptance is what is to be accepted of a report.
type Acceptance struct {
	Report   string   // a JSON report of compare or gate
	Patterns []string // of the names of entries; none: all that fail and are not inherited
	Reason   string
	Until    string // the last day
}

// Accepted are the lines for a baseline, in the order of the report, and how many divergences were left out since they are
// inherited: they need no line.
type Accepted struct {
	Lines     []baseline.Line
	Inherited int
}

// Accept makes lines of the mismatches of a report that fail it. today is the day.
func Accept(a Acceptance, today time.Time) (*Accepted, error) {
	if _, err := os.Stat(a.Report); err != nil {
		return nil, hint.Add(advice.OnPath(a.Report, err), writesReport)
	}
	runs, err := readRuns(a.Report)
	if err != nil {
		return nil, err
	}
	if err := a.check(today); err != nil {
		return nil, err
	}
	got, matched := &Accepted{}, make([]bool, len(a.Patterns))
	for _, run := range runs {
		for i := range run.Result.Rows {
			row := &run.Result.Rows[i]
			if !fails(row) {
				continue
			}
			if len(a.Patterns) == 0 && inherits(row) {
				got.Inherited++
				continue
			}
			if len(a.Patterns) > 0 && !a.names(row, matched) {
				continue
			}
			l := baseline.Line{Shown: row.Shown(), Run: run.Name, Reason: strings.TrimSpace(a.Reason), Until: a.Until}
			if err := l.Check(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", a.Report, row.Key(), err)
			}
			got.Lines = append(got.Lines, l)
		}
	}
	if at := slices.Index(matched, false); at >= 0 {
		return nil, hint.Add(fmt.Errorf("--entries %q matches no divergence of %s", a.Patterns[at], a.Report), "patterns match names of entries, such as layers.3.mlp.*; a comparison that stopped at the first divergence has only that divergence, --all goes on")
	}
	if len(got.Lines) == 0 {
		return nil, hint.Add(fmt.Errorf("%s has no divergence that could be accepted", a.Report), "only a mismatch can be accepted; an entry that is missing, incomplete or not comparable has to be corrected, or left out by a narrower comparison")
	}
	return got, nil
}

// check reports what no baseline may say.
func (a *Acceptance) check(today time.Time) error {
	const next = "--until 2027-01-31 is the last day, in UTC, on which the divergences are accepted"
	day, err := time.Parse(baseline.Date, a.Until)
	switch {
	case strings.TrimSpace(a.Reason) == "":
		return hint.Add(errors.New("--reason is empty"), "say why these divergences are known and acceptable for now: every report prints it")
	case a.Until == "":
		return hint.Add(errors.New("--until is not given"), next)
	case err != nil:
		return hint.Add(fmt.Errorf("--until is %.40q, not a date", a.Until), next)
	case day.Format(baseline.Date) < today.UTC().Format(baseline.Date):
		return hint.Add(fmt.Errorf("--until %s is in the past", a.Until), next)
	}
	for _, p := range a.Patterns {
		if err := hooks.CheckPattern(p); err != nil {
			return fmt.Errorf("--entries: %w", err)
		}
	}
	return nil
}

// names reports whether a pattern of a matches a row's name or key. It marks every matching pattern in matched.
func (a *Acceptance) names(r *compare.Row, matched []bool) bool {
	any := false
	for i, p := range a.Patterns {
		if hooks.Match(p, r.Name) || hooks.Match(p, r.Key()) {
			matched[i], any = true, true
		}
	}
	return any
}

// fails reports whether a row is a mismatch not excused by an expectation, an allow-list or inheritance. A mismatch
// accepted by a baseline also fails here, so that a new report replaces the recorded line.
func fails(r *compare.Row) bool {
	expected := slices.ContainsFunc(r.Notes, func(n compare.Note) bool { return n.Kind == compare.Expected })
	return r.Verdict == compare.Mismatch && !r.Derived && !expected && r.Name != order.InputIDs &&
		(r.Allowed == "" || r.Excused == compare.Accepted)
}

// inherits reports whether a row is right on its own inputs and over its limit only because of them. The row passes
// once the entries with the original errors are accepted.
func inherits(r *compare.Row) bool {
	c := r.Isolated
	return r.Blame == compare.Inherited && r.Facts.Seen == compare.SeenPast && c != nil && (c.Outcome == isolate.Exact || c.Outcome == isolate.Rounding)
}

// reportRun is what is read of a run of a report.
type reportRun struct {
	Name   string `json:"name"`
	Result *struct {
		AB   bool          `json:"ab"`
		Rows []compare.Row `json:"rows"`
	} `json:"result"`
}

const writesReport = "tracediff compare --report json=out.json writes one"

// readRuns reads the runs of a JSON report that have a result.
func readRuns(path string) ([]reportRun, error) {
	text, _, err := files.ReadStream(path, maxReport)
	if err != nil {
		return nil, hint.Add(advice.OnPath(path, err), writesReport)
	}
	var head struct {
		Schema string `json:"schema"`
		Type   string `json:"type"`
	}
	var d struct {
		Runs []reportRun `json:"runs"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, hint.Add(fmt.Errorf("%s is not a JSON report of a comparison: %w", path, err), writesReport+"; a report as JSON Lines is not read")
	}
	switch head.Schema {
	case report.Schema:
	case "tracediff/report/1":
		return nil, hint.Add(fmt.Errorf("%s is a report of version 1 (%s), of an older tracediff, and cannot be read", path, head.Schema), "compare again with --report json=out.json")
	default:
		return nil, hint.Add(fmt.Errorf("%s is not a report: its schema is %.40q, want %q", path, head.Schema, report.Schema), writesReport)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, hint.Add(fmt.Errorf("%s is not a report: %w", path, err), writesReport)
	}
	runs := slices.DeleteFunc(d.Runs, func(r reportRun) bool { return r.Result == nil })
	if slices.ContainsFunc(runs, func(r reportRun) bool { return r.Result.AB }) {
		return nil, hint.Add(fmt.Errorf("%s is an A/B comparison, in which neither side is right", path), "--expect-different PATTERN names what has to differ")
	}
	return runs, nil
}

// Extend adds the lines to the lines of a baseline file, replacing older lines for the same entry. It creates a
// missing file, and returns the number of new lines.
func (a *Accepted) Extend(path string) (added int, err error) {
	var old []baseline.Line
	if _, err := os.Stat(path); err == nil {
		b, err := gatefile.OpenBaseline(path, path)
		if err != nil {
			return 0, err
		}
		old = b.Lines
	}
	lines, replaced, err := baseline.Merge(old, a.Lines)
	if err != nil {
		return 0, hint.Add(fmt.Errorf("%s: %w", path, err), "a section without a prompt applies to all prompts: remove it, or accept into another file")
	}
	if err := files.Write(path, baseline.Format(lines)); err != nil {
		return 0, hint.Add(advice.OnPath(path, err), "--baseline names a file in an existing folder")
	}
	return len(a.Lines) - replaced, nil
}
