package text_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// drawn is a comparison of a model of some layers, in which anything may have happened to any entry.
func drawn(t *rapid.T) *compare.Result {
	layers := rapid.IntRange(0, 60).Draw(t, "layers")
	odd := rapid.SampledFrom([]int{0, 1, 3, 30}).Draw(t, "percent of rows that are no plain match")
	res := &compare.Result{Coverage: compare.Coverage{Layers: layers, Passes: 1}, Isolation: &compare.Isolation{Arithmetic: isolate.Auto, Bound: "probabilistic"}}
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
				r.Isolated = &compare.Isolated{Certificate: &isolate.Certificate{Outcome: isolate.Unidentified}}
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
		if err := text.Write(&b, words.Of(res), text.Style{}); err != nil {
			t.Fatal(err)
		}
		table, _, _ := strings.Cut(strings.SplitN(b.String(), "worst entry\n", 2)[1], "\n(")
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
	var out strings.Builder
	if err := text.Write(&out, words.Of(res), text.NewStyle(false)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"derived: 2 entries differ and decide nothing: pass1/mask.full, pass2/mask.full\n",
		"MATCH: all 1 entry compared in 2 of 5 passes match",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
	}
}

// Mistakes that other tensors would show are one line: the tensors that most of them need, once. What was not tried is not counted among those that would have been seen or
// not: the lines say which mistakes these are, why, how to try them, and that no verdict rests on them.
func TestSightSaysTensors(t *testing.T) {
	s := &detectable.Sight{Known: 9, Seen: []string{"a"}, Unseen: []detectable.Unseen{
		{Name: "b", Mistake: "b", ShownBy: "a capture of layers.*.q_proj, layers.*.q_norm", Capture: []string{"layers.*.q_proj", "layers.*.q_norm"}},
		{Name: "c", Mistake: "c", ShownBy: "a decode step"},
		{Name: "d", Mistake: "d", ShownBy: "a capture of layers.*.q_norm", Capture: []string{"layers.*.q_norm"}},
	}}
	said := func() string {
		var out strings.Builder
		if err := text.Sight(&out, s, text.Style{}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	others := "  the others need a capture of layers.*.q_norm, layers.*.q_proj (2); a decode\n    step (1)\n"
	const seen = "usual mistakes: 1 of 4%s would have been seen here\n"
	untried := func(name, why string) {
		s.Skipped, s.Untried = append(s.Skipped, name), append(s.Untried, detectable.Untried{Name: name, Mistake: "mistake " + name, Why: why})
	}
	for _, name := range []string{"e", "f", "g"} {
		untried(name, detectable.UntriedWork)
	}
	untried("h", detectable.UntriedRoom)
	untried("i", detectable.UntriedForm)
	const stopped = "  3 were not tried (such as mistake e; mistake f): the search stopped at its\n    limit of work"
	const rest = "  1 was not tried (mistake h): it takes more memory than the search may use\n" +
		"  1 was not tried (mistake i): the operation in which it would show was not\n    recomputed\n" +
		"  no verdict depends on these mistakes: verdicts depend on the entries that were\n    compared and recomputed\n"
	for times, more := range map[int]string{0: "", 1: ", --search-work 30x goes on", 900: ", --search-work 1000x goes on", 1000: ""} {
		s.Times = times
		if got, want := said(), fmt.Sprintf(seen, " that were tried")+stopped+more+"\n"+rest+others; got != want {
			t.Errorf("%d times the work: it says\n%s\nnot\n%s", times, got, want)
		}
	}
	s.Known, s.Skipped, s.Untried = 4, nil, nil
	if got, want := said(), fmt.Sprintf(seen, "")+others; got != want {
		t.Errorf("it says\n%s\nnot\n%s", got, want)
	}
}

// Entries that could not be recomputed are counted by what they are, with the reason: once for reasons that differ in the names of tensors and in numbers.
func TestPageSaysWhatCouldNotBeRecomputed(t *testing.T) {
	reason := func(role string, layer int, why string, rows int) compare.Reason {
		return compare.Reason{
			Why: why, Rows: rows, First: strings.Replace(role, "*", fmt.Sprint(layer), 1), Roles: []compare.RoleCount{{Role: role, Rows: rows}},
		}
	}
	const context, act = "layers.*.self_attn.context", "layers.*.mlp.act_fn"
	res := &compare.Result{Coverage: compare.Coverage{Compared: 1, Entries: 1, Tested: 1, Passes: 1}, Isolation: &compare.Isolation{
		Certified: 9, Exact: 9, NotIsolated: 43, Arithmetic: isolate.Auto, Bound: "probabilistic", Reasons: []compare.Reason{
			reason(context, 0, "computed from layers.0.self_attn.v_proj, which is float16, not float32", 18),
			reason(context, 1, "computed from layers.1.self_attn.v_proj, which is float16, not float32", 12),
			reason(act, 3, "computed from layers.3.mlp.gate_proj, which is float16, not float32", 2),
			reason("norm", 0, "the capturing side recomputed it; add a hook that fires it", 11),
			{Why: "no known arithmetic", Form: "softmax", Rows: 5, First: "layers.0.self_attn.probs", Outcome: isolate.Unidentified},
		},
	}}
	var out strings.Builder
	if err := text.Write(&out, words.Of(res), text.NewStyle(false)); err != nil {
		t.Fatal(err)
	}
	const want = `9 EXACT, 0 ROUNDING; 43 could not be recomputed not recomputed: 30 self_attn.context, 2 mlp.act_fn: the first, layers.0.self_attn.context: ` +
		`computed from layers.0.self_attn.v_proj, which is float16, not float32 not recomputed: 11 norm: the capturing side recomputed it; add a hook that fires it MATCH`
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, want) {
		t.Errorf("the page says\n%s\nnot\n%s", got, want)
	}
}

// That no later entry is past its limit is no harm only where nothing is wrong: of a wrong operation the line says so.
func TestDownstreamOfAWrongOperation(t *testing.T) {
	for _, c := range []struct {
		wrong bool
		down  compare.Downstream
		want  string
	}{
		{false, compare.Downstream{Compared: 310}, "all 310 entries computed from it in this pass are within their limits"},
		{true, compare.Downstream{Compared: 310}, "all 310 entries computed from it in this pass are within their limits; the operation is still wrong, and another prompt may show more of it"},
		{true, compare.Downstream{Compared: 1}, "the 1 entry computed from it in this pass is within its limit; the operation is still wrong, and another prompt may show more of it"},
		{false, compare.Downstream{Compared: 5, Partial: true}, "the next 5 entries computed from it are within their limits"},
		{false, compare.Downstream{Compared: 5, Until: "norm"}, "all 5 entries computed from it, up to norm, which is wrong on its own inputs, are within their limits"},
	} {
		row := compare.Row{Name: "x", Layer: -1, Verdict: compare.Mismatch, Class: gate.Value, Detail: "it is wrong"}
		if c.wrong {
			row.Isolated = &compare.Isolated{Certificate: &isolate.Certificate{Outcome: isolate.Bug}}
		}
		res := &compare.Result{Mismatches: 1, Rows: []compare.Row{row}, Divergence: &compare.Divergence{Row: row, Downstream: &c.down}}
		for _, style := range []text.Style{text.NewStyle(false), text.NewStyle(false).WithView(text.Evidence)} {
			var out strings.Builder
			if err := text.Write(&out, words.Of(res), style); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "downstream "+c.want+" ") {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		}
	}
}
