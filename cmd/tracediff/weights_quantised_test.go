package main

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
)

// quantisedFiles are the checkpoints of fixtures/weights/wide that quantisers wrote, and the parts of a weight in each: codes of four bits, then
// what each group has.
var quantisedFiles = map[string][]string{
	"llmcompressor-gptq": {".weight_packed", ".weight_scale"},
	"llmcompressor-awq":  {".weight_packed", ".weight_scale"},
	"mlx-gptq":           {".weight", ".scales", ".biases"},
	"mlx-awq":            {".weight", ".scales", ".biases"},
}

// quantised is a file with something planted in it; part is what its weights end in.
func quantised(t *testing.T, file string, plant func(c tensors)) string {
	t.Helper()
	dir := filepath.Join("../../fixtures/wild/quantised", file)
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	must(t, err)
	return writePort(t, string(config), checkpointOf(t, filepath.Join(dir, "model.safetensors")), plant)
}

// TestFilesOfQuantisersMatch: GPTQ and AWQ move errors, and nothing else is done to the weights.
func TestFilesOfQuantisersMatch(t *testing.T) {
	for _, file := range append(slices.Sorted(maps.Keys(quantisedFiles)), "gptqmodel") {
		exit, out := weigh(t, quantised(t, file, nil), wideModel)
		if exit != 0 || strings.Contains(out, "MISTAKE") || strings.Contains(out, "DIFFERENT") {
			t.Errorf("%s: exit %d:\n%s", file, exit, out)
		}
		if rescaled := strings.Contains(out, "2 rescaled"); rescaled != strings.HasSuffix(file, "awq") {
			t.Errorf("%s:\n%s", file, out)
		}
	}
}

// nibbles reads the codes of a matrix, and writes them.
func nibbles(x *checkpointtest.Tensor, change func(codes [][]uint32)) {
	rows := make([][]uint32, x.Shape[0])
	size := len(x.Data) / len(rows)
	for r := range rows {
		for at := 0; at < size; at += 4 {
			w := binary.LittleEndian.Uint32(x.Data[r*size+at:])
			for k := range 8 {
				rows[r] = append(rows[r], w>>(4*k)&15)
			}
		}
	}
	change(rows)
	for r, row := range rows {
		for at := 0; at < size; at += 4 {
			w := uint32(0)
			for k := range 8 {
				w |= row[2*at+k] << (4 * k)
			}
			binary.LittleEndian.PutUint32(x.Data[r*size+at:], w)
		}
	}
}

// bfloatsOf reads the numbers of bfloat16 of a tensor, and writes them.
func bfloatsOf(x *checkpointtest.Tensor, change func(list []float64)) {
	list := make([]float64, len(x.Data)/2)
	_ = floats.Decode(list, x.DType, x.Data) // bfloat16
	change(list)
	for i, v := range list {
		binary.LittleEndian.PutUint16(x.Data[2*i:], floats.BF16(float32(v)))
	}
	x.DType = hooks.BF16
}

// TestMistakesInFilesOfQuantisers: what GPTQ and AWQ make of numbers hides none of these.
func TestMistakesInFilesOfQuantisers(t *testing.T) {
	const up, gate = "model.layers.0.mlp.up_proj", "model.layers.0.mlp.gate_proj"
	rows := func(c tensors, parts []string, a, b int) {
		for _, p := range parts {
			rowsMoved(c[gate+p], func(i int) int {
				switch i {
				case a:
					return b
				case b:
					return a
				}
				return i
			})
		}
	}
	mistakes := []struct {
		name  string
		plant func(c tensors, parts []string)
		says  string
		mlx   string // where it has offsets of its own; empty: the same
	}{
		{"rows", func(c tensors, parts []string) { rows(c, parts, 5, 50) }, "rows 5 and 50 have changed places", ""},
		{"rows of codes, with the scales of the others", func(c tensors, parts []string) { rows(c, parts[:1], 5, 50) }, "rows 5 and 50 have changed places", "UNIDENTIFIED"},
		{"columns of two groups", func(c tensors, parts []string) {
			nibbles(c[gate+parts[0]], func(codes [][]uint32) {
				for _, row := range codes {
					row[3], row[200] = row[200], row[3]
				}
			})
		}, "columns 3 and 200 have changed places", "2 columns are not the original's: the cosine of column 3"},
		{"groups", func(c tensors, parts []string) {
			nibbles(c[gate+parts[0]], func(codes [][]uint32) {
				for _, row := range codes {
					first := slices.Clone(row[:64])
					copy(row, row[64:128])
					copy(row[64:], first)
				}
			})
			for _, p := range parts[1:] {
				bfloatsOf(c[gate+p], func(list []float64) {
					for i := 0; i < len(list); i += 4 {
						list[i], list[i+1] = list[i+1], list[i]
					}
				})
			}
		}, "blocks of 32 columns stand in another order: block 0 is the original's 2", ""},
		{"nibbles from the highest on", func(c tensors, parts []string) {
			nibbles(c[gate+parts[0]], func(codes [][]uint32) {
				for _, row := range codes {
					for at := 0; at < len(row); at += 8 {
						slices.Reverse(row[at : at+8])
					}
				}
			})
		}, "256 of 256 columns stand in another order: the first is 0, which is the original's 7", ""},
		{"gate and up", func(c tensors, parts []string) {
			for _, p := range parts {
				swap(c, gate+p, up+p)
			}
		}, "gate_proj and up_proj have changed places", ""},
		{"a scale one exponent up", func(c tensors, parts []string) {
			for _, p := range parts[1:] {
				bfloatsOf(c[gate+p], func(list []float64) { list[4*9+2] *= 2 })
			}
		}, "row 9, columns 128 to 191: 2 times the original", ""},
		{"every zero point one lower", func(c tensors, parts []string) {
			if len(parts) == 3 {
				scales := c[gate+parts[1]]
				list := make([]float64, len(scales.Data)/2)
				_ = floats.Decode(list, scales.DType, scales.Data)
				bfloatsOf(c[gate+parts[2]], func(biases []float64) {
					for i := range biases {
						biases[i] += list[i]
					}
				})
				return
			}
			nibbles(c[gate+parts[0]], func(codes [][]uint32) {
				for _, row := range codes {
					for i := range row {
						row[i] = min(row[i]+1, 15)
					}
				}
			})
		}, "every zero point is 1 too low", "UNIDENTIFIED"},
		{"a row of zeros", func(c tensors, parts []string) {
			for _, p := range parts[1:] {
				bfloatsOf(c[gate+p], func(list []float64) { clear(list[4*12 : 4*13]) })
			}
		}, "row 12: zero", ""},
		{"one group of another place", func(c tensors, parts []string) {
			nibbles(c[gate+parts[0]], func(codes [][]uint32) { copy(codes[7][64:128], codes[31][128:192]) })
			for _, p := range parts[1:] {
				bfloatsOf(c[gate+p], func(list []float64) { list[4*7+1] = list[4*31+2] })
			}
		}, "row 7, columns 64 to 127 are the original's row 31, columns 128 to 191", ""},
		{"a norm that was not divided", func(c tensors, parts []string) {
			x := c["model.layers.0.post_attention_layernorm.weight"]
			bfloatsOf(x, func(list []float64) { slices.Reverse(list) })
		}, "model.layers.0.post_attention_layernorm.weight", ""},
		{"a norm that is 8 % too large", func(c tensors, _ []string) {
			bfloatsOf(c["model.layers.0.input_layernorm.weight"], func(list []float64) {
				for i := range list {
					list[i] *= 1.08
				}
			})
		}, "model.layers.0.input_layernorm.weight", ""},
		{"a norm that is 5 % too small", func(c tensors, _ []string) {
			bfloatsOf(c["model.layers.0.post_attention_layernorm.weight"], func(list []float64) {
				for i := range list {
					list[i] *= 0.95
				}
			})
		}, "model.layers.0.post_attention_layernorm.weight", ""},
	}
	for file, parts := range quantisedFiles {
		for _, m := range mistakes {
			exit, out := weigh(t, quantised(t, file, func(c tensors) { m.plant(c, parts) }), wideModel)
			says := m.says
			if len(parts) == 3 && m.mlx != "" {
				says = m.mlx
			}
			if exit != 1 || !strings.Contains(out, says) {
				t.Errorf("%s, %s: exit %d:\n%s", file, m.name, exit, out)
			}
		}
	}
}

// TestMistakesInFileOfGPTQModel: in the layout of GPTQ, with the inputs in the order of their activations, and zero points.
func TestMistakesInFileOfGPTQModel(t *testing.T) {
	const gate, inputs, outputs, groups = "model.layers.0.mlp.gate_proj.", 256, 64, 8
	// codes are those of qweight, by input and output.
	codes := func(c tensors, change func(codes [][]uint32)) {
		x := c[gate+"qweight"]
		list := make([][]uint32, inputs)
		for i := range list {
			list[i] = make([]uint32, outputs)
			for o := range outputs {
				list[i][o] = binary.LittleEndian.Uint32(x.Data[4*(i/8*outputs+o):]) >> (4 * (i % 8)) & 15
			}
		}
		change(list)
		clear(x.Data)
		for i, row := range list {
			for o, code := range row {
				word := x.Data[4*(i/8*outputs+o):]
				binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)|code<<(4*(i%8)))
			}
		}
	}
	mistakes := []struct {
		name  string
		plant func(c tensors)
		says  string
	}{
		{"zero points as they are, where less one is meant", func(c tensors) {
			x := c[gate+"qzeros"]
			for i, b := range x.Data {
				x.Data[i] = (b+1)&15 | (b>>4+1)&15<<4
			}
		}, "every zero point is 1 too high"},
		{"no g_idx", func(c tensors) {
			for i := range inputs {
				binary.LittleEndian.PutUint32(c[gate+"g_idx"].Data[4*i:], uint32(i/32))
			}
		}, "INCOMPLETE: 1 of 13 tensors is UNIDENTIFIED"},
		{"two inputs exchanged", func(c tensors) {
			codes(c, func(codes [][]uint32) { codes[3], codes[200] = codes[200], codes[3] })
		}, "columns 3 and 200 have changed places"},
		{"two outputs exchanged, their scales stay", func(c tensors) {
			codes(c, func(codes [][]uint32) {
				for _, row := range codes {
					row[5], row[50] = row[50], row[5]
				}
			})
		}, "rows 5 and 50 have changed places"},
		{"nibbles from the highest on", func(c tensors) {
			codes(c, func(codes [][]uint32) {
				for at := 0; at < inputs; at += 8 {
					slices.Reverse(codes[at : at+8])
				}
			})
		}, "63 of 256 columns or more stand in another order: the first is 0, which is the original's 7"},
		{"scales of the next group", func(c tensors) {
			rowsMoved(c[gate+"scales"], func(i int) int { return (i + 1) % groups })
			rowsMoved(c[gate+"qzeros"], func(i int) int { return (i + 1) % groups })
		}, "UNIDENTIFIED"},
		{"gate for up", func(c tensors) {
			for _, p := range []string{"qweight", "qzeros", "scales", "g_idx"} {
				swap(c, gate+p, strings.Replace(gate, "gate", "up", 1)+p)
			}
		}, "gate_proj and up_proj have changed places"},
		{"a scale one exponent up", func(c tensors) {
			x := c[gate+"scales"].Data[2*(2*outputs+9):]
			binary.LittleEndian.PutUint16(x, binary.LittleEndian.Uint16(x)+1<<10)
		}, "UNIDENTIFIED"},
	}
	for _, m := range mistakes {
		exit, out := weigh(t, quantised(t, "gptqmodel", m.plant), wideModel)
		if exit != 1 || !strings.Contains(out, m.says) {
			t.Errorf("%s: exit %d:\n%s", m.name, exit, out)
		}
	}
}

// TestFactorsThatDoNotCancel: a matrix behind a rescaled norm that was not multiplied, or a column of one, is never a match.
func TestFactorsThatDoNotCancel(t *testing.T) {
	const gate = "model.layers.0.mlp.gate_proj"
	for awq, gptq := range map[string]string{"llmcompressor-awq": "llmcompressor-gptq", "mlx-awq": "mlx-gptq"} {
		plain := tensors{}
		list := checkpointOf(t, filepath.Join("../../fixtures/wild/quantised", gptq, "model.safetensors"))
		for i := range list {
			plain[list[i].Name] = &list[i]
		}
		layer := "model.layers.0.self_attn."
		for name, plant := range map[string]func(c tensors){
			"a matrix": func(c tensors) {
				for _, p := range quantisedFiles[awq] {
					copy(c[gate+p].Data, plain[gate+p].Data)
				}
			},
			"all three": func(c tensors) {
				for _, m := range []string{"q_proj", "k_proj", "v_proj"} {
					for _, p := range quantisedFiles[awq] {
						copy(c[layer+m+p].Data, plain[layer+m+p].Data)
					}
				}
			},
			"one number of a norm": func(c tensors) {
				bfloatsOf(c["model.layers.0.input_layernorm.weight"], func(list []float64) { list[17] *= 1.5 })
			},
			"the norm alone": func(c tensors) {
				x := c["model.layers.0.input_layernorm.weight"]
				copy(x.Data, plain["model.layers.0.input_layernorm.weight"].Data)
			},
		} {
			if exit, out := weigh(t, quantised(t, awq, plant), wideModel); exit != 1 {
				t.Errorf("%s, %s: exit %d:\n%s", awq, name, exit, out)
			}
		}
	}
}

// TestDoctorSaysUnidentified: what is neither right nor wrong has its word in the checklist, too.
func TestDoctorSaysUnidentified(t *testing.T) {
	local := quantised(t, "gptqmodel", func(c tensors) {
		x := c["model.layers.0.mlp.gate_proj.scales"].Data[2*(2*64+9):]
		binary.LittleEndian.PutUint16(x, binary.LittleEndian.Uint16(x)+1<<10)
	})
	var stdout, stderr bytes.Buffer
	exit := run([]string{"tracediff", "doctor", "--model", wideModel, "--weights", local, "--tokens", "2,5", "--python", "nowhere"}, strings.NewReader(""), &stdout, &stderr)
	says := "model.layers.0.mlp.gate_proj.weight of the port is UNIDENTIFIED:"
	if out := strings.Join(strings.Fields(stdout.String()), " "); exit != 1 || !strings.Contains(out, says) {
		t.Errorf("exit %d, want %q in\n%s%s", exit, says, out, stderr.String())
	}
}

// TestFactorsInOtherLayers: where a layer has more than is known, or norms by 1+w, factors that AWQ may have made accuse no norm; another norm is one
// that differs, and none of them is a match.
func TestFactorsInOtherLayers(t *testing.T) {
	const norm = "model.layers.0.input_layernorm.weight"
	router := part("model.layers.0.mlp.router.weight", hooks.F32, f32s(make([]float64, 8)), 2, 4)
	config, err := os.ReadFile(wideModel + "/config.json")
	must(t, err)
	original := checkpointOf(t, wideModel+"/model.safetensors")
	for _, file := range []string{"llmcompressor-awq", "mlx-awq"} {
		for _, tt := range []struct {
			name, says   string
			port, theirs []checkpointtest.Tensor
			plant        func(x, of []float64) // the port's norm and the original's
		}{
			{"a layer with a router", "UNIDENTIFIED " + norm, []checkpointtest.Tensor{router}, []checkpointtest.Tensor{router}, nil},
			{"norms by 1+w", "UNIDENTIFIED " + norm, nil, nil, func(x, of []float64) {
				for i := range x {
					x[i] = (1+of[i])/(of[i]/x[i]) - 1
				}
			}},
			{"a layer with a router, a norm that was not divided", "UNIDENTIFIED model.layers.0.self_attn.q_proj.weight", []checkpointtest.Tensor{router}, []checkpointtest.Tensor{router}, func(x, of []float64) { copy(x, of) }},
			{"a norm in another order", "DIFFERENT", []checkpointtest.Tensor{router}, []checkpointtest.Tensor{router}, func(x, _ []float64) {
				for i := range x {
					x[i] *= 1 + float64(i%7)/8
				}
			}},
		} {
			model := writePort(t, string(config), append(slices.Clone(original), tt.theirs...), nil)
			var of []float64
			for _, x := range original {
				if x.Name == norm {
					x.Data = slices.Clone(x.Data)
					bfloatsOf(&x, func(list []float64) { of = list })
				}
			}
			dir := filepath.Join("../../fixtures/wild/quantised", file)
			settings, err := os.ReadFile(filepath.Join(dir, "config.json"))
			must(t, err)
			local := writePort(t, string(settings), append(checkpointOf(t, filepath.Join(dir, "model.safetensors")), tt.port...), func(c map[string]*checkpointtest.Tensor) {
				if tt.plant != nil {
					bfloatsOf(c[norm], func(list []float64) { tt.plant(list, of) })
				}
			})
			if exit, out := weigh(t, local, model); exit != 1 || !strings.Contains(out, tt.says) {
				t.Errorf("%s, %s: exit %d:\n%s", file, tt.name, exit, out)
			}
		}
	}
	for _, file := range []string{"llmcompressor-gptq", "mlx-gptq"} { // GPTQ makes no factors
		model := writePort(t, string(config), append(slices.Clone(original), router), nil)
		dir := filepath.Join("../../fixtures/wild/quantised", file)
		settings, err := os.ReadFile(filepath.Join(dir, "config.json"))
		must(t, err)
		local := writePort(t, string(settings), append(checkpointOf(t, filepath.Join(dir, "model.safetensors")), router), nil)
		if exit, out := weigh(t, local, model); exit != 0 {
			t.Errorf("%s: exit %d:\n%s", file, exit, out)
		}
	}
}
