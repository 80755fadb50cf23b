package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// The demo takes less than ten seconds, and every line of its report has a meaning that is printed below the report. A line that goes on
// with the one before it is indented.
func TestDemoExplainsEveryLine(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errOut bytes.Buffer
	started := time.Now()
	if code := run([]string{"tracediff", "demo"}, nil, &out, &errOut); code != exitMatch || errOut.Len() > 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	_, text, intro := strings.Cut(out.String(), "not told.\n\n")
	text, legend, found := strings.Cut(text, "\nWhat the lines mean\n")
	if !intro || !found {
		t.Fatal(out.String())
	}
	used := map[int]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		i := meaningOf(line)
		switch {
		case i >= 0:
			used[i] = true
			if !strings.Contains(legend, "  "+meanings[i].label+" ") {
				t.Errorf("%q is not explained", line)
			}
		case line != "" && !strings.HasPrefix(line, "                "):
			t.Errorf("%q has no meaning", line)
		}
	}
	for i, m := range meanings {
		if !used[i] && !anyLine(text, m.lines) {
			t.Errorf("no line is explained by %q", m.label)
		}
	}
}

// What the demo shows is computed: another mistake in the configuration that the model runs by is another finding, and without one
// everything matches.
func TestDemoIsARealRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		mistake func(*order.Config)
		want    string // in the name of the mistake; empty for a match
	}{
		"none":             {func(*order.Config) {}, ""},
		"another epsilon":  {func(c *order.Config) { c.RMSNormEps = 1e-3 }, "epsilon is 0.001"},
		"another function": {func(c *order.Config) { c.Activation = "silu" }, "activation is silu"},
		"no cap":           {func(c *order.Config) { c.FinalSoftcap = 0 }, "the result is lm_head"},
	} {
		prompt, s := demoPrompt, settings.Defaults()
		s.Prompt = &prompt
		e := &settings.Env{Process: thisProcess, Dir: t.TempDir(), Version: version(), Notes: io.Discard, Errors: io.Discard}
		r, err := session.Compare(context.Background(), e, s, session.Asked{Limits: &gate.Limits{}, Mistake: c.mistake})
		must(t, err)
		if c.want == "" {
			if r.ExitCode() != exitMatch {
				t.Errorf("%s: exit status %d", name, r.ExitCode())
			}
			continue
		}
		if r.Divergence == nil {
			t.Errorf("%s: no divergence", name)
			continue
		}
		if f, _ := r.Divergence.Bug(); f == nil || !strings.Contains(f.Text(), c.want) {
			t.Errorf("%s: the finding is %v", name, f)
		}
	}
}

// The commands that the demo ends with are commands, and their flags are flags of them.
func TestDemoEndsWithCommands(t *testing.T) {
	shown := 0
	for line := range strings.Lines(nextForAPort) {
		command, ok := strings.CutPrefix(line, "  tracediff ")
		if !ok {
			continue
		}
		shown++
		typed := strings.Fields(regexp.MustCompile(`'[^']*'`).ReplaceAllString(command, "TEXT"))
		c := newApp(nil, io.Discard, io.Discard).Command(typed[0])
		if c == nil {
			t.Fatalf("there is no command %s", typed[0])
		}
		var known []string
		for _, f := range c.Flags {
			known = append(known, f.Names()...)
		}
		for _, word := range typed[1:] {
			if name, ok := strings.CutPrefix(word, "--"); ok && !slices.Contains(known, name) {
				t.Errorf("%s has no flag --%s", typed[0], name)
			}
		}
	}
	if shown != 4 {
		t.Errorf("%d commands", shown)
	}
}

// meaningOf is the first meaning of a line; -1 for a line that has none.
func meaningOf(line string) int {
	for i := range meanings {
		if meanings[i].lines.MatchString(line) {
			return i
		}
	}
	return -1
}
