package portweights

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// The steps and offsets of a port's codes lie where the original has the rows of the weight, also where the file has several weights as one. Of a weight
// whose columns a map has exchanged there are none.
func TestStepsOfAPort(t *testing.T) {
	const wide, layer = "../../fixtures/weights/wide", "model.layers.0.self_attn."
	projections := []string{"q_proj", "k_proj", "v_proj"}
	tests := []struct {
		name, table string
		fused       bool
		without     string
	}{
		{name: "as mlx-lm writes them"},
		{name: "query, key and value as one", fused: true},
		{name: "rows in another order", table: `"` + layer + `v_proj.weight" = { to = "` + layer + `v_proj.weight", axes = "(a b:4) c -> (b a) c" }`},
		{name: "in columns", table: `"` + layer + `q_proj.weight" = { to = "` + layer + `q_proj.weight", axes = "o (a b:4) -> o (b a)" }`, without: "q_proj"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, err := dump.Open(wide + ".mlx/model.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			all := map[string]hooks.Tensor{}
			for i := range file.Tensors {
				x := &file.Tensors[i]
				data := make([]byte, x.Size())
				if _, err := x.ReadAt(data, 0); err != nil && err != io.EOF {
					t.Fatal(err)
				}
				all[x.Name] = hooks.Tensor{DType: x.DType, Shape: x.Shape, Data: data}
			}
			want := maps.Clone(all)
			for _, part := range []string{".weight", ".scales", ".biases"} {
				if tt.fused {
					all[layer+"qkv_proj"+part] = stacked(all[layer+"q_proj"+part], all[layer+"k_proj"+part], all[layer+"v_proj"+part])
					for _, n := range projections {
						delete(all, layer+n+part)
					}
				}
			}
			var list []checkpointtest.Tensor
			for _, n := range slices.Sorted(maps.Keys(all)) {
				list = append(list, checkpointtest.Tensor{Name: n, Tensor: all[n]})
			}
			folder := t.TempDir()
			s := &settings.Settings{Weights: filepath.Join(folder, "model.safetensors")}
			text, err := os.ReadFile(wide + ".mlx/config.json")
			if err != nil {
				t.Fatal(err)
			}
			write := func(name string, data []byte) string {
				if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
					t.Fatal(err)
				}
				return filepath.Join(folder, name)
			}
			write("config.json", text)
			write("model.safetensors", checkpointtest.File(list))
			if tt.table != "" {
				s.Map = write("map.toml", []byte("[weights]\n"+tt.table+"\n"))
			}
			ck, err := checkpoint.Open(wide)
			if err != nil {
				t.Fatal(err)
			}
			defer ck.Close()
			p, err := Open(context.Background(), &settings.Env{Notes: io.Discard, Errors: io.Discard}, s, folder, ck)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, n := range projections {
				rows, err := p.steps(order.Weight{Name: "layers.0.self_attn." + n + ".weight"})
				if err != nil || (rows == nil) != (n == tt.without) {
					t.Fatalf("%s: there are some: %v, %v", n, rows != nil, err)
				}
				if rows == nil || tt.table != "" && n == "v_proj" {
					continue
				}
				scales, biases := want[layer+n+".scales"], want[layer+n+".biases"]
				groups := scales.Shape[1]
				for row := range scales.Shape[0] {
					got, expect := make([]float64, 2*groups), make([]float64, 2*groups)
					if err := rows.Row(got, row); err != nil {
						t.Fatal(err)
					}
					for i, x := range []hooks.Tensor{scales, biases} {
						if err := floats.Decode(expect[i*groups:][:groups], x.DType, x.Data[2*row*groups:][:2*groups]); err != nil {
							t.Fatal(err)
						}
					}
					if !slices.Equal(got, expect) {
						t.Fatalf("%s, row %d: %v, want %v", n, row, got, expect)
					}
				}
			}
		})
	}
}
