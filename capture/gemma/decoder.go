package gemma

// decoder is the plain stack of Gemma 3, 2 and 1: one residual stream, and in every layer attention and a gated MLP.
type decoder struct {
	Layers []*Layer

	positional
	normIn point
}

// decoderKind is what those families differ in.
type decoderKind struct {
	// postNorms: what attention and MLP give is normed before it is added to the stream, by post_attention_layernorm and
	// post_feedforward_layernorm. Without them post_attention_layernorm is the norm before the MLP.
	postNorms bool
	attention attentionKind
}

func (b *builder) decoder(kind decoderKind, lastLayer int) *decoder {
	b.onePlus = true
	d := &decoder{positional: b.positional(), normIn: b.point("norm.in")}
	for i := range lastLayer + 1 {
		b.enter(i)
		l := &Layer{
			InputLayernorm: b.norm("input_layernorm"), SelfAttn: b.attention(i, kind.attention), MLP: b.mlp(),
			in: b.point("in"), attnResidual: b.point("attn_residual"), out: b.point("out"),
		}
		if kind.postNorms {
			l.afterAttention, l.beforeMLP, l.afterMLP = b.norm("post_attention_layernorm"), b.norm("pre_feedforward_layernorm"), b.norm("post_feedforward_layernorm")
		} else {
			l.beforeMLP = b.norm("post_attention_layernorm")
		}
		d.Layers = append(d.Layers, l)
	}
	b.leave()
	return d
}

func (d *decoder) begin(p *pass, x []float32) []float32 {
	d.mask(p)
	d.turn(p)
	return x
}

func (d *decoder) layer(p *pass, i int, x []float32) []float32 { return d.Layers[i].forward(p, x) }

func (d *decoder) end(p *pass, x []float32) []float32 { return p.see(d.normIn, x) }

// Layer is one layer of a plain decoder. The norms around the MLP are named by what they do: the checkpoint's
// post_attention_layernorm is one in Gemma 1 and another in its successors.
type Layer struct {
	InputLayernorm                      *RMSNorm
	SelfAttn                            *Attention
	MLP                                 MLP
	afterAttention, beforeMLP, afterMLP *RMSNorm // the first and the last are nil in Gemma 1

	in, attnResidual, out point
}

// forward takes the stream x [T, H] to that of the next layer. The layer's own scratch is given back at its end.
func (l *Layer) forward(p *pass, x []float32) []float32 {
	out := p.take(len(x))
	defer p.release(p.mark())

	x = p.see(l.in, x)
	att := l.afterAttention.forward(p, l.SelfAttn.forward(p, l.InputLayernorm.forward(p, x)))
	residual := p.see(l.attnResidual, p.add(x, att))
	ffw := l.afterMLP.forward(p, l.MLP.forward(p, l.beforeMLP.forward(p, residual)))
	p.Add(out, residual, ffw)
	return p.see(l.out, out)
}
