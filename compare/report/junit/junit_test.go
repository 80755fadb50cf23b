package junit_test

import (
	"bytes"
	"encoding/xml"
	"testing"

	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/reporttest"
)

// suite is an element of JUnit XML as a CI reads it.
type suite struct {
	Name  string `xml:"name,attr"`
	Cases []struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Failure *struct{} `xml:"failure"`
		Error   *struct{} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	} `xml:"testcase"`
}

// A suite fails if and only if its run does, and the counts are those of the cases.
func TestJUnit(t *testing.T) {
	for name, d := range reporttest.Documents(t) {
		text := reporttest.Shown(t, junit.Write, d)
		if bytes.ContainsRune(text, 0x1b) {
			t.Errorf("%s: a control character in the report", name)
		}
		var got struct {
			Tests    int     `xml:"tests,attr"`
			Failures int     `xml:"failures,attr"`
			Errors   int     `xml:"errors,attr"`
			Skipped  int     `xml:"skipped,attr"`
			Suites   []suite `xml:"testsuite"`
		}
		if err := xml.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var tests, failures, failed, skipped int
		for i, s := range got.Suites {
			bad := 0
			for _, c := range s.Cases {
				tests++
				switch {
				case c.Failure != nil:
					failures, bad = failures+1, bad+1
				case c.Error != nil:
					failed, bad = failed+1, bad+1
				case c.Skipped != nil:
					skipped++
				}
				if c.Class != s.Name || c.Name == "" {
					t.Errorf("%s: case %q of class %q in suite %q", name, c.Name, c.Class, s.Name)
				}
			}
			if (bad > 0) != (d.Runs[i].Exit != 0) {
				t.Errorf("%s: run %d exits with %d and has %d failures", name, i, d.Runs[i].Exit, bad)
			}
		}
		if len(got.Suites) != len(d.Runs) || tests != got.Tests || failures != got.Failures || failed != got.Errors || skipped != got.Skipped {
			t.Errorf("%s: %d suites, %d tests, %d failures, %d errors, %d skipped; it says %+v", name, len(got.Suites), tests, failures, failed, skipped, got)
		}
	}
}

// The XML of one comparison as it looks.
func TestJUnitLooks(t *testing.T) {
	reporttest.Golden(t, "divergence.xml", string(reporttest.Shown(t, junit.Write, reporttest.Documents(t)["divergence"])))
}
