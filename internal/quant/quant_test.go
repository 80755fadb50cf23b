package quant_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/quant"
)

const dir = "../../fixtures/weights/"

// opened reads the header of a GGUF file of the fixtures.
func opened(t testing.TB, name string) *gguf.File {
	t.Helper()
	data, err := os.ReadFile(dir + name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// dumped are the tensors of a safetensors file of the fixtures.
func dumped(t testing.TB, name string) []container.Tensor {
	t.Helper()
	f, err := dump.Open(dir + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Tensors
}

// numbers are all elements of a tensor.
func numbers(t testing.TB, x *container.Tensor) []float64 {
	t.Helper()
	raw := make([]byte, x.Size())
	if _, err := x.ReadAt(raw, 0); err != nil && err != io.EOF {
		t.Fatalf("%s: %v", x.Name, err)
	}
	out := make([]float64, len(raw)/x.DType.Size())
	if err := floats.Decode(out, x.DType, raw); err != nil {
		t.Fatal(err)
	}
	return out
}

func named(t testing.TB, tensors []container.Tensor, name string) *container.Tensor {
	t.Helper()
	for i := range tensors {
		if tensors[i].Name == name {
			return &tensors[i]
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// same reports equal bits, and two NaN as equal: which NaN an operation gives is the machine's choice.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

// Blocks of random bytes, with scales of every sort, are what the gguf package and ggml (make.py compares the two) make of them, to the
// bit; and every code of a format is among them.
func TestBlocksAsGgml(t *testing.T) {
	want := dumped(t, "blocks.safetensors")
	formats := 0
	for _, x := range opened(t, "blocks.gguf").Tensors {
		d := x.Dense()
		got, want := numbers(t, &d), numbers(t, named(t, want, x.Name))
		for i := range want {
			if !same(got[i], want[i]) {
				t.Fatalf("%s: element %d is %v, want %v", x.Name, i, got[i], want[i])
			}
		}
		q, ok := x.Quantised()
		if !ok {
			continue
		}
		formats++
		var c quant.Codes
		if err := q.Reader().Codes(&c, 0, len(want)); err != nil {
			t.Fatal(err)
		}
		seen := map[int16]bool{}
		for _, code := range c.Code {
			seen[code] = true
		}
		if len(seen) != c.Hi-c.Lo+1 || !seen[int16(c.Lo)] || !seen[int16(c.Hi)] {
			t.Errorf("%s: %d codes, want all from %d to %d", x.Name, len(seen), c.Lo, c.Hi)
		}
	}
	if formats != 8 {
		t.Errorf("%d formats with codes, want 8", formats)
	}
}

// What is read does not depend on where a read begins and ends, of blocks, of rows and of columns.
func TestDenseInPieces(t *testing.T) {
	var all []container.Tensor
	for _, x := range opened(t, "blocks.gguf").Tensors {
		all = append(all, x.Dense())
	}
	for _, q := range append(packed(t, "gptq"), packed(t, "awq")...) {
		all = append(all, q.Dense())
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range all {
		whole := make([]byte, x.Size())
		if _, err := x.ReadAt(whole, 0); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			from := r.IntN(len(whole))
			p := make([]byte, r.IntN(len(whole)-from+1))
			if n, err := x.ReadAt(p, int64(from)); n != len(p) || err != nil || !bytes.Equal(p, whole[from:from+n]) {
				t.Fatalf("%s: bytes %d to %d differ, %v", x.Name, from, from+n, err)
			}
		}
		if n, err := x.ReadAt(make([]byte, 8), x.Size()-4); n != 4 || err != io.EOF {
			t.Errorf("%s: %d bytes and %v at the end", x.Name, n, err)
		}
	}
}

// Reading and judging allocate nothing once their memory is there.
func TestReadingAllocatesNothing(t *testing.T) {
	tensors := packed(t, "")
	for _, x := range opened(t, "usual.gguf").Tensors {
		if q, ok := x.Quantised(); ok {
			tensors = append(tensors, q)
		}
	}
	for _, q := range tensors {
		n := int(q.Elements())
		r, values, x := q.Reader(), make([]float32, n), make([]float64, n)
		var c quant.Codes
		if allocs := testing.AllocsPerRun(3, func() {
			if err := r.Codes(&c, 0, n); err != nil {
				t.Error(err)
			}
			c.Values(values)
			for g := range c.Step {
				c.Errors(g, x[g*c.Group:(g+1)*c.Group])
			}
		}); allocs > 0 {
			t.Errorf("%s %s: %v allocations", q.Scheme.Name, q.Name, allocs)
		}
	}
}

// The usual writer of each format is ggml's reference quantiser, code for code, and its float16 scales to the bit.
func TestUsualAsGgml(t *testing.T) {
	f := opened(t, "usual.gguf")
	d := f.Tensors[0].Dense()
	var x []float32
	for _, v := range numbers(t, &d) {
		x = append(x, float32(v))
	}
	checked := 0
	for i := range f.Tensors {
		if q, ok := f.Tensors[i].Quantised(); ok {
			checked++
			usual(t, q, x)
		}
	}
	if checked != 8 {
		t.Errorf("%d formats", checked)
	}
}

// usual compares the codes of a file with those that the format's usual writer makes of x.
func usual(t *testing.T, q *quant.Tensor, x []float32) {
	t.Helper()
	var got, want quant.Codes
	if err := q.Reader().Codes(&want, 0, len(x)); err != nil {
		t.Fatal(err)
	}
	if !q.Usual(&got, x) {
		t.Fatalf("%s: no usual writer", q.Name)
	}
	for i := range want.Code {
		g := i / want.Group
		if got.Code[i] != want.Code[i] || !same(got.Step[g], want.Step[g]) || !same(got.Offset[g], want.Offset[g]) {
			t.Fatalf("%s: element %d: %v·%d%+v, want %v·%d%+v", q.Name, i, got.Step[g], got.Code[i], got.Offset[g], want.Step[g], want.Code[i], want.Offset[g])
		}
	}
}

// mlxConfig has the settings of each weight, as mlx-lm writes them for single layers.
func mlxConfig() []byte {
	var b strings.Builder
	b.WriteString(`{"quantization": {"group_size": 64, "bits": 4`)
	for _, dtype := range []string{"float32", "float16", "bfloat16"} {
		for _, s := range [][2]int{{4, 32}, {4, 64}, {8, 32}, {8, 64}, {8, 128}} {
			fmt.Fprintf(&b, `, "%s.%d.%d": {"bits": %[2]d, "group_size": %[3]d}`, dtype, s[0], s[1])
		}
	}
	b.WriteString("}}")
	return []byte(b.String())
}

// MLX: the values are those of mx.dequantize but for its own roundings to the dtype, of the product and of the sum; and mx.quantize is the
// usual writer, code for code.
func TestMLX(t *testing.T) {
	tensors := dumped(t, "mlx.safetensors")
	found, rest, err := quant.Find(tensors, mlxConfig())
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 15 || len(rest) != 30 {
		t.Fatalf("%d weights and %d others", len(found), len(rest))
	}
	unit := map[hooks.DType]float64{hooks.F32: 0x1p-24, hooks.F16: 0x1p-11, hooks.BF16: 0x1p-8}
	for _, q := range found {
		name := strings.TrimSuffix(q.Name, ".weight")
		original, theirs := named(t, rest, "original."+name), named(t, rest, "dequantised."+name)
		got := make([]float32, q.Elements())
		if err := q.Reader().Values(got, 0); err != nil {
			t.Fatal(err)
		}
		var c quant.Codes
		if err := q.Reader().Codes(&c, 0, len(got)); err != nil {
			t.Fatal(err)
		}
		u := unit[theirs.DType]
		for i, want := range numbers(t, theirs) {
			product := math.Abs(c.Step[i/c.Group] * float64(c.Code[i]))
			if d := math.Abs(float64(got[i]) - want); d > 1.01*u*(product+math.Abs(want))+0x1p-24 {
				t.Fatalf("%s: element %d is %v, mx.dequantize has %v", q.Name, i, got[i], want)
			}
		}
		var x []float32
		for _, v := range numbers(t, original) {
			x = append(x, float32(v))
		}
		usual(t, q, x)
	}
}

// hf is the config.json of a checkpoint of transformers.
func hf(settings string) []byte { return []byte(`{"quantization_config": ` + settings + `}`) }

// configs are those of the weights of packed.safetensors, by how their names begin.
var configs = map[string][]byte{
	"gptq4.": hf(`{"quant_method": "gptq", "bits": 4, "group_size": 16, "checkpoint_format": "gptq"}`), "gptq8.": hf(`{"quant_method": "gptq", "bits": 8, "group_size": 16}`),
	"gptq4act.": hf(`{"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": true}`), "gptq4v2.": hf(`{"quant_method": "gptq", "bits": 4, "group_size": 16, "format": "gptq_v2"}`),
	"awq.": hf(`{"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": true}`),
	"ct4.": hf(`{"quant_method": "compressed-tensors", "format": "pack-quantized"}`), "ct8.": hf(`{"quant_method": "compressed-tensors", "format": "pack-quantized"}`),
	"int8.": hf(`{"quant_method": "compressed-tensors", "format": "int-quantized"}`), "int8zero.": nil, "int8one.": nil, "bnb.": hf(`{"quant_method": "bitsandbytes", "load_in_8bit": true}`),
}

// packed are the weights of packed.safetensors whose names begin so.
func packed(t testing.TB, prefix string) []*quant.Tensor {
	t.Helper()
	var all []*quant.Tensor
	for begin, config := range configs {
		if !strings.HasPrefix(begin, prefix) {
			continue
		}
		var of []container.Tensor
		for _, x := range dumped(t, "packed.safetensors") {
			if strings.HasPrefix(x.Name, begin) || x.Name == "plain.weight" {
				of = append(of, x)
			}
		}
		found, rest, err := quant.Find(of, config)
		if err != nil {
			t.Fatalf("%s: %v", begin, err)
		}
		if len(found) != 1 || found[0].Name != begin+"weight" || len(rest) != 1 || rest[0].Name != "plain.weight" {
			t.Fatalf("%s: %d weights, %d others", begin, len(found), len(rest))
		}
		all = append(all, found...)
	}
	return all
}

// GPTQ, AWQ, compressed-tensors and bitsandbytes: the values are scale·(code − zero) at the output and input where torch has them.
func TestPacked(t *testing.T) {
	tensors := dumped(t, "packed.safetensors")
	all := packed(t, "")
	if len(all) != len(configs) {
		t.Fatalf("%d of %d", len(all), len(configs))
	}
	for _, q := range all {
		theirs := named(t, tensors, "values."+strings.TrimSuffix(q.Name, ".weight"))
		if fmt.Sprint(q.Shape) != fmt.Sprint(theirs.Shape) {
			t.Errorf("%s: shape %v, want %v", q.Name, q.Shape, theirs.Shape)
			continue
		}
		want := numbers(t, theirs)
		got := make([]float32, len(want))
		if err := q.Reader().Values(got, 0); err != nil {
			t.Fatalf("%s: %v", q.Name, err)
		}
		for i := range want {
			if got[i] != float32(want[i]) {
				t.Fatalf("%s: element %d is %v, want %v", q.Name, i, got[i], want[i])
			}
		}
	}
}

// What cannot be read for certain is refused, by name.
func TestFindRefuses(t *testing.T) {
	codes := func(name string, d hooks.DType, shape ...int) container.Tensor {
		n, _ := hooks.Elements(shape)
		return container.Tensor{Name: name, DType: d, Shape: shape, Data: bytes.NewReader(make([]byte, n*d.Size()))}
	}
	mlx := []container.Tensor{codes("a.weight", hooks.U32, 4, 8), codes("a.scales", hooks.F16, 4, 1), codes("a.biases", hooks.F16, 4, 1)}
	gptq := []container.Tensor{codes("a.qweight", hooks.I32, 8, 16), codes("a.qzeros", hooks.I32, 1, 2), codes("a.scales", hooks.F16, 1, 16)}
	awq := []container.Tensor{codes("a.qweight", hooks.I32, 64, 2), codes("a.qzeros", hooks.I32, 1, 2), codes("a.scales", hooks.F16, 1, 16)}
	index := codes("a.g_idx", hooks.I32, 64)
	index.Data = bytes.NewReader(append(make([]byte, 252), 1, 0, 0, 0))
	ct := []container.Tensor{codes("a.weight_packed", hooks.I32, 4, 8), codes("a.weight_scale", hooks.F16, 4, 1), codes("a.weight_shape", hooks.I64, 2)}
	for _, c := range []struct {
		name    string
		tensors []container.Tensor
		config  []byte
		want    string
	}{
		{"MLX without settings", mlx, nil, "of an unknown number of bits"},
		{"MLX of 3 bits", mlx, []byte(`{"quantization": {"bits": 3, "group_size": 64}}`), "MLX with 3 bits"},
		{"MLX with a setting of another type", mlx, []byte(`{"quantization": {"bits": 4, "group_size": "32"}}`), "config.json: quantization: group_size is a string; want a value of type int"},
		{"MLX of another mode", mlx, []byte(`{"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}}`), `MLX mode "mxfp4"`},
		{"MLX in groups that do not divide", mlx, []byte(`{"quantization": {"bits": 4, "group_size": 48}}`), "64 inputs in groups of 48"},
		{"MLX in groups of zero", mlx, []byte(`{"quantization": {"bits": 4, "group_size": -64}}`), "64 inputs in groups of -64"},
		{"MLX in other groups", mlx, []byte(`{"quantization": {"bits": 4, "group_size": 32}}`), `"a.scales" is [4 1]; want [4 2]`},
		{"MLX without biases", mlx[:2], []byte(`{"quantization": {"bits": 4, "group_size": 64}}`), `"a.biases" is missing`},
		{"MLX with biases of another dtype", []container.Tensor{mlx[0], mlx[1], codes("a.biases", hooks.F32, 4, 1)}, []byte(`{"quantization": {"bits": 4, "group_size": 64}}`), `"a.biases" is float32; want [float16]`},
		{"MLX in a checkpoint of GPTQ", mlx, hf(`{"quant_method": "gptq", "bits": 4, "group_size": 64}`), `config.json says "gptq"`},
		{"GPTQ or AWQ", gptq, nil, "config.json does not say which"},
		{"GPTQ of 3 bits", gptq, hf(`{"quant_method": "gptq", "bits": 3, "group_size": 64}`), "GPTQ with 3 bits"},
		{"GPTQ for Marlin", gptq, hf(`{"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "marlin"}`), `GPTQ of format "marlin"`},
		{"GPTQ of two formats", gptq, hf(`{"quant_method": "gptq", "bits": 4, "group_size": 64, "format": "gptq", "checkpoint_format": "gptq_v2"}`), `two formats, "gptq" and "gptq_v2"`},
		{"GPTQ of 8 bits in 4", gptq, hf(`{"quant_method": "gptq", "bits": 8, "group_size": 32}`), `"a.qzeros" is [1 2]; want [1 4]`},
		{"GPTQ in other groups", gptq, hf(`{"quant_method": "gptq", "bits": 4, "group_size": 32}`), `"a.qzeros" is [1 2]; want [2 2]`},
		{"GPTQ in groups of zero", gptq, hf(`{"quant_method": "gptq", "bits": 4, "group_size": 0}`), "groups of 0 inputs"},
		{"GPTQ with a group that is not there", append(gptq[:3:3], index), hf(`{"quant_method": "gptq", "bits": 4, "group_size": 64}`), "g_idx gives input 63 the group 1 of 1"},
		{"GPTQ with an index of another length", append(gptq[:3:3], codes("a.g_idx", hooks.I32, 63)), hf(`{"quant_method": "gptq", "bits": 4, "group_size": 64}`), `"a.g_idx" is [63]; want [64]`},
		{"AWQ of another version", awq, hf(`{"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemv"}`), `AWQ of version "gemv"`},
		{"AWQ taken for GPTQ", awq, hf(`{"quant_method": "gptq", "bits": 4, "group_size": -1}`), "512 inputs and 2 outputs"},
		{"AWQ of 8 bits", awq, hf(`{"quant_method": "awq", "bits": 8, "group_size": 64}`), "AWQ with 8 bits"},
		{"compressed-tensors with another shape", ct, nil, "weight_shape is [0 0], but the codes are [4 8]"},
		{"compressed-tensors in float", ct, hf(`{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}`), `format "nvfp4-pack-quantized"`},
		{"int8 without scales", []container.Tensor{codes("a.weight", hooks.I8, 4, 8)}, nil, `"a.weight_scale" is missing`},
		{"int8 with scales of another shape", []container.Tensor{codes("a.weight", hooks.I8, 4, 8), codes("a.weight_scale", hooks.F32, 3)}, nil, `"a.weight_scale" is [3], for 4 outputs`},
		{"int8 with two sorts of scales", []container.Tensor{codes("a.weight", hooks.I8, 4, 8), codes("a.weight_scale", hooks.F32, 4), codes("a.scale", hooks.F32, 4)}, nil, `both "a.weight_scale" and "a.scale"`},
		{"int4 in an order that nothing tells", []container.Tensor{codes("a.weight", hooks.U8, 4, 8), codes("a.scales", hooks.F16, 4)}, nil, "uint8 codes, packed in an unknown order"},
		{"int8 in an order of old kernels", []container.Tensor{codes("a.weight", hooks.I8, 4, 8), codes("a.SCB", hooks.F32, 4), {Name: "a.weight_format", DType: hooks.U8, Data: bytes.NewReader([]byte{2})}}, nil, "weight_format 2"},
		{"4 bits of bitsandbytes", []container.Tensor{codes("a.weight", hooks.U8, 16, 1), codes("a.weight.absmax", hooks.F32, 1)}, hf(`{"quant_method": "bitsandbytes"}`), "4 bits of bitsandbytes"},
		{"float8 with scales", []container.Tensor{codes("a.weight", hooks.F8E4M3, 4, 4), codes("a.weight_scale_inv", hooks.F32, 1, 1)}, nil, "float8 with scales"},
		{"zeros alone", gptq[1:2], nil, "packed zeros"},
		{"another method", nil, hf(`{"quant_method": "hqq", "bits": "many"}`), `quant_method "hqq", which is not read`},
		{"a method that is no text", nil, hf(`{"quant_method": 7}`), "quant_method 7, which is not read"},
		{"settings that are none", nil, []byte(`{"quantization_config": 7}`), "config.json: quantization"},
	} {
		found, _, err := quant.Find(c.tensors, c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %d weights, %v; want %q", c.name, len(found), err, c.want)
		}
	}
}
