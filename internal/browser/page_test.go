package browser

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	longest    = time.Minute // that a page may take until it can be used, on a machine that is busy
	smallShots = 300 << 10
)

// No page says anything to the console, asks the network for anything, or runs what a trace has in it; each can be used soon.
func TestEveryPageIsQuiet(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(folder(t), "*.html"))
	must(t, err)
	if len(pages) < 7 {
		t.Fatalf("there are %d pages", len(pages))
	}
	for _, path := range pages {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			p := open(t, name, "light", 1280, 900)
			info, err := os.Stat(path)
			must(t, err)
			t.Logf("%s: %d bytes, ready after %v", name, info.Size(), p.loaded.Round(time.Millisecond))
			if p.loaded > longest {
				t.Errorf("it takes %v", p.loaded)
			}
			if hacked := value[bool](p, `window.hacked !== undefined || document.querySelector("img, b i script, iframe, main script") !== null`); hacked {
				t.Error("a text of a trace is markup")
			}
			if n := value[int](p, `document.querySelectorAll("table.map").length`); n == 0 {
				t.Error("there is no map")
			}
			if wide := value[bool](p, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
				t.Error("the page is wider than the window")
			}
			if unnamed := value[[]string](p, `[...document.querySelectorAll('[role=img], [role=gridcell], [role=grid]')].filter((e) => !e.getAttribute("aria-label")).map((e) => e.outerHTML.slice(0, 80))`); len(unnamed) > 0 {
				t.Errorf("without a name for a screen reader: %q", unnamed)
			}
			if n := value[int](p, `[...document.querySelectorAll("table.map")].filter((m) => m.querySelectorAll('[tabindex="0"]').length !== 1).length`); n != 0 {
				t.Errorf("%d maps cannot be reached by Tab, or at many places", n)
			}
			p.quiet()
		})
	}
}

// What these tests look for is seen where it happens.
func TestTheBrowserTells(t *testing.T) {
	folder(t)
	path := filepath.Join(t.TempDir(), "bad.html")
	must(t, os.WriteFile(path, []byte(`<html data-ready="true"><meta http-equiv="Content-Security-Policy" content="script-src 'none'"><img src="other.png" onerror="alert(1)"></html>`), 0o666))
	p := open(t, path, "light", 800, 600)
	p.run(chromedp.Sleep(200 * time.Millisecond))
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problems) == 0 || len(p.requests) != 2 {
		t.Errorf("problems %q, requests %q", p.problems, p.requests)
	}
}

// A hostile text is shown as it is.
func TestHostileTextIsText(t *testing.T) {
	folder(t)
	p := open(t, "hostile.html", "light", 1280, 900)
	text := value[string](p, `document.body.textContent`)
	for _, want := range []string{`</script><img src=x onerror="window.hacked=1">`, `"><svg onload=window.hacked=2>`, "{{.}}`${window.hacked=4}`", `--><script>window.hacked=3<script><!--`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	for _, cell := range value[[]string](p, `[...document.querySelectorAll("td[data-i]")].map((td) => td.dataset.i)`) {
		p.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector('td[data-i="%s"]').click()`, cell), nil))
	}
	if value[bool](p, `window.hacked !== undefined || document.querySelector("img") !== null`) {
		t.Error("a text of a trace is markup")
	}
	p.quiet()
}

// The first divergence is shown at once. A click on a cell shows the numbers of its row, as the JSON report has them.
func TestClickShowsTheTensor(t *testing.T) {
	for _, name := range []string{"first", "all", "deep"} {
		folder(t)
		p := open(t, name+".html", "light", 1280, 900)
		res := read(t, name+".json").Runs[0].Result
		p.shows(&res.Divergence.Row)
		for _, i := range []int{20, len(res.Rows) / 2, len(res.Rows) - 1} {
			p.run(chromedp.Click(fmt.Sprintf(`td[data-i="%d"]`, i), chromedp.ByQuery))
			p.shows(&res.Rows[i])
		}
		if tips := value[int](p, `document.querySelectorAll("#tensor svg title").length`); tips == 0 {
			t.Error("the cells of the maps do not say what they are")
		}
		p.quiet()
	}
}

// shows holds the panel to a row.
func (p *tab) shows(r *row) {
	p.t.Helper()
	if key := value[string](p, `document.getElementById("tensor").dataset.key`); key != r.Name {
		p.t.Fatalf("the panel shows %s, not %s", key, r.Name)
	}
	got := value[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("#tensor dl data[data-name]")].map((d) => [d.dataset.name, d.value]))`)
	want := map[string]any{"error": r.Metrics.RelL2, "unequal": float64(r.Metrics.Unequal)}
	if r.Gate != nil && len(r.Gate.Checks) > 0 {
		want["limit"] = r.Gate.Checks[0].Limit
	}
	if r.Metrics.Worst != nil {
		want["local"], want["reference"], want["difference"] = r.Metrics.Local, r.Metrics.Reference, r.Metrics.MaxAbs
	}
	for name, w := range want {
		if w == "NaN" { // integers have no error
			continue
		}
		x, ok := w.(float64)
		var have float64
		if _, err := fmt.Sscan(got[name], &have); ok && (err != nil || math.Abs(have-x) > 1e-8*math.Abs(x)) {
			p.t.Errorf("%s: the panel has %s %q, the JSON report %g", r.Name, name, got[name], x)
		}
	}
	if r.Metrics.Worst != nil {
		at := strings.ReplaceAll(fmt.Sprint(r.Metrics.Worst), ",", "")
		if text := value[string](p, `document.getElementById("tensor-body").textContent`); !strings.Contains(text, at) {
			p.t.Errorf("%s: the panel does not say that the largest difference is at %s", r.Name, at)
		}
	}
}

// Whoever has no mouse gets to every tensor: Tab to a map, arrows in it, Enter to the tensor, Escape back.
func TestKeyboard(t *testing.T) {
	folder(t)
	p := open(t, "all.html", "light", 1280, 900)
	focus := func() string {
		return value[string](p, `document.activeElement.getAttribute("aria-label") || document.activeElement.id || document.activeElement.tagName`)
	}
	for range 20 {
		if p.run(chromedp.KeyEvent(kb.Tab)); strings.HasPrefix(focus(), "layers.1.self_attn.scores_masked; MISMATCH") {
			break
		}
	}
	key := func(k, want string) {
		t.Helper()
		if p.run(chromedp.KeyEvent(k)); !strings.HasPrefix(focus(), want) {
			t.Fatalf("%q is in focus, not %q", focus(), want)
		}
	}
	key(kb.ArrowUp, "layers.1.self_attn.scores; MATCH")
	key(kb.ArrowRight, "layers.2.self_attn.scores; MISMATCH")
	key(kb.End, "layers.6.self_attn.scores; MISMATCH")
	key(kb.Home, "layers.0.self_attn.scores; MATCH")
	key(kb.PageDown, "layers.0.out; MATCH")
	key(kb.ArrowDown, "layers.0.out; MATCH")
	key(kb.Enter, "tensor-name")
	if shown := value[string](p, `document.getElementById("tensor").dataset.key`); shown != "layers.0.out" {
		t.Errorf("Enter shows %s", shown)
	}
	if said := value[string](p, `document.getElementById("live").textContent`); !strings.Contains(said, "layers.0.out") {
		t.Errorf("a screen reader is told %q", said)
	}
	key(kb.Escape, "layers.0.out; MATCH")
	p.quiet()
}

// A gate's matrix leads to the tensor of the prompt whose cell was chosen.
func TestPromptsByEntries(t *testing.T) {
	folder(t)
	p := open(t, "gate.html", "light", 1280, 900)
	for run, prompt := range []string{"one", "hello"} {
		cell := `[...document.querySelectorAll('table[aria-label="prompts by entries"] td[data-i]')].find((td) => Number(td.dataset.r || 0) === ` + fmt.Sprint(run) + ` && td.parentNode.cells[0].textContent === "self_attn.q_proj")`
		p.run(chromedp.Evaluate(cell+`.click()`, nil))
		if got := value[string](p, `document.getElementById("tensor-name").textContent`); !strings.HasPrefix(got, prompt+": layers.") || !strings.HasSuffix(got, ".self_attn.q_proj") {
			t.Errorf("the cell of %s shows %q", prompt, got)
		}
	}
	p.quiet()
}

// On paper a page is light, whatever the screen is, and has the verdict, the chart and the tensor.
func TestPrint(t *testing.T) {
	folder(t)
	p := open(t, "deep.html", "dark", 720, 900) // about as wide as paper
	var pdf []byte
	p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPrintBackground(true).Do(ctx)
		return err
	}))
	if n := strings.Count(string(pdf), "/Type /Page\n"); len(pdf) < 10_000 || n < 1 || n > 6 {
		t.Errorf("%d bytes and %d pages", len(pdf), n)
	}
	p.run(emulation.SetEmulatedMedia().WithMedia("print").WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	if paper := value[string](p, `getComputedStyle(document.body).backgroundColor`); paper != "rgb(255, 255, 255)" {
		t.Errorf("paper is %s", paper)
	}
	if hidden := value[bool](p, `document.querySelector(".chart svg").getBoundingClientRect().height === 0 || document.getElementById("tensor").hidden`); hidden {
		t.Error("the chart or the tensor is not printed")
	}
	if wide := value[float64](p, `Math.max(...[...document.querySelectorAll(".wide > *")].map((e) => e.getBoundingClientRect().right))`); wide > 720 {
		t.Errorf("something is cut at the edge of the paper: it ends at %g of 720", wide)
	}
	p.quiet()
}

// The screenshots of docs are made by this command: go test ./... -update, as this package says.
func TestScreenshots(t *testing.T) {
	folder(t)
	for _, s := range []struct {
		page, scheme, to, at string
		height               int64
	}{
		{"deep.html", "light", "html-light.png", "body", 1560},
		{"deep.html", "dark", "html-dark.png", "body", 1560},
		{"first.html", "light", "html-tensor.png", "#tensor", 900},
	} {
		p := open(t, s.page, s.scheme, 1280, s.height)
		var shot []byte
		if s.at == "body" {
			p.run(chromedp.CaptureScreenshot(&shot))
		} else {
			p.run(chromedp.Screenshot(s.at, &shot, chromedp.ByQuery))
		}
		shot = paletted(t, shot)
		if len(shot) > smallShots || len(shot) < 10_000 {
			t.Errorf("%s has %d bytes", s.to, len(shot))
		}
		dark := value[bool](p, `getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)"`)
		if dark != (s.scheme == "dark") {
			t.Errorf("%s: asked for %s, dark is %v", s.page, s.scheme, dark)
		}
		path := filepath.Join("..", "..", "docs", s.to)
		if *update {
			must(t, os.WriteFile(path, shot, 0o666))
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		p.quiet()
	}
}

// paletted writes a picture with its 256 most frequent colours: a screenshot of text has few others.
func paletted(t *testing.T, shot []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(shot))
	must(t, err)
	area := from.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			to.Set(x, y, at(x, y))
		}
	}
	var b bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to))
	return b.Bytes()
}
