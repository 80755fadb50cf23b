package browser

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the screenshots of docs")

// folder is where the pages are.
func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRACEDIFF_PAGES")
	if dir == "" {
		t.Skip("needs TRACEDIFF_PAGES: the folder that TestPages of cmd/tracediff fills")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs chromium")
	}
	return dir
}

// tab is a page in the browser, with all that it should not have done.
type tab struct {
	context.Context
	t        *testing.T
	mu       sync.Mutex
	problems []string
	requests []string
	loaded   time.Duration
}

// open opens a page of the folder, or any by its whole path. scheme is "light" or "dark".
func open(t *testing.T, name, scheme string, width, height int64) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	must(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	p := &tab{Context: ctx, t: t}
	chromedp.ListenTarget(ctx, p.event)
	must(t, chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable(), page.Enable(),
		emulation.SetDeviceMetricsOverride(width, height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})))
	started := time.Now()
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder(t), name)
	}
	must(t, chromedp.Run(ctx, chromedp.Navigate("file://"+name), chromedp.WaitReady(`html[data-ready="true"]`, chromedp.ByQuery)))
	p.loaded = time.Since(started)
	return p
}

// event notes what a report may not do.
func (p *tab) event(e any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *page.EventJavascriptDialogOpening:
		p.problems = append(p.problems, "dialog: "+e.Message)
	}
}

// quiet fails where a page has said something to the console, or has asked for more than itself.
func (p *tab) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Errorf("the page says: %s", problem)
	}
	if len(p.requests) != 1 {
		p.t.Errorf("%d requests: %q", len(p.requests), p.requests)
	}
}

func (p *tab) run(actions ...chromedp.Action) {
	p.t.Helper()
	must(p.t, chromedp.Run(p, actions...))
}

// value is what an expression of the page gives.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	var v T
	p.run(chromedp.Evaluate(expression, &v))
	return v
}

// result is the part of a JSON report that these tests read.
type result struct {
	Runs []struct {
		Result struct {
			Rows       []row `json:"rows"`
			Divergence struct {
				Row row `json:"row"`
			} `json:"divergence"`
		} `json:"result"`
	} `json:"runs"`
}

type row struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Metrics struct {
		RelL2     any     `json:"rel_l2"`
		MaxAbs    float64 `json:"max_abs"`
		Worst     []int   `json:"worst"`
		Local     any     `json:"local_at"`
		Reference any     `json:"reference_at"`
		Unequal   int64   `json:"unequal"`
	} `json:"metrics"`
	Gate *struct {
		Checks []struct {
			Limit any `json:"limit"`
		} `json:"checks"`
	} `json:"gate"`
}

func read(t *testing.T, name string) result {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder(t), name))
	must(t, err)
	var r result
	must(t, json.Unmarshal(data, &r))
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
