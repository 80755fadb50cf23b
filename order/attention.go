package order

import (
	"math"

	"github.com/tracediff/tracediff/order/op"
)

// attention is what the families' attention differs in.
type attention struct {
	headNorms   bool    // queries and keys are normed per head before the rotary embedding
	headsFirst  bool    // transformers transposes before the head norms, and shows queries and keys as [1,h,T,D]
	valueNorm   bool    // values are normed too, without a weight
	plainOutput bool    // o_proj has no bias, whatever q, k and v have
	scale       float64 // of the scores
}

// byHeadDim is the usual scale of scores: D^(−1/2), which takes part as a float32.
func byHeadDim(c *Config) float64 { return 1 / math.Sqrt(float64(c.HeadDim)) }

// attend lists the attention of layer i, from the normed input to o_proj. Heads stand after tokens, [1,T,h,D], up to the
// rotation, which puts them before.
func (b *builder) attend(i int, from string, a attention) {
	t := b.LayerTypes[i]
	b.turned("q", b.NumHeads, from, t, a, b.attn("query"))
	cached := shape("bhsc", 1, b.NumKVHeads, keys(t), b.HeadDim)
	if source := b.KVSource(i); source == i {
		last := b.attn("key")
		last.LastT = true
		b.turned("k", b.NumKVHeads, from, t, a, last)
		v := b.values(from, a)
		b.add(3, "self_attn.keys", cached, b.attn("key"), op.Cache{Window: b.Window(t)},
			ref("self_attn.k_rope"), Ref{Name: "self_attn.keys", Prev: true})
		b.add(3, "self_attn.values", cached, b.attn("value"), op.Cache{Window: b.Window(t), Transpose: true},
			ref(v), Ref{Name: "self_attn.values", Prev: true})
	} else {
		b.add(3, "self_attn.keys", cached, b.attn("key"), op.Identity{}, ref("/"+InLayer(source, "self_attn.keys").String()))
		b.add(3, "self_attn.values", cached, b.attn("value"), op.Identity{}, ref("/"+InLayer(source, "self_attn.values").String()))
	}
	b.scores(t, a.scale)
	width := b.NumHeads * b.HeadDim
	b.add(2, "self_attn.context", flat(width), b.inLinear("self_attn.o_proj"), op.Context{}, ref("self_attn.probs"), ref("self_attn.values"))
	b.linear(1, "self_attn.o_proj", b.hidden, width, b.AttentionBias && !a.plainOutput, ref("self_attn.context"))
}

// attn is what the eager attention function of the current layer has in a role.
func (p *place) attn(role string) Source {
	return Source{Kind: Attention, Module: p.prefix + "self_attn", Name: role}
}

// perHead is [1,T,n,D].
func perHead(n, dim int) layout { return shape("bthc", 1, T, n, dim) }

// turned lists queries or keys, which is "q" or "k": projected, normed where the family does, and turned by position.
// hf is where the turned ones are seen.
func (b *builder) turned(which string, heads int, from, layerType string, a attention, hf Source) {
	name, width := "self_attn."+which, heads*b.HeadDim
	b.linear(2, name+"_proj", flat(width), b.HiddenSize, b.AttentionBias, ref(from))
	last := name + "_proj"
	if a.headNorms {
		b.rms(2, name+"_norm", perHead(heads, b.HeadDim), last).HF.HeadsFirst = a.headsFirst
		last = name + "_norm"
	}
	cos, sin := b.tables(layerType)
	b.add(2, name+"_rope", shape("bhtc", 1, heads, T, b.HeadDim), hf, op.RoPE{}, ref(last), cos, sin)
}

// values lists this pass's values and returns the name of the last entry: the projection, or its norm.
func (b *builder) values(from string, a attention) string {
	width := b.NumKVHeads * b.HeadDim
	b.linear(2, "self_attn.v_proj", flat(width), b.HiddenSize, b.AttentionBias, ref(from))
	if !a.valueNorm {
		return "self_attn.v_proj"
	}
	b.add(2, "self_attn.v_norm", perHead(b.NumKVHeads, b.HeadDim), b.out("self_attn.v_norm"),
		op.RMSNorm{Eps: b.RMSNormEps, Gain: op.NoScale}, ref("self_attn.v_proj"))
	return "self_attn.v_norm"
}

// scores lists the way from queries and keys to probabilities.
func (b *builder) scores(layerType string, scale float64) {
	l := shape("bhts", 1, b.NumHeads, T, keys(layerType))
	b.add(3, "self_attn.scores", l, b.attn("scores"), op.Scores{Scale: scale}, ref("self_attn.q_rope"), ref("self_attn.keys"))
	last := "self_attn.scores"
	if b.AttnSoftcap > 0 {
		last = "self_attn.scores_softcap"
		b.add(3, last, l, b.attn("scores_softcap"), op.Softcap{Cap: b.AttnSoftcap}, ref("self_attn.scores"))
	}
	b.add(3, "self_attn.scores_masked", l, b.attn("scores_masked"), op.Add{}, ref(last), ref("/"+mask(layerType))).Compare = Allowed
	b.add(3, "self_attn.probs_f32", l, b.attn("probs_f32"), op.Softmax{}, ref("self_attn.scores_masked")).DType = "float32"
	b.add(2, "self_attn.probs", l, b.attn("probs"), op.Cast{}, ref("self_attn.probs_f32"))
}
