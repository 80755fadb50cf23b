package text_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/hooks"
)

// views are those with more than the verdict, by the end of the file that has them.
var views = map[string]text.View{".txt": text.Short, ".table.txt": text.Everything}

func TestReports(t *testing.T) {
	for name, c := range reporttest.Cases(t) {
		res := c.Run(t)
		for end, v := range views {
			reporttest.Golden(t, name+end, reporttest.Text(t, res, text.Style{}.WithView(v)))
		}
	}
}

// TestFirstAndLastLine has what scripts and people rely on, whatever else a report says: the first line names what a comparison is
// with, and the last one of every view is the verdict.
func TestFirstAndLastLine(t *testing.T) {
	for name, c := range reporttest.Cases(t) {
		res := c.Run(t)
		word := "MISMATCH: "
		switch {
		case res.ExitCode() == 0:
			word = "MATCH: "
		case res.Mismatches == 0 && len(res.Incomplete) > 0:
			word = "INCOMPLETE: "
		case res.Mismatches == 0:
			word = "NOT DIFFERENT: "
		}
		alone := strings.TrimSuffix(reporttest.Text(t, res, text.Style{}.WithView(text.VerdictOnly)), "\n")
		if !strings.HasPrefix(alone, word) || strings.Contains(alone, "\n") {
			t.Errorf("%s: the verdict alone is %q, want %s", name, alone, word)
		}
		for _, v := range []text.View{text.Short, text.Evidence, text.Everything} {
			lines := strings.Split(strings.TrimSuffix(reporttest.Text(t, res, text.NewStyle(false).WithView(v)), "\n"), "\n")
			want := "reference: transformers 5.23.0, float32"
			if c.AB {
				want = "A:         tracediff 0.1.0, float32"
			}
			if !strings.HasPrefix(lines[0], want) {
				t.Errorf("%s: first line %q", name, lines[0])
			}
			if last := lines[len(lines)-1]; !strings.HasPrefix(alone, last) {
				t.Errorf("%s: last line %q, and the verdict alone is %q", name, last, alone)
			}
			for i, line := range lines {
				if line != strings.TrimRight(line, " ") {
					t.Errorf("%s: line %d ends in spaces: %q", name, i+1, line)
				}
			}
		}
	}
}

// Between A and B neither is the reference, and no line says so, whatever it is about.
func TestABHasNoReference(t *testing.T) {
	word := regexp.MustCompile(`(?i)\b(local|reference)\b`)
	for name, c := range reporttest.Cases(t) {
		c.AB, c.Options.ReferenceLabel = true, ""
		res := c.Run(t)
		for _, v := range views {
			text := reporttest.Text(t, res, text.Style{}.WithView(v))
			if line := word.FindString(text); line != "" {
				t.Errorf("%s: %q in\n%s", name, line, text)
			}
		}
	}
}

func TestColourAddsNothing(t *testing.T) {
	res := reporttest.Cases(t)["divergence"].Run(t)
	var plain, coloured, disabled bytes.Buffer
	for _, c := range []struct {
		w     *bytes.Buffer
		style text.Style
	}{{&plain, text.Style{}}, {&coloured, text.NewStyle(true)}, {&disabled, text.NewStyle(false)}} {
		if err := text.Write(c.w, words.Of(res), c.style); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(plain.String(), disabled.String()); diff != "" {
		t.Errorf("colour switched off\n%s", diff)
	}
	if !strings.Contains(coloured.String(), "\x1b[32mMATCH\x1b[0m") {
		t.Error("no green MATCH with colour switched on")
	}
	if diff := cmp.Diff(plain.String(), strip(coloured.String())); diff != "" {
		t.Errorf("without its escapes the coloured report is another\n%s", diff)
	}
}

// strip removes the escapes that set colours.
func strip(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

// TestHostileNames has escapes wherever a trace puts text into a report.
func TestHostileNames(t *testing.T) {
	const evil = "x\x1b[2J\u202e\a\n\r\b"
	c := reporttest.Case{
		Local:     []hooks.Event{reporttest.Tensor(0, evil, []int{2}, 1, 2), reporttest.Tensor(0, evil+"2", []int{2}, 1, 2)},
		Reference: []hooks.Event{reporttest.Tensor(0, evil, []int{2}, 2, 4)},
		EditLocal: func(m *capture.Manifest) {
			m.Producer, m.Model = capture.Producer{Name: evil, Version: evil}, evil
		},
	}
	list := reporttest.Names(t, "input_ids")
	list.Entries[0].Name = evil
	c.Options = compare.Options{
		Order: list,
		Reporting: compare.Reporting{TokenTexts: func() (func(int) string, error) {
			return func(int) string { return evil }, nil
		}},
	}
	res := c.Run(t)
	for _, v := range []text.View{text.Short, text.Evidence, text.Everything, text.VerdictOnly} {
		got := reporttest.Text(t, res, text.Style{}.WithView(v).WithSince(evil))
		if strings.ContainsAny(got, "\x1b\a\r\b\u202e") || !strings.Contains(got, " x\ufffd[2J") {
			t.Errorf("%q", got)
		}
	}
}

func TestWriteErrorIsReturned(t *testing.T) {
	if err := text.Write(reporttest.BrokenPipe{}, words.Of(reporttest.Cases(t)["match"].Run(t)), text.Style{}); !errors.Is(err, reporttest.ErrPipe) {
		t.Errorf("error %v", err)
	}
}
