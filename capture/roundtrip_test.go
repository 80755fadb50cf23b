package capture_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// anyEvents are events as a model may fire them: names of all text, few enough that they repeat, passes that go
// forward with gaps, every dtype, any bytes.
func anyEvents(t *rapid.T) []hooks.Event {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "pass1", "layers.0.mlp"}),
		rapid.StringN(1, 8, 40).Filter(func(s string) bool { return !strings.ContainsAny(s, "/#") && s != "__metadata__" }),
	)
	pass := 0
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) hooks.Event {
		pass += rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "passes on")
		x := hooks.Tensor{
			DType: hooks.DType(rapid.IntRange(int(hooks.F64), int(hooks.Bool)).Draw(t, "dtype")),
			Shape: rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "shape"),
		}
		n, _ := hooks.Elements(x.Shape)
		x.Data = rapid.SliceOfN(rapid.Byte(), n*x.DType.Size(), n*x.DType.Size()).Draw(t, "data")
		return event(pass, name.Draw(t, "name"), x)
	}), 0, 20).Draw(t, "events")
}

// What is fired is read back, bit for bit, in order and numbered, from the unfinished trace and from the complete
// one, however much room the header had.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	rapid.Check(t, func(rt *rapid.T) {
		events := anyEvents(rt)
		w, err := capture.Create(path, capture.Manifest{}, rapid.IntRange(-1, 2000).Draw(rt, "reserve"))
		if err != nil {
			rt.Fatal(err)
		}
		defer w.Fail(nil)
		for _, e := range events {
			if err := w.Observe(e); err != nil {
				rt.Fatal(err)
			}
		}
		check := func(path string, status capture.Status) {
			tr, err := capture.Open(path)
			if err != nil {
				rt.Fatal(err)
			}
			defer tr.Close()
			sameAsFired(t, tr, events)
			if tr.Status() != status || tr.Notes() != nil || t.Failed() {
				rt.Fatalf("status %q, notes %q", tr.Status(), tr.Notes())
			}
		}
		check(path+capture.Suffix, capture.StatusOpen)
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		check(path, capture.StatusComplete)
	})
}

// However a trace that is not complete is cut short, its reader lists a beginning of what was fired or refuses it.
func TestCutAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	rapid.Check(t, func(rt *rapid.T) {
		events := anyEvents(rt)
		w, err := capture.Create(path, capture.Manifest{}, 0)
		if err != nil {
			rt.Fatal(err)
		}
		defer w.Fail(nil)
		for _, e := range events {
			if err := w.Observe(e); err != nil {
				rt.Fatal(err)
			}
		}
		b, err := os.ReadFile(path + capture.Suffix)
		if err != nil {
			rt.Fatal(err)
		}
		header := 8 + headerLength(t, path+capture.Suffix)
		b = b[:rapid.IntRange(0, len(b)).Draw(rt, "length")]
		tr, err := openBytes(b)
		if (err == nil) != (len(b) >= header) {
			rt.Fatalf("%d bytes of %d of header: error %v", len(b), header, err)
		}
		if err == nil {
			sameAsFired(t, tr, events[:len(tr.Records())])
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// A key tells its parts: no two firings have the same.
func TestKey(t *testing.T) {
	for want, got := range map[string]string{
		"a": capture.Key(0, "a", 0), "a#1": capture.Key(0, "a", 1), "pass2/a": capture.Key(2, "a", 0),
		"pass2/a#11": capture.Key(2, "a", 11), "pass2147483647/a": capture.Key(math.MaxInt32, "a", 0),
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}
