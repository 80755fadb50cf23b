package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/gguf/gguftest"
)

// A tensor has side rows of side columns: repeats of a tile, a matrix of fixtures/weights that ggml has quantised.
const (
	side     = 4096
	fixtures = "fixtures/weights/"
	matrix   = "model.layers.0.mlp.up_proj.weight"
	block    = "blk.0.ffn_up.weight"
	tileRows = 64
	tileWide = 256
)

// format is how a port is stored.
type format struct {
	name string
	file string // of fixtures/weights that has the tile's blocks; empty: plain numbers
	kind string // of safetensors
}

var formats = []format{{name: "BF16", kind: "BF16"}, {name: "F32", kind: "F32"}, {name: "F16", kind: "F16"}, {name: "F8", kind: "F8_E4M3"}, {name: "Q8_0", file: "wide.Q8_0.gguf"}, {name: "Q6_K", file: "wide.Q6_K.gguf"}, {name: "Q4_K", file: "wide.Q4_K.gguf"}}

func names() []string {
	var list []string
	for _, f := range formats {
		list = append(list, f.name)
	}
	return list
}

func original(dir string) string { return filepath.Join(dir, "original") }

func port(dir, format string) string {
	for _, f := range formats {
		if f.name == format && f.file != "" {
			return filepath.Join(dir, format+".gguf")
		}
	}
	return filepath.Join(dir, format+".safetensors")
}

// makeFiles makes the original and the ports, except files of this size that exist.
func makeFiles(dir string, size int64, chosen []string) error {
	if _, err := os.Stat(fixtures); err != nil {
		return errors.New("it runs in the root of the repository")
	}
	if err := os.MkdirAll(original(dir), 0o777); err != nil {
		return err
	}
	tensors := max(1, int(size/(2*side*side)))
	tile, err := readTile()
	if err != nil {
		return err
	}
	if err := plain(filepath.Join(original(dir), "model.safetensors"), "BF16", tile, tensors); err != nil {
		return err
	}
	for _, name := range chosen {
		at := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
		if at < 0 {
			return fmt.Errorf("%q is none of %s", name, strings.Join(names(), ", "))
		}
		f := formats[at]
		if f.file == "" {
			err = plain(port(dir, name), f.kind, tile, tensors)
		} else {
			err = coded(port(dir, name), f.file, tensors)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readTile() ([]float64, error) {
	f, err := dump.Open(fixtures + "wide/model.safetensors")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for i := range f.Tensors {
		if x := &f.Tensors[i]; x.Name == matrix {
			raw, values := make([]byte, x.Size()), make([]float64, tileRows*tileWide)
			if _, err := x.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return values, floats.Decode(values, x.DType, raw)
		}
	}
	return nil, fmt.Errorf("no tensor %s", matrix)
}

// encode stores a number.
func encode(b []byte, kind string, x float64) []byte {
	switch kind {
	case "F32":
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	case "F16":
		return binary.LittleEndian.AppendUint16(b, floats.F16(float32(x)))
	case "F8_E4M3":
		return append(b, floats.F8E4M3(float32(x)))
	}
	return binary.LittleEndian.AppendUint16(b, floats.BF16(float32(x)))
}

// plain writes a safetensors file.
func plain(path, kind string, tile []float64, tensors int) error {
	var raw []byte
	for _, x := range tile {
		raw = encode(raw, kind, x)
	}
	each := int64(len(raw)) * side * side / int64(len(tile))
	var parts []string
	for i := range tensors {
		parts = append(parts, fmt.Sprintf(`"model.layers.%d.mlp.up_proj.weight":{"dtype":%q,"shape":[%d,%d],"data_offsets":[%d,%d]}`, i, kind, side, side, int64(i)*each, int64(i+1)*each))
	}
	header := "{" + strings.Join(parts, ",") + "}"
	header += strings.Repeat(" ", -len(header)&7)
	return repeated(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), raw, tensors)
}

// coded writes a GGUF file.
func coded(path, from string, tensors int) error {
	data, err := os.ReadFile(fixtures + from)
	if err != nil {
		return err
	}
	g, err := gguf.Read(strings.NewReader(string(data)), int64(len(data)))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(g.Tensors, func(t gguf.Tensor) bool { return t.Name == block })
	t := g.Tensors[at]
	each := uint64(t.Size) * side * side / (tileRows * tileWide)
	b := &gguftest.Builder{}
	b.Text("general.architecture", "qwen3")
	for i := range tensors {
		b.Info(fmt.Sprintf("blk.%d.ffn_up.weight", i), uint32(t.Type), uint64(i)*each, side, side)
	}
	header := b.Bytes()
	header = append(header, make([]byte, -len(header)&31)...)
	return repeated(path, header, data[t.Offset:t.Offset+t.Size], tensors)
}

// repeated writes a header, and tensors whose every row repeats the tile's row. An existing file of that size is kept.
func repeated(path string, header, tile []byte, tensors int) (err error) {
	size := int64(len(header)) + int64(tensors)*int64(len(tile))*side*side/(tileRows*tileWide)
	if info, err := os.Stat(path); err == nil && info.Size() == size {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(header); err != nil {
		return err
	}
	wide := len(tile) / tileRows
	for i := range tensors * side {
		if _, err := w.Write(slices.Repeat(tile[i%tileRows*wide:][:wide], side/tileWide)); err != nil {
			return err
		}
	}
	return w.Flush()
}
