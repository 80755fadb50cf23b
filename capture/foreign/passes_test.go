package foreign_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/foreign"
)

// ids are the token ids of a list's element: int64, so many.
func ids(tokens int) string {
	return npy("<i8", "("+string(rune('0'+tokens))+",)", 8*tokens)
}

// lists have the keys that are read, and a part of the notes; empty for none.
var lists = []struct {
	name  string
	files map[string]string
	keys  []string
	note  string
}{
	{"passes", map[string]string{"0.ids": ids(5), "0.norm": array, "1.ids": ids(1), "1.norm": array}, []string{"ids", "norm", "pass1/ids", "pass1/norm"}, "each of its 2 elements is a pass: 0. is pass 0"},
	{"passes from 1", map[string]string{"1.ids": ids(5), "1.norm": array, "2.ids": ids(1), "2.norm": array}, []string{"ids", "norm", "pass1/ids", "pass1/norm"}, "1. is pass 0"},
	{"a word", map[string]string{"step0.norm": array, "step1.norm": array, "step1.cache": array}, []string{"norm", "pass1/cache", "pass1/norm"}, "step0. is pass 0"},
	{"a word for the list", map[string]string{"passes.0.norm": array, "passes.1.norm": array}, []string{"norm", "pass1/norm"}, "passes.0. is pass 0"},
	{"ten passes", func() map[string]string {
		all := map[string]string{}
		for _, n := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
			all["pass"+n+".norm"] = array
		}
		return all
	}(), []string{"norm", "pass1/norm", "pass10/norm", "pass2/norm", "pass3/norm", "pass4/norm", "pass5/norm", "pass6/norm", "pass7/norm", "pass8/norm", "pass9/norm"}, "each of its 11 elements"},
	{"layers", map[string]string{"0.norm": array, "1.norm": array}, []string{"0.norm", "1.norm"}, ""},
	{"ranks, or prompts", map[string]string{"0.ids": ids(5), "1.ids": ids(5)}, []string{"0.ids", "1.ids"}, ""},
	{"other names in each", map[string]string{"0.ids": ids(5), "1.ids": ids(1), "1.norm": array}, []string{"0.ids", "1.ids", "1.norm"}, ""},
	{"beside others", map[string]string{"0.ids": ids(5), "1.ids": ids(1), "norm": array}, []string{"0.ids", "1.ids", "norm"}, ""},
	{"one that is missing", map[string]string{"step0.norm": array, "step2.norm": array}, []string{"step0.norm", "step2.norm"}, ""},
	{"from 2", map[string]string{"step2.norm": array, "step3.norm": array}, []string{"step2.norm", "step3.norm"}, ""},
	{"two words", map[string]string{"step0.norm": array, "pass1.norm": array}, []string{"pass1.norm", "step0.norm"}, ""},
}

// A list of passes needs no map; one that may be of layers, ranks or prompts is left as it is.
func TestListsOfPasses(t *testing.T) {
	for _, c := range lists {
		path := filepath.Join(t.TempDir(), "list.npz")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := zip.NewWriter(f)
		for name, data := range c.files {
			m, err := w.Create(name + ".npy")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Write([]byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		trace, err := foreign.Open(path)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		for _, r := range trace.Records() {
			got = append(got, r.Key)
		}
		slices.Sort(got)
		if notes := strings.Join(trace.Notes(), "; "); !slices.Equal(got, c.keys) || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %q, want %q; notes %q", c.name, got, c.keys, notes)
		}
		if err := trace.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
