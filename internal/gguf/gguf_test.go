package gguf_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/fuzztest"
	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/gguf/gguftest"
	"github.com/tracediff/tracediff/internal/hint"
)

// Each file of the corpus gets its verdict, in one line, at once and in little memory; of those that are read, all data are.
func TestCorpus(t *testing.T) {
	for _, c := range gguftest.Corpus() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		started := time.Now()
		f, err := gguf.Read(bytes.NewReader(c.Data), int64(len(c.Data)))
		took := time.Since(started)
		runtime.ReadMemStats(&after)
		switch {
		case c.Want == "" && err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case c.Want != "" && (err == nil || !strings.Contains(err.Error(), c.Want)):
			t.Errorf("%s: %v, want %q", c.Name, err, c.Want)
		case c.Want != "" && len(err.Error()) > 500 || err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl):
			t.Errorf("%s: an error that is no line: %v", c.Name, err)
		}
		if next, _ := hint.Of(err); strings.Contains(next, "\n") {
			t.Errorf("%s: a hint of several lines: %s", c.Name, next)
		}
		if all := after.TotalAlloc - before.TotalAlloc; took > time.Minute || all > 80<<20 {
			t.Errorf("%s: %v and %d MiB", c.Name, took, all>>20)
		}
		if c.Want != "" || err != nil {
			continue
		}
		for i := range f.Tensors {
			readAll(t, c.Name, &f.Tensors[i])
		}
	}
}

// readAll reads what a tensor says that it has.
func readAll(t *testing.T, name string, x *gguf.Tensor) {
	t.Helper()
	d := x.Dense()
	if d.Unknown != "" {
		return
	}
	if n, err := d.ReadAt(make([]byte, d.Size()), 0); err != nil {
		t.Errorf("%s: %s: %d of %d bytes, %v", name, x.Name, n, d.Size(), err)
	}
}

// A header gives what was written into it: fields by their type, shapes in torch's order, data in their place.
func TestRead(t *testing.T) {
	file := (&gguftest.Builder{}).Text("general.architecture", "qwen3").Uint32("qwen3.block_count", 3).
		Array("tokens", 8, 1, []byte("\x02\x00\x00\x00\x00\x00\x00\x00hi")).
		Field("eps", 6, gguftest.Floats(1e-6)).Field("tied", 7, []byte{1}).Field("least", 5, []byte{0xff, 0xff, 0xff, 0xff}).
		Tensor("pad", 0, gguftest.Floats(7), 1).Tensor("w", 0, gguftest.Floats(1, 2, 3, 4, 5, 6), 3, 2).Bytes()
	f, err := gguf.Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Text("general.architecture"); got != "qwen3" {
		t.Errorf("architecture %q", got)
	}
	for key, want := range map[string]float64{"qwen3.block_count": 3, "eps": float64(float32(1e-6)), "least": -1} {
		if got, ok := f.Number(key); !ok || got != want {
			t.Errorf("%s: %v %v", key, got, ok)
		}
	}
	for key, want := range map[string]any{"tied": true, "tokens": gguf.Array{Kind: "string", Len: 1}} {
		if got, _ := f.Field(key); got.Value != want {
			t.Errorf("%s: %v", key, got.Value)
		}
	}
	if _, ok := f.Number("general.architecture"); ok || f.Text("absent") != "" {
		t.Error("a text is a number, or an absent field a text")
	}
	w := f.Tensors[1].Dense()
	if w.DType != hooks.F32 || len(w.Shape) != 2 || w.Shape[0] != 2 || w.Shape[1] != 3 {
		t.Errorf("w is %v %v, want float32 [2 3]", w.DType, w.Shape)
	}
	var row [12]byte
	if _, err := w.ReadAt(row[:], 12); err != nil || !bytes.Equal(row[:], gguftest.Floats(4, 5, 6)) {
		t.Errorf("the second row is % x, %v", row, err)
	}
}

// An importance matrix has a say in the codes of Q4_0, in the steps alone of Q4_K, and in nothing of Q8_0.
func TestImportanceMatrix(t *testing.T) {
	for _, key := range []string{"general.name", "quantize.imatrix.file"} {
		file := (&gguftest.Builder{}).Text(key, "some.imatrix").Tensor("w", 12, make([]byte, 144), 256).Tensor("o", 2, make([]byte, 18), 32).Tensor("e", 8, make([]byte, 34), 32).Bytes()
		f, err := gguf.Read(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"Q4_K", "Q4_0", "Q8_0"} {
			q, _ := f.Tensors[i].Quantised()
			with := key != "general.name"
			if q.Scheme.Moves != (with && name == "Q4_0") || strings.Contains(q.Scheme.Name, "importance") != (with && name != "Q8_0") {
				t.Errorf("%s: %s: %+v", key, name, q.Scheme)
			}
		}
	}
}

// A file that becomes shorter after its header was read is an error, not zeros.
func TestShrunk(t *testing.T) {
	file := (&gguftest.Builder{}).Tensor("w", 8, make([]byte, 340), 320).Bytes()
	data := &shrinking{file, len(file)}
	f, err := gguf.Read(data, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	data.size -= 40
	d := f.Tensors[0].Dense()
	if _, err := d.ReadAt(make([]byte, d.Size()), 0); err == nil || !strings.Contains(err.Error(), "has become shorter") {
		t.Errorf("%v, want that the file has become shorter", err)
	}
}

type shrinking struct {
	data []byte
	size int
}

func (s *shrinking) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(s.size) {
		return 0, io.EOF
	}
	n := copy(p, s.data[off:s.size])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// FuzzRead looks for a file that makes the reader panic, or that has a tensor which cannot be: outside the file, over another, of a shape
// that disagrees with its bytes, or whose name a terminal would act on.
func FuzzRead(f *testing.F) {
	var files [][]byte
	for _, c := range gguftest.Corpus() {
		if len(c.Data) < 1<<16 {
			files = append(files, c.Data)
		}
	}
	fuzztest.Files(f, files, func(t *testing.T, data []byte) {
		file, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 2000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Fatalf("an error that is no line: %q", err)
			}
			return
		}
		names := map[string]bool{}
		for i := range file.Tensors {
			x := &file.Tensors[i]
			n, ok := hooks.Elements(x.Shape)
			d := x.Dense()
			if !ok || names[x.Name] || x.Name == "" || strings.ContainsFunc(x.Name, unicode.IsControl) || x.Offset < 0 || x.Size < 0 || x.Offset > int64(len(data)) || x.Size > int64(len(data))-x.Offset ||
				d.Unknown == "" && d.Size() != int64(n*d.DType.Size()) || n > 0 && x.Size == 0 {
				t.Fatalf("impossible tensor %q %v %v %d %d", x.Name, x.Type, x.Shape, x.Offset, x.Size)
			}
			names[x.Name] = true
			if d.Unknown == "" && d.Size() < 1<<20 {
				readAll(t, "fuzzed", x)
			}
		}
	})
}
