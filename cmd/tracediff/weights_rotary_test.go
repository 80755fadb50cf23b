package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// TestFrequenciesAreThoseOfTheConfiguration: what a port has beside the weights for its rotary pairs is held to config.json.
func TestFrequenciesAreThoseOfTheConfiguration(t *testing.T) {
	const llama, gemma, qwen = "llama-tiny", "gemma3-tiny", "qwen3-tiny"
	turns := func(theta float64, pairs int, factor float64) []float64 {
		var list []float64
		for i := range pairs {
			list = append(list, math.Pow(theta, -float64(i)/float64(pairs))/factor)
		}
		return list
	}
	// llama-tiny scales the frequencies as Llama 3 does, by 4, between wavelengths of 8/1.2 and 8/0.2.
	plain, scaled, divisors := turns(100, 4, 1), turns(100, 4, 1), make([]float64, 4)
	for i, f := range plain {
		switch wave := 2 * math.Pi / f; {
		case wave > 8/0.2:
			scaled[i] = f / 4
		case wave >= 8/1.2:
			smooth := (8/wave - 0.2) / (1.2 - 0.2)
			scaled[i] = (1-smooth)*f/4 + smooth*f
		}
		divisors[i] = f / scaled[i]
	}
	table := func(of func(float64) float64, list []float64, positions int) []float64 { // halves
		var all []float64
		for p := range positions {
			for range 2 {
				for _, f := range list {
					all = append(all, of(float64(p)*f))
				}
			}
		}
		return all
	}
	pairs := func(of func(float64) float64, list []float64, positions int) []float64 { // neighbours
		var all []float64
		for p := range positions {
			for _, f := range list {
				all = append(all, of(float64(p)*f), of(float64(p)*f))
			}
		}
		return all
	}
	near := slices.Clone(scaled)
	near[2] *= 1.00002
	tests := []struct {
		name, model, tensor string
		dtype               hooks.DType
		shape               []int
		values              []float64
		right               bool
		says                string
	}{
		{"frequencies", llama, "model.layers.0.self_attn.rotary_emb.inv_freq", hooks.F32, []int{4}, scaled, true, "it has what the configuration gives"},
		{"frequencies in bfloat16", llama, "model.rotary_emb.inv_freq", hooks.BF16, []int{4}, scaled, true, "it has what the configuration gives"},
		{"small frequencies in float16", gemma, "model.layers.1.self_attn.rotary_emb.inv_freq", hooks.F16, []int{3}, turns(1e6, 3, 8), true, "it has what the configuration gives"},
		{"frequencies without the scaling", llama, "model.layers.0.self_attn.rotary_emb.inv_freq", hooks.F32, []int{4}, plain, false, "of element "},
		{"a frequency that is off by 2e-5", llama, "model.rotary_emb.inv_freq", hooks.F32, []int{4}, near, false, "of element 2"},
		{"frequencies of another size", llama, "model.rotary_emb.inv_freq", hooks.F32, []int{3}, scaled[:3], false, "it has 3 elements"},
		{"divisors", llama, "rope_freqs.weight", hooks.F32, []int{4}, divisors, true, "it has what the configuration gives"},
		{"divisors that are all 1", llama, "rope_freqs.weight", hooks.F32, []int{4}, []float64{1, 1, 1, 1}, false, "the first is 1, of element "},
		{"divisors that the configuration rules out", qwen, "rope_freqs.weight", hooks.F32, []int{6}, []float64{1, 1, 1, 1, 2, 4}, false, "the first is 2, of element 4"},
		{"divisors of 1 where nothing is scaled", qwen, "rope_freqs.weight", hooks.F32, []int{6}, []float64{1, 1, 1, 1, 1, 1}, true, "it has what the configuration gives"},
		{"cosines", llama, "model.layers.1.self_attn.rotary_emb.cos_cached", hooks.F32, []int{1, 1, 40, 8}, table(math.Cos, scaled, 40), true, "it has what the configuration gives"},
		{"sines of neighbours", llama, "model.layers.1.self_attn.rotary_emb.sin_cached", hooks.F32, []int{40, 8}, pairs(math.Sin, scaled, 40), true, "it has what the configuration gives"},
		{"cosines for sines", llama, "model.layers.1.self_attn.rotary_emb.sin_cached", hooks.F32, []int{40, 8}, table(math.Cos, scaled, 40), false, "of element 0"},
		{"cosines from position 1 on", llama, "model.layers.1.self_attn.rotary_emb.cos_cached", hooks.F32, []int{39, 8}, table(math.Cos, scaled, 40)[8:], false, "of element 0"},
		{"a layer with a window", gemma, "model.layers.0.self_attn.rotary_emb.inv_freq", hooks.F32, []int{3}, turns(1e4, 3, 1), true, "it has what the configuration gives"},
		{"a layer with a window, the other frequencies", gemma, "model.layers.0.self_attn.rotary_emb.inv_freq", hooks.F32, []int{3}, turns(1e6, 3, 8), false, "of element 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := "../../fixtures/" + tt.model
			data := f32s(tt.values)
			switch tt.dtype {
			case hooks.F16:
				data = f16s(tt.values)
			case hooks.BF16:
				data = nil
				for i := range tt.values {
					bits := math.Float32bits(float32(tt.values[i]))
					bits += 0x7fff + bits>>16&1
					data = append(data, byte(bits>>16), byte(bits>>24))
				}
			}
			list := append(checkpointOf(t, model+"/model.safetensors"), part(tt.tensor, tt.dtype, data, tt.shape...))
			local := filepath.Join(t.TempDir(), "port.safetensors")
			must(t, os.WriteFile(local, checkpointtest.File(list), 0o666))
			exit, out := weigh(t, local, model)
			want := map[bool]string{true: fmt.Sprintf("note: %s is not compared: ", tt.tensor), false: "EXTRA " + tt.tensor}[tt.right]
			if exit != map[bool]int{true: 0, false: 1}[tt.right] || !strings.Contains(out, want) || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d\n%s", exit, out)
			}
		})
	}
}
