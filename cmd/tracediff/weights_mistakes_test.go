package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/gguf"
)

type tensors = map[string]*checkpointtest.Tensor

// rowsMoved gives row i of a matrix the row that from says.
func rowsMoved(x *checkpointtest.Tensor, from func(i int) int) {
	size := len(x.Data) / x.Shape[0]
	was := slices.Clone(x.Data)
	for i := range x.Shape[0] {
		copy(x.Data[i*size:(i+1)*size], was[from(i)*size:])
	}
}

// added adds a number to each of a tensor of bfloat16, which becomes one of float32.
func added(x *checkpointtest.Tensor, by float64) {
	w := make([]float64, len(x.Data)/2)
	_ = floats.Decode(w, x.DType, x.Data) // bfloat16
	for i := range w {
		w[i] += by
	}
	x.DType, x.Data = hooks.F32, f32s(w)
}

func swap(c tensors, a, b string) { c[a].Data, c[b].Data = c[b].Data, c[a].Data }

// TestMistakesOfConversionAreNamed: each with its tensor, what it is, and the row of the first wrong element.
func TestMistakesOfConversionAreNamed(t *testing.T) {
	const at, other = "model.layers.1.", "model.layers.2."
	tests := []struct {
		name, model string
		plant       func(c tensors)
		says        []string
	}{
		{"a transposed square weight", "llama-tiny", func(c tensors) {
			x := c[at+"self_attn.q_proj.weight"]
			was := slices.Clone(x.Data)
			for r := range 16 {
				for k := range 16 {
					copy(x.Data[2*(r*16+k):2*(r*16+k)+2], was[2*(k*16+r):])
				}
			}
		}, []string{"MISTAKE " + at + "self_attn.q_proj.weight", "transposed", "row 0, column 1"}},
		{"query permuted for interleaved pairs", "llama-tiny", func(c tensors) {
			rowsMoved(c[at+"self_attn.q_proj.weight"], func(i int) int { return i/8*8 + i%2*4 + i%8/2 })
		}, []string{"self_attn.q_proj.weight", "interleaved RoPE in each head of 8", "row 1,"}},
		{"key permuted for interleaved pairs", "llama-tiny", func(c tensors) {
			rowsMoved(c[at+"self_attn.k_proj.weight"], func(i int) int { return i/8*8 + i%2*4 + i%8/2 })
		}, []string{"self_attn.k_proj.weight", "interleaved RoPE in each head of 8", "row 1,"}},
		{"two layers swapped", "llama-tiny", func(c tensors) {
			for name := range c {
				if n, ok := strings.CutPrefix(name, at); ok {
					swap(c, name, other+n)
				}
			}
		}, []string{"layers 1 and 2 have changed places", "first  row 0"}},
		{"gate and up swapped", "llama-tiny", func(c tensors) { swap(c, at+"mlp.gate_proj.weight", at+"mlp.up_proj.weight") }, []string{"gate_proj and up_proj have changed places", "first  row 0"}},
		{"1+w for w", "gemma3-tiny", func(c tensors) { added(c[at+"input_layernorm.weight"], 1) }, []string{"MISTAKE " + at + "input_layernorm.weight", "1+w, where the original has w", "row 0, column 0"}},
		{"2+w for w", "gemma3-tiny", func(c tensors) { added(c[at+"input_layernorm.weight"], 2) }, []string{"2+w", "1 was added twice"}},
		{"a head that is not the embedding", "gemma3-tiny", func(c tensors) {
			x := *c["model.embed_tokens.weight"]
			x.Data = slices.Clone(x.Data)
			x.Data[7*32] ^= 0x40
			x.Name = "lm_head.weight"
			c["lm_head.weight"] = &x
		}, []string{"DIFFERENT lm_head.weight", "this head is not it", "row 7"}},
		{"one row shifted by one", "llama-tiny", func(c tensors) {
			x := c[at+"self_attn.v_proj.weight"]
			copy(x.Data[5*32:6*32], slices.Clone(x.Data[5*32+2:6*32]))
		}, []string{"self_attn.v_proj.weight", "row 5", "1 places to the left"}},
		{"rows that are their neighbours", "llama-tiny", func(c tensors) {
			rowsMoved(c["model.embed_tokens.weight"], func(i int) int { return (i + 1) % 180 })
		}, []string{"model.embed_tokens.weight", "row i is the original's i+1", "row 0"}},
		{"a zero row", "llama-tiny", func(c tensors) { clear(c[at+"mlp.up_proj.weight"].Data[9*32 : 10*32]) }, []string{"mlp.up_proj.weight", "row 9: zero"}},
		{"one factor", "llama-tiny", func(c tensors) {
			x := c["model.embed_tokens.weight"]
			for i := 1; i < len(x.Data); i += 2 { // times 4 = sqrt(hidden_size): two more in the exponent
				if v := binary.LittleEndian.Uint16(x.Data[i-1:]); v&0x7f80 != 0 {
					binary.LittleEndian.PutUint16(x.Data[i-1:], v+2<<7)
				}
			}
		}, []string{"model.embed_tokens.weight", "4 = sqrt(hidden_size) times the original"}},
		{"a tensor is missing", "llama-tiny", func(c tensors) { delete(c, at+"mlp.up_proj.bias") }, []string{"MISSING " + at + "mlp.up_proj.bias"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := "../../fixtures/" + tt.model
			c := tensors{}
			for _, x := range checkpointOf(t, model+"/model.safetensors") {
				x.Data = slices.Clone(x.Data)
				c[x.Name] = &x
			}
			tt.plant(c)
			var list []checkpointtest.Tensor
			for _, x := range c {
				list = append(list, *x)
			}
			local := filepath.Join(t.TempDir(), "port.safetensors")
			must(t, os.WriteFile(local, checkpointtest.File(list), 0o666))
			exit, out := weigh(t, local, model)
			wrongWeights(t, exit, out, tt.says)
		})
	}
}

// wrongWeights wants exit status 1, and words.
func wrongWeights(t *testing.T, exit int, out string, says []string) {
	t.Helper()
	if exit != 1 || !strings.Contains(out, "\nMISMATCH: ") {
		t.Errorf("exit %d", exit)
	}
	for _, word := range says {
		if !strings.Contains(out, word) {
			t.Errorf("want %q in\n%s", word, out)
		}
	}
}

// spoiltGGUF writes a file of the wide checkpoint in which some bytes of tensors were changed.
func spoiltGGUF(t *testing.T, file string, plant func(at func(string) []byte)) string {
	t.Helper()
	data, err := os.ReadFile(weightFixtures + file)
	must(t, err)
	g, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	plant(func(name string) []byte {
		for _, x := range g.Tensors {
			if x.Name == name {
				return data[x.Offset : x.Offset+x.Size]
			}
		}
		t.Fatalf("no tensor %s", name)
		return nil
	})
	path := filepath.Join(t.TempDir(), "port.gguf")
	must(t, os.WriteFile(path, data, 0o666))
	return path
}

// TestMistakesOfBlocksAreNamed has files of the gguf package and of ggml in which a few bytes were changed.
func TestMistakesOfBlocksAreNamed(t *testing.T) {
	const up, gate, q = "blk.0.ffn_up.weight", "blk.0.ffn_gate.weight", "blk.0.attn_q.weight"
	const q8, q4, q6 = "wide.Q8_0.gguf", "wide.Q4_K.gguf", "wide.Q6_K.gguf"
	type bytesOf = func(string) []byte
	tests := []struct {
		name, file string
		plant      func(at bytesOf)
		says       []string
	}{
		{"Q8_0: a scale one exponent up", q8, func(at bytesOf) { at(up)[(5*8+3)*34+1] += 4 }, []string{"mlp.up_proj.weight", "row 5, columns 96 to 127: 2 times the original: an exponent is off by one"}},
		{"Q8_0: a scale one exponent down", q8, func(at bytesOf) { at(up)[(5*8+3)*34+1] -= 4 }, []string{"mlp.up_proj.weight", "row 5, columns 96 to 127: 0.5 times"}},
		{"Q8_0: a scale of zero", q8, func(at bytesOf) { clear(at(up)[7*8*34 : 7*8*34+2]) }, []string{"row 7, columns 0 to 31: zero"}},
		{"Q8_0: a corrupt block", q8, func(at bytesOf) {
			for i := range 32 {
				at(up)[9*8*34+2+i] = byte(i * 37)
			}
		}, []string{"DIFFERENT", "mlp.up_proj.weight", "row 9, columns 0 to 31"}},
		{"Q8_0: a block of another row", q8, func(at bytesOf) { copy(at(up)[9*8*34:], at(up)[20*8*34:20*8*34+34]) }, []string{"mlp.up_proj.weight", "row 9, columns 0 to 31 are the original's row 20, columns 0 to 31; every other element is right"}},
		{"Q8_0: a row is the next", q8, func(at bytesOf) { copy(at(up)[9*8*34:], at(up)[10*8*34:11*8*34]) }, []string{"row 9 is the original's row 10; every other element is right"}},
		{"Q4_K: two rows exchanged", q4, func(at bytesOf) {
			a, b := at(up)[11*144:12*144], at(up)[40*144:41*144]
			was := slices.Clone(a)
			copy(a, b)
			copy(b, was)
		}, []string{"mlp.up_proj.weight", "rows 11 and 40 have changed places", "first  row 11"}},
		{"Q6_K: rows from 60 on are the next", q6, func(at bytesOf) { copy(at(up)[60*210:], slices.Clone(at(up)[61*210:64*210])) }, []string{"mlp.up_proj.weight", "rows 60 to 62 are the original's rows 61 to 63", "first  row 60"}},
		{"Q8_0: read from a block too far on", q8, func(at bytesOf) { copy(at(up), slices.Clone(at(up)[34:])) }, []string{"mlp.up_proj.weight", "32 elements too far on", "first  row 0"}},
		{"Q8_0: one code", q8, func(at bytesOf) { at(up)[(3*8+2)*34+2+7] ^= 0x18 }, []string{"row 3, column 71"}},
		{"Q6_K: a scale twice as large", q6, func(at bytesOf) {
			d := at(up)[4*210+208:]
			v := floats.FromF16(binary.LittleEndian.Uint16(d)) // below the normal numbers of float16
			binary.LittleEndian.PutUint16(d, floats.F16(2*v))
		}, []string{"mlp.up_proj.weight", "row 4: 2 times the original: an exponent is off by one"}},
		{"Q6_K: a corrupt block", q6, func(at bytesOf) { copy(at(up)[4*210:], at(up)[5*210:6*210]) }, []string{"mlp.up_proj.weight", "row 4"}},
		{"Q6_K: a scale of 16 is another's", q6, func(at bytesOf) { at(up)[8*210+192+3] ^= 0x30 }, []string{"mlp.up_proj.weight", "row 8, columns 48 to 63"}},
		{"Q4_K: a corrupt block", q4, func(at bytesOf) { copy(at(up)[6*144:], at(up)[7*144:7*144+16]) }, []string{"mlp.up_proj.weight", "row 6"}},
		{"Q4_K: a scale one exponent up", q4, func(at bytesOf) { at(up)[11*144+1] += 4 }, []string{"mlp.up_proj.weight", "row 11: steps that are 2 times the right ones, with right offsets: an exponent is off by one"}},
		{"Q4_K: the scale of the offsets one exponent down", q4, func(at bytesOf) { at(up)[11*144+3] -= 4 }, []string{"mlp.up_proj.weight", "row 11: offsets that are 0.5 times the right ones, with right steps"}},
		{"Q4_K: gate for up", q4, func(at bytesOf) {
			a, b := at(up), at(gate)
			was := slices.Clone(a)
			copy(a, b)
			copy(b, was)
		}, []string{"gate_proj and up_proj have changed places"}},
		{"Q4_K: query permuted as that of Llama", q4, func(at bytesOf) {
			x := at(q)
			was := slices.Clone(x)
			for i := range 64 {
				copy(x[i*144:(i+1)*144], was[(i%2*32+i/2)*144:])
			}
		}, []string{"self_attn.q_proj.weight", "interleaved RoPE"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exit, out := weigh(t, spoiltGGUF(t, tt.file, tt.plant), wideModel)
			wrongWeights(t, exit, out, tt.says)
		})
	}
}

// TestMistakesOfCodesBesideScalesAreNamed has a checkpoint of mlx-lm, and matrices packed as the formats of transformers are.
func TestMistakesOfCodesBesideScalesAreNamed(t *testing.T) {
	const up, name = "model.layers.0.mlp.up_proj", "model.layers.0.mlp.up_proj.weight"
	config, err := os.ReadFile(weightFixtures + "wide.mlx/config.json")
	must(t, err)
	mlx := func(plant func(tensors)) string {
		return writePort(t, string(config), checkpointOf(t, weightFixtures+"wide.mlx/model.safetensors"), plant)
	}
	in := func(packing string) func(func(tensors)) string {
		return func(plant func(tensors)) string {
			return packedPort(t, packings[packing].config, packings[packing].pack, plant)
		}
	}
	// set changes a number of a tensor of two bytes, or of four, by its bits.
	bits := func(x *checkpointtest.Tensor, i int, change func(uint32) uint32) {
		if size := x.DType.Size(); size == 2 {
			binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(change(uint32(binary.LittleEndian.Uint16(x.Data[2*i:])))))
		} else {
			binary.LittleEndian.PutUint32(x.Data[4*i:], change(binary.LittleEndian.Uint32(x.Data[4*i:])))
		}
	}
	twice := map[hooks.DType]uint32{hooks.F16: 1 << 10, hooks.BF16: 1 << 7, hooks.F32: 1 << 23}
	double := func(x *checkpointtest.Tensor, i int) { bits(x, i, func(b uint32) uint32 { return b + twice[x.DType] }) }
	tests := []struct {
		name  string
		make  func(func(tensors)) string
		plant func(c tensors)
		says  []string
	}{
		{"MLX: a scale one exponent up", mlx, func(c tensors) { double(c[up+".scales"], 5*4+1) }, []string{name, "row 5, columns 64 to 127: steps that are 2 times the right ones"}},
		{"MLX: an offset one exponent up", mlx, func(c tensors) { double(c[up+".biases"], 5*4+1) }, []string{name, "row 5, columns 64 to 127: offsets that are 2 times the right ones, with right steps"}},
		{"MLX: a bias of another group", mlx, func(c tensors) { copy(c[up+".biases"].Data[2*(5*4+1):], c[up+".biases"].Data[2*(9*4+3):2*(9*4+4)]) }, []string{name, "row 5"}},
		{"MLX: rows shifted by one", mlx, func(c tensors) {
			for _, end := range []string{".weight", ".scales", ".biases"} {
				rowsMoved(c[up+end], func(i int) int { return (i + 1) % 64 })
			}
		}, []string{name, "row i is the original's i+1"}},
		{"MLX: scales of the next rows", mlx, func(c tensors) { rowsMoved(c[up+".scales"], func(i int) int { return (i + 1) % 64 }) }, []string{name, "row 0"}},
		{"MLX: a corrupt word", mlx, func(c tensors) { bits(c[up+".weight"], 3*32+2, func(b uint32) uint32 { return ^b }) }, []string{name, "row 3, columns 1"}},
		{"MLX: gate for up", mlx, func(c tensors) {
			for _, end := range []string{".weight", ".scales", ".biases"} {
				swap(c, up+end, "model.layers.0.mlp.gate_proj"+end)
			}
		}, []string{"gate_proj and up_proj have changed places"}},
		{"GPTQ: every zero point one lower", in("GPTQ"), func(c tensors) {
			x := c[up+".qzeros"]
			for i := range len(x.Data) {
				x.Data[i] = (x.Data[i]-1)&15 | (x.Data[i]>>4-1)&15<<4
			}
		}, []string{name}},
		{"GPTQ: a scale one exponent up", in("GPTQ"), func(c tensors) { double(c[up+".scales"], 2*64+7) }, []string{name, "row 7"}},
		{"GPTQ: scales of the next outputs", in("GPTQ"), func(c tensors) {
			x := c[up+".scales"]
			for g := range 4 {
				row := x.Data[g*128 : (g+1)*128]
				copy(row, append(slices.Clone(row[2:]), row[:2]...))
			}
		}, []string{name, "the errors of all other elements have the right size"}},
		{"GPTQ: an output of zeros", in("GPTQ"), func(c tensors) {
			for g := range 4 {
				clear(c[up+".scales"].Data[2*(g*64+12) : 2*(g*64+13)])
			}
		}, []string{name, "row 12: zero"}},
		{"AWQ: packed in plain order", in("AWQ"), func(c tensors) {
			x := c[up+".qweight"]
			for at := 0; at < len(x.Data); at += 4 {
				w, to := binary.LittleEndian.Uint32(x.Data[at:]), uint32(0)
				for k, i := range awqOrder {
					to |= w >> (4 * k) & 15 << (4 * i)
				}
				binary.LittleEndian.PutUint32(x.Data[at:], to)
			}
		}, []string{name}},
		{"AWQ: a scale one exponent up", in("AWQ"), func(c tensors) { double(c[up+".scales"], 64+30) }, []string{name, "row 30"}},
		{"compressed-tensors: a scale one exponent up", in("compressed-tensors int4"), func(c tensors) { double(c[up+".weight_scale"], 4*4+2) }, []string{name, "row 4, columns 128 to 191: 2 times"}},
		{"compressed-tensors: codes of the next rows", in("compressed-tensors int4"), func(c tensors) { rowsMoved(c[up+".weight_packed"], func(i int) int { return (i + 1) % 64 }) }, []string{name, "row 0"}},
		{"compressed-tensors: int8, one code", in("compressed-tensors int8"), func(c tensors) { c[up+".weight"].Data[17*256+3] ^= 0x10 }, []string{name, "row 17, column 3"}},
		{"bitsandbytes: a scale one exponent up", in("bitsandbytes"), func(c tensors) { double(c[up+".SCB"], 21) }, []string{name, "row 21: 2 times"}},
		{"bitsandbytes: scales of the next rows", in("bitsandbytes"), func(c tensors) { rowsMoved(c[up+".SCB"], func(i int) int { return (i + 1) % 64 }) }, []string{name, "row 0"}},
		{"int8 by row: two rows swapped", in("int8 by row"), func(c tensors) {
			for _, end := range []string{".weight", ".scales"} {
				rowsMoved(c[up+end], func(i int) int {
					switch i {
					case 3:
						return 8
					case 8:
						return 3
					}
					return i
				})
			}
		}, []string{name, "rows 3 and 8 have changed places"}},
		{"int4 by row: a scale one exponent up", in("int4 by row"), func(c tensors) { double(c[up+".weight_scale"], 21) }, []string{name, "row 21: 2 times the original: an exponent is off by one"}},
		{"int4 by row: rows shifted by one", in("int4 by row"), func(c tensors) {
			for _, end := range []string{".weight_packed", ".weight_scale"} {
				rowsMoved(c[up+end], func(i int) int { return (i + 1) % 64 })
			}
		}, []string{name, "row i is the original's i+1"}},
		{"int4 by row: a row is the next", in("int4 by row"), func(c tensors) {
			for _, end := range []string{".weight_packed", ".weight_scale"} {
				rowsMoved(c[up+end], func(i int) int {
					if i == 9 {
						return 10
					}
					return i
				})
			}
		}, []string{name, "row 9 is the original's row 10"}},
		{"int4 by row: one code", in("int4 by row"), func(c tensors) { c[up+".weight_packed"].Data[17*128+5] ^= 0x80 }, []string{name, "row 17, column 11"}},
		{"GPTQ: two outputs exchanged", in("GPTQ"), func(c tensors) {
			for i := range 32 { // a word has eight inputs of an output
				x := c[up+".qweight"].Data[i*256:]
				for k := range 4 {
					x[4*5+k], x[4*50+k] = x[4*50+k], x[4*5+k]
				}
			}
			for g := range 4 {
				s, z := c[up+".scales"].Data[g*128:], c[up+".qzeros"].Data[g*32:]
				for k := range 2 {
					s[2*5+k], s[2*50+k] = s[2*50+k], s[2*5+k]
				}
				a, b := z[2]>>4, z[25]&15 // outputs 5 and 50
				z[2], z[25] = z[2]&15|b<<4, z[25]&0xf0|a
			}
		}, []string{name, "rows 5 and 50 have changed places"}},
		{"int8 by tensor: the scale one exponent up", in("int8 by tensor"), func(c tensors) { double(c[up+".weight_scale"], 0) }, []string{name, "2 times the original"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exit, out := weigh(t, tt.make(tt.plant), wideModel)
			wrongWeights(t, exit, out, tt.says)
			if n := strings.Count(out, "MISTAKE") + strings.Count(out, "DIFFERENT"); n > 2 {
				t.Errorf("%s", fmt.Sprintf("%d findings:\n%s", n, out))
			}
		})
	}
}

// TestProposedLineOfAMapIsForAllLayers: a port whose names are unknown gets the line that says what they are.
func TestProposedLineOfAMapIsForAllLayers(t *testing.T) {
	const model = "../../fixtures/llama-tiny"
	list := checkpointOf(t, model+"/model.safetensors")
	for i := range list {
		list[i].Name = strings.Replace(strings.Replace(list[i].Name, "model.layers.", "blocks.", 1), "self_attn.q_proj", "wq", 1)
	}
	local := filepath.Join(t.TempDir(), "port.safetensors")
	must(t, os.WriteFile(local, checkpointtest.File(list), 0o666))
	exit, out := weigh(t, local, model)
	wrongWeights(t, exit, out, []string{`a line of the map: "blocks.{L}.wq.weight" = "model.layers.{L}.self_attn.q_proj.weight"`})
}

// TestDirectionMarksReachNoReport: a name that would turn the text around.
func TestDirectionMarksReachNoReport(t *testing.T) {
	const model = "../../fixtures/llama-tiny"
	list := append(checkpointOf(t, model+"/model.safetensors"), part("evil\u202e.weight", hooks.F32, f32s([]float64{1, 2}), 2))
	local := filepath.Join(t.TempDir(), "port.safetensors")
	must(t, os.WriteFile(local, checkpointtest.File(list), 0o666))
	for _, format := range []string{"text", "junit", "html"} {
		exit, out := weigh(t, local, model, "--format", format)
		if exit != 1 || !strings.Contains(out, "evil") || strings.Contains(out, "\u202e") {
			t.Errorf("%s: exit %d, the mark is there: %v", format, exit, strings.Contains(out, "\u202e"))
		}
	}
}

// TestFilesWithMistakesAreAsPlanted: docs/weights.md shows what is said of two files of fixtures/weights, which are made here (-update).
func TestFilesWithMistakesAreAsPlanted(t *testing.T) {
	const at = "model.layers.1."
	c := tensors{}
	for _, x := range checkpointOf(t, "../../fixtures/llama-tiny/model.safetensors") {
		x.Data = slices.Clone(x.Data)
		c[x.Name] = &x
	}
	rowsMoved(c[at+"self_attn.q_proj.weight"], func(i int) int { return i/8*8 + i%2*4 + i%8/2 })
	added(c[at+"input_layernorm.weight"], 1)
	swap(c, "model.layers.0.mlp.down_proj.weight", "model.layers.2.mlp.down_proj.weight")
	gate, up := c[at+"mlp.gate_proj.weight"], c[at+"mlp.up_proj.weight"]
	fused := part(at+"mlp.gate_up_proj.weight", gate.DType, slices.Concat(up.Data, gate.Data), 2*gate.Shape[0], gate.Shape[1])
	c[fused.Name] = &fused
	delete(c, gate.Name)
	delete(c, up.Name)
	var list []checkpointtest.Tensor
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, *c[name])
	}
	spoilt, err := os.ReadFile(spoiltGGUF(t, "wide.Q4_K.gguf", func(at func(string) []byte) {
		const row = 144 // bytes
		x := at("blk.0.ffn_up.weight")
		was := slices.Clone(x[11*row : 12*row])
		copy(x[11*row:12*row], x[40*row:41*row])
		copy(x[40*row:41*row], was)
		x = at("blk.0.ffn_gate.weight")
		copy(x[60*row:], slices.Clone(x[61*row:]))
		x = at("blk.0.attn_k.weight")
		x[3*row+1] += 4
	}))
	must(t, err)
	for name, data := range map[string][]byte{"mistakes.safetensors": checkpointtest.File(list), "mistakes.Q4_K.gguf": spoilt} {
		path := weightFixtures + name
		if *update {
			must(t, os.WriteFile(path, data, 0o666))
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, data) {
			t.Errorf("%s is not as it is planted here: %v", path, err)
		}
	}
}
