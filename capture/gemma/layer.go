package gemma

import (
	"math"

	"github.com/tracediff/tracediff/internal/kernel"
)

// Layer is one decoder layer.
type Layer struct {
	AltUp                    AltUp
	Laurel                   Laurel
	SelfAttn                 Attention
	MLP                      MLP
	InputLayernorm           RMSNorm
	PostAttentionLayernorm   RMSNorm
	PreFeedforwardLayernorm  RMSNorm
	PostFeedforwardLayernorm RMSNorm
	PerLayerInputGate        Linear
	PerLayerProjection       Linear
	PostPerLayerInputNorm    RMSNorm

	*settings
	index  int
	points layerPoints
}

type layerPoints struct {
	in, perLayerInput, activePrediction, attnGated, attnLaurel, attnFfwLaurelGated point
	actFn, perLayerGated, out                                                      point
}

// forward takes the streams x [A, T, H] and the per-layer inputs of all layers [T, L, P] to the streams of the next
// layer. The layer's own scratch is given back at its end.
func (l *Layer) forward(p *pass, x, ple []float32) []float32 {
	out := p.take(len(x))
	defer p.release(p.mark())

	x = p.see(l.points.in, p.own(l.points.in, x))
	ple = p.see(l.points.perLayerInput, p.block(ple, l.index, l.layers, l.perLayerWidth))
	pred := l.AltUp.predict(p, x)
	act := p.see(l.points.activePrediction, p.copyOf(p.stream(pred, l.active)))
	nrm := l.InputLayernorm.forward(p, act)
	lau := l.Laurel.forward(p, nrm)

	att := l.PostAttentionLayernorm.forward(p, l.SelfAttn.forward(p, nrm))
	gated := p.see(l.points.attnGated, p.add(act, att))
	al := p.see(l.points.attnLaurel, p.div(p.add(gated, lau), math.Sqrt2))

	ffw := l.MLP.forward(p, l.PreFeedforwardLayernorm.forward(p, al))
	ffw = l.PostFeedforwardLayernorm.forward(p, ffw)
	act2 := p.see(l.points.attnFfwLaurelGated, p.add(al, ffw))
	c := l.AltUp.correct(p, act2, act, pred)

	z := l.AltUp.scaleCorrectedOutput(p, p.stream(c, l.active))
	z = l.PerLayerInputGate.forward(p, z)
	z = p.see(l.points.actFn, p.gelu(z))
	z = p.see(l.points.perLayerGated, p.mul(z, ple))
	z = l.PostPerLayerInputNorm.forward(p, l.PerLayerProjection.forward(p, z))

	copy(p.stream(out, 0), p.stream(c, 0))
	for o := 1; o < l.streams; o++ {
		p.Add(p.stream(out, o), p.stream(c, o), z)
	}
	return p.see(l.points.out, out)
}

// AltUp predicts all streams before a layer and corrects them after it.
type AltUp struct {
	CorrectOutputScale []float32 // nil: not scaled
	CorrectionCoefs    Linear
	PredictionCoefs    Linear
	ModalityRouter     Linear
	RouterNorm         RMSNorm

	*settings
	before, after                                       routerPoints
	predictOut, innovation, correctOut, scaledCorrected point
}

// routerPoints are those of one of the router's two calls.
type routerPoints struct{ norm, input, routed, modalities point }

// router returns tanh of the routed, normed and scaled z: [T, A].
func (a *AltUp) router(p *pass, z []float32, at routerPoints) []float32 {
	n := a.RouterNorm.at(p, z, at.norm)
	u := p.see(at.input, p.scale(n, p.R(1/float64(a.hidden))))
	routed := a.ModalityRouter
	routed.out = at.routed
	return p.see(at.modalities, p.tanh(routed.forward(p, u)))
}

// predict returns Pred_o = R(R(Σ_k X_k·c[A·o+k]) + X_o): [A, T, H].
func (a *AltUp) predict(p *pass, x []float32) []float32 {
	m := a.router(p, p.stream(x, a.active), a.before)
	c := a.PredictionCoefs.forward(p, m)
	pred := p.take(len(x))
	for o := range a.streams {
		for t := range p.ids {
			coef := c[(t*a.streams+o)*a.streams:][:a.streams]
			row := p.row(pred, o, t)
			for h := range row {
				var sum float64
				for k, v := range coef {
					sum += float64(p.row(x, k, t)[h]) * float64(v)
				}
				row[h] = p.R32(float32(sum))
			}
		}
		p.Add(p.stream(pred, o), p.stream(pred, o), p.stream(x, o))
	}
	return p.see(a.predictOut, pred)
}

// correct returns C_o = R(R((act2 − active)·R(c[o]+1)) + Pred_o): [A, T, H].
func (a *AltUp) correct(p *pass, act2, active, pred []float32) []float32 {
	m := a.router(p, act2, a.after)
	coefs := a.CorrectionCoefs.forward(p, m)
	inn := p.see(a.innovation, p.sub(act2, active))
	c := p.take(len(pred))
	for o := range a.streams {
		for t := range p.ids {
			row, n := p.row(c, o, t), inn[t*a.hidden:(t+1)*a.hidden]
			p.Scale(row, n, p.R32(coefs[t*a.streams+o]+1))
			p.Add(row, row, p.row(pred, o, t))
		}
	}
	return p.see(a.correctOut, c)
}

func (a *AltUp) scaleCorrectedOutput(p *pass, z []float32) []float32 {
	z = p.copyOf(z)
	if a.CorrectOutputScale != nil {
		p.MulRows(z, z, a.CorrectOutputScale)
	}
	return p.see(a.scaledCorrected, z)
}

// Laurel is a low-rank residual block.
type Laurel struct {
	LinearLeft, LinearRight Linear
	PostLaurelNorm          RMSNorm
	out                     point
}

func (l *Laurel) forward(p *pass, x []float32) []float32 {
	y := l.LinearRight.forward(p, l.LinearLeft.forward(p, x))
	return p.see(l.out, p.add(x, l.PostLaurelNorm.forward(p, y)))
}

// MLP is the gated feed-forward block, its gate sparse in some layers.
type MLP struct {
	GateProj, UpProj, DownProj Linear

	multiplier                                 float64 // Φ⁻¹(sparsity)
	sparse                                     bool
	mean, std, cutoff, gateSparse, actFn, gate point
}

func (m *MLP) forward(p *pass, x []float32) []float32 {
	gate := m.GateProj.forward(p, x)
	if m.sparse {
		gate = m.gaussianTopK(p, gate)
	}
	h := p.see(m.actFn, p.gelu(gate))
	up := m.UpProj.forward(p, x)
	return m.DownProj.forward(p, p.see(m.gate, p.mul(h, up)))
}

// gaussianTopK is max(0, R(x − cut)) with cut = R(mean + R(std · R(multiplier))) of each token.
func (m *MLP) gaussianTopK(p *pass, x []float32) []float32 {
	width := m.GateProj.weight.Rows
	mean, std := p.take(len(p.ids)), p.take(len(p.ids))
	p.Mean(mean, x, width)
	mean = p.see(m.mean, mean)
	p.Std(std, x, width)
	std = p.see(m.std, std)
	cut := p.see(m.cutoff, p.add(mean, p.scale(std, p.R(m.multiplier))))
	y := p.take(len(x))
	for i, v := range x {
		y[i] = max(0, p.R32(v-cut[i/width]))
	}
	return p.see(m.gateSparse, y)
}

// Attention is grouped-query attention over a cache, sliding or full. A shared layer has queries of its own and the
// keys and values of source.
type Attention struct {
	QProj, KProj, VProj, OProj Linear
	QNorm, KNorm, VNorm        RMSNorm

	*settings
	layerType string
	source    *Attention // itself, unless the layer is shared
	points    attentionPoints

	keys, values []float32 // [Hkv, S, D] of the last pass, the cache of the next
	s            int       // S of the last pass
}

type attentionPoints struct {
	qRope, kRope, keys, values, scores, masked, probsF32, probs, context point
}

func (a *Attention) forward(p *pass, x []float32) []float32 {
	cos, sin := p.cos[a.layerType], p.sin[a.layerType]
	tokens := len(p.ids)
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

	s := a.source.s
	scores := p.take(a.heads * tokens * s)
	p.Scores(scores, q, keys, a.heads, a.kvHeads, tokens, s, a.headDim)
	scores = p.see(a.points.scores, scores)
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
	probs = p.see(a.points.probs, probs)

	context := p.take(tokens * a.heads * a.headDim)
	p.Context(context, probs, values, a.heads, a.kvHeads, tokens, s, a.headDim)
	return a.OProj.forward(p, p.see(a.points.context, context))
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
