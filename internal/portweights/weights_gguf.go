package portweights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// openGGUF opens a GGUF file with all parts of a split. It returns false for a file of another format.
func (o *openedWeights) openGGUF(path string) (is bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	o.file = &container.File{Format: "GGUF"}
	g, is, err := o.readGGUF(path)
	if err == nil && is && g.Split() > 1 {
		g, err = o.readParts(path, g.Split())
	}
	if err == nil && is {
		err = o.crowded(len(g.Tensors))
	}
	if !is || err != nil {
		return is, hint.Also(err, o.file.Close())
	}
	o.arch = g.Text("general.architecture")
	for i := range g.Tensors {
		if q, ok := g.Tensors[i].Quantised(); ok {
			o.codes[i] = q
		}
		o.file.Tensors = append(o.file.Tensors, g.Tensors[i].Dense())
		o.bytes += g.Tensors[i].Size
	}
	o.take()
	if len(o.list) == 0 {
		return true, hint.Add(hint.Also(fmt.Errorf("%s has no tensor", path), o.file.Close()), weightsHint)
	}
	return true, nil
}

// readGGUF reads the header of a GGUF file; closing o closes the file. It returns false without an error for
// another format.
func (o *openedWeights) readGGUF(path string) (g *gguf.File, is bool, err error) {
	r, info, err := files.Open(path)
	if err != nil {
		return nil, false, nil // which the others say
	}
	o.file.Own(r)
	start := make([]byte, min(info.Size(), 4))
	if _, err := r.ReadAt(start, 0); err != nil || !gguf.Is(start) {
		return nil, false, nil
	}
	if g, err = gguf.Read(r, info.Size()); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return g, true, err
}

// readParts reads all files of a split GGUF, given the path of any file.
func (o *openedWeights) readParts(path string, n int) (*gguf.File, error) {
	const again = "gguf-split --merge of llama.cpp makes one file of the parts"
	if err := o.file.Close(); err != nil { // its parts are opened in their order
		return nil, err
	}
	o.file = &container.File{Format: "GGUF"}
	paths := gguf.Parts(path)
	if len(paths) != n {
		return nil, hint.Add(fmt.Errorf("%s is one of %d files that a GGUF was split into, but its name does not say which", path, n), "want NAME-00001-of-00003.gguf; "+again)
	}
	var parts []*gguf.File
	for _, p := range paths {
		if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
			return nil, hint.Add(fmt.Errorf("%s is one of %d files that a GGUF was split into, but %s is missing", path, n, filepath.Base(p)), "put all parts into one folder")
		}
		g, is, err := o.readGGUF(p)
		switch {
		case err != nil:
			return nil, err
		case !is:
			return nil, hint.Add(fmt.Errorf("%s cannot be read as a GGUF file, unlike other parts of %s", p, filepath.Base(path)), "is the download of this part complete?")
		}
		parts = append(parts, g)
	}
	if err := parts[0].Join(parts[1:]...); err != nil {
		return nil, hint.Add(fmt.Errorf("%s: %w", path, err), again)
	}
	return parts[0], nil
}

// PortTokenizer reads the tokenizer of a port's weights: is reports whether path is a GGUF file, or a folder with one, which is where weights
// bring a tokenizer.
func PortTokenizer(path string) (tok *tokenizer.Tokenizer, is bool, err error) {
	if file, err := theGGUF(path); err == nil && file != "" {
		path = file
	}
	if parts := gguf.Parts(path); len(parts) > 0 {
		path = parts[0] // which has the metadata
	}
	o := &openedWeights{file: &container.File{Format: "GGUF"}}
	defer func() { err = hint.Also(err, o.file.Close()) }()
	g, is, err := o.readGGUF(path)
	if !is || err != nil {
		return nil, is, err
	}
	tok, err = tokenizer.FromGGUF(g)
	return tok, true, err
}
