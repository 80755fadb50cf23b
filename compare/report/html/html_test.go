package html_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/html"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/hooks"
)

var htmlData = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

var limitLine = regexp.MustCompile(`"/><path class="limit" d="M[^"]*H[0-9.]+"/>`)

// htmlRuns is the data of a page.
type htmlRuns struct {
	Runs []struct {
		Name  string   `json:"name"`
		First int      `json:"first"`
		Words []string `json:"words"`
		Rows  []struct {
			Key     string         `json:"k"`
			Verdict int            `json:"v"`
			Picture map[string]any `json:"p"`
		} `json:"rows"`
	} `json:"runs"`
}

func htmlOf(t *testing.T, d *report.Document) (string, htmlRuns) {
	t.Helper()
	text := string(reporttest.Shown(t, html.Write, d))
	var data htmlRuns
	if err := json.Unmarshal([]byte(htmlData.FindStringSubmatch(text)[1]), &data); err != nil {
		t.Fatal(err)
	}
	return text, data
}

// Whatever was found, a page has the verdict of the text report, its diagnosis, every row and a cell for it; of what could not be
// compared it has why.
func TestHTMLOfEveryResult(t *testing.T) {
	for name, d := range reporttest.Documents(t) {
		text, data := htmlOf(t, d)
		compared := 0
		for i := range d.Runs {
			res := d.Runs[i].Result
			if res == nil {
				if !strings.Contains(text, "no trace of &lt;transformers&gt;") || !strings.Contains(text, "make one") {
					t.Errorf("%s: the page does not say why a run was not compared", name)
				}
				continue
			}
			rows := data.Runs[compared].Rows
			if compared++; len(rows) != len(res.Rows) {
				t.Fatalf("%s: %d rows of %d", name, len(rows), len(res.Rows))
			}
			for j := range rows {
				if rows[j].Key != res.Rows[j].Key() || data.Runs[compared-1].Words[rows[j].Verdict] != string(res.Rows[j].Verdict) {
					t.Errorf("%s: row %d is %v", name, j, rows[j])
				}
				if n := strings.Count(text, fmt.Sprintf(` data-i="%d"`, j)); n < 1 {
					t.Errorf("%s: %s has no cell", name, rows[j].Key)
				}
			}
			if d := res.Divergence; d != nil && !strings.Contains(text, "first divergence: <code>"+d.Row.Key()) {
				t.Errorf("%s: the first divergence is not on the page", name)
			}
			if limited := slices.ContainsFunc(res.Rows, func(r compare.Row) bool {
				return r.Gate != nil && len(r.Gate.Checks) > 0 && r.Gate.Checks[0].What == "tensor"
			}); limited && len(res.Rows) > 1 && !limitLine.MatchString(text) {
				t.Errorf("%s: the chart has no line of the limits", name)
			}
			for _, m := range res.Missing {
				if !strings.Contains(text, `<td class="mi">M</td>`) || !strings.Contains(text, m.Name) {
					t.Errorf("%s: %s is missing, and the page does not say so", name, m.Name)
				}
			}
			if f := res.Final; f != nil && !strings.Contains(text, "<h2>Next token</h2>") {
				t.Errorf("%s: there is no table of the next token", name)
			}
			for _, reason := range res.Incomplete {
				if !strings.Contains(text, "<b>INCOMPLETE</b> "+strings.ReplaceAll(reason, "'", "&#39;")) {
					t.Errorf("%s: the page does not say that %s", name, reason)
				}
			}
		}
		word := regexp.MustCompile(`<h1><span class="word">([^<]*)</span>`).FindStringSubmatch(text)[1]
		if good := strings.Contains(text, `<header class="top good">`); good != (d.Exit == 0) || (word == "MATCH") != good {
			t.Errorf("%s: exit %d, and the page says %s", name, d.Exit, word)
		}
	}
}

// No text of a result is markup, wherever it stands: a name, an op, a path, a detail, a token, an error.
func TestHTMLOfHostileTexts(t *testing.T) {
	const bad = `</script></style><img src=x onerror=alert(1)>"'--><!--` + "`${x}{{.}}"
	row := compare.Row{
		Name: "layers.0." + bad, Op: bad, Verdict: compare.Mismatch, Class: gate.Value, Detail: bad, NotIsolated: bad, Gap: bad,
		Local: compare.Tensor{DType: bad, Shape: []int{1}}, Metrics: &measure.Metrics{RelL2: 1, Worst: []int{0}}, Notes: []compare.Note{{Kind: bad, Text: bad}},
		Gate: &gate.Gate{From: bad, Checks: []gate.Check{{What: bad, Error: 2, Limit: 1}}},
	}
	text := bad
	side := compare.Side{Name: compare.Name{Label: bad}, Path: bad, Model: bad, Producer: capture.Producer{Name: bad, Details: map[string]string{bad: bad}}, Weights: bad}
	side.Manifest = capture.Manifest{Prompt: bad, Config: json.RawMessage(`{"a":` + string(must(json.Marshal(bad))) + `}`), Axes: map[string]string{bad: bad}}
	res := &compare.Result{
		Local: side, Reference: side, Rows: []compare.Row{row}, Mismatches: 1, Divergence: &compare.Divergence{Row: row, Hints: []string{bad}},
		Inputs: []compare.Input{{Local: []int64{1}, Texts: []string{bad}}}, Incomplete: []string{bad}, Missing: []compare.Missing{{Name: bad, Side: bad}},
		Final: &compare.Final{Passes: []compare.Logits{{Key: bad, Last: compare.Next{Top: []compare.Token{{ID: 1, Text: &text}}, NoiseFrom: bad}}}},
		Notes: []string{bad}, Layouts: []string{bad}, Roots: []string{bad, bad}, Untested: []string{bad},
	}
	set := &picture.Set{}
	for _, name := range []string{"", bad} {
		d := report.NewDocument(bad, report.Run{Name: name, Exit: 1, Result: res, Pictures: set}, report.Run{Name: "b" + name, Exit: 2, Error: bad, Hint: bad})
		page, data := htmlOf(t, d)
		if data.Runs[0].Rows[0].Key != row.Key() {
			t.Errorf("the key is %q", data.Runs[0].Rows[0].Key)
		}
		for what, n := range map[string]int{"<script": 2, "</script": 2, "<style": 1, "</style": 1, "<img": 0, "<!--": 0, bad: 0} {
			if got := strings.Count(page, what); got != n {
				t.Errorf("%d times %q, not %d", got, what, n)
			}
		}
	}
	var b strings.Builder
	flagged := &redflag.Result{Trace: bad, Flags: []redflag.Flag{{Kind: bad, Entry: bad, What: bad, Also: []string{bad}, Means: bad, Try: bad}}, Notes: []string{bad}}
	if err := html.Check(&b, bad, flagged, side.Manifest, []picture.Values{{Key: bad, Name: bad, Layer: -1, DType: bad}}, set); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<img") || strings.Count(b.String(), "</script") != 2 || !strings.Contains(b.String(), "1 red flag") {
		t.Errorf("the page of a check: %d bytes", b.Len())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A page of many passes has the first ones, and those in which something is wrong; it says which rows it leaves out, and no mismatch is
// among them.
func TestHTMLOfManyPasses(t *testing.T) {
	const passes, entries = 60, 90
	list := []string{"input_ids"}
	for i := range entries {
		list = append(list, fmt.Sprintf("layers.%d.x", i))
	}
	events := func(by float64) []hooks.Event {
		var all []hooks.Event
		for p := range passes {
			all = append(all, reporttest.Tensor(p, "input_ids", []int{1, 1}, 7))
			for i := range entries {
				v := 1.5
				if p == 50 && i == 80 {
					v *= by
				}
				all = append(all, reporttest.Tensor(p, list[i+1], []int{1, 2}, v, 2))
			}
		}
		return all
	}
	var set picture.Set
	many := func(m *capture.Manifest) { m.Passes, m.Scope = passes, capture.Scope{} }
	lm, rm := reporttest.LocalManifest(), reporttest.ReferenceManifest()
	many(&lm)
	many(&rm)
	res, err := compare.Traces(context.Background(), reporttest.Trace(t, lm, events(2)...), reporttest.Trace(t, rm, events(1)...), compare.Options{Order: reporttest.Names(t, list...), All: true, Observe: set.See})
	if err != nil {
		t.Fatal(err)
	}
	text, data := htmlOf(t, report.NewDocument("1", report.Run{Exit: 1, Result: res, Pictures: &set}))
	rows := data.Runs[0].Rows
	if len(rows) != 4000 || len(res.Rows) <= 4000 || rows[data.Runs[0].First].Key != "pass50/layers.80.x" || rows[data.Runs[0].First].Picture == nil {
		t.Errorf("%d of %d rows; the first shown is %v", len(rows), len(res.Rows), rows[data.Runs[0].First])
	}
	if n := strings.Count(text, `<details class="pass"`); n != 5 || !strings.Contains(text, "<summary>pass 50</summary>") {
		t.Errorf("%d passes are drawn", n)
	}
	for _, want := range []string{"55 passes are not drawn", "1460 rows are not in this file, and match", "tensors to draw each"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if keys := slices.Collect(func(yield func(string) bool) {
		for _, r := range rows {
			if !yield(r.Key) {
				return
			}
		}
	}); !slices.Contains(keys, "layers.0.x") || slices.Contains(keys, "pass59/layers.1.x") {
		t.Error("other rows than the first are kept")
	}
}

// The rows of a page are those of the prompts that do not match, then those of the first that do: of the others there are words.
func TestHTMLOfManyPrompts(t *testing.T) {
	good := reporttest.Cases(t)["match"].Run(t)
	runs := []report.Run{}
	for i := range 2500 {
		runs = append(runs, report.Run{Name: fmt.Sprintf("p%d", i), Result: good})
	}
	bad := reporttest.Cases(t)["divergence"].Run(t)
	runs = append(runs, report.Run{Name: "bad", Exit: 1, Result: bad})
	text, data := htmlOf(t, report.NewDocument("1", runs...))
	rows := map[string]int{}
	for _, r := range data.Runs {
		rows[r.Name] = len(r.Rows)
	}
	if rows["bad"] != len(bad.Rows) || rows["p0"] != len(good.Rows) || rows["p2499"] != 0 {
		t.Errorf("rows: %d of %d, %d of %d, %d", rows["bad"], len(bad.Rows), rows["p0"], len(good.Rows), rows["p2499"])
	}
	if !strings.Contains(text, "2500 of 2501 prompts match") || strings.Count(text, "Entries by layer</h2>") >= 2501 {
		t.Error("every prompt has maps, or they are not counted")
	}
	if at := strings.Index(text, `id="run2499"`); !strings.Contains(text[at:], "2 rows are not in this file, and match") {
		t.Error("the last prompt does not say that its rows are not here")
	}
}

// A page that cannot be written is an error.
func TestHTMLWriteError(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	if err := html.Write(w, words.New(report.NewDocument("1"))); err == nil {
		t.Error("no error")
	}
}
