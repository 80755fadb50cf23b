package doctor_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/session/doctor"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// Every package that the doctor asks for is pinned.
func TestPins(t *testing.T) {
	list, err := doctor.Pins()
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range list {
		if pin.Version == "" {
			t.Errorf("%s has no version", pin.Name)
		}
	}
}

// A configuration at the limits of what is read makes an estimate, at once and without overflow.
func TestEstimateSaturates(t *testing.T) {
	entry := order.Entry{Name: "x", Level: 1, Shape: []order.Dim{1 << 24, 1 << 24, 1 << 24, order.T}}
	list := (&order.List{Config: &order.Config{}}).Keep([]*order.Entry{&entry})
	list.Config = &order.Config{}
	if got := doctor.TraceBytes(list, capture.Scope{Level: 1}, hooks.F32, slices.Repeat([]int{1}, 4096)); got != math.MaxInt64 {
		t.Errorf("%d", got)
	}
}

// linesOf are the lines of the checks, those of the interpreter for Python left out.
func linesOf(t *testing.T, p *doctor.Patient) []health.Line {
	t.Helper()
	p.Example = func(context.Context, ...string) ([]byte, error) { return []byte("{"), nil }
	checks := slices.DeleteFunc(p.Checks(), func(c health.Check) bool { return c.Section == "python" })
	lines, err := health.Run(t.Context(), checks, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// A model that cannot be read is an error with a hint, and the checks that need the model say so or are left out. A model that can is fine.
func TestModelThatIsNotThere(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model string
		fine  bool
	}{{"", true}, {"../../../fixtures/llama-tiny", true}, {filepath.Join(empty, "absent"), false}, {empty, false}} {
		s := settings.Defaults()
		s.Model, s.Tokens = c.model, "2,5"
		wrong := slices.ContainsFunc(linesOf(t, &doctor.Patient{Settings: s, Dir: t.TempDir()}), func(l health.Line) bool {
			if l.Section == "model" && l.Status == health.Error && l.Hint == "" {
				t.Errorf("%q: no hint in %+v", c.model, l)
			}
			return l.Section == "model" && l.Status == health.Error
		})
		if wrong == c.fine {
			t.Errorf("%q: an error of the model: %t", c.model, wrong)
		}
	}
}

// Ids beyond the vocabulary are an error of the input.
func TestIDsBeyondTheVocabulary(t *testing.T) {
	for tokens, fine := range map[string]bool{"2,5": true, "2,99999999": false} {
		s := settings.Defaults()
		s.Tokens = tokens
		wrong := slices.ContainsFunc(linesOf(t, &doctor.Patient{Settings: s, Dir: t.TempDir()}), func(l health.Line) bool {
			return l.Section == "input" && l.Status == health.Error && strings.Contains(l.What, "99999999")
		})
		if wrong == fine {
			t.Errorf("%s: an error of the input: %t", tokens, wrong)
		}
	}
}
