package session_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/session"
)

const wide = "../../fixtures/weights/wide"

// TestGGUFFilesAreHeldToTheOriginal has files of the gguf package and of ggml itself, and files in which a few bytes were changed.
func TestGGUFFilesAreHeldToTheOriginal(t *testing.T) {
	const up, gate, q = "blk.0.ffn_up.weight", "blk.0.ffn_gate.weight", "blk.0.attn_q.weight"
	tests := []struct {
		name, file string
		plant      func(data []byte, at func(string) []byte)
		tensor     string // of the original; empty: nothing is wrong
		class      weights.Class
		kind       weights.Kind
		row        int
	}{
		{name: "Q8_0", file: "wide.Q8_0.gguf"},
		{name: "Q4_K", file: "wide.Q4_K.gguf"},
		{name: "Q6_K", file: "wide.Q6_K.gguf"},
		{"a scale of Q8_0, one exponent up", "wide.Q8_0.gguf", func(_ []byte, at func(string) []byte) { at(up)[(5*8+3)*34+1] += 4 }, "mlp.up_proj.weight", weights.Mistake, weights.ScaledBlock, 5},
		{"a scale of Q8_0, one exponent down", "wide.Q8_0.gguf", func(_ []byte, at func(string) []byte) { at(up)[(5*8+3)*34+1] -= 4 }, "mlp.up_proj.weight", weights.Mistake, weights.ScaledBlock, 5},
		{"a scale of Q8_0 is zero", "wide.Q8_0.gguf", func(_ []byte, at func(string) []byte) { clear(at(up)[(7*8)*34 : (7*8)*34+2]) }, "mlp.up_proj.weight", weights.Mistake, weights.ZeroBlock, 7},
		{"a block of Q8_0 is another's", "wide.Q8_0.gguf", func(_ []byte, at func(string) []byte) { copy(at(up)[9*8*34:], at(up)[20*8*34:20*8*34+34]) }, "mlp.up_proj.weight", weights.Different, weights.WrongBlock, 9},
		{"a row of Q8_0 is the next", "wide.Q8_0.gguf", func(_ []byte, at func(string) []byte) { copy(at(up)[9*8*34:], at(up)[10*8*34:11*8*34]) }, "mlp.up_proj.weight", weights.Different, weights.WrongRows, 9},
		{"a scale of Q6_K, one exponent up", "wide.Q6_K.gguf", func(_ []byte, at func(string) []byte) { at(up)[4*210+209] += 4 }, "mlp.up_proj.weight", weights.Mistake, weights.ScaledRows, 4},
		{"scales of Q4_K are those of another block", "wide.Q4_K.gguf", func(_ []byte, at func(string) []byte) { copy(at(up)[6*144:], at(up)[7*144:7*144+16]) }, "mlp.up_proj.weight", weights.Different, "", 6},
		{"gate for up in Q4_K", "wide.Q4_K.gguf", func(_ []byte, at func(string) []byte) {
			a, b := at(up), at(gate)
			was := slices.Clone(a)
			copy(a, b)
			copy(b, was)
		}, "mlp.up_proj.weight", weights.Mistake, weights.OtherTensor, 0},
		{"query of Q4_K permuted as that of Llama", "wide.Q4_K.gguf", func(_ []byte, at func(string) []byte) {
			x := at(q)
			was, row := slices.Clone(x), 144
			rows := len(x) / row
			d := 64
			for i := range rows {
				from := i/d*d + i%d%2*(d/2) + i%d/2
				copy(x[i*row:(i+1)*row], was[from*row:])
			}
		}, "self_attn.q_proj.weight", weights.Mistake, weights.Interleaved, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(wide), tt.file))
			if err != nil {
				t.Fatal(err)
			}
			g, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			if tt.plant != nil {
				tt.plant(data, func(name string) []byte {
					for _, x := range g.Tensors {
						if x.Name == name {
							return data[x.Offset : x.Offset+x.Size]
						}
					}
					t.Fatalf("no tensor %s", name)
					return nil
				})
			}
			path := filepath.Join(t.TempDir(), "port.gguf")
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			r, err := session.Weights(context.Background(), session.AskedWeights{Local: path, Model: wide})
			if err != nil {
				t.Fatal(err)
			}
			if tt.tensor == "" {
				if !r.Right() || r.Counts.Quantised == 0 {
					t.Errorf("%+v %+v", r.Counts, r.Findings)
				}
				return
			}
			found := false
			for _, row := range r.Tensors {
				if !strings.HasSuffix(row.Name, tt.tensor) {
					continue
				}
				found = true
				if row.Class != tt.class || row.Kind != tt.kind && tt.kind != "" || row.At == nil || row.At.Row != tt.row {
					t.Errorf("%s %s at %+v: %s", row.Class, row.Kind, row.At, row.What)
				}
			}
			if !found {
				t.Errorf("no row for %s", tt.tensor)
			}
		})
	}
}
