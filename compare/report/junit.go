package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
)

// The elements of JUnit's XML that every CI reads. There are no times: a comparison is not timed by entry.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		// Properties say how the suite was made: the map that gave names and layouts.
		Properties *junitProperties `xml:"properties"`
		Cases      []junitCase      `xml:"testcase"`
	}
	junitProperties struct {
		List []junitProperty `xml:"property"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitOutcome `xml:"failure"`
		Error   *junitOutcome `xml:"error"`
		Skipped *junitOutcome `xml:"skipped"`
		Said    string        `xml:"system-out,omitempty"`
	}
	junitOutcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the document as JUnit XML: a suite a run, a case an entry of a pass, one for each line of a baseline that no longer
// holds, and in every suite a last case, "coverage", that fails when the comparison is incomplete. A suite has a failure or an error if and only if its run does
// not exit with 0. Skipped are the rows that decide nothing: derived ones, those that were not judged, and mismatches that
// the allow-list or the baseline accepts, with its reason. The error is that of w.
func JUnit(w io.Writer, d *Document) error {
	all := junitSuites{Name: d.Tool.Name}
	if d.Weights != nil {
		s := junitSuite{Name: "tracediff.weights"}
		s.addWeights(d.Weights)
		all.Tests, all.Failures, all.Suites = s.Tests, s.Failures, append(all.Suites, s)
	}
	for i := range d.Runs {
		s := suite(&d.Runs[i])
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func suite(r *Run) junitSuite {
	s := junitSuite{Name: "tracediff"}
	if r.Name != "" {
		s.Name += "." + r.Name
	}
	if r.Result == nil {
		s.add(junitCase{Name: "comparison", Error: &junitOutcome{Message: r.Error, Text: r.Hint}})
		return s
	}
	if m := r.Result.Map; m != nil {
		s.Properties = &junitProperties{List: []junitProperty{{"map", mapText(m)}}}
	}
	for i := range r.Result.Rows {
		s.add(rowCase(r.Result, &r.Result.Rows[i]))
	}
	for _, m := range r.Result.Missing {
		s.add(junitCase{Name: key(m.Pass, m.Name), Failure: &junitOutcome{Message: "declared but not there: " + m.Side, Type: "MISSING"}})
	}
	for _, l := range r.Result.Baseline.Failing() {
		s.add(junitCase{Name: "baseline " + l.Key, Failure: &junitOutcome{Message: l.Why, Type: "BASELINE", Text: fmt.Sprintf("%s, until %s: %s", l.State, l.Until, l.Reason)}})
	}
	s.add(coverageCase(r.Result))
	return s
}

// add counts a case and puts it at the end.
func (s *junitSuite) add(c junitCase) {
	c.Class = s.Name
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func rowCase(res *compare.Result, r *compare.Row) junitCase {
	c := junitCase{Name: r.Key()}
	switch {
	case r.Derived:
		c.Skipped = &junitOutcome{Message: "recomputed by the capturing side: " + string(r.Verdict)}
	case r.Excused != "":
		c.Skipped = &junitOutcome{Message: string(r.Excused) + ": " + r.Allowed, Type: string(r.Class)}
	case r.Allowed != "":
		c.Skipped = &junitOutcome{Message: "allowed: " + r.Allowed, Type: string(r.Class)}
	case r.Verdict == compare.Unverified:
		c.Skipped = &junitOutcome{Message: "not judged: " + r.Detail}
	case r.Verdict == compare.Mismatch:
		c.Failure = &junitOutcome{Message: r.Detail, Type: string(r.Class), Text: detail(res, r)}
	}
	if z := r.Isolated; z != nil && z.Outcome == isolate.Unidentified && c.Skipped == nil && c.Failure == nil {
		c.Said = string(z.Outcome) + ": " + r.NotIsolated
	}
	return c
}

// detail is what a failure says below its message; of the first divergence also what to look at next.
func detail(res *compare.Result, r *compare.Row) string {
	var b strings.Builder
	if r.Gate != nil {
		for _, c := range r.Gate.Checks {
			failed := either(notFinite(r), "NaN", number(c.Error))
			fmt.Fprintf(&b, "%s: error %s, limit %s (%s)\n", c.What, failed, number(c.Limit), gate.Source(r.Gate.From))
		}
	}
	if r.Stats != nil {
		fmt.Fprintf(&b, "values: %s\n", stats(*r.Stats))
	}
	if r.Isolated != nil && r.Isolated.Finding != nil {
		fmt.Fprintf(&b, "bug: %s\n", r.Isolated.Finding.Text())
	}
	if r.Isolated != nil {
		fmt.Fprintf(&b, "by itself: %s\n", r.Isolated.Outcome)
	}
	if r.Blame != "" {
		fmt.Fprintf(&b, "blame: %s\n", r.Blame)
	}
	if d := res.Divergence; d != nil && d.Row.Key() == r.Key() {
		if d.Fault != nil && d.Fault.Finding != nil {
			fmt.Fprintf(&b, "bug: %s\n", bugText(d))
		}
		fmt.Fprintf(&b, "decided by %s\n", res.Decided)
		for _, h := range d.Hints {
			fmt.Fprintf(&b, "hint: %s\n", h)
		}
	}
	return b.String()
}

// coverageCase stands for the comparison as a whole.
func coverageCase(r *compare.Result) junitCase {
	v := r.Coverage
	said := fmt.Sprintf("%s; %d show something", covered(r), v.Tested)
	c := junitCase{Name: "coverage"}
	switch s := r.Isolation; {
	case r.Uncertified != "":
		c.Said = "none was certified: " + r.Uncertified
	case s != nil && s.Unidentified > 0:
		c.Said = fmt.Sprintf("%s %s", count(s.Unidentified, "entry is", "entries are"), isolate.Unidentified)
	}
	switch {
	case len(r.Incomplete) > 0:
		c.Failure = &junitOutcome{Message: strings.Join(r.Incomplete, "; "), Type: "INCOMPLETE", Text: said}
	case v.Tested == 0:
		c.Failure = &junitOutcome{Message: "nothing was tested", Type: "INCOMPLETE", Text: said}
	}
	return c
}
