package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
)

// upOf is the matrix mlp.up_proj of the wide checkpoint, 64 rows of 256.
func upOf(t *testing.T) []float64 {
	t.Helper()
	for _, x := range checkpointOf(t, wideModel+"/model.safetensors") {
		if x.Name == "model.layers.0.mlp.up_proj.weight" {
			w := make([]float64, 64*256)
			must(t, floats.Decode(w, x.DType, x.Data))
			return w
		}
	}
	t.Fatal("no up_proj")
	return nil
}

// wider gives a block of Q8_0 a scale that is so many times the best, and the nearest codes over it.
func wider(block []byte, x []float64, by float64) {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	bits := floats.F16(float32(most / 127 * by))
	binary.LittleEndian.PutUint16(block, bits)
	for i, v := range x {
		block[2+i] = byte(int8(math.Round(v / float64(floats.FromF16(bits)))))
	}
}

// wider4K makes the first of the scales of a block of Q4_K 1.5 times as large, and chooses the nearest codes over it.
func wider4K(t *testing.T, block []byte, x []float64) {
	scale := block[4] & 63
	if scale > 42 {
		t.Fatalf("the scale is %d", scale)
	}
	block[4] = block[4]&0xc0 | scale*3/2
	d, least := float64(floats.FromF16(binary.LittleEndian.Uint16(block))), float64(floats.FromF16(binary.LittleEndian.Uint16(block[2:])))
	step, offset := d*float64(block[4]&63), least*float64(block[8]&63)
	for i, v := range x[:32] {
		q := min(max(math.Round((v+offset)/step), 0), 15)
		block[16+i] = block[16+i]&0xf0 | byte(q)
	}
}

// TestScalesThatAreNotTheBestAreANote: they are legal, and cost accuracy. The note says how much, and where.
func TestScalesThatAreNotTheBestAreANote(t *testing.T) {
	up := upOf(t)
	const name, block = "model.layers.0.mlp.up_proj.weight: ", "blk.0.ffn_up.weight"
	const r4 = 12 // a row whose first scale in Q4_K leaves room
	tests := []struct {
		name  string
		local func(t *testing.T) string
		note  []string // nil: there is none
	}{
		{"Q8_0, one block 1.5 times as wide", func(t *testing.T) string {
			return spoiltGGUF(t, "wide.Q8_0.gguf", func(at func(string) []byte) { wider(at(block)[(5*8+3)*34:][:34], up[5*256+96:][:32], 1.5) })
		}, []string{"1 of 512 groups of 32 have scales that are not the best", "row 5, columns 96 to 127", "1.7 times as large"}},
		{"Q8_0, all 1.1 times as wide", func(t *testing.T) string {
			return spoiltGGUF(t, "wide.Q8_0.gguf", func(at func(string) []byte) {
				for i := range 512 {
					wider(at(block)[i*34:][:34], up[i*32:][:32], 1.1)
				}
			})
		}, []string{"512 of 512 groups of 32 have scales that are not the best, which adds 0.0008 to the relative L2 distance"}},
		{"Q8_0, all 0.2 % as wide", func(t *testing.T) string {
			return spoiltGGUF(t, "wide.Q8_0.gguf", func(at func(string) []byte) {
				for i := range 512 {
					wider(at(block)[i*34:][:34], up[i*32:][:32], 1.002)
				}
			})
		}, nil},
		{"Q4_K, one group wider", func(t *testing.T) string {
			return spoiltGGUF(t, "wide.Q4_K.gguf", func(at func(string) []byte) { wider4K(t, at(block)[r4*144:][:144], up[r4*256:]) })
		}, []string{"1 of 512 groups of 32 have scales that are not the best", fmt.Sprintf("row %d, columns 0 to 31", r4)}},
		{"int8 by row, 1.3 times as wide", func(t *testing.T) string {
			return packedPort(t, "{}", int8By(".scales", 127, 1, 1.3), nil)
		}, []string{"64 of 64 groups of 256 have scales that are not the best"}},
		{"MLX, a group with a wider scale", func(t *testing.T) string {
			return mlxWider(t, up)
		}, []string{"1 of 256 groups of 64 have scales that are not the best", "row 2, columns 0 to 63"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exit, out := weigh(t, tt.local(t), wideModel)
			if exit != 0 || !strings.Contains(out, "\nMATCH: ") {
				t.Errorf("exit %d\n%s", exit, out)
			}
			if tt.note == nil && strings.Contains(out, "note: ") {
				t.Errorf("a note:\n%s", out)
			}
			for _, word := range tt.note {
				at := strings.Index(out, "note: "+name)
				if at < 0 || !strings.Contains(out[at:], word) {
					t.Errorf("want a note with %q:\n%s", word, out)
				}
			}
		})
	}
}

// mlxWider is the checkpoint of mlx-lm in which the first group of row 2 of up_proj has a step 1.4 times as large, and the nearest codes.
func mlxWider(t *testing.T, up []float64) string {
	config := `{"quantization": {"group_size": 64, "bits": 4}}`
	return writePort(t, config, checkpointOf(t, weightFixtures+"wide.mlx/model.safetensors"), func(c map[string]*checkpointtest.Tensor) {
		const name = "model.layers.0.mlp.up_proj"
		x := up[2*256:][:64]
		low, high := slices.Min(x), slices.Max(x)
		step := float64(floats.RoundBF16(float32((high - low) / 15 * 1.4)))
		bias := float64(floats.RoundBF16(float32(low)))
		binary.LittleEndian.PutUint16(c[name+".scales"].Data[2*2*4:], floats.BF16(float32(step)))
		binary.LittleEndian.PutUint16(c[name+".biases"].Data[2*2*4:], floats.BF16(float32(bias)))
		words := c[name+".weight"].Data[2*128:]
		for i := range 8 {
			var codes []int
			for _, v := range x[8*i : 8*i+8] {
				codes = append(codes, int(min(max(math.Round((v-bias)/step), 0), 15)))
			}
			copy(words[4*i:], nibblesOf(codes, inOrder))
		}
	})
}
