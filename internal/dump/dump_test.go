package dump_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/dump/dumptest"
)

// Each file of the corpus gets its verdict; of those that are read, all data are.
func TestCorpus(t *testing.T) {
	for _, c := range dumptest.Corpus(t) {
		f := &container.File{}
		err := dump.Read(bytes.NewReader(c.Data), int64(len(c.Data)), f, "alone")
		switch {
		case c.Want == "" && err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case c.Want != "" && (err == nil || !strings.Contains(err.Error(), c.Want)):
			t.Errorf("%s: %v, want %q", c.Name, err, c.Want)
		case c.Want != "" && strings.Count(err.Error(), "\n") > 0:
			t.Errorf("%s: an error of several lines: %v", c.Name, err)
		}
		for i := range f.Tensors {
			x := &f.Tensors[i]
			if c.Want != "" || x.Unknown != "" {
				continue
			}
			if n, err := x.ReadAt(make([]byte, x.Size()), 0); err != nil {
				t.Errorf("%s: %s: %d bytes, %v", c.Name, x.Name, n, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// FuzzRead looks for a file that makes a reader panic, or that has a tensor which cannot be: without a name, of a shape that no
// file holds, or whose bytes are neither read nor refused.
func FuzzRead(f *testing.F) {
	for _, c := range dumptest.Corpus(f) {
		if len(c.Data) < 1<<16 {
			f.Add(c.Data)
		}
	}
	for _, name := range []string{"numpy.npz", "torch.pt", "torch-legacy.pt", "pickle.pkl", "official.safetensors", "mlx.npz", "../wild/llamacpp/text/llama-tiny.txt"} {
		data, err := os.ReadFile(filepath.Join("../../fixtures/foreign", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 1<<15)])
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &container.File{}
		defer in.Close()
		if err := dump.Read(bytes.NewReader(data), int64(len(data)), in, "alone"); err != nil {
			if err.Error() == "" || len(err.Error()) > 2000 {
				t.Fatalf("an error of %d characters", len(err.Error()))
			}
			return
		}
		for i := range in.Tensors {
			x := &in.Tensors[i]
			n, ok := hooks.Elements(x.Shape)
			if !ok || x.Unknown == "" && (!x.DType.Valid() || x.Size() != int64(n*x.DType.Size())) {
				t.Fatalf("impossible tensor %s %v %v", x.Name, x.DType, x.Shape)
			}
			if x.Unknown != "" {
				continue
			}
			p := make([]byte, min(x.Size(), 1<<12))
			if k, err := x.ReadAt(p, 0); err == nil && k != len(p) {
				t.Fatalf("%s: %d of %d bytes without an error", x.Name, k, len(p))
			}
		}
	})
}
