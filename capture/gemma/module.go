package gemma

import (
	"cmp"

	"github.com/tracediff/tracediff/internal/kernel"
)

// Embedding is a table of scaled rows.
type Embedding struct {
	weight      kernel.Matrix
	scale       float64
	fallback    bool // an id outside the table reads row 0
	lookup, out point
}

// forward returns R(row · R(scale)) for every id: [T, columns].
func (e *Embedding) forward(p *pass) []float32 {
	x := p.take(len(p.ids) * e.weight.Cols)
	for t, id := range p.ids {
		if e.fallback && id >= e.weight.Rows {
			id = 0
		}
		e.weight.Row(x[t*e.weight.Cols:(t+1)*e.weight.Cols], id)
	}
	x = p.see(e.lookup, x)
	return p.see(e.out, p.scale(x, p.R(e.scale)))
}

// Linear is a product with W [out, in], and a bias if the checkpoint has one.
type Linear struct {
	weight kernel.Matrix
	bias   []float32
	out    point
}

// forward returns R(Σ W·x + b): [T, out].
func (l *Linear) forward(p *pass, x []float32) []float32 {
	rows := len(x) / l.weight.Cols
	y := p.take(rows * l.weight.Rows)
	p.err = cmp.Or(p.err, l.weight.Mul(y, x, rows, l.bias))
	return p.see(l.out, y)
}

// RMSNorm normalises rows of a width. A nil norm is one that the family does not have, and does nothing.
type RMSNorm struct {
	gain  []float32 // what each element is multiplied by, w or 1 + w; nil for nothing
	width int
	eps   float32
	out   point
}

func (n *RMSNorm) forward(p *pass, x []float32) []float32 {
	if n == nil {
		return x
	}
	return n.at(p, x, n.out)
}

// at is forward with another point, for a module that runs twice a layer.
func (n *RMSNorm) at(p *pass, x []float32, out point) []float32 {
	y := p.take(len(x))
	p.RMSNorm(y, x, n.gain, n.width, n.eps)
	return p.see(out, y)
}

// MLP is the gated feed-forward block.
type MLP struct {
	GateProj, UpProj, DownProj Linear

	sparsity     *sparsity // of the gate; nil for none
	activation   activation
	actFn, gated point
}

// activation is an element-wise function of the kernel, dst may be x.
type activation func(a kernel.Arith, dst, x []float32)

// activations by their names in configurations. Which of them a family may have is the order's to check.
var activations = map[string]activation{
	"gelu_pytorch_tanh": kernel.Arith.GELUTanh,
	"gelu":              kernel.Arith.GELU,
	"silu":              kernel.Arith.SiLU,
}

func (b *builder) mlp() MLP {
	return MLP{
		GateProj: b.linear("mlp.gate_proj"), UpProj: b.linear("mlp.up_proj"), DownProj: b.linear("mlp.down_proj"),
		activation: activations[b.config.Activation], actFn: b.point("mlp.act_fn"), gated: b.point("mlp.gated"),
	}
}

// forward returns down(R(act(gate(x)) ⊙ up(x))): [T, H].
func (m *MLP) forward(p *pass, x []float32) []float32 {
	gate := m.GateProj.forward(p, x)
	if m.sparsity != nil {
		gate = m.sparsity.forward(p, gate)
	}
	h := p.take(len(gate))
	m.activation(p.Arith, h, gate)
	h = p.see(m.actFn, h)
	up := m.UpProj.forward(p, x)
	return m.DownProj.forward(p, p.see(m.gated, p.mul(h, up)))
}
