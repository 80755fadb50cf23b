package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/safetensors"
)

const (
	weightFixtures = "../../fixtures/weights/"
	wideModel      = weightFixtures + "wide"
)

// weigh runs tracediff weights, and returns its exit status and what it prints.
func weigh(t *testing.T, local, model string, more ...string) (exit int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit = run(append([]string{"tracediff", "weights", local, "--model", model, "--color", "never"}, more...), strings.NewReader(""), &stdout, &stderr)
	if exit == 2 {
		return exit, stderr.String()
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", stderr.String())
	}
	return exit, stdout.String()
}

// checkpointOf are the tensors of a safetensors file.
func checkpointOf(t *testing.T, path string) []checkpointtest.Tensor {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	text, err := safetensors.Text(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	h, err := safetensors.Parse(text)
	must(t, err)
	var tensors []checkpointtest.Tensor
	for _, x := range h.Tensors {
		tensors = append(tensors, checkpointtest.Tensor{Name: x.Name, Tensor: hooks.Tensor{DType: x.DType, Shape: x.Shape, Data: data[8+len(text):][x.Begin:x.End:x.End]}})
	}
	return tensors
}

// packedPort makes a folder of the wide checkpoint whose matrices are codes, each by pack, from its numbers row by row.
func packedPort(t *testing.T, config string, pack func(name string, w []float64, rows, columns int) []checkpointtest.Tensor, plant func(map[string]*checkpointtest.Tensor)) string {
	t.Helper()
	var port []checkpointtest.Tensor
	for _, x := range checkpointOf(t, wideModel+"/model.safetensors") {
		if !strings.HasSuffix(x.Name, "_proj.weight") {
			port = append(port, x)
			continue
		}
		w := make([]float64, x.Shape[0]*x.Shape[1])
		must(t, floats.Decode(w, x.DType, x.Data))
		port = append(port, pack(strings.TrimSuffix(x.Name, ".weight"), w, x.Shape[0], x.Shape[1])...)
	}
	return writePort(t, config, port, plant)
}

// writePort writes a checkpoint after something was planted in it.
func writePort(t *testing.T, config string, port []checkpointtest.Tensor, plant func(map[string]*checkpointtest.Tensor)) string {
	t.Helper()
	byName := map[string]*checkpointtest.Tensor{}
	for i := range port {
		port[i].Data = slices.Clone(port[i].Data)
		byName[port[i].Name] = &port[i]
	}
	if plant != nil {
		plant(byName)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), checkpointtest.File(port), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666))
	return dir
}

func part(name string, d hooks.DType, data []byte, shape ...int) checkpointtest.Tensor {
	return checkpointtest.Tensor{Name: name, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data}}
}

// f16s and f32s store numbers.
func f16s(list []float64) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint16(b, floats.F16(float32(x)))
	}
	return b
}

func f32s(list []float64) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return b
}

// nibblesOf packs codes of four bits, eight to a word, the one of order[k] into nibble k.
func nibblesOf(codes []int, order [8]int) (b []byte) {
	for at := 0; at < len(codes); at += 8 {
		var w uint32
		for k, i := range order {
			w |= uint32(codes[at+i]) << (4 * k)
		}
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

var (
	inOrder  = [8]int{0, 1, 2, 3, 4, 5, 6, 7}
	awqOrder = [8]int{0, 2, 4, 6, 1, 3, 5, 7}
)

// groupSize is how many inputs share a scale in the ports of this file.
const groupSize = 64

// asymmetric rounds the inputs of each output in groups to four bits: codes [out][in], scales and zeros [group][out]. stretch is what the
// scales are too large by.
func asymmetric(w []float64, rows, columns int, stretch float64) (codes, zeros []int, scales []float64) {
	groups := columns / groupSize
	codes, zeros, scales = make([]int, len(w)), make([]int, groups*rows), make([]float64, groups*rows)
	for r := range rows {
		for g := range groups {
			x := w[r*columns+g*groupSize:][:groupSize]
			low, high := min(slices.Min(x), 0), max(slices.Max(x), 0)
			scale := float64(floats.RoundF16(float32((high - low) / 15 * stretch)))
			zero := math.Round(-low / scale)
			scales[g*rows+r], zeros[g*rows+r] = scale, int(zero)
			for i, v := range x {
				codes[r*columns+g*groupSize+i] = int(min(max(math.Round(v/scale)+zero, 0), 15))
			}
		}
	}
	return codes, zeros, scales
}

// turned is a matrix with rows for columns.
func turned(list []int, rows, columns int) []int {
	out := make([]int, len(list))
	for r := range rows {
		for c := range columns {
			out[c*rows+r] = list[r*columns+c]
		}
	}
	return out
}

// gptq packs consecutive inputs of an output into a word; the zeros are stored less one.
func gptq(name string, w []float64, rows, columns int) []checkpointtest.Tensor {
	codes, zeros, scales := asymmetric(w, rows, columns, 1)
	for i := range zeros {
		zeros[i] = (zeros[i] + 15) % 16
	}
	var words4 []byte // of [inputs/8][outputs]: eight inputs of each output
	for p := range columns / 8 {
		for r := range rows {
			words4 = append(words4, nibblesOf(codes[r*columns+8*p:][:8], inOrder)...)
		}
	}
	index := make([]byte, 0, 4*columns)
	for i := range columns {
		index = binary.LittleEndian.AppendUint32(index, uint32(i/groupSize))
	}
	return []checkpointtest.Tensor{
		part(name+".qweight", hooks.I32, words4, columns/8, rows), part(name+".qzeros", hooks.I32, nibblesOf(zeros, inOrder), columns/groupSize, rows/8),
		part(name+".scales", hooks.F16, f16s(scales), columns/groupSize, rows), part(name+".g_idx", hooks.I32, index, columns),
	}
}

// awq packs eight outputs of an input into a word, in an order of its own.
func awq(name string, w []float64, rows, columns int) []checkpointtest.Tensor {
	codes, zeros, scales := asymmetric(w, rows, columns, 1)
	return []checkpointtest.Tensor{
		part(name+".qweight", hooks.I32, nibblesOf(turned(codes, rows, columns), awqOrder), columns, rows/8),
		part(name+".qzeros", hooks.I32, nibblesOf(zeros, awqOrder), columns/groupSize, rows/8), part(name+".scales", hooks.F16, f16s(scales), columns/groupSize, rows),
	}
}

// symmetric rounds groups of inputs to codes from lo to −lo−1, the largest magnitude to top.
func symmetric(w []float64, group int, top, lo, stretch float64) (codes []int, scales []float64) {
	for at := 0; at < len(w); at += group {
		most := 0.0
		for _, v := range w[at : at+group] {
			most = max(most, math.Abs(v))
		}
		scale := float64(floats.RoundBF16(float32(most / top * stretch)))
		scales = append(scales, scale)
		for _, v := range w[at : at+group] {
			codes = append(codes, int(min(max(math.RoundToEven(v/scale), lo), -lo-1)))
		}
	}
	return codes, scales
}

// compressed4 is int4 of compressed-tensors: codes of consecutive inputs in a word, the lowest as zero.
func compressed4(name string, w []float64, rows, columns int) []checkpointtest.Tensor {
	return compressed4By(groupSize, name, w, rows, columns)
}

// compressed4Row is the same with a scale for each row.
func compressed4Row(name string, w []float64, rows, columns int) []checkpointtest.Tensor {
	return compressed4By(columns, name, w, rows, columns)
}

func compressed4By(group int, name string, w []float64, rows, columns int) []checkpointtest.Tensor {
	codes, scales := symmetric(w, group, 7.5, -8, 1)
	for i := range codes {
		codes[i] += 8
	}
	shape := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rows)), uint64(columns))
	return []checkpointtest.Tensor{
		part(name+".weight_packed", hooks.I32, nibblesOf(codes, inOrder), rows, columns/8), part(name+".weight_scale", hooks.F32, f32s(scales), rows, columns/group),
		part(name+".weight_shape", hooks.I64, shape, 2),
	}
}

func int8s(codes []int) (b []byte) {
	for _, q := range codes {
		b = append(b, byte(int8(q)))
	}
	return b
}

// int8By is int8 with a scale for each row, times by.
func int8By(scaleName string, top, by, stretch float64, shape ...int) func(string, []float64, int, int) []checkpointtest.Tensor {
	return func(name string, w []float64, rows, columns int) []checkpointtest.Tensor {
		codes, scales := symmetric(w, columns, top, -128, stretch)
		for i := range scales {
			scales[i] *= by
		}
		return []checkpointtest.Tensor{part(name+".weight", hooks.I8, int8s(codes), rows, columns), part(name+scaleName, hooks.F32, f32s(scales), append([]int{rows}, shape...)...)}
	}
}

// int8One is int8 with one scale for the tensor.
func int8One(name string, w []float64, rows, columns int) []checkpointtest.Tensor {
	codes, scales := symmetric(w, len(w), 127, -128, 1)
	return []checkpointtest.Tensor{part(name+".weight", hooks.I8, int8s(codes), rows, columns), part(name+".weight_scale", hooks.F32, f32s(scales), 1)}
}

const (
	gptqConfig = `{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "gptq"}}`
	awqConfig  = `{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"}}`
	ct4Config  = `{"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized"}}`
	ct8Config  = `{"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized"}}`
	bnbConfig  = `{"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true}}`
)

// packings are the ways in which codes lie beside their scales.
var packings = map[string]struct {
	config string
	pack   func(name string, w []float64, rows, columns int) []checkpointtest.Tensor
	says   string // of the tensors of codes
	note   bool
}{
	"GPTQ":                    {gptqConfig, gptq, "7 tensors: GPTQ, 4 bits, groups of 64: the size of the errors is right", true},
	"AWQ":                     {awqConfig, awq, "7 tensors: AWQ, 4 bits, groups of 64: the size of the errors is right", true},
	"compressed-tensors int4": {ct4Config, compressed4, "5 tensors: int4, groups of 64: every code is right", false},
	"int4 by row":             {ct4Config, compressed4Row, "7 tensors: int4, by row: every code is right", false},
	"compressed-tensors int8": {ct8Config, int8By(".weight_scale", 127.5, 1, 1, 1), "7 tensors: int8, by row: every code is right", false},
	"bitsandbytes":            {bnbConfig, int8By(".SCB", 127, 127, 1), "7 tensors: bitsandbytes int8, by row: every code is right", false},
	"int8 by row":             {"{}", int8By(".scales", 127, 1, 1), "7 tensors: int8, by row: every code is right", false},
	"int8 by tensor":          {"{}", int8One, "7 tensors: int8, one scale: every code is right", false},
}

// TestWeightsOfEveryWriter has files of the gguf package and of ggml, of mlx-lm, of torch and of numpy, and matrices packed as the
// formats of transformers are: all of them are right, and nothing else is said of them.
func TestWeightsOfEveryWriter(t *testing.T) {
	const gemma = "../../fixtures/gemma3-tiny"
	type port struct {
		local, model string
		says         string
		note         bool
	}
	ports := map[string]port{
		"Q8_0":         {weightFixtures + "wide.Q8_0.gguf", wideModel, "8 tensors: Q8_0: every code is right", false},
		"Q6_K":         {weightFixtures + "wide.Q6_K.gguf", wideModel, "6 tensors: Q6_K: every code is right", false},
		"Q4_K":         {weightFixtures + "wide.Q4_K.gguf", wideModel, "6 tensors: Q4_K: every code is right", false},
		"split":        {weightFixtures + "wide.Q8_0-00001-of-00003.gguf", wideModel, "8 tensors: Q8_0: every code is right", false},
		"split, third": {weightFixtures + "wide.Q8_0-00003-of-00003.gguf", wideModel, "8 tensors: Q8_0: every code is right", false},
		"mlx-lm":       {weightFixtures + "wide.mlx", wideModel, "8 tensors: MLX affine, 4 bits, groups of 64: every code is right", false},
		"torch.save":   {weightFixtures + "gemma3-tiny.pt", gemma, "53 tensors: equal", false},
		"npz":          {weightFixtures + "gemma3-tiny.npz", gemma, "53 tensors: equal", false},
	}
	for name, p := range packings {
		ports[name] = port{packedPort(t, p.config, p.pack, nil), wideModel, p.says, p.note}
	}
	for name, p := range ports {
		exit, out := weigh(t, p.local, p.model)
		if exit != 0 || !strings.Contains(out, "\n"+p.says) || !strings.Contains(out, "\nMATCH: ") || strings.Contains(out, "note:") != p.note {
			t.Errorf("%s: exit %d\n%s", name, exit, out)
		}
	}
}

// TestSplitGGUF: all parts of a GGUF are read, and one that is missing or another's is an error that names it.
func TestSplitGGUF(t *testing.T) {
	var parts [3][]byte
	names := []string{"wide.Q8_0-00001-of-00003.gguf", "wide.Q8_0-00002-of-00003.gguf", "wide.Q8_0-00003-of-00003.gguf"}
	for i, n := range names {
		data, err := os.ReadFile(weightFixtures + n)
		must(t, err)
		parts[i] = data
	}
	tests := []struct {
		name  string
		files map[string][]byte
		local string
		exit  int
		says  []string
	}{
		{"a folder", map[string][]byte{names[0]: parts[0], names[1]: parts[1], names[2]: parts[2]}, "", 0, []string{"MATCH: 13 tensors"}},
		{"the second is missing", map[string][]byte{names[0]: parts[0], names[2]: parts[2]}, names[0], 2, []string{names[1] + " is missing"}},
		{"the first is missing", map[string][]byte{names[1]: parts[1], names[2]: parts[2]}, "", 2, []string{names[0] + " is missing"}},
		{"one part, alone and renamed", map[string][]byte{"model.gguf": parts[1]}, "model.gguf", 2, []string{"one of 3 files", "NAME-00001-of-00003.gguf"}},
		{"two have changed places", map[string][]byte{names[0]: parts[0], names[1]: parts[2], names[2]: parts[1]}, names[0], 2, []string{"part 2 says that its number is 2"}},
		{"a part twice", map[string][]byte{names[0]: parts[0], names[1]: parts[1], names[2]: parts[1]}, names[0], 2, []string{"part 3 says that its number is 1"}},
		{"a part of another split", map[string][]byte{"w-00001-of-00002.gguf": parts[0], "w-00002-of-00002.gguf": parts[1]}, "w-00001-of-00002.gguf", 2, []string{"one of 3 files", "does not say which"}},
		{"a part that is cut", map[string][]byte{names[0]: parts[0], names[1]: parts[1][:len(parts[1])-64], names[2]: parts[2]}, names[0], 2, []string{names[1], "cut short"}},
		{"a part that is empty", map[string][]byte{names[0]: parts[0], names[1]: {}, names[2]: parts[2]}, names[0], 2, []string{names[1]}},
		{"one wrong byte in the last", map[string][]byte{names[0]: parts[0], names[1]: parts[1], names[2]: spoiltByte(parts[2])}, names[0], 1, []string{"mlp.down_proj.weight", "row 255"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range tt.files {
				must(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
			}
			exit, out := weigh(t, filepath.Join(dir, tt.local), wideModel)
			if exit != tt.exit {
				t.Fatalf("exit %d\n%s", exit, out)
			}
			if exit == 2 && strings.Count(out, "\n") != 2 {
				t.Errorf("an error of other than two lines:\n%s", out)
			}
			for _, word := range tt.says {
				if !strings.Contains(out, word) {
					t.Errorf("want %q in\n%s", word, out)
				}
			}
		})
	}
}

// spoiltByte changes the last codes of ffn_down in the third part.
func spoiltByte(data []byte) []byte {
	data = slices.Clone(data)
	for i := range 8 {
		data[len(data)-256*4-1-i] ^= 0x55 // before the norm of 256 float32
	}
	return data
}
