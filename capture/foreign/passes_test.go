package foreign_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
)

// ids are the token ids of a list's element: int64, so many.
func ids(tokens int) string {
	return npy("<i8", "("+string(rune('0'+tokens))+",)", 8*tokens)
}

// batch are the token ids of a list's element: so many sequences of so many tokens.
func batch(sequences, tokens int) string {
	return npy("<i8", fmt.Sprintf("(%d, %d)", sequences, tokens), 8*sequences*tokens)
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
	{"ranks, or prompts", map[string]string{"0.ids": ids(5), "1.ids": ids(5)}, []string{"0.ids", "1.ids"}, "several prompts or ranks? Dump one of them"},
	{"passes of a batch", map[string]string{"0.ids": batch(2, 5), "0.norm": array, "1.ids": batch(2, 1), "1.norm": array}, []string{"ids", "norm", "pass1/ids", "pass1/norm"}, "each of its 2 elements is a pass: 0. is pass 0"},
	{"a batch in steps without an axis of tokens", map[string]string{"0.ids": batch(2, 5), "1.ids": ids(2)}, []string{"ids", "pass1/ids"}, "0. is pass 0"},
	{"one pass of a batch", map[string]string{"0.ids": batch(2, 5), "0.norm": array}, []string{"ids", "norm"}, "0. is pass 0"},
	{"batches of several prompts", map[string]string{"0.ids": batch(2, 5), "1.ids": batch(2, 5)}, []string{"0.ids", "1.ids"}, "several prompts or ranks?"},
	{"a batch that grows", map[string]string{"0.ids": batch(2, 5), "1.ids": batch(3, 1)}, []string{"0.ids", "1.ids"}, "several prompts or ranks?"},
	{"other names in each", map[string]string{"0.ids": ids(5), "1.ids": ids(1), "1.norm": array}, []string{"0.ids", "1.ids", "1.norm"}, ""},
	{
		"a name that one element has alone",
		map[string]string{"0.ids": ids(5), "0.norm": array, "0.q": array, "1.ids": ids(1), "1.norm": array, "1.q": array, "1.mine": array},
		[]string{"ids", "norm", "pass1/ids", "pass1/mine", "pass1/norm", "pass1/q", "q"},
		"0. is pass 0; some lack a tensor that others have (1 in all)",
	},
	{
		"an element without ids",
		map[string]string{"0.ids": ids(5), "0.norm": array, "0.q": array, "1.ids": ids(1), "1.norm": array, "1.q": array, "2.norm": array, "2.q": array},
		[]string{"ids", "norm", "pass1/ids", "pass1/norm", "pass1/q", "pass2/norm", "pass2/q", "q"},
		"each of its 3 elements is a pass",
	},
	{"ids in the first element alone", map[string]string{"0.ids": ids(5), "0.norm": array, "0.q": array, "1.norm": array, "1.q": array}, []string{"0.ids", "0.norm", "0.q", "1.norm", "1.q"}, ""},
	{"ids that are no integers", map[string]string{"0.ids": array, "0.norm": array, "1.ids": array, "1.norm": array}, []string{"0.ids", "0.norm", "1.ids", "1.norm"}, "token ids are integers"},
	{"beside others", map[string]string{"0.ids": ids(5), "1.ids": ids(1), "norm": array}, []string{"0.ids", "1.ids", "norm"}, ""},
	{"one that is missing", map[string]string{"step0.norm": array, "step2.norm": array}, []string{"step0.norm", "step2.norm"}, ""},
	{"from 2", map[string]string{"step2.norm": array, "step3.norm": array}, []string{"step2.norm", "step3.norm"}, ""},
	{"two words", map[string]string{"step0.norm": array, "pass1.norm": array}, []string{"pass1.norm", "step0.norm"}, ""},
}

// A list of passes needs no map; one that may be of layers, ranks or prompts is left as it is.
func TestListsOfPasses(t *testing.T) {
	for _, c := range lists {
		trace := archive(t, c.files)
		var got []string
		for _, r := range trace.Records() {
			got = append(got, r.Key)
		}
		slices.Sort(got)
		if notes := strings.Join(trace.Notes(), "; "); !slices.Equal(got, c.keys) || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %q, want %q; notes %q", c.name, got, c.keys, notes)
		}
	}
}

// archive opens an archive of numpy's with these arrays.
func archive(t *testing.T, arrays map[string]string) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.npz")
	if err := os.WriteFile(path, zipped(t, arrays), 0o666); err != nil {
		t.Fatal(err)
	}
	trace, err := foreign.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trace.Close() })
	return trace
}

// zipped is an archive of numpy's with these arrays.
func zipped(t *testing.T, arrays map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range arrays {
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
	return out.Bytes()
}

// A dump whose passes begin with 1 counts from 1, or has no first pass: the other trace's token ids tell.
func TestWhichPassIsTheFirst(t *testing.T) {
	alike := archive(t, map[string]string{"pass0/input_ids": tokens(1, 2), "pass1/input_ids": tokens(1, 2), "pass2/input_ids": tokens(1, 2)})
	other := archive(t, map[string]string{"pass0/input_ids": tokens(5, 1), "pass1/input_ids": tokens(1, 2), "pass2/input_ids": tokens(1, 2)})
	for _, c := range []struct {
		name  string
		files map[string]string
		first string // the key of the first tensor
		err   string
	}{
		{"from 1", map[string]string{"pass1/own": tokens(5, 1), "pass2/own": tokens(1, 2)}, "own", ""},
		{"steps alone", map[string]string{"pass1/own": tokens(1, 2), "pass2/own": tokens(1, 2)}, "pass1/own", ""},
		{"steps of a list", map[string]string{"step1.own": tokens(1, 2), "step2.own": tokens(1, 2)}, "pass1/own", ""},
		{"as many", map[string]string{"pass1/x": array, "pass2/x": array, "pass3/x": array}, "x", ""},
		{"other tokens", map[string]string{"pass1/own": tokens(4, 1), "pass2/own": tokens(1, 2)}, "own", ""},
		{"from 0", map[string]string{"pass0/own": tokens(1, 2), "pass1/own": tokens(1, 2)}, "own", ""},
		{"steps alone, all alike", map[string]string{"pass1/own": tokens(1, 2), "pass2/own": tokens(1, 2)}, "", "it is not known whether pass 1 is the first"},
		{"no ids", map[string]string{"pass1/x": array, "pass2/x": array}, "", "it is not known whether pass 1 is the first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ref := other
			if strings.HasSuffix(c.name, "all alike") {
				ref = alike
			}
			got, err := foreign.Renumbered(archive(t, c.files), ref)
			if c.err != "" || err != nil {
				if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%v, want %q", err, c.err)
				}
				return
			}
			keys := []string{}
			for _, r := range got.Records() {
				keys = append(keys, r.Key)
			}
			if slices.SortFunc(keys, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }); keys[0] != c.first {
				t.Errorf("%q, want %q first", keys, c.first)
			}
		})
	}
}

// tokens are so many ids of one number, int64.
func tokens(n int, id byte) string {
	text := ids(n)
	data := make([]byte, 8*n)
	for i := range n {
		data[8*i] = id
	}
	return text[:len(text)-8*n] + string(data)
}

// A name that no map can have is an error, and is not printed in full.
func TestNamesAreShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.npz")
	if err := os.WriteFile(path, zipped(t, map[string]string{strings.Repeat("a", 60_000): array}), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := foreign.Open(path)
	if err == nil || !strings.Contains(err.Error(), "has a name of 60000 bytes, more than 1024") || len(err.Error()) > 400 {
		t.Errorf("%.400v", err)
	}
}
