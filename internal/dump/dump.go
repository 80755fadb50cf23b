// Package dump opens files of tensors, whoever wrote them, by their content: safetensors, numpy's .npy and .npz, what torch.save
// writes, pickles of numpy arrays, results of Polygraphy, the text of llama.cpp's eval-callback. What is not one of them is named for what it looks like, with the next step.
package dump

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/ggmltext"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/npy"
	"github.com/tracediff/tracediff/internal/polygraphy"
	"github.com/tracediff/tracediff/internal/safetensors"
	"github.com/tracediff/tracediff/internal/torch"
)

// sniffed is how many bytes of a file say what it is.
const sniffed = 4096

// Open opens the file at path.
func Open(path string) (*container.File, error) {
	r, info, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	if start := make([]byte, min(info.Size(), sniffed)); info.Size() > 0 {
		if _, err := r.ReadAt(start, 0); err == nil && isIndex(start) {
			return Sharded(path)
		}
	}
	f := &container.File{}
	f.Own(r)
	if err := Read(r, info.Size(), f, stem(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, hint.Also(err, f.Close()))
	}
	return f, nil
}

// Read lists the tensors of a file of size bytes in f. A tensor that is the whole file is called by the parameter whole.
func Read(r io.ReaderAt, size int64, f *container.File, whole string) error {
	start := make([]byte, min(size, sniffed))
	if n, err := r.ReadAt(start, 0); n < len(start) {
		return err
	}
	switch {
	case len(start) > 8 && start[7] == 0 && start[8] == '{': // whatever the header claims
		return readSafetensors(r, size, f)
	case bytes.HasPrefix(start, []byte(npy.Magic)):
		t, err := npy.Array(r, size)
		if err == nil {
			npy.File(t, whole, f)
		}
		return npy.Hinted(err)
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("PK\x05\x06")):
		return readZip(r, size, f, whole)
	case polygraphy.Is(start):
		return polygraphy.Read(r, size, f)
	case torch.IsLegacy(start):
		return torch.Legacy(r, size, f, whole)
	case len(start) > 1 && start[0] == 0x80 && start[1] >= 2 && start[1] <= 5:
		return torch.Pickle(r, size, f, whole)
	}
	if looksLikeText(start) && ggmltext.Is(r, size) {
		return ggmltext.Read(r, size, f)
	}
	return foreignFile(r, size, start)
}

func readZip(r io.ReaderAt, size int64, f *container.File, whole string) error {
	z, err := container.OpenZip(r, size)
	if err != nil {
		return err
	}
	f.Own(z)
	switch {
	case torch.IsArchive(z):
		return torch.Archive(z, f, whole)
	case npy.IsArchive(z):
		return npy.Archive(z, f)
	}
	return otherArchive(z)
}

// readSafetensors lists the tensors of a safetensors file, strictly.
func readSafetensors(r io.ReaderAt, size int64, f *container.File) error {
	f.Format = "safetensors"
	text, err := safetensors.Text(r, size)
	if err != nil {
		return err
	}
	if err := safetensors.Bounded(text); err != nil {
		return err
	}
	header, err := safetensors.Parse(text)
	if err != nil {
		return err
	}
	end, err := header.Layout()
	if err != nil {
		return err
	}
	start := 8 + int64(len(text))
	switch {
	case end > size-start:
		return hint.Add(fmt.Errorf("%d bytes of data, and the tensors have %d", size-start, end), safetensors.CutShort)
	case end < size-start:
		return fmt.Errorf("%d bytes of data, and the tensors have %d", size-start, end)
	}
	f.Tensors = slices.Grow(f.Tensors, len(header.Tensors))
	for _, t := range header.Tensors {
		f.Tensors = append(f.Tensors, container.Tensor{Name: t.Name, DType: t.DType, Unknown: t.Unknown, Shape: t.Shape, Data: r, Offset: start + t.Begin})
	}
	return nil
}

// extensions are those of dumps: they are no part of a name, and a file of a folder that has one and cannot be read is an error, where any other
// file is left out with a note.
var extensions = []string{".npy", ".npz", ".pt", ".pth", ".bin", ".safetensors", ".pkl", ".pickle"}

// stem is the name of a file without its folder and without the extension of a dump.
func stem(path string) string {
	name := filepath.Base(path)
	for _, e := range extensions {
		if stem, ok := strings.CutSuffix(name, e); ok && stem != "" {
			return stem
		}
	}
	return name
}
