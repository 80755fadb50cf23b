package weights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
)

// fuse puts tensors of layer 1 in one, and gives row i of it the one that from says of those behind each other.
func fuse(c checkpoint, name string, from func(i int) int, parts ...string) *tensor {
	x := &tensor{dtype: c[layer1+parts[0]].dtype, shape: slices.Clone(c[layer1+parts[0]].shape)}
	x.shape[0] = 0
	for _, p := range parts {
		part := c[layer1+p]
		x.values, x.shape[0] = append(x.values, part.values...), x.shape[0]+part.shape[0]
		delete(c, layer1+p)
	}
	x.reorder(from)
	c[layer1+name] = x
	return x
}

// TestPartsInAnotherOrderAreNamed has fused tensors with their parts crossed, in turns, and transposed.
func TestPartsInAnotherOrderAreNamed(t *testing.T) {
	const q, k, v = "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"
	const gate, up = "mlp.gate_proj.weight", "mlp.up_proj.weight"
	const qkv, gateUp = "self_attn.qkv_proj.weight", "mlp.gate_up_proj.weight"
	id := func(i int) int { return i }
	tests := []struct {
		name, model string
		plant       func(c checkpoint)
		kind        weights.Kind
		says        string
		tensor      string
		also        int
	}{
		{"key, query, value", "gemma3-tiny", func(c checkpoint) { fuse(c, qkv, id, k, q, v) }, weights.FusedOrder, "qkv_proj.weight has its parts in the order k_proj, q_proj, v_proj; expected: q_proj, k_proj, v_proj", q, 1},
		{"value, key, query, in float16", "gemma3n-tiny", func(c checkpoint) { fuse(c, qkv, id, v, k, q).cast(hooks.F16) }, weights.FusedOrder, "in the order v_proj, k_proj, q_proj", q, 2},
		{"value, key, query in codes", "gemma3n-tiny", func(c checkpoint) { ggml(quant.Q4_0)(fuse(c, qkv, id, v, k, q)) }, weights.FusedOrder, "in the order v_proj, k_proj, q_proj", q, 2},
		{"equal parts crossed", "llama-tiny", func(c checkpoint) { fuse(c, qkv, id, k, q, v) }, weights.FusedOrder, "in the order k_proj, q_proj, v_proj", q, 1},
		{"up and gate", "gemma3-tiny", func(c checkpoint) { fuse(c, gateUp, id, up, gate) }, weights.FusedOrder, "in the order up_proj, gate_proj; expected: gate_proj, up_proj", gate, 1},
		{"up and gate in codes", "gemma3n-tiny", func(c checkpoint) { ggml(quant.Q8_0)(fuse(c, gateUp, id, up, gate)) }, weights.FusedOrder, "in the order up_proj, gate_proj", gate, 1},
		{"gate and up row by row", "gemma3-tiny", func(c checkpoint) { fuse(c, gateUp, func(i int) int { return i%2*40 + i/2 }, gate, up) }, weights.FusedOrder, "interleaved: 1 of gate_proj, 1 of up_proj, repeated", gate, 1},
		{"up and gate in eighths", "gemma3-tiny", func(c checkpoint) { fuse(c, gateUp, func(i int) int { return i/5%2*40 + i/10*5 + i%5 }, up, gate) }, weights.FusedOrder, "interleaved: 5 of up_proj, 5 of gate_proj", gate, 1},
		{"the three by head", "llama-tiny", func(c checkpoint) { fuse(c, qkv, func(i int) int { return i/8%3*16 + i/24*8 + i%8 }, q, k, v) }, weights.FusedOrder, "interleaved: 8 of q_proj, 8 of k_proj, 8 of v_proj", q, 2},
		{"biases by head", "llama-tiny", func(c checkpoint) {
			const end = ".bias"
			fuse(c, "self_attn.qkv_proj.bias", func(i int) int { return i/8%3*16 + i/24*8 + i%8 }, "self_attn.q_proj"+end, "self_attn.k_proj"+end, "self_attn.v_proj"+end)
		}, weights.FusedOrder, "interleaved: 8 of q_proj, 8 of k_proj, 8 of v_proj", "self_attn.q_proj.bias", 2},
		{"transposed", "gemma3-tiny", func(c checkpoint) { fuse(c, gateUp, id, gate, up).transpose() }, weights.Transposed, "gate_up_proj.weight is transposed", gate, 1},
		{"transposed in codes", "gemma3n-tiny", func(c checkpoint) { x := fuse(c, gateUp, id, gate, up); x.transpose(); affine(x.shape[1], 8, true)(x) }, weights.Transposed, "gate_up_proj.weight is transposed", gate, 1},
		{"one matrix transposed in codes", "gemma3n-tiny", func(c checkpoint) { x := c[layer1+up]; x.transpose(); affine(x.shape[1], 8, true)(x) }, weights.Transposed, "transposed", up, 0},
		{"transposed, and one element more", "gemma3-tiny", func(c checkpoint) { x := fuse(c, gateUp, id, gate, up); x.transpose(); x.values[100]++ }, weights.Shape, "it is a part of model.layers.1.mlp.gate_up_proj.weight, whose shape is", gate, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port, original := open(t, tt.model)
			tt.plant(port)
			r := compare(t, port, original)
			row := find(t, r, layer1+tt.tensor)
			if row.Kind != tt.kind || !strings.Contains(row.What, tt.says) {
				t.Errorf("%s %s: %s", row.Class, row.Kind, row.What)
			}
			if len(r.Findings) != 1 || len(r.Findings[0].Also) != tt.also {
				t.Errorf("findings: %+v", r.Findings)
			}
		})
	}
}

// TestAWrongPartOfAFusedTensorIsNamedByItself: the order of the parts is right.
func TestAWrongPartOfAFusedTensorIsNamedByItself(t *testing.T) {
	port, original := open(t, "gemma3-tiny")
	x := fuse(port, "mlp.gate_up_proj.weight", func(i int) int { return i }, "mlp.gate_proj.weight", "mlp.up_proj.weight")
	clear(x.row(43))
	r := compare(t, port, original)
	if row := find(t, r, layer1+"mlp.up_proj.weight"); row.Kind != weights.ZeroRows || row.At.Row != 3 || r.Counts.Wrong != 1 {
		t.Errorf("%s: %s, %+v", row.Kind, row.What, r.Counts)
	}
}
