package health

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/safetensors"
)

// pointerMark starts the text file that git leaves in place of a large file that was not fetched.
const pointerMark = "version https://git-lfs.github.com/spec/"

// Next steps for what many files can have.
const (
	hintPull     = "git clone left a pointer in place of the file: run git lfs pull in the directory"
	hintDownload = "download the file again and compare its size with the original's"
)

// WeightFiles checks the weight files of a model directory: all there, whole, and in agreement with the index. It returns the sorted names of
// the tensors that a model reads, and whether the files can be opened.
func WeightFiles(s *Section, fsys fs.FS) (names []string, sound bool) {
	files, index, err := checkpoint.WeightFiles(fsys)
	if err != nil {
		s.Fail(otherFormats(fsys), "%v", err)
		return nil, false
	}
	sound = true
	var total int64
	for _, file := range files {
		listed := 0
		for _, in := range index {
			if in == file {
				listed++
			}
		}
		f, err := openWeights(fsys, file)
		if err != nil {
			if listed > 0 {
				err = fmt.Errorf("%w; the index puts %s into it", err, amount.Of(listed, "tensor"))
			}
			s.Fail(hintOf(err), "%s: %v", file, err)
			sound = false
			continue
		}
		total += f.size
		if index == nil {
			names = append(names, f.names...)
		} else if kept, ok := s.indexed(file, f.names, index, listed); ok {
			names = append(names, kept...)
		} else {
			sound = false
		}
	}
	stray(s, fsys, files)
	if sound {
		s.OK("%s, %s, %s", amount.Of(len(files), "weight file"), amount.Of(len(names), "tensor"), amount.Bytes(total))
	}
	slices.Sort(names)
	return names, sound
}

// indexed compares a shard's tensors with the index, and returns the tensors in both.
func (s *Section) indexed(file string, has []string, index map[string]string, listed int) (kept []string, ok bool) {
	var unlisted []string
	for _, name := range has {
		switch index[name] {
		case file:
			kept = append(kept, name)
		default:
			unlisted = append(unlisted, plain.Quote(name))
		}
	}
	if len(unlisted) > 0 {
		s.Warn("the index may be from another version of the files", "%s: the index does not list %s of it, so they are not read: %s",
			file, amount.Of(len(unlisted), "tensor"), few(unlisted))
	}
	if missing := listed - len(kept); missing > 0 {
		s.Fail("the index and the files are of different versions: download both again", "%s: the index puts %s into it that it does not hold: %s",
			file, amount.Of(missing, "tensor"), few(absent(file, kept, index)))
		return kept, false
	}
	return kept, true
}

// absent names, sorted, what the index puts into a file and the file does not hold.
func absent(file string, has []string, index map[string]string) []string {
	holds := map[string]bool{}
	for _, name := range has {
		holds[name] = true
	}
	var names []string
	for name, in := range index {
		if in == file && !holds[name] {
			names = append(names, plain.Quote(name))
		}
	}
	slices.Sort(names)
	return names
}

// weightFile is the header of one file. The end of the data is checked, the data are not read.
type weightFile struct {
	names []string
	size  int64
}

// hintError is what is wrong with a file, with the next step.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }

func hintOf(err error) string {
	var h hintError
	if errors.As(err, &h) {
		return h.hint
	}
	return hintDownload
}

func openWeights(fsys fs.FS, name string) (*weightFile, error) {
	info, err := fs.Stat(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("missing")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // opening a pipe would wait for its other end
		return nil, errors.New("not a regular file")
	case info.Size() == 0:
		return nil, errors.New("empty")
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, ok := file.(io.ReaderAt)
	if !ok {
		return nil, errors.New("it cannot be read at any offset")
	}
	size := info.Size()
	text, err := safetensors.Text(r, size)
	if err != nil {
		return nil, notWeights(r, err)
	}
	h, err := safetensors.Parse(text)
	if err != nil {
		return nil, err
	}
	data, err := h.Layout()
	if err != nil {
		return nil, err
	}
	whole := 8 + int64(len(text)) + data
	switch {
	case size < whole:
		return nil, fmt.Errorf("cut short: it has %d bytes of the %d that its header declares", size, whole)
	case size > whole:
		return nil, fmt.Errorf("%d bytes follow the last tensor", size-whole)
	}
	f := &weightFile{size: size}
	for _, t := range h.Tensors {
		if err := t.Readable(); err != nil {
			return nil, err
		}
		f.names = append(f.names, t.Name)
	}
	return f, nil
}

// notWeights says what a file without a readable header is instead.
func notWeights(r io.ReaderAt, err error) error {
	start := make([]byte, 512)
	n, _ := r.ReadAt(start, 0) // what cannot be read is not recognised
	start = bytes.TrimSpace(start[:n])
	switch {
	case bytes.HasPrefix(start, []byte(pointerMark)):
		return hintError{errors.New("it is a git-lfs pointer, not the weights"), hintPull}
	case bytes.HasPrefix(start, []byte("<")):
		return hintError{errors.New("it is a web page, not the weights"), "the download may need a login or an accepted licence: fetch it again"}
	}
	return err
}

// Pointer reports whether a file of the directory is a git-lfs pointer.
func Pointer(fsys fs.FS, name string) bool {
	const most = 1024 // the specification's limit
	data, err := checkpoint.ReadFile(fsys, name, most)
	return err == nil && strings.HasPrefix(string(data), pointerMark)
}

// maxEntries bounds how many names of a directory are looked at.
const maxEntries = 10_000

// entries returns the names in the directory with one of the suffixes.
func entries(fsys fs.FS, suffixes ...string) []string {
	all, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil // what cannot be listed may still be opened
	}
	var names []string
	for _, e := range all[:min(len(all), maxEntries)] {
		for _, suffix := range suffixes {
			if strings.HasSuffix(e.Name(), suffix) {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// stray warns of weight files that the model does not read: the transformers runner's digest of the weights covers all files.
func stray(s *Section, fsys fs.FS, used []string) {
	var names []string
	for _, name := range entries(fsys, ".safetensors") {
		if !slices.Contains(used, name) {
			names = append(names, plain.Quote(name))
		}
	}
	if len(names) > 0 {
		s.Warn("move them away: the transformers runner includes them in the digest of the weights, and its traces will be refused as made from other weights",
			"%s that the model does not read: %s", amount.Of(len(names), "weight file"), few(names))
	}
}

// otherFormats is the next step for a directory without safetensors files.
func otherFormats(fsys fs.FS) string {
	if found := entries(fsys, ".bin", ".pt", ".pth", ".gguf", ".npz", ".h5"); len(found) > 0 {
		return fmt.Sprintf("the directory has %s: load it in transformers and write it with save_pretrained", few(found))
	}
	if found := entries(fsys, ".safetensors"); len(found) > 0 {
		return fmt.Sprintf("the directory has %s: a single file has to be called model.safetensors, shards need model.safetensors.index.json", few(found))
	}
	return "--model wants a directory with config.json and model.safetensors, as save_pretrained writes it"
}
