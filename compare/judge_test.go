package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
)

const verdictDocs = "../docs/verdict.md"

var (
	allSeen = []compare.Seen{
		compare.SeenShape, compare.SeenNonFinite, compare.SeenKeys, compare.SeenNumbers,
		compare.SeenDType, compare.SeenPast, compare.SeenWider, compare.SeenWithin,
	}
	allStandings = []compare.Standing{
		compare.StandingNone, compare.StandingGiven, compare.StandingRight, compare.StandingUnbroken, compare.StandingInherited, compare.StandingLayout, compare.StandingWrong,
	}
	allContents = []compare.Content{compare.Tested, compare.Confirmed, compare.Untested, compare.NotFinite}
)

// table reads the cells of the table under a heading of docs/verdict.md: by row and by column.
func table(t *testing.T, heading string) map[string]map[string]string {
	t.Helper()
	_, section, ok := strings.Cut(pagetest.Text(t, verdictDocs), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", verdictDocs, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	cells := map[string]map[string]string{}
	var columns []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		words := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		if columns == nil {
			columns = words[1:]
			continue
		}
		if cells[words[0]] != nil || len(words) != len(columns)+1 {
			t.Fatalf("%s: the row %q is there twice, or has not %d cells", heading, words[0], len(columns))
		}
		cells[words[0]] = map[string]string{}
		for i, column := range columns {
			cells[words[0]][column] = words[i+1]
		}
	}
	return cells
}

// told is a judgement as the page has it.
func told(j compare.Judgement) string {
	text := string(j.Verdict)
	if j.Class != "" {
		text += " " + string(j.Class)
	}
	if j.By != "" {
		text += ", " + string(j.By)
	}
	if j.Drift {
		text += ", drift"
	}
	if j.Excused != "" {
		text += ", " + string(j.Excused)
	}
	if j.Layout {
		text += ", layout"
	}
	return text
}

// The judge is the table of docs/verdict.md: in every cell, whatever the facts that the cell does not name.
func TestJudgeIsItsTable(t *testing.T) {
	two, unverified, alone := table(t, "Two traces"), table(t, "The reference is the walk, and the row is unverified"), table(t, "One trace")
	tested := table(t, "What counts as tested")
	cells := 0
	for _, seen := range allSeen {
		for _, standing := range allStandings {
			for _, content := range allContents {
				for policies := range 32 {
					p := compare.Policy{Unverified: policies&1 > 0, Derived: policies&2 > 0, Alone: policies&4 > 0, Accepted: policies&8 > 0, Printed: policies&16 > 0}
					f := compare.Facts{Seen: seen, Standing: standing, Content: content, Policy: p}
					rows := two
					switch {
					case p.Unverified:
						rows = unverified
					case p.Alone:
						rows = alone
					}
					want, ok := rows[string(seen)][string(standing)]
					if !ok {
						t.Fatalf("%s has no cell for %+v", verdictDocs, f)
					}
					switch {
					case p.Alone && p.Derived:
						want = "DERIVED"
					case p.Alone && content == compare.NotFinite && standing == compare.StandingWrong:
						want = strings.Replace(want, "VALUE", "NONFINITE", 1)
					}
					if mismatch := strings.HasPrefix(want, "MISMATCH"); mismatch && (p.Accepted || p.Derived) {
						want = strings.TrimSuffix(want, ", inherited")
						if !p.Derived {
							want += ", accepted"
						}
					}
					if p.Printed && strings.HasPrefix(want, "MATCH") {
						want = "UNVERIFIED"
					}
					j := compare.Judge(f)
					if got := told(j); got != want {
						t.Errorf("%+v: %s, and the page has %s", f, got, want)
					}
					row := string(j.Verdict)
					if j.Verdict == compare.Match && standing == compare.StandingGiven {
						row += " of an argument"
					}
					if j.Excused != "" {
						row += ", excused"
					}
					if want := tested[row][string(content)] == "yes" && !p.Derived; j.Tested != want {
						t.Errorf("%+v: tested %t, and the page has %t", f, j.Tested, want)
					}
					cells++
				}
			}
		}
	}
	if want := len(allSeen) * len(allStandings) * len(allContents) * 32; cells != want {
		t.Errorf("%d cells of %d were looked at", cells, want)
	}
}

// No fact turns a mismatch that is nobody's limit into a match, but for a choice that rounding leaves open on an unbroken chain, and an
// accumulated error alone is one only where the chain is broken.
func TestJudgeFailsClosed(t *testing.T) {
	for _, seen := range allSeen {
		for _, standing := range allStandings {
			for _, content := range allContents {
				j := compare.Judge(compare.Facts{Seen: seen, Standing: standing, Content: content})
				harmless := slices.Contains([]compare.Seen{compare.SeenWithin, compare.SeenWider, compare.SeenPast}, seen)
				harmless = harmless || seen == compare.SeenNumbers && standing == compare.StandingUnbroken
				if j.Verdict == compare.Match && (!harmless || standing == compare.StandingWrong) {
					t.Errorf("%s, %s, %s: a match", seen, standing, content)
				}
				if (j.Verdict == compare.Mismatch) != (j.Class != "") || (j.Verdict == compare.Mismatch) != (j.By != "") {
					t.Errorf("%s, %s, %s: %s", seen, standing, content, fmt.Sprint(j))
				}
				if j.Excused != "" && (seen != compare.SeenPast || standing != compare.StandingInherited) {
					t.Errorf("%s, %s, %s: excused, and nobody accepted it", seen, standing, content)
				}
				if j.By == compare.ByLimit && j.Class != gate.Value {
					t.Errorf("%s, %s, %s: %s by a limit", seen, standing, content, j.Class)
				}
			}
		}
	}
}
