// Package checkpoint reads a model directory as Hugging Face writes it: config.json and safetensors files, single or
// sharded. Weights stay where they are: files on disk are mapped and tensors are views of the mapping, so opening
// costs the headers and a weight that nobody uses costs nothing. The files stay open as well, to read from.
package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edsrzf/mmap-go"
	"github.com/nlpodyssey/safetensors"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	header "github.com/tracediff/tracediff/internal/safetensors"
	"github.com/tracediff/tracediff/internal/spelling"
)

// The files of a model directory.
const (
	ConfigFile = "config.json"
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// Limits on the JSON files: the largest published index has some 200,000 names and 20 MB.
const (
	maxConfig = 1 << 20
	maxIndex  = 1 << 28
)

// Checkpoint is an open model directory.
type Checkpoint struct {
	name    string
	config  []byte
	shards  []shard
	tensors map[string]hooks.Tensor
	places  map[string]Place
	prefix  string
	known   sync.Map // digests, by scheme
}

// Place is where the bytes of a tensor begin in a file.
type Place struct {
	File io.ReaderAt
	At   int64
}

type shard struct {
	name     string
	data     []byte
	mapped   mmap.MMap
	file     *os.File // that is mapped; nil for an embedded one
	changed  time.Time
	identity identity // when it was opened
}

// Open maps the model directory at dir. The error names the file that is missing, cut short or unreadable.
func Open(dir string) (*Checkpoint, error) {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, fmt.Errorf("opening the model directory: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("opening the model directory: %w", &files.Error{Path: dir, Why: "is a file", Next: "name the folder that has config.json and model.safetensors in it"})
	}
	return open(dir, os.DirFS(dir), func(name string) (shard, error) { return mapFile(dir, name) })
}

// OpenFS reads a whole model directory into memory, such as an embedded one. Errors and manifests call the directory name.
func OpenFS(name string, fsys fs.FS) (*Checkpoint, error) {
	return open(name, fsys, func(file string) (shard, error) {
		data, err := fs.ReadFile(fsys, file)
		return shard{name: file, data: data}, err
	})
}

func open(name string, fsys fs.FS, load func(name string) (shard, error)) (_ *Checkpoint, err error) {
	c := &Checkpoint{name: name, tensors: map[string]hooks.Tensor{}, places: map[string]Place{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.config, err = ReadConfig(fsys); err != nil {
		return nil, err
	}
	files, where, err := WeightFiles(fsys)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		s, err := load(file)
		if err != nil {
			return nil, fmt.Errorf("opening weights: %w", err)
		}
		c.shards = append(c.shards, s)
		if err := c.add(s, where); err != nil {
			return nil, err
		}
	}
	for tensor, file := range where {
		if _, ok := c.tensors[tensor]; !ok {
			return nil, fmt.Errorf("%s says that %s is in %s, but it is not", indexFile, tensor, file)
		}
	}
	c.prefix = findPrefix(c.tensors)
	return c, nil
}

// ReadConfig reads only config.json.
func ReadConfig(fsys fs.FS) ([]byte, error) { return ReadFile(fsys, ConfigFile, maxConfig) }

// ReadFile reads a whole regular file of a model directory, of at most limit bytes.
func ReadFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	data, err := files.ReadFS(fsys, name, limit)
	if err != nil {
		return nil, fmt.Errorf("opening the model directory: %w", err)
	}
	return data, nil
}

// WeightFiles lists the weight files of a model directory without opening them. For a sharded directory, where maps each tensor to its file,
// by the index. The files need not exist.
func WeightFiles(fsys fs.FS) (files []string, where map[string]string, err error) {
	if _, err := fs.Stat(fsys, singleFile); err == nil {
		return []string{singleFile}, nil, nil
	}
	data, err := ReadFile(fsys, indexFile, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, hint.Add(fmt.Errorf("no weights: neither %s nor %s is there", singleFile, indexFile),
			"--model wants a directory with config.json and model.safetensors, as save_pretrained writes it")
	}
	if err != nil {
		return nil, nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", indexFile, err)
	}
	for tensor, file := range index.WeightMap {
		if file != path.Base(file) || !fs.ValidPath(file) || !strings.HasSuffix(file, ".safetensors") {
			return nil, nil, fmt.Errorf("%s puts %s in %q, which is not a safetensors file of the directory", indexFile, tensor, file)
		}
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%s lists no tensors", indexFile)
	}
	slices.Sort(files)
	return files, index.WeightMap, nil
}

func mapFile(dir, name string) (shard, error) {
	f, info, err := files.Open(path.Join(dir, name))
	if err != nil {
		return shard{}, err
	}
	if info.Size() == 0 { // an empty mapping is an error that names no file
		return shard{}, errors.Join(fmt.Errorf("%s is empty", name), f.Close())
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return shard{}, errors.Join(fmt.Errorf("mapping %s: %w", name, err), f.Close())
	}
	return shard{name: name, data: m, mapped: m, file: f, changed: info.ModTime(), identity: identify(info)}, nil
}

// FileError is a weight file that is no whole safetensors file.
type FileError struct {
	Name string
	Size int
	Err  error
}

// Error names the file, its size and what is wrong with it.
func (e *FileError) Error() string {
	return fmt.Sprintf("reading %s (%d bytes): %v", e.Name, e.Size, e.Err)
}

// Unwrap returns what is wrong with the file.
func (e *FileError) Unwrap() error { return e.Err }

// add lists the tensors of one file. Of a sharded checkpoint it lists the tensors that the index puts into the file.
func (c *Checkpoint) add(s shard, where map[string]string) error {
	// The library lets a name stand twice; which of the two a model means, nobody can say.
	text, err := header.Text(bytes.NewReader(s.data), int64(len(s.data)))
	var parsed header.Header
	if err == nil {
		err = header.Bounded(text)
	}
	if err == nil {
		parsed, err = header.Parse(text)
	}
	if err != nil {
		return &FileError{s.name, len(s.data), err}
	}
	file, err := safetensors.Deserialize(s.data)
	if err != nil {
		return &FileError{s.name, len(s.data), err}
	}
	for _, t := range file.Tensors() {
		if where != nil && where[t.Name] != s.name {
			continue
		}
		dtype, err := hooks.ParseDType(t.TensorView.DType().String())
		if err != nil {
			return fmt.Errorf("reading %s: tensor %s: %w", s.name, t.Name, err)
		}
		shape := make([]int, len(t.TensorView.Shape()))
		for i, n := range t.TensorView.Shape() {
			shape[i] = int(n)
		}
		tensor := hooks.Tensor{DType: dtype, Shape: shape, Data: t.TensorView.Data()}
		if err := tensor.Check(); err != nil {
			return fmt.Errorf("reading %s: tensor %s: %w", s.name, t.Name, err)
		}
		c.tensors[t.Name] = tensor
	}
	if s.file != nil {
		after := 8 + int64(binary.LittleEndian.Uint64(s.data)) // the header, and its length before it
		for _, t := range parsed.Tensors {
			if where == nil || where[t.Name] == s.name {
				c.places[t.Name] = Place{s.file, after + t.Begin}
			}
		}
	}
	return nil
}

// prefixes lists the possible prefixes of the text model's tensors in the order of trial. The last prefix is empty.
var prefixes = append(spelling.Prefixes(spelling.Weight), "")

func findPrefix(tensors map[string]hooks.Tensor) string {
	for _, p := range prefixes {
		if _, ok := tensors[p+spelling.Embedding]; ok {
			return p
		}
	}
	return ""
}

// Name is the directory as it was given.
func (c *Checkpoint) Name() string { return c.name }

// Prefix is the text before the text model's names in the files, such as "model.".
func (c *Checkpoint) Prefix() string { return c.prefix }

// Release lets go of the memory that weights were read into: those of a mapped file are read from it again when they are
// next needed. Views stay valid, also while others read them. Who goes through a checkpoint larger than memory ought to
// call it now and then, since every page that was looked at counts as the process's own.
func (c *Checkpoint) Release() {
	for _, s := range c.shards {
		s.release()
	}
}

// Config is the text of config.json.
func (c *Checkpoint) Config() []byte { return c.config }

// Tensor returns a weight of the text model by its name without prefix. The head, which stands outside the text
// model, is found under the names that checkpoints give it. Data is a view of the file.
func (c *Checkpoint) Tensor(name string) (hooks.Tensor, bool) { return find(c, c.tensors, name) }

// Names are the names of the text model's tensors without prefix, sorted.
func (c *Checkpoint) Names() []string {
	var all []string
	for name := range c.tensors {
		if rest, inside := strings.CutPrefix(name, c.prefix); inside {
			all = append(all, rest)
		}
	}
	slices.Sort(all)
	return all
}

// Place returns where the data of a tensor lie in a file; ok is false for data in memory. To read a whole tensor once, reading the file can be
// faster than the view, whose pages the system maps one by one.
func (c *Checkpoint) Place(name string) (Place, bool) { return find(c, c.places, name) }

// find looks a weight of the text model up.
func find[T any](c *Checkpoint, all map[string]T, name string) (T, bool) {
	full := []string{c.prefix + name, name}
	if name == spelling.Head {
		full = spelling.Heads(c.prefix)
	}
	for _, n := range full {
		if t, ok := all[n]; ok {
			return t, true
		}
	}
	var none T
	return none, false
}

// Size is the bytes of all weight files.
func (c *Checkpoint) Size() int64 {
	var n int64
	for _, s := range c.shards {
		n += int64(len(s.data))
	}
	return n
}

// Changed is when a weight file was changed last; the zero time for an embedded checkpoint.
func (c *Checkpoint) Changed() time.Time {
	var last time.Time
	for _, s := range c.shards {
		if s.changed.After(last) {
			last = s.changed
		}
	}
	return last
}

// Close unmaps and closes the files; no tensor may be used afterwards.
func (c *Checkpoint) Close() error {
	var errs []error
	for i, s := range c.shards {
		if s.mapped != nil {
			errs = append(errs, s.mapped.Unmap(), s.file.Close())
			c.shards[i].mapped, c.shards[i].file = nil, nil
		}
	}
	c.shards, c.tensors, c.places = nil, nil, nil
	return errors.Join(errs...)
}
