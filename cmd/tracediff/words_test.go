package main

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// changed is a golden of gemma3n-tiny with some of its tensors changed, or narrower than it was.
type changed struct {
	golden string
	level  int                        // of what is left of it; 0 for all
	drop   string                     // an entry that is declared and not dumped
	late   bool                       // the first pass has no positions, and the others have
	by     map[string]func([]float32) // by key
}

// scale returns a change that multiplies all elements.
func scale(by float32) func([]float32) {
	return func(x []float32) {
		for i := range x {
			x[i] *= by
		}
	}
}

// write makes the trace, of a producer of its own.
func (c changed) write(t *testing.T, path string) {
	t.Helper()
	golden, _, _, list := goldenFile(t, "gemma3n-tiny", c.golden)
	from, err := capture.Open(golden)
	must(t, err)
	defer from.Close()
	m := from.Manifest()
	m.Producer = capture.Producer{Name: "a port", Version: "1"}
	if c.level > 0 {
		m.Scope.Level = c.level
	}
	w, err := capture.Create(path, m, 1<<20)
	must(t, err)
	for _, r := range from.Records() {
		if c.late && r.Name == order.PositionIDs {
			if r.Pass == 0 {
				continue
			}
		} else if e, ok := list.Lookup(r.Name); r.Name == c.drop || c.level > 0 && (!ok || e.Level > c.level) {
			continue
		}
		x, err := from.Read(r)
		must(t, err)
		if change := c.by[capture.Key(r.Pass, r.Name, 0)]; change != nil {
			y := decoded(x)
			change(y)
			x = encoded(x.DType, x.Shape, y)
		}
		must(t, w.Observe(hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x}))
	}
	must(t, w.Close())
}

// says is a command, and the lines of its report that matter.
type says struct {
	why   string
	local changed           // local.st
	files map[string]string // others
	args  string            // "ref.st" is the unchanged golden, "other.st" the changed reference
	other *changed
	code  int
	want  []string // lines, or beginnings of lines that end in "..."
	not   []string // patterns of which no line may have any
}

// check runs the command in a folder of its own.
func (s says) check(t *testing.T) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if s.local.golden != "" {
		s.local.write(t, "local.st")
		data, err := fs.ReadFile(ondisk.Files(), filepath.Join("golden/gemma3n-tiny", s.local.golden+".safetensors"))
		must(t, err)
		must(t, os.WriteFile("ref.st", data, 0o666))
	}
	if s.other != nil {
		s.other.write(t, "other.st")
	}
	for name, text := range s.files {
		must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	var out, errOut bytes.Buffer
	code := run(append([]string{"tracediff", "compare", "--table"}, strings.Fields(s.args)...), nil, &out, &errOut)
	report := out.String()
	if code != s.code {
		t.Errorf("exit status %d, want %d: %s\n%s", code, s.code, errOut.String(), tail(report))
	}
	lines := strings.Split(report, "\n")
	for _, want := range s.want {
		if !hasLine(lines, want) {
			t.Errorf("no line %q in\n%s", want, tail(report))
		}
	}
	for _, not := range s.not {
		if line := regexp.MustCompile("(?m)^.*" + not + ".*$").FindString(report); line != "" {
			t.Errorf("%q matches %q", line, not)
		}
	}
	return report
}

// hasLine compares words: how a report is indented is another matter.
func hasLine(lines []string, want string) bool {
	begin, open := strings.CutSuffix(want, "...")
	for _, line := range lines {
		line = strings.Join(strings.Fields(line), " ")
		if line == want || open && strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

var nan32 = float32(math.NaN())
