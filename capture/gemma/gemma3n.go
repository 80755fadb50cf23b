package gemma

import (
	"fmt"
	"math"
)

// gemma3n is the stack of Gemma 3n: several streams, all predicted and corrected by each layer (AltUp), a low-rank residual next to attention
// (LAUREL), separate inputs for every layer, gates with Gaussian sparsity, and last layers that share keys and values.
type gemma3n struct {
	EmbedTokensPerLayer     Embedding
	PerLayerModelProjection Linear
	PerLayerProjectionNorm  *RMSNorm
	AltupProjections        []Linear
	AltupUnembedProjections []Linear
	Layers                  []*Gemma3nLayer

	positional
	streams int
	ple     []float32 // the pass's per-layer inputs [T, L, P]
	points  gemma3nPoints
}

type gemma3nPoints struct {
	inputsEmbeds, projectionScaled, perLayerInputs point
	initTarget, init, finalTarget, finalMean       point
	initMagnitude, finalMagnitude, finalStream     []point
}

func newGemma3n(b *builder, lastLayer int) stack {
	c := b.config.Gemma3n
	g := &gemma3n{
		EmbedTokensPerLayer:     b.embedding("embed_tokens_per_layer", c.PerLayerWidth, true),
		PerLayerModelProjection: b.linear("per_layer_model_projection"),
		PerLayerProjectionNorm:  b.norm("per_layer_projection_norm"),
		positional:              b.positional(),
		streams:                 c.AltUpStreams,
		points: gemma3nPoints{
			inputsEmbeds: b.point("inputs_embeds"), projectionScaled: b.point("per_layer_model_projection.scaled"),
			perLayerInputs: b.point("per_layer_inputs"), initTarget: b.point("altup.init.target_magnitude"), init: b.point("altup.init"),
			finalTarget: b.point("altup.final.target_magnitude"), finalMean: b.point("altup.final.mean"),
		},
	}
	for k := 1; k < c.AltUpStreams; k++ {
		g.AltupProjections = append(g.AltupProjections, b.linear(fmt.Sprintf("altup_projections.%d", k-1)))
		g.AltupUnembedProjections = append(g.AltupUnembedProjections, b.linear(fmt.Sprintf("altup_unembed_projections.%d", k-1)))
		g.points.initMagnitude = append(g.points.initMagnitude, b.point(fmt.Sprintf("altup.init.magnitude.%d", k)))
		g.points.finalMagnitude = append(g.points.finalMagnitude, b.point(fmt.Sprintf("altup.final.magnitude.%d", k)))
		g.points.finalStream = append(g.points.finalStream, b.point(fmt.Sprintf("altup.final.stream.%d", k)))
	}
	for i := range lastLayer + 1 {
		g.Layers = append(g.Layers, b.gemma3nLayer(i))
	}
	return g
}

// begin makes the per-layer inputs of all layers and expands the embedding to streams: [A, T, H].
func (g *gemma3n) begin(p *pass, x []float32) []float32 {
	tok := g.EmbedTokensPerLayer.forward(p)
	x = p.see(g.points.inputsEmbeds, p.own(g.points.inputsEmbeds, x))
	g.ple = g.projectPerLayerInputs(p, x, tok)
	g.mask(p)
	x = g.expand(p, x)
	g.turn(p)
	return x
}

func (g *gemma3n) layer(p *pass, i int, x []float32) []float32 {
	return g.Layers[i].forward(p, x, g.ple)
}

// projectPerLayerInputs mixes tok, the tokens' rows of the per-layer table, with a projection of x0: [T, L, P].
func (g *gemma3n) projectPerLayerInputs(p *pass, x0, tok []float32) []float32 {
	proj := g.PerLayerModelProjection.forward(p, x0)
	proj = p.see(g.points.projectionScaled, p.scale(proj, p.R(1/math.Sqrt(float64(p.hidden)))))
	proj = g.PerLayerProjectionNorm.forward(p, proj)
	return p.see(g.points.perLayerInputs, p.scale(p.add(proj, tok), p.R(math.Sqrt2/2)))
}

// expand stacks the embedding and its projections, each brought to the embedding's magnitude: [A, T, H].
func (g *gemma3n) expand(p *pass, x0 []float32) []float32 {
	tm := p.see(g.points.initTarget, p.magnitude(x0, 0))
	x := p.take(g.streams * len(x0))
	copy(x, x0)
	for k, projection := range g.AltupProjections {
		y := projection.forward(p, x0)
		nm := p.see(g.points.initMagnitude[k], p.magnitude(y, magnitudeFloor))
		copy(x[(k+1)*len(x0):], p.rescale(y, tm, nm))
	}
	return p.see(g.points.init, x)
}

// magnitudeFloor is the least mean square that a projection is rescaled from.
const magnitudeFloor = 1e-5

// end merges the streams: [T, H].
func (g *gemma3n) end(p *pass, x []float32) []float32 {
	tm := p.see(g.points.finalTarget, p.magnitude(p.stream(x, 0), 0))
	streams := [][]float32{p.stream(x, 0)}
	for k, projection := range g.AltupUnembedProjections {
		y := projection.forward(p, p.stream(x, k+1))
		nm := p.see(g.points.finalMagnitude[k], p.magnitude(y, magnitudeFloor))
		streams = append(streams, p.see(g.points.finalStream[k], p.rescale(y, tm, nm)))
	}
	return p.see(g.points.finalMean, p.mean(streams))
}

// Gemma3nLayer is one decoder layer of Gemma 3n.
type Gemma3nLayer struct {
	AltUp                    AltUp
	Laurel                   Laurel
	SelfAttn                 *Attention
	MLP                      MLP
	InputLayernorm           *RMSNorm
	PostAttentionLayernorm   *RMSNorm
	PreFeedforwardLayernorm  *RMSNorm
	PostFeedforwardLayernorm *RMSNorm
	PerLayerInput

	points gemma3nLayerPoints
}

// PerLayerInput adds a layer's own input to its streams.
type PerLayerInput struct {
	PerLayerInputGate     Linear
	PerLayerProjection    Linear
	PostPerLayerInputNorm *RMSNorm

	index, perLayerWidth int // where it stands among those of all layers, and its channels
}

type gemma3nLayerPoints struct {
	in, perLayerInput, activePrediction, attnGated, attnLaurel, attnFfwLaurelGated point
	actFn, perLayerGated, out                                                      point
}

func (b *builder) gemma3nLayer(i int) *Gemma3nLayer {
	b.enter(i)
	defer b.leave()
	l := &Gemma3nLayer{
		AltUp: b.altUp(), Laurel: b.laurel(), SelfAttn: b.attention(i, attentionKind{headNorms: true, valueNorm: true, scale: 1}), MLP: b.mlp(),
		InputLayernorm:           b.norm("input_layernorm"),
		PostAttentionLayernorm:   b.norm("post_attention_layernorm"),
		PreFeedforwardLayernorm:  b.norm("pre_feedforward_layernorm"),
		PostFeedforwardLayernorm: b.norm("post_feedforward_layernorm"),
		PerLayerInput: PerLayerInput{
			PerLayerInputGate: b.linear("per_layer_input_gate"), PerLayerProjection: b.linear("per_layer_projection"),
			PostPerLayerInputNorm: b.norm("post_per_layer_input_norm"), index: i, perLayerWidth: b.config.Gemma3n.PerLayerWidth,
		},
		points: gemma3nLayerPoints{
			in: b.point("in"), perLayerInput: b.point("per_layer_input"), activePrediction: b.point("active_prediction"),
			attnGated: b.point("attn_gated"), attnLaurel: b.point("attn_laurel"), attnFfwLaurelGated: b.point("attn_ffw_laurel_gated"),
			actFn: b.point("act_fn"), perLayerGated: b.point("per_layer_gated"), out: b.point("out"),
		},
	}
	l.MLP.sparsity = b.sparsity(i)
	return l
}

// forward takes the streams x [A, T, H] and the per-layer inputs of all layers [T, L, P] to the streams of the next
// layer. The layer's own scratch is given back at its end.
func (l *Gemma3nLayer) forward(p *pass, x, ple []float32) []float32 {
	out := p.take(len(x))
	defer p.release(p.mark())

	x = p.see(l.points.in, p.own(l.points.in, x))
	ple = p.see(l.points.perLayerInput, p.block(ple, l.index, p.layers, l.perLayerWidth))
	pred := l.AltUp.predict(p, x)
	act := p.see(l.points.activePrediction, p.copyOf(p.stream(pred, l.AltUp.active)))
	nrm := l.InputLayernorm.forward(p, act)
	lau := l.Laurel.forward(p, nrm)

	att := l.PostAttentionLayernorm.forward(p, l.SelfAttn.forward(p, nrm))
	gated := p.see(l.points.attnGated, p.add(act, att))
	al := p.see(l.points.attnLaurel, p.div(p.add(gated, lau), math.Sqrt2))

	ffw := l.MLP.forward(p, l.PreFeedforwardLayernorm.forward(p, al))
	ffw = l.PostFeedforwardLayernorm.forward(p, ffw)
	act2 := p.see(l.points.attnFfwLaurelGated, p.add(al, ffw))
	c := l.AltUp.correct(p, act2, act, pred)

	z := l.AltUp.scaleCorrectedOutput(p, p.stream(c, l.AltUp.active))
	z = l.PerLayerInputGate.forward(p, z)
	z = p.see(l.points.actFn, p.gelu(z))
	z = p.see(l.points.perLayerGated, p.mul(z, ple))
	z = l.PostPerLayerInputNorm.forward(p, l.PerLayerProjection.forward(p, z))

	copy(p.stream(out, 0), p.stream(c, 0))
	for o := 1; o < l.AltUp.streams; o++ {
		p.Add(p.stream(out, o), p.stream(c, o), z)
	}
	return p.see(l.points.out, out)
}
