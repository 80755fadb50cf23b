package redflag_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/fixtures"
)

func openGolden(t *testing.T, name string) *capture.Trace {
	t.Helper()
	data, err := fs.ReadFile(fixtures.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

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
	names, err := fs.Glob(fixtures.Files, "golden/*/*.safetensors")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d goldens: %v", len(names), err)
	}
	return names
}

// No healthy golden raises a flag, and between them they have something to look at for every kind, but for training.
func TestNoFlagOnAnyGolden(t *testing.T) {
	looked := map[redflag.Kind]int{}
	for _, name := range goldens(t) {
		r := check(t, openGolden(t, name), redflag.Options{})
		for _, f := range r.Flags {
			t.Errorf("%s: %s of %s in pass %d: %s", name, f.Kind, f.Entry, f.Pass, f.What)
		}
		for _, l := range r.Looked {
			looked[l.Kind] += l.Tensors
		}
	}
	for _, a := range redflag.Kinds {
		training := strings.HasPrefix(string(a.Kind), "gradient") || a.Kind == redflag.LossPlateau
		if (looked[a.Kind] == 0) != training {
			t.Errorf("%s looked at %d tensors of the goldens", a.Kind, looked[a.Kind])
		}
	}
}
