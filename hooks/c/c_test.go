// Package c_test holds hooks/c/tracediff.h to what it promises: every trace that it writes is opened by the package
// that reads traces, and is byte for byte the one that the Go writer makes of the same events. The header is compiled
// as C99, as C++11 and with sanitizers, and driven through testdata/driver.c.
package c_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// snapshots are traces of the Go writer, committed at several stages of one run.
const snapshots = "../../capture/testdata/snapshots"

func open(t testing.TB, path string) *capture.Trace {
	t.Helper()
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// events reads back everything that a trace has.
func events(t testing.TB, tr *capture.Trace) []hooks.Event {
	t.Helper()
	var all []hooks.Event
	for _, r := range tr.Records() {
		x, err := tr.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x})
	}
	return all
}

// The bytes are those of the Go writer at every stage: header too small, second firings, passes, completion, failure.
func TestSnapshots(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		m := manifest{producer: text("tracediff"), version: text("0"), prompt: text(`Grüße, "Welt"`), reserve: 260}
		fired := events(t, open(t, filepath.Join(snapshots, "complete-10.safetensors")))
		for _, c := range []struct {
			snapshot, end string
			tensors       int
		}{
			{"open-0", "exit", 0},
			{"open-1", "exit", 1},
			{"open-4", "exit", 4},
			{"open-5", "exit", 5},
			{"open-10", "exit", 10},
			{"complete-10", "close", 10},
			{"failed-2", "fail " + word(text("größe 木")), 2},
		} {
			path := filepath.Join(t.TempDir(), "run.safetensors")
			var s script
			s.open(path, m)
			for _, e := range fired[:c.tensors] {
				s.do("pass %d", e.Pass)
				s.record(e.Name, e.Tensor)
			}
			s.do("%s", c.end)
			run(t, driver, &s)
			if c.end != "close" {
				path += capture.Suffix
			}
			sameFile(t, path, filepath.Join(snapshots, c.snapshot+".safetensors"))
		}
	})
}

func sameFile(t testing.TB, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, wanted) {
		t.Errorf("not the bytes of %s\nwant %q\ngot  %q", want, wanted, got)
	}
}

// drawEvents draws a run: all dtypes, empty tensors and scalars, names that JSON has to escape, names that come again.
func drawEvents(r *rapid.T) []hooks.Event {
	dtype := rapid.Map(rapid.IntRange(int(hooks.F64), int(hooks.Bool)), func(i int) hooks.DType { return hooks.DType(i) })
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "layers.0.mlp", "größe \"木\"\\", "\x01\t\n\x1f", "pass1", "\U0010ffff"}),
		rapid.StringN(1, 20, -1).Filter(func(s string) bool { return !strings.ContainsAny(s, "/#\x00") }),
		rapid.Map(rapid.IntRange(0, 400), func(i int) string { return fmt.Sprintf("layers.%d", i) }),
	)
	pass := 0
	var all []hooks.Event
	for range rapid.IntRange(0, 40).Draw(r, "tensors") {
		pass += rapid.SampledFrom([]int{0, 0, 0, 1, 12}).Draw(r, "passes on")
		x := hooks.Tensor{DType: dtype.Draw(r, "dtype"), Shape: rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(r, "shape")}
		n, _ := hooks.Elements(x.Shape)
		size := n * x.DType.Size()
		x.Data = rapid.SliceOfN(rapid.Byte(), size, size).Draw(r, "data")
		all = append(all, hooks.Event{Name: name.Draw(r, "name"), Pass: pass, Tensor: x})
	}
	return all
}

// Whatever is recorded, the file is the one that the Go writer makes of it.
func TestSameAsGo(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		d, dir := start(t, driver), t.TempDir()
		rapid.Check(t, func(r *rapid.T) {
			free := rapid.StringN(1, 20, -1).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
			model, prompt := free.Draw(r, "model"), free.Draw(r, "prompt")
			reserve := rapid.IntRange(1, 4000).Draw(r, "reserve")
			all := drawEvents(r)

			var s script
			path := filepath.Join(dir, "c.safetensors")
			s.open(path, manifest{model: &model, prompt: &prompt, reserve: reserve})
			w, err := capture.Create(filepath.Join(dir, "go.safetensors"), capture.Manifest{Side: "local", Model: model, Prompt: prompt}, reserve)
			if err != nil {
				r.Fatal(err)
			}
			for _, e := range all {
				s.do("pass %d", e.Pass)
				s.record(e.Name, e.Tensor)
				if err := w.Observe(e); err != nil {
					r.Fatal(err)
				}
			}
			s.do("close")
			if err := w.Close(); err != nil {
				r.Fatal(err)
			}
			d.mustDo(t, &s)
			sameFile(t, path, filepath.Join(dir, "go.safetensors"))
			if t.Failed() {
				r.Fatalf("events %v", all)
			}
		})
	})
}

// What the manifest declares is read back; what it leaves out is undeclared.
func TestManifest(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		names := []string{"input_ids", `größe "木" \`, "layers.0.mlp"}
		var s script
		s.open(path, manifest{
			side: text("reference"), producer: text(`my "engine"`), version: text("1.2"), model: text("dir"), prompt: text("a\nb"),
			dtype: text("bfloat16"), device: text("cuda:0"), passes: 3, level: 2, layers: text("0-3,7,12-"), names: names,
		})
		s.do("plain %s", word(text("x")))
		s.do("close")
		mustRun(t, driver, &s)
		tr := open(t, path)
		layers, err := capture.ParseRanges("0-3,7,12-")
		if err != nil {
			t.Fatal(err)
		}
		want := capture.Manifest{
			Side: "reference", Producer: capture.Producer{Name: `my "engine"`, Version: "1.2"}, Model: "dir", Prompt: "a\nb",
			DType: hooks.BF16, Device: "cuda:0", Passes: 3, Scope: capture.Scope{Level: 2, Layers: layers}, Entries: names,
			Status: capture.StatusComplete,
		}
		if diff := cmp.Diff(want, tr.Manifest()); diff != "" {
			t.Error(diff)
		}
		if !tr.Sequence() {
			t.Error("the trace does not say that it is in the order of execution")
		}

		s.Reset()
		s.open(path, manifest{side: text(""), names: []string{}}) // over the trace that is there
		s.do("close")
		mustRun(t, driver, &s)
		want = capture.Manifest{Entries: []string{}, Status: capture.StatusComplete}
		if diff := cmp.Diff(want, open(t, path).Manifest()); diff != "" {
			t.Error(diff)
		}
	})
}

// A view is what copying its elements one by one gives, for any axes swapped, skipped, turned around or repeated.
func TestStrided(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		d, dir := start(t, driver), t.TempDir()
		rapid.Check(t, func(r *rapid.T) {
			dtype := rapid.SampledFrom([]hooks.DType{hooks.U8, hooks.BF16, hooks.F32, hooks.F64}).Draw(r, "dtype")
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(r, "shape")
			strides := make([]int, len(shape))
			low, high := 0, 0
			for i, n := range shape {
				strides[i] = dtype.Size() * rapid.IntRange(-5, 5).Draw(r, "stride")
				low, high = low+min(0, strides[i]*max(0, n-1)), high+max(0, strides[i]*max(0, n-1))
			}
			memory := make([]byte, high-low+dtype.Size())
			for i := range memory {
				memory[i] = byte(i)
			}
			var want []byte
			elements(shape, strides, -low, func(at int) { want = append(want, memory[at:at+dtype.Size()]...) })

			path := filepath.Join(dir, "run.safetensors")
			var s script
			s.open(path, manifest{})
			s.tensor("strided", "x", hooks.Tensor{DType: dtype, Shape: shape, Data: memory})
			s.do(" %d %s", -low, list(strides))
			s.do("close")
			d.mustDo(t, &s)
			got := events(t, open(t, path))[0].Tensor // the file is replaced, not changed, by the next check
			if !bytes.Equal(got.Data, want) || !slices.Equal(got.Shape, shape) {
				r.Fatalf("%v, want %v of %v", got, want, shape)
			}
		})
	})
}

// elements calls visit with the place of each element of a view, in row-major order.
func elements(shape, strides []int, at int, visit func(int)) {
	if len(shape) == 0 {
		visit(at)
		return
	}
	for i := range shape[0] {
		elements(shape[1:], strides[1:], at+i*strides[0], visit)
	}
}

// Memory of a device comes in pieces, through the caller's copy.
func TestDevice(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		data := make([]byte, 600<<10) // three pieces
		for i := range data {
			data[i] = byte(i / 3)
		}
		var s script
		s.open(path, manifest{})
		for i, n := range []int{0, 4, 256 << 10, len(data)} {
			s.tensor("from", fmt.Sprint("x", i), hooks.Tensor{DType: hooks.F32, Shape: []int{n / 4}, Data: data[:n]})
			s.do(" -1 -1")
		}
		s.do("close")
		mustRun(t, driver, &s)
		for i, e := range events(t, open(t, path)) {
			if want := data[:[]int{0, 4, 256 << 10, len(data)}[i]]; !bytes.Equal(e.Tensor.Data, want) {
				t.Errorf("tensor of %d bytes is not what the device has", len(want))
			}
		}
	})
}
