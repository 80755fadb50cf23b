package order

import "github.com/tracediff/tracediff/order/op"

// decoder is what the plain decoders differ in: those with one residual stream, attention and a gated MLP in every
// layer. Everything else, from the ids to the logits, is the same list.
type decoder struct {
	gain      op.Gain // of every norm
	normInput string  // what the family's norm modules call their input
	scaled    bool    // the embedding is multiplied by √H
	// postNorms: what attention and MLP give is normed before it is added to the stream, by norms that are called after
	// their place. Without them post_attention_layernorm is the norm before the MLP.
	postNorms bool
	attention
}

// list lists the decoder of a configuration as transformers 5.23 runs it. Rows stand in the order of data flow; where
// it leaves a choice, as in Gemma 3n's.
func (d decoder) list(c *Config) *List {
	b := newBuilder(c, d.gain, d.normInput)
	b.arguments()
	if d.scaled {
		b.scaledEmbedding()
	} else { // the module shows what it looked up
		b.lookup(b.out("embed_tokens"))
		b.add(1, "embed_tokens", b.hidden, b.out("embed_tokens"), op.Identity{}, ref("embed_tokens.lookup"))
	}
	b.masks()
	b.rotary()
	last := "embed_tokens"
	for i := range c.NumLayers {
		d.layer(b, i, last)
		last = InLayer(i, "out").String()
	}
	b.add(1, "norm.in", b.hidden, b.inNorm("norm"), op.Identity{}, ref(last))
	b.rms(1, "norm", b.hidden, "norm.in")
	b.head()
	return newList(c, b.entries)
}

// layer lists decoder layer i, whose stream comes from the entry last.
func (d decoder) layer(b *builder, i int, last string) {
	b.enter(i)
	defer b.leave()
	attended, norm, forwarded := "self_attn.o_proj", "post_attention_layernorm", "mlp.down_proj"
	b.add(2, "in", b.hidden, b.inLayer("hidden_states"), op.Identity{}, ref("/"+last))
	b.rms(2, "input_layernorm", b.hidden, "in")
	b.attend(i, "input_layernorm", d.attention)
	if d.postNorms {
		b.rms(2, "post_attention_layernorm", b.hidden, attended)
		attended, norm = "post_attention_layernorm", "pre_feedforward_layernorm"
	}
	b.add(1, "attn_residual", b.hidden, b.inNorm(norm), op.Add{}, ref("in"), ref(attended))
	b.rms(2, norm, b.hidden, "attn_residual")
	b.gated(i, norm, b.gate(i, norm))
	if d.postNorms {
		b.rms(2, "post_feedforward_layernorm", b.hidden, forwarded)
		forwarded = "post_feedforward_layernorm"
	}
	b.add(1, "out", b.hidden, b.outLayer(), op.Add{}, ref("attn_residual"), ref(forwarded))
}
