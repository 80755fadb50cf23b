package portweights

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// weightsHint is for checkpoints that cannot be read.
const weightsHint = "want a file of weights (.safetensors, .gguf, .npz, what torch.save writes) or a folder with one; docs/weights.md has all"

// Compare compares a port's checkpoint with the original.
func Compare(ctx context.Context, a settings.AskedWeights) (*weights.Result, error) {
	m, err := (&settings.Settings{Map: a.Map, Table: a.Table}).ReadMap()
	if err != nil {
		return nil, err
	}
	o, err := openBoth(a, m)
	if err != nil {
		return nil, err
	}
	defer o.close()
	r, err := weights.Compare(ctx, o.local.side(), o.original.side(), weights.Options{Hidden: o.sizes["e"], HeadDim: o.sizes["d"], Rotary: readRotary(a.Model), Progress: a.Progress, Workers: a.Workers})
	return r, hint.Default(err, "the file could be opened, but not read to its end: is it still being written, or is the disk failing?")
}

// bothWeights are the checkpoint of a port and the original's.
type bothWeights struct {
	local, original *openedWeights
	sizes           map[string]int // of the model
}

func (b *bothWeights) close() {
	b.local.close()
	b.original.close()
}

// openBoth opens the port's checkpoint, with the names and layouts that a map gives it, and the original. The caller closes both.
func openBoth(a settings.AskedWeights, m *mapping.Map) (_ *bothWeights, err error) {
	o, err := openOriginal(a.Model)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if found := inSeveralFormats(a.Model); found != nil {
		o.file.Notes = append(o.file.Notes, fmt.Sprintf("the original's folder has weights in several formats (%s): the weights of %s were read", strings.Join(found, ", "), o.file.Format))
	}
	sizes := readSizes(a.Model)
	if found := inSeveralFormats(a.Local); found != nil {
		return nil, hint.Add(fmt.Errorf("%s has weights in several formats: %s", a.Local, strings.Join(found, ", ")), "name the file that is meant")
	}
	local, err := openWeights(a.Local, len(o.list))
	if err != nil {
		return nil, err
	}
	if err := local.fit(m, sizes); err != nil {
		local.close()
		return nil, err
	}
	return &bothWeights{local, o, sizes}, nil
}

// openedWeights is a checkpoint of one of the two sides.
type openedWeights struct {
	path  string
	file  *container.File
	list  []mapping.Weight
	codes map[int]*quant.Tensor // by the number of the tensor
	arch  string                // the architecture in a GGUF file
	// originals is the number of tensors in the original of this port; 0 for the original itself.
	originals int
	// turned has, by name, the position in the file of each row, for matrices with rows in another order there.
	turned map[string]func(row int) int
	bytes  int64 // of the tensors in the files: codes as codes
	// given are the tensors before the conventions of the format were undone that no line of a map is for, by their names.
	given map[string]mapping.Weight
	sizes map[string]int // that the conventions go by
}

func (o *openedWeights) close() {
	_ = o.file.Close() // it was read
}

// openOriginal opens the weights of a model directory.
func openOriginal(dir string) (*openedWeights, error) {
	if dir == "" {
		return nil, hint.Add(errors.New("the original is not named"), "--model DIR names the checkpoint that the port was converted from, as Hugging Face writes it")
	}
	o, err := openWeights(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("the original: %w", err)
	}
	return o, nil
}

// A port splits a tensor of the original into at most mostParts parts, and adds at most mostOwn tensors of its own.
// Experts in one tensor of the original become hundreds of tensors, each with scales. The bound limits the cost of
// listing tensors.
const mostParts, mostOwn = 1 << 9, 1 << 13

// crowded returns an error if the file has too many tensors for a port of the original.
func (o *openedWeights) crowded(n int) error {
	if o.originals == 0 || n <= o.originals*mostParts+mostOwn {
		return nil
	}
	return hint.Add(fmt.Errorf("%s has %d tensors, and the original %d: more than %d parts of each", o.path, n, o.originals, mostParts),
		"name the checkpoint that was converted from the original, or, with --model, the original of this one")
}

// openWeights opens a file or a folder of weights, those of a port of an original with so many tensors; 0 for the original.
func openWeights(path string, originals int) (*openedWeights, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("opening weights: %w", err), weightsHint)
	}
	o := &openedWeights{path: path, codes: map[int]*quant.Tensor{}, originals: originals}
	file, err := theGGUF(path)
	if err != nil {
		return nil, err
	}
	if is, err := o.openGGUF(file); is || err != nil {
		return o, hint.Default(err, weightsHint)
	}
	if info.IsDir() {
		o.file, err = openFolder(path)
	} else {
		o.file, err = dump.Open(path)
	}
	if err != nil {
		return nil, hint.Default(fmt.Errorf("opening weights: %w", err), weightsHint)
	}
	if slices.ContainsFunc(o.file.Tensors, func(t container.Tensor) bool { return t.Printed != nil }) {
		o.close()
		return nil, hint.Add(fmt.Errorf("%s is a text of rounded numbers, not a checkpoint", path), weightsHint)
	}
	if err := o.crowded(len(o.file.Tensors)); err != nil {
		o.close()
		return nil, err
	}
	for i := range o.file.Tensors {
		if t := &o.file.Tensors[i]; t.DType.Valid() {
			o.bytes += t.Size()
		}
	}
	packed, rest, err := quant.Find(o.file.Tensors, configBeside(path, info.IsDir()))
	if err != nil {
		o.close()
		return nil, hint.Default(fmt.Errorf("%s: %w", path, err), "the codes and their config.json do not agree, or the file is damaged: compare both with what the quantiser wrote")
	}
	o.file.Tensors = rest
	for _, q := range packed {
		o.codes[len(o.file.Tensors)] = q
		o.file.Tensors = append(o.file.Tensors, q.Dense())
	}
	o.take()
	if len(o.list) == 0 {
		o.close()
		return nil, hint.Add(fmt.Errorf("%s has no tensor", path), weightsHint)
	}
	return o, nil
}

// configBeside returns the text of a checkpoint's config.json, or nil if the file does not exist.
func configBeside(path string, folder bool) []byte {
	if !folder {
		path = filepath.Dir(path)
	}
	text, err := files.ReadFS(os.DirFS(path), checkpoint.ConfigFile, maxModelConfig)
	if err != nil {
		return nil
	}
	return text
}

// take lists the tensors, those of codes with what their codes could be.
func (o *openedWeights) take() {
	for i := range o.file.Tensors {
		t := &o.file.Tensors[i]
		w := mapping.Weight{Name: t.Name, Key: t.Name, DType: t.DType, Shape: t.Shape, Data: t, Places: placesOf(i, t.Shape), From: i}
		if q := o.codes[i]; q != nil {
			w.Planes = q.Planes().Readers()
		}
		o.list = append(o.list, w)
	}
}

// openFolder opens the weights of a folder: model.safetensors, the files of an index, or the only dump in the
// folder.
func openFolder(path string) (*container.File, error) {
	names, _, err := checkpoint.WeightFiles(os.DirFS(path))
	switch {
	case err == nil && len(names) == 1:
		return dump.Open(filepath.Join(path, names[0]))
	case err == nil:
		return dump.Sharded(filepath.Join(path, "model.safetensors.index.json"))
	}
	if err := withoutIndex(path); err != nil {
		return nil, err
	}
	d, err := dump.OpenDir(path)
	if err != nil {
		return nil, err
	}
	if err := d.Name(); err != nil {
		return nil, hint.Also(err, d.File().Close())
	}
	return d.File(), nil
}

// shardName is the name of a shard of safetensors.
var shardName = regexp.MustCompile(`-[0-9]{5}-of-[0-9]{5}\.safetensors$`)

// withoutIndex refuses a folder of shards without an index: read as separate files, the shards would add their file
// names to the tensor names.
func withoutIndex(path string) error {
	all, _ := os.ReadDir(path) // what else is wrong with it is said where it is opened
	if slices.ContainsFunc(all, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".index.json") }) {
		return nil
	}
	for _, e := range all {
		if base := e.Name(); shardName.MatchString(base) {
			return hint.Add(fmt.Errorf("%s has the shard %s, but no index", path, plain.Quote(base)), "copy the .index.json of the checkpoint, too: it says which shards there are, and what is in them")
		}
	}
	return nil
}

// fit gives the tensors the original's names and layouts, by a map.
func (o *openedWeights) fit(m *mapping.Map, sizes map[string]int) error {
	if err := o.conventions(m, sizes); err != nil || !m.HasWeights() {
		return err
	}
	list, err := m.Weights(o.path, o.list, sizes)
	if err != nil {
		return hint.Default(err, "docs/weights.md says how a map names weights, and docs/ports.md explains every word of it")
	}
	o.list = list
	return nil
}

// maxModelConfig bounds config.json.
const maxModelConfig = 1 << 20

// readSizes returns the sizes of a model, by their names in maps. It omits sizes missing from config.json.
func readSizes(dir string) map[string]int {
	text, err := files.ReadFS(os.DirFS(dir), checkpoint.ConfigFile, maxModelConfig)
	if err != nil {
		return nil
	}
	type sizes struct {
		Hidden  int `json:"hidden_size"`
		Heads   int `json:"num_attention_heads"`
		KVHeads int `json:"num_key_value_heads"`
		HeadDim int `json:"head_dim"`
		Vocab   int `json:"vocab_size"`
	}
	var c struct {
		sizes
		Text *sizes `json:"text_config"`
	}
	if json.Unmarshal(text, &c) != nil { // sizes are a help, and not needed
		return nil
	}
	s := c.sizes
	if c.Text != nil && s.Hidden == 0 {
		s = *c.Text
	}
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.HeadDim == 0 && s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	return map[string]int{"h": s.Heads, "k": s.KVHeads, "d": s.HeadDim, "e": s.Hidden, "v": s.Vocab}
}

// readRotary is what the configuration in a model's folder gives rotary pairs; nil where it cannot be read.
func readRotary(dir string) []weights.Rotary {
	text, err := files.ReadFS(os.DirFS(dir), checkpoint.ConfigFile, maxModelConfig)
	if err != nil {
		return nil
	}
	return rotaryOf(text)
}

// rotaryOf is what a model's configuration, config.json, gives rotary pairs; nil of a family that is not described.
func rotaryOf(text []byte) []weights.Rotary {
	config, err := order.ReadConfig(text)
	if err != nil { // it is a help, and not needed
		return nil
	}
	var list []weights.Rotary
	for _, t := range config.Types() {
		var x weights.Rotary
		x.Frequencies, x.Unscaled = config.Frequencies(t)
		for i, of := range config.LayerTypes {
			if of == t {
				x.Layers = append(x.Layers, i)
			}
		}
		list = append(list, x)
	}
	return list
}
