package op

import "github.com/tracediff/tracediff/order/program"

// Activation is one of the functions of an MLP.
type Activation string

// The activations of the families.
const (
	OfSiLU     Activation = "silu"
	OfGELU     Activation = "gelu"
	OfGELUTanh Activation = "gelu_tanh"
	OfSigmoid  Activation = "sigmoid"
)

func (a Activation) steps(b *program.Builder, x program.Var) program.Var {
	in := []program.Var{x}
	switch a {
	case OfSiLU:
		return SiLU{}.Steps(b, in, nil)
	case OfGELU:
		return GELU{}.Steps(b, in, nil)
	case OfGELUTanh:
		return GELUTanh{}.Steps(b, in, nil)
	case OfSigmoid:
		return sigmoid(b, x)
	}
	return b.Fail("no activation %q", a)
}

// sigmoid is 1/(1 + e⁻ˣ).
func sigmoid(b *program.Builder, x program.Var) program.Var {
	return b.Div("quotient", b.Literal(1), b.Add("sum", b.Literal(1), b.Exp("exp", b.Neg(x))))
}

// Gated is R(R(act(x)) ⊙ y): the gate of a gated MLP. Inputs: x, y.
type Gated struct {
	Act Activation `json:"act"`
}

// Kind is "gated".
func (Gated) Kind() string { return "gated" }

// Steps gates.
func (o Gated) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mul("product", b.R(o.Act.steps(b, in[0])), in[1])
}

// GatedMLP is R(Σ D·R(R(act(R(G·x))) ⊙ R(U·x))), a gated MLP in one. Input: x. Weights: G, U and D, [out, in] each.
type GatedMLP struct {
	Act Activation `json:"act"`
}

// Kind is "gated_mlp".
func (GatedMLP) Kind() string { return "gated_mlp" }

// Steps multiplies three times.
func (o GatedMLP) Steps(b *program.Builder, in, w []program.Var) program.Var {
	gate := b.R(b.Affine("gate", in[0], w[0]))
	gate = b.R(o.Act.steps(b, gate))
	up := b.R(b.Affine("up", in[0], w[1]))
	return b.Affine("down", b.R(b.Mul("product", gate, up)), w[2])
}
