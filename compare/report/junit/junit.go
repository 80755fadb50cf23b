// Package junit writes reports as the XML that every CI reads.
package junit

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report/words"
)

// The elements of JUnit's XML that every CI reads. There are no times: a comparison is not timed by entry.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		// Properties say how the suite was made: the map that gave names and layouts.
		Properties *properties `xml:"properties"`
		Cases      []testCase  `xml:"testcase"`
	}
	properties struct {
		List []property `xml:"property"`
	}
	property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *outcome `xml:"failure"`
		Error   *outcome `xml:"error"`
		Skipped *outcome `xml:"skipped"`
		Said    string   `xml:"system-out,omitempty"`
	}
	outcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// Write writes the document as JUnit XML: a suite a run, a case an entry of a pass, one for each line of a baseline that no longer
// holds, and in every suite a last case, "coverage", that fails when the comparison is incomplete. A suite has a failure or an error if and only if its run does
// not exit with 0. Skipped are the rows that decide nothing: derived ones, those that were not judged, and mismatches that
// the allow-list or the baseline accepts, with its reason. The error is that of w.
func Write(w io.Writer, d *words.Report) error {
	all := suites{Name: d.Tool.Name}
	if d.Weights != nil {
		all.Suites = append(all.Suites, weightsOf(d.Weights))
	}
	for i := range d.Runs {
		all.Suites = append(all.Suites, suiteOf(&d.Runs[i]))
	}
	return encode(w, all)
}

func encode(w io.Writer, all suites) error {
	for _, s := range all.Suites {
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
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

func suiteOf(r *words.Run) suite {
	s := suite{Name: "tracediff"}
	if r.Name != "" {
		s.Name += "." + r.Name
	}
	if r.Result == nil {
		s.add(testCase{Name: "comparison", Error: &outcome{Message: r.Error, Text: r.Hint}})
		return s
	}
	if m := r.Result.Map; m != nil {
		s.Properties = &properties{List: []property{{"map", words.MapText(m)}}}
	}
	for i := range r.Result.Rows {
		s.add(rowCase(r.Result, &r.Result.Rows[i]))
	}
	for _, m := range r.Result.Missing {
		s.add(testCase{Name: words.Key(m.Pass, m.Name), Failure: &outcome{Message: words.NotDumped + ": " + m.Side, Type: "MISSING"}})
	}
	for _, l := range r.Result.Baseline.Failing() {
		s.add(testCase{Name: "baseline " + l.Key, Failure: &outcome{Message: l.Why, Type: "BASELINE", Text: words.Known(l)}})
	}
	s.add(coverageCase(r.Result))
	return s
}

// add counts a case and puts it at the end.
func (s *suite) add(c testCase) {
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

func rowCase(res *compare.Result, r *compare.Row) testCase {
	c := testCase{Name: r.Key()}
	switch excuse := words.Excuse(r); {
	case excuse != "":
		c.Skipped = &outcome{Message: excuse}
		if !r.Derived && r.Allowed+string(r.Excused) != "" {
			c.Skipped.Type = string(r.Class)
		}
	case r.Verdict == compare.Mismatch:
		c.Failure = &outcome{Message: r.Detail, Type: string(r.Class), Text: lines(words.Row(res, r))}
	default:
		c.Said = words.Doubt(r)
	}
	return c
}

// lines are fields, a line each.
func lines(fields []words.Field) string {
	var b strings.Builder
	for _, f := range fields {
		if f.Label != "" {
			b.WriteString(f.Label + ": ")
		}
		b.WriteString(f.Text + "\n")
	}
	return b.String()
}

// coverageCase stands for the comparison as a whole.
func coverageCase(r *compare.Result) testCase {
	incomplete, tested, on := words.Rests(r)
	c := testCase{Name: "coverage", Said: on}
	if incomplete != "" {
		c.Failure = &outcome{Message: incomplete, Type: "INCOMPLETE", Text: tested}
	}
	return c
}
