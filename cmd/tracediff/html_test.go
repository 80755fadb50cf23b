package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/docs"
	"github.com/tracediff/tracediff/hooks"
)

// pageBytes is how large a page may be.
const pageBytes = 2 << 20

// hostile are texts that would be commands to a page that does not escape them.
var hostile = []string{
	`</script><img src=x onerror="window.hacked=1">`, `"><svg onload=window.hacked=2>`, `--><script>window.hacked=3</script><!--`,
	`{{.}}` + "`${window.hacked=4}`", `javascript:window.hacked=5`, `' onmouseover='window.hacked=6`, `&lt;b&gt;<b>bold</b>`, `</style><style>*{display:none}`,
}

// The pages of every command are below 2 MB, also of 35 layers of which every tensor differs; they load nothing; no text of a trace is
// markup; and they have the numbers of the JSON report. TRACEDIFF_PAGES is a folder in which they are kept, and two more, for the tests
// in a browser.
func TestPages(t *testing.T) {
	dir := os.Getenv("TRACEDIFF_PAGES")
	if dir == "" {
		dir = t.TempDir()
	}
	t.Setenv("CI", "")
	root := sources(t)
	t.Chdir(t.TempDir())
	must(t, os.Symlink(filepath.Join(root, "fixtures"), "fixtures"))
	deep(t, "deep")
	page := func(name, args string, code int) string {
		t.Helper()
		args = fmt.Sprintf("tracediff %s --report html=%s.html --report json=%[2]s.json", args, filepath.Join(dir, name))
		var out, errOut bytes.Buffer
		if got := run(fieldsOf(args), nil, &out, &errOut); got != code {
			t.Fatalf("%s: exit status %d, want %d: %s\n%s", name, got, code, errOut.String(), tail(out.String()))
		}
		text := readPage(t, dir, name+".html")
		contained(t, name, text)
		return text
	}
	const window = "compare -q fixtures/bugs/window-too-wide.float32.safetensors fixtures/golden/gemma3n-tiny/window.float32.safetensors"
	first := page("first", window, exitMismatch)
	sameNumbers(t, dir, "first", first)
	showsMistake(t, first, "window-size")
	if os.Getenv("TRACEDIFF_PAGES") != "" {
		sameNumbers(t, dir, "all", page("all", window+" --all", exitMismatch))
		page("alone", "compare -q --isolate fixtures/bugs/window-too-wide.float32.safetensors", exitMismatch)
	}

	if code := run(strings.Fields("tracediff capture -q --reference go --dtype float32 --level 3 --dir deep --model deep --tokens 2,5,9,17,33,7"), nil, io.Discard, os.Stderr); code != exitMatch {
		t.Fatalf("exit status %d", code)
	}
	scaleEntry(t, "deep/local.safetensors", "deep/wrong.safetensors", "layers.17.mlp.down_proj", 1.01)
	scaleEntry(t, "deep/local.safetensors", "deep/worst.safetensors", "", 1.01)
	sameNumbers(t, dir, "deep", page("deep", "compare -q deep/wrong.safetensors deep/reference.safetensors --model deep --all", exitMismatch))
	page("worst", "compare -q deep/worst.safetensors deep/reference.safetensors --model deep --all --no-isolate", exitMismatch)

	hostileTraces(t)
	text := page("hostile", "compare -q hostile.safetensors hostile-reference.safetensors --all", exitMismatch)
	for _, h := range hostile {
		if strings.Contains(h, "<") && strings.Contains(text, h) {
			t.Errorf("%s is markup of the page", h)
		}
	}
	if code := run(strings.Fields("tracediff check hostile.safetensors --report html="+filepath.Join(dir, "check.html")), nil, io.Discard, os.Stderr); code != exitMismatch {
		t.Errorf("exit status %d", code)
	}
	contained(t, "check", readPage(t, dir, "check.html"))

	must(t, os.WriteFile("gate.toml", []byte("level = 3\n[[prompt]]\nname = \"one\"\ntokens = \"484\"\n[[prompt]]\nname = \"hello\"\ntext = \"Hello world\"\n[[prompt]]\nname = \"unseen\"\ntext = \"No golden has this <img>\"\n"), 0o666))
	text = page("gate", "gate -q --config gate.toml --dir gate", exitUnusable)
	for _, want := range []string{"2 of 3 prompts match", "prompts by entries", "unseen</b>: not compared"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of a gate does not have %q", want)
		}
	}
}

// showsMistake holds a page to the section of docs/mistakes.md that its first divergence points to, whole.
func showsMistake(t *testing.T, text, anchor string) {
	t.Helper()
	s, ok := docs.Mistake(anchor)
	if !ok || !strings.Contains(text, "<dt>see</dt><dd>docs/mistakes.md#"+anchor) {
		t.Errorf("the page does not point to %s", anchor)
	}
	_, section, _ := strings.Cut(text, `<details class="mistake" open><summary>`+s.Title)
	section, _, _ = strings.Cut(section, "</details>")
	section = strings.NewReplacer("<code>", "", "</code>", "").Replace(section)
	for _, item := range s.Items {
		if want := "<dt>" + item.Name + "</dt><dd>" + template.HTMLEscapeString(docs.Plain(item.Text)) + "</dd>"; !strings.Contains(section, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

var (
	pageStyle  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	pageCode   = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	pageData   = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
	pagePolicy = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)
	pageValue  = regexp.MustCompile(`="[^"]*"`)
	pageLoads  = regexp.MustCompile(`(?i)<(?:link|img|iframe|object|embed|base|form|video|audio|image|use)\b|<[a-z][^>]*\s(?:src|srcset|style|on[a-z]+)=`)
)

// contained holds a page to loading nothing, and to a policy that lets nothing run but its own script.
func contained(t *testing.T, name, text string) {
	t.Helper()
	if len(text) > pageBytes {
		t.Errorf("%s: %d bytes, at most %d", name, len(text), pageBytes)
	}
	policy := pagePolicy.FindStringSubmatch(text)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src &#39;none&#39;;") || strings.Contains(policy[1], "unsafe") {
		t.Fatalf("%s: the policy is %q", name, policy)
	}
	for _, own := range []*regexp.Regexp{pageStyle, pageCode} {
		found := own.FindAllStringSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%s: %d times %s", name, len(found), own)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		if digest := strings.ReplaceAll(base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;"); !strings.Contains(policy[1], "sha256-"+digest) {
			t.Errorf("%s: the policy has no %s: %s", name, digest, policy[1])
		}
	}
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("%s: %d scripts, of which one is data", name, n)
	}
	markup := pageCode.ReplaceAllString(pageData.ReplaceAllString(pageStyle.ReplaceAllString(text, ""), ""), "")
	if loads := pageLoads.FindString(pageValue.ReplaceAllString(markup, "=")); loads != "" {
		t.Errorf("%s: the page has %q", name, loads)
	}
}

// pageRows is the part of a page's data that a report in JSON has, too.
type pageRows struct {
	Runs []struct {
		First int `json:"first"`
		Rows  []struct {
			Key     string    `json:"k"`
			Error   *float64  `json:"e"`
			Limit   *float64  `json:"m"`
			MaxAbs  *float64  `json:"x"`
			At      []float64 `json:"a"`
			Worst   []int     `json:"w"`
			Picture *struct {
				Top    float64  `json:"t"`
				Worst  [][3]any `json:"w"`
				Equal  int64    `json:"q"`
				Broken int64    `json:"x"`
				Bins   []int64  `json:"b"`
			} `json:"p"`
		} `json:"rows"`
	} `json:"runs"`
}

// sameNumbers holds the numbers of a page to those of the JSON report: they are the same in nine digits.
func sameNumbers(t *testing.T, dir, name, text string) {
	t.Helper()
	var page pageRows
	must(t, json.Unmarshal([]byte(pageData.FindStringSubmatch(text)[1]), &page))
	var d report.Document
	must(t, json.Unmarshal([]byte(readPage(t, dir, name+".json")), &d))
	near := func(what string, got *float64, want float64) {
		t.Helper()
		if math.IsNaN(want) {
			return
		}
		if got == nil || math.Abs(*got-want) > 1e-8*math.Abs(want) {
			t.Errorf("%s: %s is %v, in JSON %g", name, what, got, want)
		}
	}
	res, rows := d.Runs[0].Result, page.Runs[0].Rows
	if len(rows) != len(res.Rows) {
		t.Fatalf("%s: %d rows, in JSON %d", name, len(rows), len(res.Rows))
	}
	if first := rows[page.Runs[0].First].Key; first != res.Divergence.Row.Key() {
		t.Errorf("%s: shows %s first, which is not the first divergence", name, first)
	}
	for i, row := range rows {
		r := &res.Rows[i]
		if row.Key != r.Key() {
			t.Fatalf("%s: row %d is %s, in JSON %s", name, i, row.Key, r.Key())
		}
		m := r.Metrics
		near(row.Key+": error", row.Error, float64(m.RelL2))
		if m.Worst == nil {
			continue
		}
		near(row.Key+": max abs", row.MaxAbs, float64(m.MaxAbs))
		near(row.Key+": local", &row.At[0], float64(m.LocalAt))
		near(row.Key+": reference", &row.At[1], float64(m.ReferenceAt))
		pictureOf(t, row.Key, m, row.Picture.Top, row.Picture.Worst, row.Picture.Equal+row.Picture.Broken, row.Picture.Bins)
	}
}

// pictureOf holds a picture to the metrics: both look at the same elements.
func pictureOf(t *testing.T, key string, m *measure.Metrics, top float64, worst [][3]any, equal int64, bins []int64) {
	t.Helper()
	total := equal
	for _, n := range bins {
		total += n
	}
	hidden := int64(0) // masked on one side alone: an error in a picture, and not compared
	if m.Pattern != nil {
		hidden = m.Pattern.Gained + m.Pattern.Lost
	}
	if total != m.Compared+hidden && total != m.Compared {
		t.Errorf("%s: the histogram has %d elements, %d were compared and %d are masked on one side", key, total, m.Compared, hidden)
	}
	if m.NonFinite == 0 && hidden == 0 && (math.Abs(top-float64(m.MaxAbs)) > 1e-8*float64(m.MaxAbs) || fmt.Sprint(worst[0][0]) != fmt.Sprint(m.Worst)) {
		t.Errorf("%s: the largest error is %g at %v, not %g at %v", key, top, worst[0][0], float64(m.MaxAbs), m.Worst)
	}
}

// hostileTraces writes two traces of which every text is hostile.
func hostileTraces(t *testing.T) {
	t.Helper()
	names := []string{"input_ids"}
	for i, h := range hostile {
		names = append(names, fmt.Sprintf("layers.%d.%s", i, strings.NewReplacer("/", "", " ", "_", "#", "").Replace(h)))
	}
	for side, path := range []string{"hostile.safetensors", "hostile-reference.safetensors"} {
		w, err := capture.Create(path, capture.Manifest{
			Side: []string{"local", "reference"}[side], Producer: capture.Producer{Name: hostile[0], Version: hostile[1], Details: map[string]string{hostile[2]: hostile[3]}},
			Model: hostile[2], Prompt: hostile[0] + hostile[2], Device: hostile[5], Entries: names, Passes: 1, DType: hooks.F32,
		}, 1<<16)
		must(t, err)
		must(t, w.Observe(hooks.Event{Name: "input_ids", Tensor: hooks.Tensor{DType: hooks.I64, Shape: []int{1, 2}, Data: make([]byte, 16)}}))
		for i, name := range names[1:] {
			values := []float32{1, 2, 3, float32(4 + side*(i+1))}
			if side == 0 && i == 3 {
				values[1] = float32(math.NaN())
			}
			must(t, w.Observe(hooks.Event{Name: name, Tensor: encoded(hooks.F32, []int{1, 2, 2}, values)}))
		}
		must(t, w.Close())
	}
}
