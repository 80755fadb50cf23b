package portweights

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// tinyModel is a model of one layer, and its tensors by name.
func tinyModel(t *testing.T) (dir string, all map[string]hooks.Tensor) {
	t.Helper()
	wants := []checkpoint.Want{
		{Name: "embed_tokens.weight", Shape: []int{12, 8}},
		{Name: "layers.0.input_layernorm.weight", Shape: []int{8}},
		{Name: "layers.0.self_attn.q_proj.weight", Shape: []int{8, 8}},
		{Name: "layers.0.self_attn.k_proj.weight", Shape: []int{4, 8}},
		{Name: "layers.0.self_attn.v_proj.weight", Shape: []int{4, 8}},
		{Name: "layers.0.mlp.gate_proj.weight", Shape: []int{16, 8}},
		{Name: "layers.0.mlp.up_proj.weight", Shape: []int{16, 8}},
	}
	list := checkpointtest.Random(wants, hooks.F32, "model.", 3)
	all = map[string]hooks.Tensor{}
	for _, x := range list {
		all[x.Name] = x.Tensor
	}
	config := []byte(`{"hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 12}`)
	return checkpointtest.Write(t, t.TempDir(), config, list, 1), all
}

// stacked are tensors behind each other along the first axis.
func stacked(parts ...hooks.Tensor) hooks.Tensor {
	out := hooks.Tensor{DType: parts[0].DType, Shape: slices.Clone(parts[0].Shape)}
	out.Shape[0] = 0
	for _, p := range parts {
		out.Shape[0] += p.Shape[0]
		out.Data = append(out.Data, p.Data...)
	}
	return out
}

// each changes every element.
func each(x hooks.Tensor, f func(float32) float32) hooks.Tensor {
	out := hooks.Tensor{DType: hooks.F32, Shape: x.Shape}
	for i := 0; i < len(x.Data); i += 4 {
		v := f(math.Float32frombits(binary.LittleEndian.Uint32(x.Data[i:])))
		out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(v))
	}
	return out
}

// turnedOver is a matrix transposed.
func turnedOver(x hooks.Tensor) hooks.Tensor {
	rows, cols := x.Shape[0], x.Shape[1]
	out := hooks.Tensor{DType: x.DType, Shape: []int{cols, rows}, Data: make([]byte, len(x.Data))}
	for r := range rows {
		for c := range cols {
			copy(out.Data[4*(c*rows+r):][:4], x.Data[4*(r*cols+c):][:4])
		}
	}
	return out
}

// A port's weights have the original's names and layouts, whatever its file has: each case changes the file, and the numbers stay.
func TestWeightsOfAPortHaveTheOriginalsLayout(t *testing.T) {
	const layer = "model.layers.0."
	tests := []struct {
		name  string
		table string // of the map
		file  func(m map[string]hooks.Tensor)
		err   string // what the error has; empty: the port's weights are the original's
	}{
		{name: "as it is", file: func(map[string]hooks.Tensor) {}},
		{name: "fused query, key and value, and gate and up", file: func(m map[string]hooks.Tensor) {
			m[layer+"self_attn.qkv_proj.weight"] = stacked(m[layer+"self_attn.q_proj.weight"], m[layer+"self_attn.k_proj.weight"], m[layer+"self_attn.v_proj.weight"])
			m[layer+"mlp.gate_up_proj.weight"] = stacked(m[layer+"mlp.gate_proj.weight"], m[layer+"mlp.up_proj.weight"])
			for _, n := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"} {
				delete(m, layer+n+".weight")
			}
		}},
		{name: "a padded vocabulary", file: func(m map[string]hooks.Tensor) {
			e := m["model.embed_tokens.weight"]
			m["model.embed_tokens.weight"] = stacked(e, hooks.Tensor{DType: e.DType, Shape: []int{4, 8}, Data: make([]byte, 4*4*8)})
		}},
		{name: "a head that is the embedding", file: func(m map[string]hooks.Tensor) { m["lm_head.weight"] = m["model.embed_tokens.weight"] }},
		{name: "transposed, as the map says", table: `"model.layers.{L}.mlp.up_proj.weight" = { to = "model.layers.{L}.mlp.up_proj.weight", axes = "i o -> o i" }`, file: func(m map[string]hooks.Tensor) {
			m[layer+"mlp.up_proj.weight"] = turnedOver(m[layer+"mlp.up_proj.weight"])
		}},
		{name: "1+w, as the map says", table: `"norm.{L}" = { to = "model.layers.{L}.input_layernorm.weight", folded = "1+w" }`, file: func(m map[string]hooks.Tensor) {
			// Numbers of which 1+w has every bit.
			w := each(m[layer+"input_layernorm.weight"], func(x float32) float32 { return float32(math.Round(float64(x)*1024)) / 1024 })
			m[layer+"input_layernorm.weight"] = w
			m["norm.0"] = each(w, func(x float32) float32 { return 1 + x })
		}},
		{name: "a missing tensor", file: func(m map[string]hooks.Tensor) { delete(m, layer+"mlp.up_proj.weight") }, err: "port.safetensors has no tensor for model.layers.0.mlp.up_proj.weight"},
		{name: "other names", file: func(m map[string]hooks.Tensor) {
			for n, x := range m {
				delete(m, n)
				m["w/"+strings.TrimPrefix(n, "model.")] = x
			}
		}, err: "has no tensor of the original"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, all := tinyModel(t)
			tt.file(all)
			want := map[string]hooks.Tensor{}
			if _, folded := all["norm.0"]; folded { // without 1 it is there for the test alone
				want[layer+"input_layernorm.weight"] = all[layer+"input_layernorm.weight"]
				delete(all, layer+"input_layernorm.weight")
			}
			ck, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer ck.Close()
			folder := t.TempDir()
			var list []checkpointtest.Tensor
			for n, x := range all {
				list = append(list, checkpointtest.Tensor{Name: n, Tensor: x})
			}
			s := &settings.Settings{Weights: filepath.Join(folder, "port.safetensors")}
			if err := os.WriteFile(s.Weights, checkpointtest.File(list), 0o666); err != nil {
				t.Fatal(err)
			}
			if tt.table != "" {
				s.Map = filepath.Join(folder, "map.toml")
				if err := os.WriteFile(s.Map, []byte("[weights]\n"+tt.table+"\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			p, err := Open(context.Background(), &settings.Env{Notes: io.Discard, Errors: io.Discard}, s, folder, ck)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, originals := tinyModel(t)
			for n, x := range originals {
				if w, ok := want[n]; ok {
					x = w
				}
				got, ok := p.Checkpoint.Tensor(strings.TrimPrefix(n, "model."))
				if !ok || !slices.Equal(got.Shape, x.Shape) || got.DType != x.DType || !bytes.Equal(got.Data, x.Data) {
					t.Errorf("%s is %v %s", n, got.Shape, got.DType)
				}
			}
			if _, ok := p.Checkpoint.Tensor("lm_head.weight"); ok {
				t.Error("there is a head that the original has not")
			}
		})
	}
}

// What was read of a port is read again when its file changes, and not before.
func TestWeightsOfAPortAreReadAgainWhenTheyChange(t *testing.T) {
	dir, all := tinyModel(t)
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	folder := t.TempDir()
	s := &settings.Settings{Weights: filepath.Join(folder, "port.safetensors")}
	open := func(scale float32) (digest string, wrong int) {
		t.Helper()
		var list []checkpointtest.Tensor
		for _, n := range slices.Sorted(maps.Keys(all)) {
			list = append(list, checkpointtest.Tensor{Name: n, Tensor: each(all[n], func(x float32) float32 { return x * scale })})
		}
		if err := os.WriteFile(s.Weights, checkpointtest.File(list), 0o666); err != nil {
			t.Fatal(err)
		}
		p, err := Open(context.Background(), &settings.Env{Notes: io.Discard, Errors: io.Discard}, s, folder, ck)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		return p.Checkpoint.Digest(), p.Counts.Wrong
	}
	first, wrong := open(1)
	if wrong != 0 {
		t.Errorf("%d tensors are wrong, and all are copies", wrong)
	}
	if again, _ := open(1); again != first {
		t.Error("the same file gives other weights")
	}
	other, wrong := open(2)
	if other == first || wrong != len(all) {
		t.Errorf("doubled weights have the same digest (%v), or are right (%d wrong of %d)", other == first, wrong, len(all))
	}
	kept, err := filepath.Glob(filepath.Join(folder, tracefolder.PortsFolder, "*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("%v %v, want the weights of the file as it is now alone", kept, err)
	}
}

// What was read of several files is read again when any of them changes, whichever was named.
func TestWeightsOfSeveralFilesAreReadAgain(t *testing.T) {
	for named, files := range map[string][]string{
		"w-00001-of-00002.gguf":        {"w-00001-of-00002.gguf", "w-00002-of-00002.gguf"},
		"model.safetensors.index.json": {"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"},
	} {
		folder, original := t.TempDir(), t.TempDir()
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		key := func() string {
			t.Helper()
			k, err := portKey(checkpoint.NewDigests(""), &openedWeights{path: filepath.Join(folder, named)}, original)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		before := key()
		if key() != before {
			t.Errorf("%s: the same files have two keys", named)
		}
		last := filepath.Join(folder, files[len(files)-1])
		if err := os.WriteFile(last, []byte("changed"), 0o666); err != nil {
			t.Fatal(err)
		}
		if key() == before {
			t.Errorf("%s: %s changed, and the key is the same", named, last)
		}
	}
}

// A head of the port's own, where the model has one tensor for it and the embedding, is said wherever it is another one.
func TestOwnHeadOfAPort(t *testing.T) {
	dir, all := tinyModel(t)
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	for want, head := range map[string]hooks.Tensor{
		"":               all["model.embed_tokens.weight"],
		"lm_head.weight": each(all["model.embed_tokens.weight"], func(x float32) float32 { return x * 1.25 }),
	} {
		list := []checkpointtest.Tensor{{Name: "lm_head.weight", Tensor: head}}
		for _, n := range slices.Sorted(maps.Keys(all)) {
			list = append(list, checkpointtest.Tensor{Name: n, Tensor: all[n]})
		}
		folder := t.TempDir()
		s := &settings.Settings{Weights: filepath.Join(folder, "port.safetensors")}
		if err := os.WriteFile(s.Weights, checkpointtest.File(list), 0o666); err != nil {
			t.Fatal(err)
		}
		p, err := Open(context.Background(), &settings.Env{Notes: io.Discard, Errors: io.Discard}, s, folder, ck)
		if err != nil {
			t.Fatal(err)
		}
		if p.Head != want {
			t.Errorf("the head is %q, want %q", p.Head, want)
		}
		written, ok := p.Checkpoint.Tensor("lm_head.weight")
		if _, own := p.Stored["lm_head.weight"]; own != (want != "") || ok != own || ok && !bytes.Equal(written.Data, head.Data) {
			t.Errorf("a head is there (%v) and known (%v), want %q", ok, own, want)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A tensor that the original has as one and the port as several is put together again.
func TestWeightsOfAPortAreJoinedAsTheOriginalHasThem(t *testing.T) {
	_, all := tinyModel(t)
	const q, k, v = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight"
	const fused = "model.layers.0.self_attn.qkv_proj.weight"
	whole := stacked(all[q], all[k], all[v])
	original, port := []checkpointtest.Tensor{{Name: fused, Tensor: whole}}, []checkpointtest.Tensor{}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		port = append(port, checkpointtest.Tensor{Name: n, Tensor: all[n]})
		if n != q && n != k && n != v {
			original = append(original, checkpointtest.Tensor{Name: n, Tensor: all[n]})
		}
	}
	folder := t.TempDir()
	ck, err := checkpoint.Open(checkpointtest.Write(t, t.TempDir(), []byte(`{"hidden_size": 8}`), original, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	s := &settings.Settings{Weights: filepath.Join(folder, "port.safetensors")}
	if err := os.WriteFile(s.Weights, checkpointtest.File(port), 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := Open(context.Background(), &settings.Env{Notes: io.Discard, Errors: io.Discard}, s, folder, ck)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, ok := p.Checkpoint.Tensor(strings.TrimPrefix(fused, "model."))
	if !ok || !slices.Equal(got.Shape, whole.Shape) || !bytes.Equal(got.Data, whole.Data) {
		t.Errorf("%v, %v, want %v", ok, got.Shape, whole.Shape)
	}
}
