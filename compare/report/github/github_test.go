package github_test

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/github"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/internal/plain"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// command is what the runner of GitHub Actions takes a line for.
type command struct {
	name, message string
	properties    map[string]string
}

// runnerReads is a line as ActionCommand.TryParseV2 and TryParse of github.com/actions/runner read it: "::name k=v,k=v::message" with
// any spaces before it, and "##[name k=v;k=v]message" anywhere.
func runnerReads(line string) (c command, ok bool) {
	unescape := strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",")
	if at := strings.Index(line, "##["); at >= 0 && strings.Contains(line[at:], "]") {
		c.name = line[at:]
		ok = true
	}
	trimmed := strings.TrimLeftFunc(line, unicode.IsSpace)
	rest, found := strings.CutPrefix(trimmed, "::")
	info, message, closed := strings.Cut(rest, "::")
	if !found || !closed {
		return c, ok
	}
	c = command{message: unescape.Replace(message), properties: map[string]string{}}
	name, list, _ := strings.Cut(info, " ")
	c.name = name
	for p := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(p, "=")
		c.properties[key] = unescape.Replace(value)
	}
	return c, true
}

// hostile draws names that look like markup, commands and escapes.
var hostile = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{
			"::", "##[", "]", "::error::", "::stop-commands::x", "##[add-mask]x", "\n", "\r", "%0A", "%", ",", ":", "=", ";", "|", "`", "```", "</pre>", "<script>", "&", "\\",
			"[a](https://x.y)", "@you", "$x$", "*", "_", "www.x.y", "\x1b[31m", "\u202e", " ", "layers.0.mlp",
		}), rapid.String(),
	), 0, 8).Draw(t, "parts")
	return strings.Join(parts, "")
})

// Whatever the names in a trace are, the runner reads as many errors as there are and no other command, with the file and title that
// were meant; and the summary has the names as text, in a table whose rows have four cells, in no more room than there is.
func TestGitHubIsNotCommanded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &report.Document{}
		for i := range rapid.IntRange(1, 14).Draw(t, "runs") {
			r := report.Run{Name: fmt.Sprintf("p%d", i), Exit: 2, Error: hostile.Draw(t, "error") + "!", Hint: hostile.Draw(t, "hint")}
			if rapid.Bool().Draw(t, "compared") {
				row := compare.Row{Name: hostile.Draw(t, "name"), Layer: -1, Verdict: compare.Mismatch, Detail: hostile.Draw(t, "detail")}
				res := &compare.Result{Mismatches: 1, Rows: []compare.Row{row}, Divergence: &compare.Divergence{Row: row, Hints: []string{hostile.Draw(t, "next")}}}
				r = report.Run{Name: r.Name, Exit: 1, Result: res}
			}
			d.Runs = append(d.Runs, r)
		}
		file := hostile.Draw(t, "file") + "x"
		var b bytes.Buffer
		if err := github.Annotations(&b, words.New(d), file); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if want := min(len(d.Runs), 10); len(lines) != want {
			t.Errorf("%d lines, want %d:\n%s", len(lines), want, b.String())
		}
		for i, line := range lines {
			c, ok := runnerReads(line)
			if !ok || c.name != "error" || c.properties["file"] != file || len(c.properties) != 2 {
				t.Errorf("%s\nis read as %+v", line, c)
			}
			last := len(d.Runs) > 10 && i == 9
			if !last && !strings.HasPrefix(c.properties["title"], fmt.Sprintf("tracediff: p%d: ", i)) || c.message == "" {
				t.Errorf("%s\nis read as %+v", line, c)
			}
		}
		room := rapid.IntRange(300, 20000).Draw(t, "room")
		var s bytes.Buffer
		if err := github.Summary(&s, words.New(d), room); err != nil {
			t.Fatal(err)
		}
		checkSummary(t, s.String(), room, len(d.Runs))
		var shown strings.Builder
		w := plain.WithoutCommands(&shown)
		for i := range 3 {
			fmt.Fprint(w, hostile.Draw(t, fmt.Sprint("text ", i)))
		}
		for line := range strings.Lines(strings.ReplaceAll(shown.String(), "\r", "\n")) {
			if c, ok := runnerReads(line); ok {
				t.Errorf("%q is read as %+v", line, c)
			}
		}
	})
}

func checkSummary(t *rapid.T, text string, room, runs int) {
	if len(text) > room {
		t.Errorf("%d bytes in a room of %d", len(text), room)
	}
	if a, b := strings.Count(text, "<pre>"), strings.Count(text, "</pre>"); a != b || strings.Contains(text, "<script") {
		t.Errorf("%d <pre> and %d </pre> in\n%s", a, b, text)
	}
	rows := 0
	table, _, _ := strings.Cut(text, "<details")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		rows++
		if strings.Count(line, "|") != 5 || strings.ContainsAny(line, "`<>*[]@$\\") {
			t.Errorf("a row of a table: %s", line)
		}
	}
	if rows < runs+2 && !strings.Contains(text, " did not fit into the summary") && room > 400 {
		t.Errorf("%d rows of %d runs:\n%s", rows, runs, text)
	}
}

// What fits is there in full: the page of each run that does not match as tracediff prints it.
func TestGitHubSummaryHasThePage(t *testing.T) {
	for name, d := range reporttest.Documents(t) {
		var b bytes.Buffer
		if err := github.Summary(&b, words.New(d), github.MaxSummary); err != nil {
			t.Fatal(err)
		}
		for _, r := range d.Runs {
			if r.Result == nil || r.Name != "" && r.Exit == 0 {
				continue
			}
			if page := reporttest.Text(t, r.Result, text.NewStyle(false).WithView(text.Short).WithPower()); !strings.Contains(html.UnescapeString(b.String()), page) {
				t.Errorf("%s: the page is not in\n%s", name, b.String())
			}
		}
	}
}

// Red flags are errors, at most ten, and no error where there is none.
func TestGitHubFlags(t *testing.T) {
	for _, n := range []int{0, 1, 10, 11, 40} {
		r := &redflag.Result{Trace: "a.safetensors"}
		for i := range n {
			r.Flags = append(r.Flags, redflag.Flag{Kind: redflag.Kinds[0].Kind, Entry: fmt.Sprintf("::error::%d", i), What: "a\nb", Means: "c", Try: "d"})
		}
		var b, s bytes.Buffer
		if err := github.CheckAnnotations(&b, r, "a:b.safetensors"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), "::error file=a%3Ab.safetensors,title=tracediff%3A "); got != min(n, 10) || strings.Count(b.String(), "\n") != got {
			t.Errorf("%d flags:\n%s", n, b.String())
		}
		if err := github.CheckSummary(&s, r, github.MaxSummary); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(s.String(), "RED FLAG"); got != n {
			t.Errorf("%d of %d flags in the summary", got, n)
		}
	}
}
