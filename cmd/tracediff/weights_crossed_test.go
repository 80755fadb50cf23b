package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/gguf/gguftest"
)

const tinyLlama = "../../fixtures/llama-tiny"

// llamaNames are names of llama.cpp for modules of a layer.
var llamaNames = map[string]string{
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
	"self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}

// llamaFile writes the tiny Llama as llama.cpp's converter does, in float32: rows of query and key, which have heads of 8, are permuted for pairs of
// neighbours. change is given every tensor by its name in the file, and returns the name that it is written under.
func llamaFile(t *testing.T, change func(name string, rows [][]float32) string) string {
	t.Helper()
	b := (&gguftest.Builder{}).Text("general.architecture", "llama")
	for _, x := range checkpointOf(t, tinyLlama+"/model.safetensors") {
		name := strings.TrimPrefix(x.Name, "model.")
		for from, to := range map[string]string{"embed_tokens": "token_embd", "lm_head": "output"} {
			name = strings.Replace(name, from+".", to+".", 1)
		}
		if name == "norm.weight" {
			name = "output_norm.weight"
		}
		for from, to := range llamaNames {
			name = strings.Replace(name, from+".", to+".", 1)
		}
		name = strings.Replace(name, "layers.", "blk.", 1)
		columns := 1
		sizes := []uint64{uint64(x.Shape[0])}
		if len(x.Shape) == 2 {
			columns = x.Shape[1]
			sizes = []uint64{uint64(columns), uint64(x.Shape[0])}
		}
		rows := make([][]float32, x.Shape[0])
		for i := range rows {
			at := i
			if strings.Contains(name, "attn_q.") || strings.Contains(name, "attn_k.") {
				at = i/8*8 + i%2*4 + i%8/2
			}
			for c := range columns {
				rows[i] = append(rows[i], floats.FromBF16(binary.LittleEndian.Uint16(x.Data[2*(at*columns+c):])))
			}
		}
		name = change(name, rows)
		var data []byte
		for _, r := range rows {
			for _, v := range r {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			}
		}
		b.Tensor(name, 0, data, sizes...)
	}
	path := filepath.Join(t.TempDir(), "port.gguf")
	must(t, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

// exchanged gives two names to each other's tensors.
func exchanged(a, b string) func(string, [][]float32) string {
	return func(name string, _ [][]float32) string {
		switch {
		case strings.Contains(name, a):
			return strings.Replace(name, a, b, 1)
		case strings.Contains(name, b):
			return strings.Replace(name, b, a, 1)
		}
		return name
	}
}

// TestNamesCrossedInGGUF: a tensor under another's name has the layout of its own one, which the converter gave it before.
func TestNamesCrossedInGGUF(t *testing.T) {
	tests := []struct {
		name   string
		change func(string, [][]float32) string
		says   []string
	}{
		{"k and v", exchanged("attn_k.weight", "attn_v.weight"), []string{
			"MISTAKE model.layers.{0-2}.self_attn.k_proj.weight, model.layers.{0-2}.self_attn.v_proj.weight (6 tensors)\n", "found  k_proj and v_proj have changed places\n", "6 of 51 tensors are wrong",
		}},
		{"k and v with biases", exchanged("attn_k.", "attn_v."), []string{"(12 tensors)\n", "found  k_proj and v_proj have changed places\n"}},
		{"q and output", exchanged("attn_q.weight", "attn_output.weight"), []string{"found  o_proj and q_proj have changed places\n"}},
		{"q and k, of one layout", exchanged("attn_q.weight", "attn_k.weight"), []string{"found  k_proj and q_proj have changed places\n"}},
		{"k and v of one layer", func(name string, rows [][]float32) string {
			if strings.HasPrefix(name, "blk.1.") {
				return exchanged("attn_k.weight", "attn_v.weight")(name, rows)
			}
			return name
		}, []string{"MISTAKE model.layers.1.self_attn.k_proj.weight, model.layers.1.self_attn.v_proj.weight (2 tensors)\n"}},
		{"k and v, gate and up", func(name string, rows [][]float32) string {
			return exchanged("ffn_gate.weight", "ffn_up.weight")(exchanged("attn_k.weight", "attn_v.weight")(name, rows), rows)
		}, []string{"(12 tensors)\n", "in model.layers.{0-2}.mlp.gate_proj.weight, model.layers.{0-2}.mlp.up_proj.weight (6 tensors): gate_proj and up_proj have changed places", "k_proj and v_proj have changed places"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exit, out := weigh(t, llamaFile(t, tt.change), tinyLlama)
			wrongWeights(t, exit, out, tt.says)
			if n := strings.Count(out, "\n  found  "); n != 1 {
				t.Errorf("%d findings in\n%s", n, out)
			}
		})
	}
	if exit, out := weigh(t, llamaFile(t, func(name string, _ [][]float32) string { return name }), tinyLlama); exit != 0 {
		t.Errorf("the right file: exit %d\n%s", exit, out)
	}
}

// TestKeyAndValueCrossedInCodes has the file of ggml as one of the architecture llama: rows of query and key are permuted, codes with them.
func TestKeyAndValueCrossedInCodes(t *testing.T) {
	for _, file := range []string{"wide.Q8_0.gguf", "wide.Q6_K.gguf", "wide.Q4_K.gguf"} {
		t.Run(file, func(t *testing.T) {
			path := spoiltGGUF(t, file, func(at func(string) []byte) {
				for name, rows := range map[string]int{"blk.0.attn_q.weight": 64, "blk.0.attn_k.weight": 32} {
					x := at(name)
					row := len(x) / rows
					was := bytes.Clone(x)
					for i := range rows {
						copy(x[i*row:(i+1)*row], was[(i/32*32+i%2*16+i%32/2)*row:])
					}
				}
			})
			data, err := os.ReadFile(path)
			must(t, err)
			data = bytes.Replace(data, []byte("qwen3"), []byte("llama"), 1)
			must(t, os.WriteFile(path, data, 0o666))
			if exit, out := weigh(t, path, wideModel); exit != 0 {
				t.Fatalf("the right file: exit %d\n%s", exit, out)
			}
			data = bytes.Replace(bytes.Replace(data, []byte("attn_k.weight"), []byte("attn_x.weight"), 1), []byte("attn_v.weight"), []byte("attn_k.weight"), 1)
			must(t, os.WriteFile(path, bytes.Replace(data, []byte("attn_x.weight"), []byte("attn_v.weight"), 1), 0o666))
			exit, out := weigh(t, path, wideModel)
			wrongWeights(t, exit, out, []string{"MISTAKE model.layers.0.self_attn.k_proj.weight, model.layers.0.self_attn.v_proj.weight (2 tensors)\n", "found  k_proj and v_proj have changed places\n"})
		})
	}
}

// TestPlacesAreThoseOfTheFile: a person looks the row and the value up in the file that was named.
func TestPlacesAreThoseOfTheFile(t *testing.T) {
	var near float32
	llama := llamaFile(t, func(name string, rows [][]float32) string {
		if name == "blk.1.attn_k.weight" { // row 11 of the file is row 13 of the original: of the second head, the second of pair 1
			near = math.Nextafter32(rows[11][2], 100)
			rows[11][2] = near
		}
		if name == "blk.2.attn_q.weight" {
			clear(rows[3])
		}
		return name
	})
	exit, out := weigh(t, llama, tinyLlama)
	original := checkpointOf(t, tinyLlama+"/model.safetensors")
	value := func(name string, row, column int) string {
		for _, x := range original {
			if x.Name == name {
				return fmt.Sprint(floats.FromBF16(binary.LittleEndian.Uint16(x.Data[2*(row*x.Shape[1]+column):])))
			}
		}
		t.Fatal(name)
		return ""
	}
	wrongWeights(t, exit, out, []string{
		fmt.Sprintf("\n  first  row 11, column 2 of blk.1.attn_k.weight: %v, where the original has %s in row 13, column 2\n", near, value("model.layers.1.self_attn.k_proj.weight", 13, 2)),
		"  found  row 5: zero; every other element is right\n  first  row 3, column 0 of blk.2.attn_q.weight: 0, where the original has " + value("model.layers.2.self_attn.q_proj.weight", 5, 0) +
			" in row 5, column 0\n  note   rows are counted as in the original; the port's file has them in other places\n",
	})

	// A transposed matrix, by a map, and the parts of one that is fused.
	port := checkpointOf(t, tinyLlama+"/model.safetensors")
	var gate, up *checkpointtest.Tensor
	for i := range port {
		x := &port[i]
		switch x.Name {
		case "model.layers.0.self_attn.o_proj.weight":
			was := bytes.Clone(x.Data)
			for r := range 16 {
				for c := range 16 {
					copy(x.Data[2*(r*16+c):][:2], was[2*(c*16+r):])
				}
			}
			copy(x.Data[2*(3*16+7):], []byte{0x20, 0x40}) // 2.5
		case "model.layers.2.mlp.gate_proj.weight":
			gate = x
		case "model.layers.2.mlp.up_proj.weight":
			up = x
		}
	}
	fused := checkpointtest.Tensor{Name: "model.layers.2.mlp.gate_up_proj.weight", Tensor: hooks.Tensor{DType: hooks.BF16, Shape: []int{80, 16}, Data: append(bytes.Clone(gate.Data), up.Data...)}}
	copy(fused.Data[2*((40+9)*16+5):], []byte{0x20, 0x40})
	up.Data, gate.Name = nil, "" // in the fused one
	list := []checkpointtest.Tensor{fused}
	for _, x := range port {
		if x.Name != "" && x.Data != nil {
			list = append(list, x)
		}
	}
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/port.safetensors", checkpointtest.File(list), 0o666))
	must(t, os.WriteFile(dir+"/map.toml", []byte("[weights]\n\"model.layers.0.self_attn.o_proj.weight\" = { to = \"model.layers.0.self_attn.o_proj.weight\", axes = \"i o -> o i\" }\n"), 0o666))
	exit, out = weigh(t, dir+"/port.safetensors", tinyLlama, "--map", dir+"/map.toml")
	o := fmt.Sprintf("first  row 3, column 7 of model.layers.0.self_attn.o_proj.weight: 2.5, where the original has %s in row 7, column 3\n", value("model.layers.0.self_attn.o_proj.weight", 7, 3))
	u := fmt.Sprintf("row 49, column 5 of model.layers.2.mlp.gate_up_proj.weight: 2.5, where the original has %s in row 9, column 5", value("model.layers.2.mlp.up_proj.weight", 9, 5))
	wrongWeights(t, exit, out, []string{o, "(2 tensors)"})
	_, out = weigh(t, dir+"/port.safetensors", tinyLlama, "--map", dir+"/map.toml", "--format", "junit")
	if !strings.Contains(out, u) {
		t.Errorf("want %q in\n%s", u, out)
	}
}
