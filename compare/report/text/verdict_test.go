package text_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
)

// shortest is a line in which nothing can be left out.
var shortest = regexp.MustCompile(`^MISMATCH: \d+ of \d+ entr(y|ies), first \S+$|^ACCEPTED: \d+ of \d+ entries compared match; within limits only; perhaps one run$`)

// The verdict fits a page whatever is to be counted: what does not fit stands on the lines before it, and nothing is lost.
func TestVerdictFitsAPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(what string, most int) int { return rapid.SampledFrom([]int{0, 1, 28, 1015, most}).Draw(t, what) }
		passes := rapid.IntRange(1, 30).Draw(t, "passes")
		compared := 2100 + some("compared", 60000)
		res := &compare.Result{
			Coverage: compare.Coverage{
				Compared: compared, Tested: compared, Entries: compared + some("not compared", 60000), Unknown: some("unknown", 60000),
				Passes: passes, Layers: 35,
			},
			Isolation: &compare.Isolation{Drift: some("drift", 1000), Unidentified: some("unidentified", 1000)},
		}
		for pass := range passes {
			res.Rows = append(res.Rows, compare.Row{Name: "logits", Layer: -1, Pass: pass, Verdict: compare.Match, Tested: true})
		}
		if rapid.Bool().Draw(t, "limits alone") {
			res.Uncertified = "nothing is known of the operations"
		}
		if rapid.Bool().Draw(t, "same") {
			res.Same = "both sides are of a port and equal in every tensor: one may be a copy of the other"
		}
		if n := some("accepted", 100); n > 0 {
			res.Baseline = &compare.Baseline{File: "ports/baseline.toml", Accepted: n, Inherited: some("inherited", 1000)}
		}
		if rapid.Bool().Draw(t, "mismatch") {
			res.Mismatches = 1 + some("mismatches", 60000)
			res.Divergence = &compare.Divergence{Row: compare.Row{Name: "layers.34.post_feedforward_layernorm", Layer: 34, Pass: passes - 1, Verdict: compare.Mismatch, Class: gate.Value}}
			if rapid.Bool().Draw(t, "incomplete") {
				res.Incomplete = []string{"your port's trace is not complete"}
			}
		}
		split := func(text string) []string {
			return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ;,:()", r) })
		}
		var page strings.Builder
		if err := text.Write(&page, words.Of(res), text.Style{}); err != nil {
			t.Fatal(err)
		}
		whole := text.Verdict(res, text.Style{})
		lines := strings.Split(strings.TrimSuffix(page.String(), "\n"), "\n")
		last := lines[len(lines)-1]
		if n := utf8.RuneCountInString(last); n > 80 && !(n < 100 && shortest.MatchString(last)) {
			t.Fatalf("%d columns: %s", n, last)
		}
		if utf8.RuneCountInString(whole) <= 80 && last != whole {
			t.Fatalf("%q would fit, and the page ends with %q", whole, last)
		}
		if word, _, _ := strings.Cut(whole, ":"); !strings.HasPrefix(last, word+": ") {
			t.Fatalf("%q became %q", whole, last)
		}
		if weak := "within limits only"; strings.Contains(whole, weak) != strings.Contains(last, weak) {
			t.Fatalf("%q became %q", whole, last)
		}
		said := map[string]bool{}
		for _, line := range lines[max(0, len(lines)-6):] {
			for _, word := range split(line) {
				said[word] = true
			}
		}
		for _, word := range split(whole) {
			if !said[word] && word != "compared" {
				t.Fatalf("%q of %q is lost in\n%s", word, whole, page.String())
			}
		}
	})
}
