package redflag_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/testengine"
)

func check(t *testing.T, trace *capture.Trace, o redflag.Options) *redflag.Result {
	t.Helper()
	r, err := redflag.Check(t.Context(), trace, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goldens are the names of all golden traces.
func goldens(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(ondisk.Files(), "golden/*/*.safetensors")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d goldens: %v", len(names), err)
	}
	return names
}

// No healthy golden raises a flag, and between them they have something to look at for every kind, but for training.
func TestNoFlagOnAnyGolden(t *testing.T) {
	looked := map[redflag.Kind]int{}
	for _, name := range goldens(t) {
		r := check(t, testengine.OpenGolden(t, name), redflag.Options{})
		for _, f := range r.Flags {
			t.Errorf("%s: %s of %s in pass %d: %s", name, f.Kind, f.Entry, f.Pass, f.What)
		}
		for _, l := range r.Looked {
			looked[l.Kind] += l.Tensors
		}
	}
	for _, a := range redflag.Kinds {
		training := strings.HasPrefix(string(a.Kind), "gradient") || strings.HasPrefix(string(a.Kind), "loss") || a.Kind == redflag.WeightDType // which no golden has
		if (looked[a.Kind] == 0) != training {
			t.Errorf("%s looked at %d tensors of the goldens", a.Kind, looked[a.Kind])
		}
	}
}

// Each check has a name of its own and a sentence, and each kind a check that raises it.
func TestEveryKindHasACheck(t *testing.T) {
	raised := slices.Concat(slices.Collect(maps.Values(redflag.Checks()))...)
	for _, a := range redflag.Kinds {
		if !slices.Contains(raised, a.Kind) {
			t.Errorf("no check raises %s", a.Kind)
		}
	}
}

// No golden comes near a limit: with every limit moved as far as docs/results/inside.md says, they raise none either, and a little
// further one raises it, so the page says how wide the margins are and no more.
func TestMargins(t *testing.T) {
	page, err := os.ReadFile("../../docs/results/inside.md")
	if err != nil {
		t.Fatal(err)
	}
	// One limit of a kind at a time: of two it could not be said which one raised the flag.
	first, second := redflag.Margins, []redflag.Margin(nil)
	for i, m := range redflag.Margins {
		if i > 0 && m.Kind == redflag.Margins[i-1].Kind {
			first, second = slices.Delete(slices.Clone(first), i, i+1), append(second, m)
		}
	}
	raised := map[string]bool{}
	for _, name := range goldens(t) {
		trace := testengine.OpenGolden(t, name)
		for _, f := range check(t, trace, redflag.At(false, redflag.Margins...)).Flags {
			t.Errorf("%s: %s of %s in pass %d: %s", name, f.Kind, f.Entry, f.Pass, f.What)
		}
		for _, some := range [][]redflag.Margin{first, second} {
			flags := check(t, trace, redflag.At(true, some...)).Flags
			for _, m := range some {
				raised[m.What] = raised[m.What] || slices.ContainsFunc(flags, func(f redflag.Flag) bool { return f.Kind == m.Kind })
			}
		}
	}
	if len(second) != 1 {
		t.Errorf("%d kinds have a second limit", len(second))
	}
	for _, m := range redflag.Margins {
		past := fmt.Sprintf("%.4g", m.Past)
		if m.Never {
			past = "none"
		}
		if row := fmt.Sprintf("| `%s` | %s | %.4g | %.4g | %s |", m.Kind, m.What, m.Limit(), m.Near, past); !strings.Contains(string(page), row) {
			t.Errorf("docs/results/inside.md does not have the row\n%s", row)
		}
		if raised[m.What] == m.Never {
			t.Errorf("%s at %g: raised by a golden: %v", m.What, m.Past, raised[m.What])
		}
	}
}

// docs/inside.md has the condition of every kind. What a flag means, and what to try, stands in each flag.
func TestPageHasEveryKind(t *testing.T) {
	page, err := os.ReadFile("../../docs/inside.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range redflag.Kinds {
		if row := fmt.Sprintf("| `%s` | %s | %s |", a.Kind, a.Wants, a.When); !strings.Contains(string(page), row) {
			t.Errorf("docs/inside.md does not have the row\n%s", row)
		}
	}
}
