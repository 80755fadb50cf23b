// Package debug_test holds the lines to one format: those of two traces stand in testdata, and the recorders for Python and
// C are held to the same files by their own tests.
package debug_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/hooks"
)

var update = flag.Bool("update", false, "rewrite what testdata has")

// replayed are traces and the lines of a run that records them.
var replayed = []struct{ trace, lines string }{
	{"testdata/odd.safetensors", "testdata/odd.txt"},
	{"../../fixtures/steps/refine.safetensors", "testdata/refine.txt"},
	{"../../fixtures/steps/batch.safetensors", "testdata/batch.txt"},
}

// ticks is a clock whose n-th reading is n² hundredths of a millisecond, so that each hook takes longer than the one before.
// Readings are counted: two a tensor, when it comes and when the log is done with it.
func ticks() func() time.Time {
	n := 0
	return func() time.Time {
		n++
		return time.UnixMicro(int64(10 * n * n))
	}
}

// events reads back everything that a trace has.
func events(t testing.TB, path string) []hooks.Event {
	t.Helper()
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var all []hooks.Event
	for _, r := range tr.Records() {
		x, err := tr.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x})
	}
	return all
}

// show returns the lines of a run.
func show(t testing.TB, o debug.Options, all []hooks.Event) string {
	t.Helper()
	var out bytes.Buffer
	log := debug.New(&out, o)
	log.SetClock(ticks())
	for _, e := range all {
		if err := log.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	log.End()
	return out.String()
}

func TestLines(t *testing.T) {
	if *update {
		writeOdd(t, replayed[0].trace)
	}
	for _, c := range replayed {
		t.Run(filepath.Base(c.lines), func(t *testing.T) {
			got := show(t, debug.Options{}, events(t, c.trace))
			if *update {
				if err := os.WriteFile(c.lines, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(c.lines)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the lines changed (-want +got):\n%s", diff)
			}
		})
	}
}

// The page that documents the format has two regular expressions: of a tensor's line, and of every line. They match what is
// printed, and find each value whole.
func TestDocumentedFormat(t *testing.T) {
	page, err := os.ReadFile("../../docs/inside.md")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []*regexp.Regexp
	for line := range strings.Lines(string(page)) {
		if expr, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ^debug: "); ok {
			patterns = append(patterns, regexp.MustCompile("^debug: "+expr))
		}
	}
	if len(patterns) != 2 {
		t.Fatalf("docs/inside.md has %d expressions that start with ^debug:", len(patterns))
	}
	tensor, every := patterns[0], patterns[1]
	kinds := map[string]int{}
	for _, c := range replayed {
		for line := range strings.Lines(show(t, debug.Options{Text: strangeText}, events(t, c.trace))) {
			line = strings.TrimSuffix(line, "\n")
			kind := strings.Fields(line)[1]
			kinds[kind]++
			if !every.MatchString(line) {
				t.Errorf("the expression for every line does not match %s", line)
			}
			if got := tensor.MatchString(line); got != (kind == "tensor") {
				t.Errorf("the expression for tensors: %v for %s", got, line)
			}
		}
	}
	for _, kind := range []string{"begin", "tensor", "token", "top", "step", "series", "section", "pass", "note", "slowest", "average", "losses", "end"} {
		if kinds[kind] == 0 {
			t.Errorf("no line of kind %s was tried", kind)
		}
		if !bytes.Contains(page, []byte("| `"+kind+"` |")) {
			t.Errorf("docs/inside.md does not list %s", kind)
		}
	}
	if len(kinds) != 13 {
		t.Errorf("kinds %v", kinds)
	}
}

// The lines that the page shows are those of a run, but for their times.
func TestShownLinesAreReal(t *testing.T) {
	page, err := os.ReadFile("../../docs/inside.md")
	if err != nil {
		t.Fatal(err)
	}
	times := regexp.MustCompile(`ms=\d+\.\d{3}`)
	printed := ""
	for _, c := range replayed {
		data, err := os.ReadFile(c.lines)
		if err != nil {
			t.Fatal(err)
		}
		printed += times.ReplaceAllString(string(data), "ms=0")
	}
	shown := 0
	for line := range strings.Lines(string(page)) {
		if line, ok := strings.CutPrefix(line, "    debug: "); ok {
			shown++
			if !strings.Contains(printed, "debug: "+times.ReplaceAllString(line, "ms=0")) {
				t.Errorf("no run prints %s", line)
			}
		}
	}
	if shown < 10 {
		t.Errorf("the page shows %d lines", shown)
	}
}

// strangeText is what a token of a hostile tokenizer could be.
func strangeText(int) string { return "a\"b\\ \x1b[2J\n\u009b\u00a0木 x=1" }
