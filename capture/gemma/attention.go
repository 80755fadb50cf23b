package gemma

import "github.com/tracediff/tracediff/internal/kernel"

// Attention is grouped-query attention over a cache, sliding or full. A shared layer has queries of its own and the
// keys and values of source.
type Attention struct {
	QProj, KProj, VProj, OProj Linear
	QNorm, KNorm, VNorm        *RMSNorm // of each head by itself; nil where the family has none

	*settings
	scale     float32 // of the scores
	softcap   float64 // of the scaled scores; 0 for none
	layerType string
	source    *Attention // itself, unless the layer is shared
	points    attentionPoints

	keys, values []float32 // [Hkv, S, D] of the last pass, the cache of the next
	s            int       // S of the last pass
}

type attentionPoints struct {
	qRope, kRope, keys, values, scores, capped, masked, probsF32, probs, context point
}

// attentionKind is what the families' attention differs in.
type attentionKind struct {
	headNorms bool    // queries and keys are normed
	valueNorm bool    // values are, without a weight
	scale     float64 // of the scores
}

// attention builds that of layer i; those of the layers before are there.
func (b *builder) attention(i int, kind attentionKind) *Attention {
	a := &Attention{
		settings: b.settings, scale: float32(kind.scale), softcap: b.config.AttnSoftcap, layerType: b.config.LayerTypes[i],
		QProj: b.linear("self_attn.q_proj"), OProj: b.linear("self_attn.o_proj"),
		points: attentionPoints{
			qRope: b.point("self_attn.q_rope"), keys: b.point("self_attn.keys"), values: b.point("self_attn.values"),
			scores: b.point("self_attn.scores"), masked: b.point("self_attn.scores_masked"), probsF32: b.point("self_attn.probs_f32"),
			probs: b.point("self_attn.probs"), context: b.point("self_attn.context"),
		},
	}
	b.attentions = append(b.attentions, a)
	if kind.headNorms {
		a.QNorm = b.norm("self_attn.q_norm")
	}
	if a.softcap > 0 {
		a.points.capped = b.point("self_attn.scores_softcap")
	}
	a.source = b.attentions[b.config.KVSource(i)]
	if a.source != a {
		return a
	}
	a.KProj, a.VProj, a.points.kRope = b.linear("self_attn.k_proj"), b.linear("self_attn.v_proj"), b.point("self_attn.k_rope")
	if kind.headNorms {
		a.KNorm = b.norm("self_attn.k_norm")
	}
	if kind.valueNorm {
		a.VNorm = &RMSNorm{width: b.headDim, eps: float32(b.config.RMSNormEps), out: b.point("self_attn.v_norm")}
	}
	return a
}

// forward attends from x [T, H] and returns [T, H].
func (a *Attention) forward(p *pass, x []float32) []float32 {
	cos, sin := p.cos[a.layerType], p.sin[a.layerType]
	q := a.QNorm.forward(p, a.QProj.forward(p, x))
	q = p.see(a.points.qRope, p.rotate(q, cos, sin, a.heads, a.headDim))

	if a.source == a {
		k := a.KNorm.forward(p, a.KProj.forward(p, x))
		k = p.see(a.points.kRope, p.rotate(k, cos, sin, a.kvHeads, a.headDim))
		v := a.VNorm.forward(p, a.VProj.forward(p, x))
		a.extend(p, k, p.headsFirst(v, a.kvHeads, a.headDim))
	}
	keys, values := a.source.keys, a.source.values
	if a.source != a { // what a replacer puts here is this layer's alone
		keys, values = p.own(a.points.keys, keys), p.own(a.points.values, values)
	}
	keys, values = p.see(a.points.keys, keys), p.see(a.points.values, values)

	probs := a.probabilities(p, q, keys)
	context := p.take(len(q))
	p.Context(context, probs, values, a.heads, a.kvHeads, len(p.ids), a.source.s, a.headDim)
	return a.OProj.forward(p, p.see(a.points.context, context))
}

// probabilities is R(softmax(R(R(R(q·kᵀ)·scale), capped where the family caps, + mask))): [Hq, T, S].
func (a *Attention) probabilities(p *pass, q, keys []float32) []float32 {
	tokens, s := len(p.ids), a.source.s
	scores := p.take(a.heads * tokens * s)
	p.Scores(scores, q, keys, a.heads, a.kvHeads, tokens, s, a.headDim)
	p.Scale(scores, scores, a.scale)
	scores = p.see(a.points.scores, scores)
	if a.softcap > 0 {
		scores = p.see(a.points.capped, p.softcap(scores, a.softcap))
	}
	masked := p.take(len(scores))
	for h := range a.heads {
		from, to := h*tokens*s, (h+1)*tokens*s
		p.Add(masked[from:to], scores[from:to], p.masks[a.layerType])
	}
	masked = p.see(a.points.masked, masked)

	probs := p.take(len(masked))
	kernel.Softmax(probs, masked, s)
	probs = p.copyOf(p.seeF32(a.points.probsF32, probs))
	p.Round(probs)
	return p.see(a.points.probs, probs)
}

// extend appends this pass's keys and values [Hkv, T, D] to what the layer has kept: everything, or in a sliding layer
// the last W−1. The whole of it stays until the next pass, since shared layers read it.
func (a *Attention) extend(p *pass, k, v []float32) {
	kept := a.s
	if w := a.config.Window(a.layerType); w > 0 {
		kept = min(kept, w-1)
	}
	s := kept + len(p.ids)
	a.keys = join(a.keys, k, a.kvHeads, a.s, kept, len(p.ids), a.headDim)
	a.values = join(a.values, v, a.kvHeads, a.s, kept, len(p.ids), a.headDim)
	a.s = s
}

// join returns, per head, the last kept of old [heads, n, d] and then all of new [heads, t, d].
func join(old, new []float32, heads, n, kept, t, d int) []float32 {
	out := make([]float32, 0, heads*(kept+t)*d)
	for h := range heads {
		out = append(out, old[(h*n+n-kept)*d:(h*n+n)*d]...)
		out = append(out, new[h*t*d:(h+1)*t*d]...)
	}
	return out
}
