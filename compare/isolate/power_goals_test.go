package isolate_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"
)

// linearOps are the operations of the tables that are linear in each of their inputs, for whose scale there is a goal.
var linearOps = []string{
	"linear hidden", "linear wide", "linear rank", "linear bias", "scores", "context", "rope", "scale", "scale_channels", "add", "sub", "add_scale", "mul",
	"mean", "stream_mean", "rescale", "cutoff", "altup_predict", "altup_correct", "add_to_others", "copies",
}

// goalOf is the relative error of scale that is to be found in a linear operation.
var goalOf = map[string]float64{"bfloat16": 1e-4, "float32": 1e-5}

// docs/results/power.md says itself which of its goals its tables miss.
func TestGoalsMissed(t *testing.T) {
	docs := pagetest.Text(t, powerDocs)
	missed := "\n"
	for _, part := range []string{"tiny bfloat16", "tiny float32", "E2B bfloat16", "E2B float32"} {
		_, section, _ := strings.Cut(docs, "<!-- "+part+" -->\n")
		section, _, ok := strings.Cut(section, "<!-- end of "+part+" -->\n")
		if !ok {
			t.Fatalf("%s has no tables of %s", powerDocs, part)
		}
		all := missedGoals(t, section, goalOf[strings.Fields(part)[1]])
		if len(all) == 0 {
			all = []string{"none"}
		}
		missed += fmt.Sprintf("- %s: %s\n", part, strings.Join(all, "; "))
	}
	if docs = pagetest.Section(t, powerDocs, docs, "goals missed", missed); pagetest.Update() {
		pagetest.Write(t, powerDocs, docs)
	}
}

// missedGoals reads the tables of one width and dtype. The columns after the name are the certificate's, by default and strict.
func missedGoals(t *testing.T, section string, goal float64) (missed []string) {
	t.Helper()
	title, rows := "", 0
	for line := range strings.Lines(section) {
		if name, _, is := strings.Cut(line, ", "); is && slices.Contains(titles, name) {
			title = name
		}
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) < 4 || cells[0] == "operation" {
			continue
		}
		rows++
		name, byDefault, strict := cells[0], cells[1], cells[2]
		switch {
		case title == titles[0] && slices.Contains(linearOps, name):
			if foundAt(byDefault) > goal {
				what := fmt.Sprintf("a scale of %s, at %s", name, byDefault)
				if foundAt(strict) <= goal {
					what += " (strict at " + strict + ")"
				}
				missed = append(missed, what)
			}
		case strings.HasPrefix(title, "One wrong") && byDefault != "all":
			what := fmt.Sprintf("%s of %s, %s", strings.ToLower(title), name, byDefault)
			if strict == "all" {
				what += " (strict all)"
			}
			missed = append(missed, what)
		}
	}
	if rows < 60 {
		t.Errorf("%d rows in the tables: they are not read", rows)
	}
	return missed
}

// foundAt is a cell of the tables of scales.
func foundAt(cell string) float64 {
	if v, err := strconv.ParseFloat(cell, 64); err == nil {
		return v
	}
	return math.Inf(1)
}
