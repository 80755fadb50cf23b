package order

import "github.com/tracediff/tracediff/order/op"

// activations are the operations of the activations that families can have, as configurations spell them.
var activations = map[string]op.Op{
	"gelu_pytorch_tanh": op.GELUTanh{},
	"gelu":              op.GELU{},
	"silu":              op.SiLU{},
}

// gate lists the gate's projection of layer i's MLP and returns its name.
func (b *builder) gate(i int, from string) string {
	width := b.IntermediateSize[i]
	b.linear(2, "mlp.gate_proj", flat(width), b.HiddenSize, b.MLPBias, ref(from))
	return "mlp.gate_proj"
}

// gated lists the rest of layer i's MLP: down(act(gate) ⊙ up(from)).
func (b *builder) gated(i int, from, gate string) {
	width := b.IntermediateSize[i]
	b.add(2, "mlp.act_fn", flat(width), b.out("mlp.act_fn"), activations[b.Activation], ref(gate))
	b.linear(2, "mlp.up_proj", flat(width), b.HiddenSize, b.MLPBias, ref(from))
	b.add(2, "mlp.gated", flat(width), b.inLinear("mlp.down_proj"), op.Mul{}, ref("mlp.act_fn"), ref("mlp.up_proj"))
	b.linear(1, "mlp.down_proj", b.hidden, width, b.MLPBias, ref("mlp.gated"))
}
