package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/gguf/gguftest"
)

// refusedWeights runs tracediff weights on a hostile file: two lines, at once, and in little memory.
func refusedWeights(t *testing.T, name, local, want string) {
	t.Helper()
	const mostTime, mostMemory = 20 * time.Second, 100 << 20 // tens of milliseconds where nothing else runs
	var before, after runtime.MemStats
	var took time.Duration
	var exit int
	var out string
	for range 3 { // the machine may have other work: the fastest of three counts
		runtime.ReadMemStats(&before)
		started := time.Now()
		exit, out = weigh(t, local, wideModel)
		if took = time.Since(started); took < mostTime {
			break
		}
	}
	runtime.ReadMemStats(&after)
	if exit != 2 || !strings.Contains(out, want) {
		t.Errorf("%s: exit %d, want %q in\n%s", name, exit, want, out)
	}
	if strings.Count(out, "\n") != 2 || strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("%s: an error that is not two lines of text: %q", name, out)
	}
	if all := after.TotalAlloc - before.TotalAlloc; took > mostTime || all > mostMemory {
		t.Errorf("%s: %v, and %d MiB were allocated", name, took, all>>20)
	}
}

// TestHostileGGUF: counts that overflow, blocks that disagree with shapes, 2^62 elements, names with control characters.
func TestHostileGGUF(t *testing.T) {
	dir := t.TempDir()
	for i, s := range gguftest.Corpus() {
		if s.Want == "" || len(s.Data) < 4 || string(s.Data[:4]) != "GGUF" {
			continue
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.gguf", i))
		must(t, os.WriteFile(path, s.Data, 0o666))
		refusedWeights(t, s.Name, path, "")
		must(t, os.Remove(path))
	}
}

// TestHostilePackedWeights: headers that say more than the file has, parts that disagree, and settings that do.
func TestHostilePackedWeights(t *testing.T) {
	header := func(text string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	}
	one := func(name, dtype, shape string, size int) []byte {
		return append(header(fmt.Sprintf(`{%q:{"dtype":%q,"shape":%s,"data_offsets":[0,%d]}}`, name, dtype, shape, size)), make([]byte, min(size, 1<<10))...)
	}
	zeros := func(name string, d hooks.DType, shape ...int) checkpointtest.Tensor {
		n, _ := hooks.Elements(shape)
		return part(name, d, make([]byte, n*d.Size()), shape...)
	}
	file := checkpointtest.File
	list := func(all ...checkpointtest.Tensor) []byte { return file(all) }
	index := zeros("a.g_idx", hooks.I32, 64)
	index.Data[252] = 7
	shape := zeros("a.weight_shape", hooks.I64, 2)
	for i := range shape.Data {
		shape.Data[i] = 0x7f
	}
	gptq := []checkpointtest.Tensor{zeros("a.qweight", hooks.I32, 8, 16), zeros("a.qzeros", hooks.I32, 1, 2), zeros("a.scales", hooks.F16, 1, 16)}
	tests := []struct {
		name   string
		data   []byte
		config string
		want   string
	}{
		{"2^62 elements", one("a.weight", "I8", "[2147483648,2147483648]", 1<<20), "{}", ""},
		{"2^64 elements", one("a.weight", "U32", "[4294967296,4294967296]", 1<<20), `{"quantization": {"bits": 4, "group_size": 64}}`, ""},
		{"a header of 2^60 bytes", binary.LittleEndian.AppendUint64(nil, 1<<60), "{}", ""},
		{"a header of zeros", make([]byte, 64), "{}", ""},
		{"a name with control characters", list(zeros("a\x1b[2J\u202e.qweight", hooks.I32, 8, 16)), gptqConfig, `\x1b[2J\u202e`},
		{"MLX in groups of 2^40", list(zeros("a.weight", hooks.U32, 4, 8), zeros("a.scales", hooks.F16, 4, 1), zeros("a.biases", hooks.F16, 4, 1)), `{"quantization": {"bits": 4, "group_size": 1099511627776}}`, "in groups of 1099511627776"},
		{"MLX in groups of −64", list(zeros("a.weight", hooks.U32, 4, 8), zeros("a.scales", hooks.F16, 4, 1), zeros("a.biases", hooks.F16, 4, 1)), `{"quantization": {"bits": 4, "group_size": -64}}`, "in groups of -64"},
		{"MLX of 0 bits", list(zeros("a.weight", hooks.U32, 4, 8)), `{"quantization": {"bits": 0, "group_size": 64}}`, "of an unknown number of bits"},
		{"MLX with scales of another shape", list(zeros("a.weight", hooks.U32, 4, 8), zeros("a.scales", hooks.F16, 4, 3), zeros("a.biases", hooks.F16, 4, 3)), `{"quantization": {"bits": 4, "group_size": 64}}`, `"a.scales" is [4 3]; want [4 1]`},
		{"GPTQ with a group that is not there", file(append(gptq[:3:3], index)), gptqConfig, "g_idx gives input 63 the group 7 of 1"},
		{"GPTQ of 2^31 bits", file(gptq), `{"quantization_config": {"quant_method": "gptq", "bits": 2147483648, "group_size": 64}}`, "GPTQ with 2147483648 bits"},
		{"GPTQ in groups of 0", file(gptq), `{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 0}}`, "groups of 0 inputs"},
		{"GPTQ without scales", file(gptq[:2]), gptqConfig, `"a.scales" is missing`},
		{"AWQ with zeros of another shape", list(zeros("a.qweight", hooks.I32, 64, 2), zeros("a.qzeros", hooks.I32, 2, 2), zeros("a.scales", hooks.F16, 1, 16)), awqConfig, `"a.qzeros" is [2 2]; want [1 2]`},
		{"compressed-tensors of 2^62 inputs", list(zeros("a.weight_packed", hooks.I32, 4, 8), zeros("a.weight_scale", hooks.F32, 4, 1), shape), ct4Config, "weight_shape is [9187201950435737471 9187201950435737471]"},
		{"int8 with scales of another shape", list(zeros("a.weight", hooks.I8, 4, 8), zeros("a.weight_scale", hooks.F32, 3)), ct8Config, `"a.weight_scale" is [3]`},
		{"bitsandbytes in four bits", list(zeros("a.weight", hooks.U8, 16, 1), zeros("a.weight.absmax", hooks.F32, 1)), bnbConfig, "4 bits of bitsandbytes"},
		{"settings that are nested deep", file(gptq), `{"quantization_config": ` + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20001), "config.json"},
		{"settings with an escape", file(gptq), `{"quantization_config": {"quant_method": "\u001b[2J"}}`, "quant_method"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), tt.data, 0o666))
		must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(tt.config), 0o666))
		refusedWeights(t, tt.name, dir, tt.want)
	}
}

// TestHostileNumbersOfTensors: as many tensors as a file may have, for an original of a few.
func TestHostileNumbersOfTensors(t *testing.T) {
	const n, want = 1 << 17, "has 131072 tensors, and the original 13: more than 512 parts of each"
	dir := t.TempDir()
	header := []byte("{")
	var b gguftest.Builder
	for i := range n {
		if i > 0 {
			header = append(header, ',')
		}
		header = fmt.Appendf(header, `"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, i)
		b.Info(fmt.Sprint("t", i), 0, 0, 0)
	}
	header = append(header, '}')
	for name, data := range map[string][]byte{
		"many.safetensors": append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...),
		"many.gguf":        b.Bytes(),
	} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, data, 0o666))
		refusedWeights(t, name, path, want)
	}
}
