// Package checkpointtest makes model directories with random weights, for tests that need another size, layout or fault
// than the embedded checkpoints have.
package checkpointtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
)

// Tensor is one weight of a directory to be written.
type Tensor struct {
	Name string
	hooks.Tensor
}

// Random draws a tensor for every want: norm weights and scales around 1, matrices so that products keep their size.
func Random(wants []checkpoint.Want, dtype hooks.DType, prefix string, seed uint64) []Tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []Tensor
	for _, w := range wants {
		if w.Fallback != "" { // a tied head is not in the file
			continue
		}
		n, _ := hooks.Elements(w.Shape)
		data := make([]byte, 0, n*dtype.Size())
		center, spread := 1.0, 0.3
		if len(w.Shape) == 2 {
			center, spread = 0, 1/math.Sqrt(float64(w.Shape[1]))
		}
		for range n {
			data = floats.Append(data, dtype, center+spread*rng.NormFloat64())
		}
		all = append(all, Tensor{prefix + w.Name, hooks.Tensor{DType: dtype, Shape: w.Shape, Data: data}})
	}
	return all
}

// File is the safetensors file of some tensors.
func File(tensors []Tensor) []byte {
	header := map[string]any{}
	at := 0
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		header[t.Name] = map[string]any{"dtype": t.DType.Safetensors(), "shape": shape, "data_offsets": []int{at, at + len(t.Data)}}
		at += len(t.Data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	var b bytes.Buffer
	b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	b.Write(text)
	for _, t := range tensors {
		b.Write(t.Data)
	}
	return b.Bytes()
}

// Write makes a model directory of config and tensors in shards files, as Hugging Face lays it out, and returns dir.
func Write(t testing.TB, dir string, config []byte, tensors []Tensor, shards int) string {
	t.Helper()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", config)
	if shards == 1 {
		write("model.safetensors", File(tensors))
		return dir
	}
	where := map[string]string{}
	for s := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", s+1, shards)
		part := tensors[s*len(tensors)/shards : (s+1)*len(tensors)/shards]
		for _, x := range part {
			where[x.Name] = name
		}
		write(name, File(part))
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]any{}, "weight_map": where})
	if err != nil {
		t.Fatal(err)
	}
	write("model.safetensors.index.json", index)
	return dir
}

// Enlarge adds a sparse tensor of zeros to a safetensors file, so that the file is larger than the limit for a whole hash without taking space
// on the disk.
func Enlarge(t testing.TB, file string) {
	t.Helper()
	const extra = checkpoint.Large + 3
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(data)
	header, rest := bytes.TrimRight(data[8:8+n], " "), data[8+n:]
	text := fmt.Appendf(nil, `%s,"zeros":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}}`, header[:len(header)-1], extra, len(rest), len(rest)+extra)
	whole := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	whole = append(whole, rest...)
	if err := os.WriteFile(file, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, int64(len(whole)+extra)); err != nil {
		t.Fatal(err)
	}
}
