package dump_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/dump/dumptest"
	"github.com/tracediff/tracediff/internal/fuzztest"
)

// Each format has a target, which begins with the files of the corpus that are of it, good and hostile, and those that its own writer wrote.
// A format of folders has one in capture/foreign, and GGUF, headers of safetensors and traces where they are read.

func FuzzNpy(f *testing.F) { fuzz(f, "npy", "numpy-folder/logits.npy") }

func FuzzNpz(f *testing.F) { fuzz(f, "npz", "numpy.npz", "numpy-compressed.npz", "mlx.npz", "jax.npz") }

func FuzzTorchZip(f *testing.F) {
	fuzz(f, "torch", "torch.pt", "torch-list.pt", "float8.pt")
}

func FuzzTorchLegacy(f *testing.F) { fuzz(f, "torch, legacy", "torch-legacy.pt", "float8-legacy.pt") }
func FuzzPickle(f *testing.F)      { fuzz(f, "pickle", "pickle.pkl") }
func FuzzPolygraphy(f *testing.F)  { fuzz(f, "polygraphy", "polygraphy.json") }
func FuzzGGMLText(f *testing.F)    { fuzz(f, "ggml text", "../wild/llamacpp/text/llama-tiny.txt") }
func FuzzSafetensors(f *testing.F) { fuzz(f, "safetensors", "official.safetensors") }

// FuzzOther begins with files of no format that is read.
func FuzzOther(f *testing.F) { fuzz(f, "") }

// formats are those that have a target, by the first words of their files' names in the corpus: a name that begins another one comes after it.
var formats = []string{"npy", "npz", "torch, legacy", "torch", "pickle", "polygraphy", "ggml text", "safetensors"}

// formatOf is the format of a file of the corpus; "" for none that is read.
func formatOf(name string) string {
	i := slices.IndexFunc(formats, func(format string) bool { return strings.HasPrefix(name, format) })
	if i < 0 {
		return ""
	}
	return formats[i]
}

// Every format has files that are read and files that are refused.
func TestFormatsHaveACorpus(t *testing.T) {
	read, refused := map[string]int{}, map[string]int{}
	for _, c := range dumptest.Corpus(t) {
		if c.Want == "" {
			read[formatOf(c.Name)]++
		} else {
			refused[formatOf(c.Name)]++
		}
	}
	if n := read[""]; n > 0 {
		t.Errorf("%d files are read and of no format in the list: it lacks the beginning of their names", n)
	}
	for _, format := range formats {
		// Legacy files and pickles that are read are those that torch and Python wrote: see fixtures/foreign.
		if written := format == "torch, legacy" || format == "pickle"; !written && read[format] == 0 || refused[format] == 0 {
			t.Errorf("%s: %d files are read, %d refused", format, read[format], refused[format])
		}
	}
}

// fuzz looks for a file that makes a reader panic, or that has a tensor which cannot be: without a name, of a shape that no file holds, or
// whose bytes are neither read nor refused.
func fuzz(f *testing.F, format string, files ...string) {
	var seeds [][]byte
	for _, c := range dumptest.Corpus(f) {
		if formatOf(c.Name) == format && len(c.Data) < 1<<16 {
			seeds = append(seeds, c.Data)
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join("../../fixtures/foreign", name))
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, data[:min(len(data), 1<<15)])
	}
	fuzztest.Files(f, seeds, func(t *testing.T, data []byte) {
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
