package noise

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/order/ordertest"
)

// The floor of bfloat16 is that of its rounding: a few thousandths, nothing where no rounding takes place, and a
// thousandth of it in float32.
func TestNoiseFloorIsThatOfTheDType(t *testing.T) {
	ck, list := ordertest.Embedded(t, origin.Embedded)
	floors := map[hooks.DType]*gate.NoiseFloor{}
	for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
		path := filepath.Join(t.TempDir(), "floor.json")
		err := Write(context.Background(), nil, reference.Job{
			Checkpoint: ck, List: list, DType: dtype, Passes: [][]int{{2, 513, 88, 17, 301}, {7}},
			Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
		}, nil, path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if floors[dtype], err = gate.ParseNoiseFloor(data); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
	for name, limits := range map[string][2]float64{
		"embed_tokens.lookup": {0, 0}, "embed_tokens": {1e-4, 4e-3}, "layers.0.input_layernorm": {1e-3, 2e-2},
		"pass1/layers.4.self_attn.probs_f32": {1e-4, 1e-1}, "pass1/logits": {1e-3, 1e-1},
	} {
		bf16, ok := floors[hooks.BF16].Entries[name]
		if !ok || !(float64(bf16.RelL2) >= limits[0]) || !(float64(bf16.RelL2) <= limits[1]) {
			t.Errorf("bfloat16 %s: %v %v, want within %v", name, ok, bf16.RelL2, limits)
		}
		if f32 := floors[hooks.F32].Entries[name]; limits[0] > 0 && !(f32.RelL2 > 0 && f32.RelL2 < bf16.RelL2/1000) {
			t.Errorf("float32 %s: %v, bfloat16 %v", name, f32.RelL2, bf16.RelL2)
		}
	}
	if _, ok := floors[hooks.BF16].Entries["input_ids"]; ok {
		t.Error("token ids have a floor")
	}
}

// The floor is the same whether the walk with every rounding point is walked for it or was before, also with a pass that it decoded.
func TestNoiseFloorOfAWalkThatIsThere(t *testing.T) {
	ck, list := ordertest.Embedded(t, origin.Embedded)
	dir := t.TempDir()
	j := reference.Job{
		Checkpoint: ck, List: list, DType: hooks.BF16, Passes: [][]int{{2, 513, 88}}, NewTokens: 1,
		Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}}, Path: filepath.Join(dir, "walk.safetensors"),
	}
	out, err := reference.Walk(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	walk, err := capture.Open(j.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer walk.Close()
	j.Passes, j.NewTokens = out.Passes, 0
	var floors [2][]byte
	for i, rounded := range []*capture.Trace{nil, walk} {
		path := filepath.Join(dir, "floor.json")
		if err := Write(context.Background(), nil, j, rounded, path); err != nil {
			t.Fatal(err)
		}
		if floors[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(floors[0], floors[1]) || !bytes.Contains(floors[0], []byte("pass1/logits")) {
		t.Errorf("%s\nand of the walk that was there\n%s", floors[0], floors[1])
	}
}
