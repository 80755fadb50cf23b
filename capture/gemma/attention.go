package gemma

import "github.com/tracediff/tracediff/internal/kernel"

// Attention is grouped-query attention over a cache, sliding or full. A shared layer has queries of its own and the
// keys and values of source.
type Attention struct {
	Projections
	QNorm, KNorm, VNorm *RMSNorm // applied to each head separately; nil in a family without the norm

	*settings
	scale     float32 // of the scores
	softcap   float64 // of the scaled scores; 0 for none
	layerType string
	source    *Attention // itself, unless the layer is shared
	points    attentionPoints
	cache
}

// Projections make queries, keys and values of the input of an attention, and its output of what the heads give.
type Projections struct{ QProj, KProj, VProj, OProj Linear }

// cache is what the last pass has left to the next one.
type cache struct {
	keys, values []float32 // [Hkv, S, D]
	s            int       // S
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
		Projections: Projections{QProj: b.linear("self_attn.q_proj"), OProj: b.linear("self_attn.o_proj")},
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
	tables := p.rotary[a.layerType]
	q := a.QNorm.forward(p, a.QProj.forward(p, x))
	q = p.see(a.points.qRope, p.rotate(q, tables, a.heads, a.headDim))

	if a.source == a {
		k := a.KNorm.forward(p, a.KProj.forward(p, x))
		k = p.see(a.points.kRope, p.rotate(k, tables, a.kvHeads, a.headDim))
		v := a.VNorm.forward(p, a.VProj.forward(p, x))
		a.extend(p, k, p.headsFirst(v, a.kvHeads, a.headDim))
	}
	keys, values := a.source.keys, a.source.values
	if a.source != a { // a replacer's output here belongs only to this layer
		keys, values = p.own(a.points.keys, keys), p.own(a.points.values, values)
	}
	keys, values = p.see(a.points.keys, keys), p.see(a.points.values, values)

	probs := a.probabilities(p, q, keys)
	context := p.take(len(q))
	p.Context(context, probs, values, a.sizes(p))
	return a.OProj.forward(p, p.see(a.points.context, context))
}

// sizes are those of the pass, whose keys are there.
func (a *Attention) sizes(p *pass) kernel.Attention {
	return kernel.Attention{Heads: a.heads, KV: a.kvHeads, Tokens: len(p.ids), Keys: a.source.s, Dim: a.headDim}
}

// probabilities is R(softmax(R(R(R(q·kᵀ)·scale), capped where the family caps, + mask))): [Hq, T, S].
func (a *Attention) probabilities(p *pass, q, keys []float32) []float32 {
	tokens, s := len(p.ids), a.source.s
	scores := p.take(a.heads * tokens * s)
	p.Scores(scores, q, keys, a.sizes(p))
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
	a.keys, a.values = a.join(a.keys, k, kept), a.join(a.values, v, kept)
	a.s = kept + len(p.ids)
}

// join returns, per head, the last kept of what was cached [Hkv, S, D] and then all of this pass [Hkv, T, D].
func (a *Attention) join(cached, x []float32, kept int) []float32 {
	old, new := a.s*a.headDim, len(x)/a.kvHeads // elements of a head
	from := old - kept*a.headDim
	out := make([]float32, 0, len(x)+a.kvHeads*(old-from))
	for h := range a.kvHeads {
		out = append(out, cached[h*old+from:(h+1)*old]...)
		out = append(out, x[h*new:(h+1)*new]...)
	}
	return out
}
