package report_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/report"
)

// drawn is a comparison of a model of some layers, in which anything may have happened to any entry.
func drawn(t *rapid.T) *compare.Result {
	layers := rapid.IntRange(0, 60).Draw(t, "layers")
	odd := rapid.SampledFrom([]int{0, 1, 3, 30}).Draw(t, "percent of rows that are no plain match")
	res := &compare.Result{Coverage: compare.Coverage{Layers: layers, Passes: 1}, Isolation: &compare.Isolation{Arithmetic: certify.Auto, Bound: "probabilistic"}}
	add := func(name string, layer int) {
		r := compare.Row{
			Name: name, Layer: layer, Verdict: compare.Match, Tested: true,
			Metrics: &measure.Metrics{RelL2: measure.Number(rapid.SampledFrom([]float64{0, 0, 1e-3}).Draw(t, "error"))},
			Gate:    &gate.Gate{From: "table", Checks: []gate.Check{{What: "tensor", Error: 0, Limit: 1e-2}}},
		}
		r.Gate.Checks[0].Error = r.Metrics.RelL2
		if r.Metrics.RelL2 > 0 {
			r.Metrics.Unequal = 1
		}
		if rapid.IntRange(0, 99).Draw(t, "odd") < odd {
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				r.Verdict, r.Class, r.Metrics.RelL2, r.Metrics.Unequal = compare.Mismatch, gate.Value, 1, 1
				res.Mismatches++
				if res.Divergence == nil {
					res.Divergence = &compare.Divergence{Row: r}
				}
			case 1:
				r.Isolated = &certify.Certificate{Outcome: certify.Unidentified}
			case 2:
				r.Verdict, r.Tested = compare.Unverified, false
			case 3:
				r.Tested = false
			}
		}
		res.Rows = append(res.Rows, r)
	}
	add("embed_tokens", -1)
	for layer := range layers {
		for i := range rapid.IntRange(1, 4).Draw(t, "entries") {
			add(fmt.Sprintf("layers.%d.e%d", layer, i), layer)
		}
	}
	if layers > 0 {
		add("logits", -1)
	}
	res.Coverage.Compared, res.Coverage.Entries, res.Coverage.Tested = len(res.Rows), len(res.Rows), len(res.Rows)
	return res
}

var (
	groupLine  = regexp.MustCompile(`^(MATCH|MISMATCH|UNVERIFIED) +(input|output|all|layers? [0-9-]+) +(\d+) .*$`)
	remarkPart = regexp.MustCompile(`(\d+) (mismatches|UNVERIFIED|UNIDENTIFIED|untested)`)
)

// Whatever lines are drawn together, the summary leaves nothing out: every entry is counted once, and so is everything that is no
// plain match; a line that says MATCH has no mismatch, one that says that all is equal has no difference, and the lines fit a page.
func TestSummaryHidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		res := drawn(t)
		var b strings.Builder
		if err := report.Text(&b, res, report.Style{}); err != nil {
			t.Fatal(err)
		}
		table, _, _ := strings.Cut(strings.SplitN(b.String(), "largest at\n", 2)[1], "\n(")
		table, _, _ = strings.Cut(table, "\n\n")
		want := map[string]int{}
		var rows int
		for i := range res.Rows {
			r := &res.Rows[i]
			switch {
			case r.Verdict == compare.Mismatch:
				want["mismatches"]++
			case r.Verdict == compare.Unverified:
				want["UNVERIFIED"]++
			case r.Isolated != nil:
				want["UNIDENTIFIED"]++
			case !r.Tested:
				want["untested"]++
			}
		}
		got := map[string]int{}
		lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		var groups int
		for i, line := range lines {
			m := groupLine.FindStringSubmatch(line)
			if m == nil {
				for _, part := range remarkPart.FindAllStringSubmatch(line, -1) {
					n, _ := strconv.Atoi(part[1])
					got[part[2]] += n
				}
				continue
			}
			groups++
			n, _ := strconv.Atoi(m[3])
			rows += n
			counted := i+1 < len(lines) && strings.Contains(lines[i+1], "mismatches")
			if m[1] == "MISMATCH" && !counted { // of a single one no number is given
				got["mismatches"]++
			}
			if m[1] == "MATCH" && counted {
				t.Fatalf("a line says MATCH, and has mismatches:\n%s", b.String())
			}
			if strings.Contains(line, "all equal") {
				rows := res.Rows
				for k := range rows {
					if rows[k].Metrics.Unequal > 0 && within(m[2], &rows[k]) {
						t.Fatalf("%s differs, and its line says that all is equal:\n%s", rows[k].Name, b.String())
					}
				}
			}
		}
		if rows != len(res.Rows) {
			t.Fatalf("%d of %d entries are counted:\n%s", rows, len(res.Rows), b.String())
		}
		for what, n := range want {
			if got[what] != n {
				t.Fatalf("%d %s, want %d:\n%s", got[what], what, n, b.String())
			}
		}
		if groups > 12 {
			t.Fatalf("%d lines:\n%s", groups, b.String())
		}
	})
}

// within reports whether a row is in the part that a line names.
func within(part string, r *compare.Row) bool {
	from, to := 0, 0
	switch {
	case part == "input":
		return r.Name == "embed_tokens"
	case part == "output":
		return r.Name == "logits"
	case part == "all":
		return true
	}
	if n, _ := fmt.Sscanf(part, "layers %d-%d", &from, &to); n == 2 {
		return r.Layer >= from && r.Layer <= to
	}
	if n, _ := fmt.Sscanf(part, "layer %d", &from); n == 1 {
		return r.Layer == from
	}
	return false
}

// What differs and decides nothing is said on the page, too; and the last line counts the passes that were compared.
func TestPageSaysWhatDecidesNothing(t *testing.T) {
	res := &compare.Result{Coverage: compare.Coverage{Compared: 1, Entries: 1, Tested: 1, Passes: 5}}
	for _, pass := range []int{1, 2} {
		res.Rows = append(res.Rows,
			compare.Row{Name: "norm", Pass: pass, Layer: -1, Verdict: compare.Match, Tested: true},
			compare.Row{Name: "mask.full", Pass: pass, Layer: -1, Derived: true, Verdict: compare.Mismatch, Class: gate.Value})
	}
	var text strings.Builder
	if err := report.Text(&text, res, report.NewStyle(false)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"derived: 2 entries differ and decide nothing: pass1/mask.full, pass2/mask.full\n",
		"MATCH: all 1 entry compared in 2 of 5 passes match",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, text.String())
		}
	}
}

// Mistakes that other tensors would show are one line: the tensors that most of them need, once.
func TestSightSaysTensors(t *testing.T) {
	s := &certify.Sight{Known: 5, Seen: []string{"a"}, Skipped: []string{"e"}, Unseen: []certify.Unseen{
		{Name: "b", Mistake: "b", ShownBy: "a capture of layers.*.q_proj, layers.*.q_norm", Capture: []string{"layers.*.q_proj", "layers.*.q_norm"}},
		{Name: "c", Mistake: "c", ShownBy: "a decode step"},
		{Name: "d", Mistake: "d", ShownBy: "a capture of layers.*.q_norm", Capture: []string{"layers.*.q_norm"}},
	}}
	var text strings.Builder
	if err := report.Sight(&text, s, report.Style{}); err != nil {
		t.Fatal(err)
	}
	want := "usual mistakes: 1 of 5 would have been seen here\n  1 was not tried: the search reached its limit first\n  the others need a capture of layers.*.q_norm, layers.*.q_proj (2); a decode\n    step (1)\n"
	if got := text.String(); got != want {
		t.Errorf("it says\n%s\nnot\n%s", got, want)
	}
}
