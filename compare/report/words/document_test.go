package words_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/words"
)

// said are the lines of sections in a length.
func said(l words.Length, sections ...words.Section) (lines []string) {
	for _, f := range words.Fields(sections) {
		if f.In(l) {
			lines = append(lines, strings.TrimPrefix(f.Label+": "+f.Text, ": "))
		}
	}
	return lines
}

// A part of a run is made once, whichever format shows it first and with whatever other parts.
func TestPartsAreMadeOnce(t *testing.T) {
	res := reporttest.Cases(t)["divergence"].Run(t)
	d := words.New(report.NewDocument("1", report.Run{Result: res}, report.Run{Error: "no trace"}))
	doc := d.Runs[0].Words
	first, again := doc.Show(words.Divergence), doc.Show(words.Sides, words.Divergence)
	if len(first) == 0 || len(again) <= len(first) {
		t.Fatalf("%d sections, and %d with the sides", len(first), len(again))
	}
	if &first[0].Fields[0] != &again[len(again)-len(first)].Fields[0] {
		t.Error("the divergence was made twice")
	}
	if d.Runs[1].Words != nil {
		t.Error("a run without a result has a document")
	}
}

// A document has both lengths: of long lists a brief view shows the first and says how many there are beside them.
func TestLengths(t *testing.T) {
	r := reporttest.Cases(t)["divergence"].Run(t)
	r.Map = &compare.Map{File: "port.toml", Patterns: 2}
	r.Baseline = &compare.Baseline{File: "known.toml"}
	for i := range 10 {
		r.Missing = append(r.Missing, compare.Missing{Name: fmt.Sprintf("m%d", i), Side: "local"})
		r.Map.Changes = append(r.Map.Changes, fmt.Sprintf("change %d", i))
		r.Baseline.Lines = append(r.Baseline.Lines, compare.KnownLine{Key: fmt.Sprintf("k%d", i), State: compare.KnownAccepted})
	}
	doc := words.Of(r)
	for _, c := range []struct {
		part         words.Part
		brief, whole int    // lines about the lists
		of           string // in each of these lines
		rest         string // the last line of the brief view
	}{
		{words.Missing, 3, 8, ", local", "and 7 more"},
		{words.Sides, 3, 10, "change ", "--verbose has 7 more"},
		{words.Baseline, 8, 10, "known: ", "and 2 more of known.toml (--verbose lists them)"},
	} {
		brief, whole := said(words.Brief, doc.Show(c.part)...), said(words.Whole, doc.Show(c.part)...)
		count := func(lines []string) (n int) {
			for _, line := range lines {
				if strings.Contains(line, c.of) {
					n++
				}
			}
			return n
		}
		if count(brief) != c.brief || count(whole) != c.whole {
			t.Errorf("%q: %d lines in brief and %d in whole, want %d and %d", c.of, count(brief), count(whole), c.brief, c.whole)
		}
		if brief[len(brief)-1] != c.rest || slices.Contains(whole, c.rest) {
			t.Errorf("in brief the last line is %q, want %q, and not so in the whole:\n%s", brief[len(brief)-1], c.rest, strings.Join(whole, "\n"))
		}
	}
}

// One name more than a view has room for takes the place of the line that would count it.
func TestNoLineCountsOne(t *testing.T) {
	r := reporttest.Cases(t)["match"].Run(t)
	for i := range 4 {
		r.Missing = append(r.Missing, compare.Missing{Name: fmt.Sprintf("m%d", i), Side: "both"})
	}
	got := said(words.Brief, words.Of(r).Show(words.Missing)...)
	want := []string{"MISSING: 4 entries are declared and not dumped", "m0, both sides", "m1, both sides", "m2, both sides", "m3, both sides"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Of a red flag, the whole says what a trace without one is worth, and names more tensors.
func TestCheckInBothLengths(t *testing.T) {
	doc := words.Check(reporttest.Flagged())
	brief, whole := said(words.Brief, doc.Sections...), said(words.Whole, doc.Sections...)
	const warning = "A trace without a flag may still be wrong: compare it."
	if slices.Contains(brief, warning) || !slices.Contains(whole, warning) {
		t.Errorf("brief:\n%s\nwhole:\n%s", strings.Join(brief, "\n"), strings.Join(whole, "\n"))
	}
	if !slices.Contains(brief, "also: a, b, c, d and 2 more") || !slices.Contains(whole, "also: a, b, c, d, e, f") {
		t.Errorf("brief:\n%s\nwhole:\n%s", strings.Join(brief, "\n"), strings.Join(whole, "\n"))
	}
}
