package reference_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/fuzztest"
)

// hello is a golden that a store holds, and what a reference has to be to be it.
func hello(t *testing.T) (data []byte, w reference.Wanted) {
	t.Helper()
	data, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/hello.bfloat16.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := capture.OpenReader("hello", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	passes, err := trace.IDs()
	if err != nil {
		t.Fatal(err)
	}
	m := trace.Manifest()
	return data, reference.Wanted{
		Config: m.Config, Model: "models/tiny", Weights: m.Weights, DType: hooks.BF16, Passes: passes,
		Scope: capture.Scope{Level: 2}, Entries: []string{"input_ids", "logits"}, Order: "of the list",
	}
}

// madeBy returns a trace with another producer in its header.
func madeBy(data []byte, producer string) []byte {
	n := binary.LittleEndian.Uint64(data)
	header := bytes.Replace(data[8:8+n], []byte(`\"name\":\"transformers\"`), []byte(`\"name\":\"`+producer+`\"`), 1)
	header = append(header, bytes.Repeat([]byte(" "), -len(header)&7)...)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data[8+n:]...)
}

// What was kept is what is used: a trace that was written into, or is of another producer than its key says, is refused.
func TestContentIsHeldToWhatWasKept(t *testing.T) {
	data, w := hello(t)
	r := reference.TransformersRunner()
	s, e := stored(t, data, w, capture.Scope{Level: 3}, r)
	if err := e.Intact(); err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(data)
	changed[len(changed)-1] ^= 1 // a value, so that the trace is as well formed as before
	if err := os.WriteFile(e.Path, changed, 0o666); err != nil {
		t.Fatal(err)
	}
	want := filepath.Base(e.Path) + " was changed after it was stored"
	if err := e.Intact(); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	f, passed, err := s.Find(w, r)
	if err != nil || f != nil || len(passed) != 1 || passed[0].Why.Error() != want {
		t.Errorf("%v %v %v, want %q", f, passed, err, want)
	}
	k := reference.NewKey(w, capture.Scope{Level: 3}, r)
	if _, err := s.Keep(placed(t, s, k, madeBy(data, reference.WalkName)), w, k); err == nil || !strings.Contains(err.Error(), `it says that "tracediff float64 walk" made it`) {
		t.Errorf("a walk for transformers: %v", err)
	}
}

// placed writes a trace to a place of a store.
func placed(t *testing.T, s reference.Store, k reference.Key, data []byte) string {
	t.Helper()
	release, err := s.Lock(k)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	path := s.Place(k)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// stored puts a trace into a new store.
func stored(t *testing.T, data []byte, w reference.Wanted, scope capture.Scope, r reference.Runner) (reference.Store, reference.Entry) {
	t.Helper()
	s := reference.NewStore(t.TempDir())
	k := reference.NewKey(w, scope, r)
	if r.Name == reference.GoWalk {
		data = madeBy(data, reference.WalkName)
	}
	f, err := s.Keep(placed(t, s, k, data), w, k)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return s, f.Entry
}

// Every component of the key decides: the one that differs is the reason, and what does not matter does not.
func TestEveryComponentDecides(t *testing.T) {
	data, made := hello(t)
	made.Scope.Layers = capture.Ranges{{From: 0, To: 6}}
	runner := reference.TransformersRunner()
	s, e := stored(t, data, made, capture.Scope{Level: 3, Layers: made.Scope.Layers}, runner)
	for _, test := range []struct {
		what   string
		change func(w *reference.Wanted, r *reference.Runner)
		why    string // empty: it is used
	}{
		{"nothing", func(*reference.Wanted, *reference.Runner) {}, ""},
		{"a higher level", func(w *reference.Wanted, _ *reference.Runner) { w.Scope.Level = 3 }, ""},
		{"fewer tensors", func(w *reference.Wanted, _ *reference.Runner) { w.Scope.Tensors = []string{"logits"} }, ""},
		{"another name of the model", func(w *reference.Wanted, _ *reference.Runner) { w.Model = "elsewhere/tiny-copy" }, ""},
		{"the configuration", func(w *reference.Wanted, _ *reference.Runner) { w.Config = json.RawMessage(`{}`) }, "it is of a model with another configuration"},
		{"the weights", func(w *reference.Wanted, _ *reference.Runner) { w.Weights = "sha256:other" }, "it is of other weights"},
		{"weights not known, of another name", func(w *reference.Wanted, _ *reference.Runner) { w.Weights, w.Model = "unknown", "other" }, "and the digest of these weights is not known"},
		{"weights not known, changed since", func(w *reference.Wanted, _ *reference.Runner) {
			w.Weights, w.Changed = "unknown", time.Now().Add(time.Hour)
		}, "were changed after it was made"},
		{"weights not known, not changed", func(w *reference.Wanted, _ *reference.Runner) {
			w.Weights, w.Model, w.Changed = "unknown", "elsewhere/hello", time.Now().Add(-time.Hour)
		}, "the digest of these weights is not known"},
		{"the ids", func(w *reference.Wanted, _ *reference.Runner) { w.Passes = [][]int{{2, 527}} }, "it has other token ids"},
		{"an id more", func(w *reference.Wanted, _ *reference.Runner) { w.Passes = [][]int{{2, 527, 876, 5}} }, "it has other token ids"},
		{"the dtype", func(w *reference.Wanted, _ *reference.Runner) { w.DType = hooks.F32 }, "it was computed in bfloat16, not in float32"},
		{"the order", func(w *reference.Wanted, _ *reference.Runner) { w.Order = "of another list" }, "it was captured by another order"},
		{"other layers", func(w *reference.Wanted, _ *reference.Runner) { w.Scope.Layers = nil }, "its scope is narrower (level 3, layers 0-6)"},
		{"the runner's version", func(_ *reference.Wanted, r *reference.Runner) { r.Version = "older" }, "it was made by another version of the transformers runner"},
		{"the runner", func(_ *reference.Wanted, r *reference.Runner) { *r = reference.WalkRunner() }, "it was made by another runner (hf)"},
	} {
		w, r := made, runner
		test.change(&w, &r)
		trace, passes, err := e.Open(w, r)
		if trace != nil {
			if len(passes) != 1 {
				t.Errorf("%s: %d passes", test.what, len(passes))
			}
			trace.Close()
		}
		var refused *reference.Refusal
		if test.why == "" && err != nil || test.why != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Why, test.why)) {
			t.Errorf("%s: %v, want %q", test.what, err, test.why)
		}
	}
	f, passed, err := s.Find(made, runner)
	if err != nil || f == nil || f.Entry.Path != e.Path || passed != nil {
		t.Fatalf("not found: %v, %v", passed, err)
	}
	f.Close()
}

// The nearest miss comes first, and the entry that is used is the newest that fits.
func TestFind(t *testing.T) {
	data, w := hello(t)
	s, first := stored(t, data, w, capture.Scope{Level: 3}, reference.TransformersRunner())
	put := func(w reference.Wanted, scope capture.Scope, r reference.Runner) reference.Entry {
		t.Helper()
		k := reference.NewKey(w, scope, r)
		if r.Name == reference.GoWalk {
			data = madeBy(data, reference.WalkName)
		}
		path := placed(t, s, k, data)
		f, err := s.Keep(path, w, k)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		return f.Entry
	}
	second := put(w, capture.Scope{Level: 2}, reference.TransformersRunner())
	walk := put(w, capture.Scope{Level: 3}, reference.WalkRunner())
	old := time.Now().Add(-time.Hour)
	for path, when := range map[string]time.Time{first.Path: old, second.Path: old.Add(time.Minute), walk.Path: old.Add(2 * time.Minute)} {
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := s.List()
	if err != nil || len(entries) != 3 || entries[0].Path != walk.Path || entries[1].Path != second.Path || entries[2].Path != first.Path {
		t.Fatalf("%v %v", entries, err)
	}
	find := func(w reference.Wanted) (string, []reference.Passed) {
		f, passed, err := s.Find(w, reference.TransformersRunner())
		if err != nil {
			t.Fatal(err)
		}
		if f == nil {
			return "", passed
		}
		f.Close()
		return f.Entry.Path, passed
	}
	if got, _ := find(w); got != second.Path {
		t.Errorf("level 2: %s, want the newer one", got)
	}
	w.Scope.Level = 3
	if got, _ := find(w); got != first.Path {
		t.Errorf("level 3: %s, want the one that has it", got)
	}
	w.DType, w.Scope = hooks.F32, capture.Scope{Level: 2}
	got, passed := find(w)
	if got != "" || len(passed) != 2 || !strings.Contains(passed[0].Why.Error(), "computed in bfloat16") {
		t.Errorf("float32: %s, %v", got, passed)
	}
}

// A trace that is not what its key says is not stored, and stays where it was.
func TestKeepHoldsTheTraceToItsKey(t *testing.T) {
	data, w := hello(t)
	for name, change := range map[string]func(*reference.Wanted){
		"it has other token ids":           func(w *reference.Wanted) { w.Passes = [][]int{{2}} },
		"it is of other weights":           func(w *reference.Wanted) { w.Weights = "sha256:other" },
		"it was computed in bfloat16":      func(w *reference.Wanted) { w.DType = hooks.F16 },
		"leaves out 1 of the 2":            func(w *reference.Wanted) { w.Entries = []string{"input_ids", "unheard.of"} },
		"its number of passes is 1, 3 are": func(w *reference.Wanted) { w.NewTokens = 2 },
		"a model with another configurat":  func(w *reference.Wanted) { w.Config = json.RawMessage(`{"model_type":"x"}`) },
	} {
		w := w
		change(&w)
		s := reference.NewStore(t.TempDir())
		k := reference.NewKey(w, capture.Scope{Level: 3}, reference.TransformersRunner())
		path := placed(t, s, k, data)
		_, err := s.Keep(path, w, k)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
		if entries, err := s.List(); err != nil || len(entries) != 0 {
			t.Errorf("stored all the same: %v %v", entries, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// Two runs of one key never write to one file, and the second is told that the first is at it.
func TestPlacesAreOnesOwn(t *testing.T) {
	_, w := hello(t)
	s, k := reference.NewStore(t.TempDir()), reference.NewKey(w, capture.Scope{Level: 3}, reference.WalkRunner())
	if a, b := s.Place(k), s.Place(k); a == b {
		t.Errorf("both write to %s", a)
	}
	release, err := s.Lock(k)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(k); !errors.Is(err, capture.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	release()
	if release, err = s.Lock(k); err != nil {
		t.Fatal(err)
	}
	release()
}

// Files of other names are nobody's entry, and broken entries are listed with what is wrong.
func TestListOddFiles(t *testing.T) {
	data, w := hello(t)
	s, e := stored(t, data, w, capture.Scope{Level: 3}, reference.WalkRunner())
	dir := filepath.Dir(e.Path)
	for _, name := range []string{"notes.txt", "0123456789abcdef.json", "0123456789ABCDEF.safetensors", "x0123456789abcdef.safetensors", "0123456789abcdef.safetensors.part"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(e.FloorPath(), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	entries, err := s.List()
	if err != nil || len(entries) != 1 || !entries[0].Floor || entries[0].Size <= int64(len(data)) || entries[0].Err != nil {
		t.Errorf("%+v %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "fedcba9876543210.safetensors"), 0o777); err != nil {
		t.Fatal(err)
	}
	entries, err = s.List()
	if err != nil || len(entries) != 2 || entries[0].Err == nil == (entries[1].Err == nil) {
		t.Errorf("%+v %v", entries, err)
	}
	if none, err := reference.NewStore(filepath.Join(dir, "nowhere")).List(); err != nil || none != nil {
		t.Errorf("no store: %v %v", none, err)
	}
}

// A description is read from a folder that anybody may have written: it is refused or it is that of its key.
func FuzzDescription(f *testing.F) {
	files := [][]byte{
		[]byte(`{"key":{"weights":"unknown","config":"","tokens":"2","dtype":"float32","order":"","scope":{"level":3},"runner":"hf","version":""},"model":"m"}`),
		[]byte(`{"key":{"scope":{"level":-1,"layers":"9-1"}}}`),
		[]byte("{}"),
	}
	fuzztest.Files(f, files, func(t *testing.T, text []byte) {
		dir := t.TempDir()
		const name = "0123456789abcdef"
		folder := filepath.Join(dir, "references")
		if err := os.Mkdir(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		for ending, data := range map[string][]byte{".json": text, ".safetensors": []byte("no trace")} {
			if err := os.WriteFile(filepath.Join(folder, name+ending), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := reference.NewStore(dir).List()
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v %v", entries, err)
		}
		if e := entries[0]; e.Err == nil && e.Key.String() != name {
			t.Errorf("taken for %s", e.Key)
		}
		if _, _, err := entries[0].Open(reference.Wanted{}, reference.WalkRunner()); err == nil {
			t.Error("it was opened")
		}
	})
}
