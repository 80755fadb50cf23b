// Package gemma is the local model: the text decoder of Gemma 3n, readable before fast, with the hooks of TENSOR_ORDER
// fired from the forward pass itself.
//
// It is an implementation to debug with and to be compared against, not a serving engine: one sequence, no batching.
// In bfloat16 and float16 every place where transformers rounds is a rounding here.
package gemma

import (
	"errors"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/kernel"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// settings are the sizes that the whole model shares.
type settings struct {
	config                           *order.Config
	hidden, layers                   int
	heads, kvHeads, headDim          int
	streams, active, perLayerWidth   int
	perLayerProjectionScale, softcap float64
}

// New builds the model of a checkpoint in a dtype: float32, bfloat16 or float16. Points are resolved from reg by the
// names of list, which is the order of the checkpoint's configuration; reg may be nil. lastLayer is the last one that
// will run, or [All]: the weights of the others are looked for and not read. Weights stay in the checkpoint, which has to
// stay open. The error lists every weight that is missing or misshapen.
func New(ck *checkpoint.Checkpoint, list *order.List, dtype hooks.DType, reg *hooks.Registry, lastLayer int) (*Model, error) {
	c := list.Config
	if c == nil {
		return nil, errors.New("the local model runs Gemma 3n; this is a list of names alone")
	}
	if c.Gemma3n == nil {
		return nil, fmt.Errorf("the local model runs Gemma 3n, and this is a model of type %q", c.ModelType)
	}
	if dtype != hooks.F32 && dtype != hooks.BF16 && dtype != hooks.F16 {
		return nil, fmt.Errorf("the local model computes in float32, bfloat16 or float16, not in %s", dtype)
	}
	if err := CheckWeights(ck, list); err != nil {
		return nil, err
	}
	b := &builder{ck: ck, list: list, arith: kernel.Arith{DType: dtype}, registry: reg}
	b.settings = &settings{
		config: c, hidden: c.HiddenSize, layers: c.NumLayers, heads: c.NumHeads, kvHeads: c.NumKVHeads, headDim: c.HeadDim,
		streams: c.Gemma3n.AltUpStreams, active: c.Gemma3n.AltUpActive, perLayerWidth: c.Gemma3n.PerLayerWidth,
		perLayerProjectionScale: 1 / math.Sqrt(float64(c.HiddenSize)), softcap: c.FinalSoftcap,
	}
	m := b.model(min(lastLayer, c.NumLayers-1))
	return m, b.err
}

// CheckWeights reports, in one error, every weight that the model needs and the checkpoint does not have as it should be.
func CheckWeights(ck *checkpoint.Checkpoint, list *order.List) error {
	var wants []checkpoint.Want
	for _, w := range list.Weights() {
		wants = append(wants, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
	}
	return ck.Require(wants)
}

// builder takes weights and points by name; the first error sticks.
type builder struct {
	*settings
	ck       *checkpoint.Checkpoint
	list     *order.List
	arith    kernel.Arith
	registry *hooks.Registry
	prefix   string // of the layer being built
	err      error
}

func (b *builder) model(lastLayer int) *Model {
	m := &Model{settings: b.settings, arith: b.arith, inv: map[string][]float32{}}
	m.EmbedTokens = b.embedding("embed_tokens", b.hidden, false)
	m.EmbedTokensPerLayer = b.embedding("embed_tokens_per_layer", b.perLayerWidth, true)
	m.PerLayerModelProjection = b.linear("per_layer_model_projection")
	m.PerLayerProjectionNorm = b.norm("per_layer_projection_norm")
	m.points = modelPoints{
		inputIDs: b.point("input_ids"), positionIDs: b.point("position_ids"), inputsEmbeds: b.point("inputs_embeds"),
		projectionScaled: b.point("per_layer_model_projection.scaled"), perLayerInputs: b.point("per_layer_inputs"),
		initTarget: b.point("altup.init.target_magnitude"), init: b.point("altup.init"),
		finalTarget: b.point("altup.final.target_magnitude"), finalMean: b.point("altup.final.mean"), logits: b.point("logits"),
		mask: map[string]point{}, cos: map[string]point{}, sin: map[string]point{},
	}
	for k := 1; k < b.streams; k++ {
		m.AltupProjections = append(m.AltupProjections, b.linear(fmt.Sprintf("altup_projections.%d", k-1)))
		m.AltupUnembedProjections = append(m.AltupUnembedProjections, b.linear(fmt.Sprintf("altup_unembed_projections.%d", k-1)))
		m.points.initMagnitude = append(m.points.initMagnitude, b.point(fmt.Sprintf("altup.init.magnitude.%d", k)))
		m.points.finalMagnitude = append(m.points.finalMagnitude, b.point(fmt.Sprintf("altup.final.magnitude.%d", k)))
		m.points.finalStream = append(m.points.finalStream, b.point(fmt.Sprintf("altup.final.stream.%d", k)))
	}
	for t, short := range map[string]string{order.Sliding: "sliding", order.Full: "full"} {
		if b.list.Index("mask."+short) < 0 {
			continue
		}
		m.points.mask[t] = b.point("mask." + short)
		m.points.cos[t], m.points.sin[t] = b.point("rotary."+short+".cos"), b.point("rotary."+short+".sin")
		m.inv[t] = frequencies(b.config.Rope[t], b.headDim)
	}
	for i := range lastLayer + 1 {
		m.Layers = append(m.Layers, b.layer(i, m.Layers))
	}
	m.Norm = b.norm("norm")
	m.LMHead = b.linear("lm_head")
	return m
}

// frequencies of one rotary embedding, scaled as the configuration says.
func frequencies(r order.Rope, dim int) []float32 {
	inv := kernel.InverseFrequencies(r.Theta, dim)
	switch r.Type {
	case "linear":
		kernel.ScaleLinear(inv, r.Factor)
	case "llama3":
		kernel.ScaleLlama3(inv, r.Factor, r.LowFreq, r.HighFreq, r.OriginalPositions)
	}
	return inv
}

func (b *builder) layer(i int, before []*Layer) *Layer {
	b.prefix = fmt.Sprintf("layers.%d.", i)
	defer func() { b.prefix = "" }()
	l := &Layer{
		settings: b.settings, index: i,
		AltUp:                    b.altUp(),
		Laurel:                   Laurel{b.linear("laurel.linear_left"), b.linear("laurel.linear_right"), b.norm("laurel.post_laurel_norm"), b.point("laurel")},
		SelfAttn:                 b.attention(i, before),
		MLP:                      b.mlp(i),
		InputLayernorm:           b.norm("input_layernorm"),
		PostAttentionLayernorm:   b.norm("post_attention_layernorm"),
		PreFeedforwardLayernorm:  b.norm("pre_feedforward_layernorm"),
		PostFeedforwardLayernorm: b.norm("post_feedforward_layernorm"),
		PerLayerInputGate:        b.linear("per_layer_input_gate"),
		PerLayerProjection:       b.linear("per_layer_projection"),
		PostPerLayerInputNorm:    b.norm("post_per_layer_input_norm"),
		points: layerPoints{
			in: b.point("in"), perLayerInput: b.point("per_layer_input"), activePrediction: b.point("active_prediction"),
			attnGated: b.point("attn_gated"), attnLaurel: b.point("attn_laurel"), attnFfwLaurelGated: b.point("attn_ffw_laurel_gated"),
			actFn: b.point("act_fn"), perLayerGated: b.point("per_layer_gated"), out: b.point("out"),
		},
	}
	if l.SelfAttn.source == nil {
		l.SelfAttn.source = &l.SelfAttn
	}
	return l
}

func (b *builder) altUp() AltUp {
	router := func(of string) routerPoints {
		return routerPoints{b.point(of + ".router_norm"), b.point(of + ".router_input"), b.point(of + ".modality_router"), b.point(of + ".modalities")}
	}
	a := AltUp{
		settings:        b.settings,
		CorrectionCoefs: b.linear("altup.correction_coefs"), PredictionCoefs: b.linear("altup.prediction_coefs"),
		ModalityRouter: b.linearAt("altup.modality_router", point{}),
		RouterNorm:     RMSNorm{weight: b.vector("altup.router_norm.weight"), width: b.hidden, eps: float32(b.config.RMSNormEps)},
		before:         router("altup.predict"), after: router("altup.correct"),
		predictOut: b.point("altup.predict"), innovation: b.point("altup.correct.innovation"),
		correctOut: b.point("altup.correct"), scaledCorrected: b.point("altup.scale_corrected_output"),
	}
	if b.config.Gemma3n.AltUpCorrectScale {
		a.CorrectOutputScale = b.vector("altup.correct_output_scale")
	}
	return a
}

func (b *builder) attention(i int, before []*Layer) Attention {
	a := Attention{
		settings: b.settings, layerType: b.config.LayerTypes[i],
		QProj: b.linear("self_attn.q_proj"), OProj: b.linear("self_attn.o_proj"), QNorm: b.norm("self_attn.q_norm"),
		points: attentionPoints{
			qRope: b.point("self_attn.q_rope"), keys: b.point("self_attn.keys"), values: b.point("self_attn.values"),
			scores: b.point("self_attn.scores"), masked: b.point("self_attn.scores_masked"), probsF32: b.point("self_attn.probs_f32"),
			probs: b.point("self_attn.probs"), context: b.point("self_attn.context"),
		},
	}
	if source := b.config.KVSource(i); source != i {
		a.source = &before[source].SelfAttn
		return a
	}
	a.KProj, a.VProj, a.KNorm = b.linear("self_attn.k_proj"), b.linear("self_attn.v_proj"), b.norm("self_attn.k_norm")
	a.VNorm = RMSNorm{width: b.headDim, eps: float32(b.config.RMSNormEps), out: b.point("self_attn.v_norm")}
	a.points.kRope = b.point("self_attn.k_rope")
	return a
}

func (b *builder) mlp(i int) MLP {
	m := MLP{
		GateProj: b.linear("mlp.gate_proj"), UpProj: b.linear("mlp.up_proj"), DownProj: b.linear("mlp.down_proj"),
		actFn: b.point("mlp.act_fn"), gate: b.point("mlp.gated"),
	}
	if b.config.Gemma3n.Sparsity[i] > 0 {
		m.sparse = true
		m.mean, m.std = b.point("mlp.sparsity.mean"), b.point("mlp.sparsity.std")
		m.cutoff, m.gateSparse = b.point("mlp.sparsity.cutoff"), b.point("mlp.gate_sparse")
		cutoff, ok := m.cutoff.entry.Op.(op.Cutoff)
		if !ok {
			b.fail(fmt.Errorf("the order has no cutoff for layer %d", i))
		}
		m.multiplier = cutoff.Multiplier.Value
	}
	return m
}

// point resolves a name of the order. A name that the order does not have is a mistake in this package.
func (b *builder) point(name string) point {
	e, ok := b.list.Lookup(b.prefix + name)
	if !ok {
		b.fail(fmt.Errorf("the order has no entry %s", b.prefix+name))
		return point{entry: &order.Entry{}}
	}
	return point{b.registry.Point(b.prefix + name), e}
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// matrix takes a weight of the layer being built; Require has seen that it is there.
func (b *builder) matrix(name string) kernel.Matrix {
	t, ok := b.ck.Tensor(b.prefix + name)
	if !ok && name == "lm_head.weight" {
		t, _ = b.ck.Tensor("embed_tokens.weight")
	}
	m, err := kernel.NewMatrix(t, b.arith)
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", b.prefix+name, err))
	}
	return m
}

// vector reads a small weight into memory.
func (b *builder) vector(name string) []float32 {
	m := b.matrix(name)
	v := make([]float32, m.Cols)
	if b.err == nil {
		m.Row(v, 0)
	}
	return v
}

func (b *builder) linear(module string) Linear { return b.linearAt(module, b.point(module)) }

func (b *builder) linearAt(module string, out point) Linear {
	l := Linear{weight: b.matrix(module + ".weight"), out: out}
	if out.entry != nil && len(out.entry.Weights) == 2 {
		l.bias = b.vector(module + ".bias")
	}
	return l
}

func (b *builder) norm(module string) RMSNorm {
	w := b.vector(module + ".weight")
	return RMSNorm{weight: w, width: len(w), eps: float32(b.config.RMSNormEps), out: b.point(module)}
}

func (b *builder) embedding(module string, width int, fallback bool) Embedding {
	return Embedding{
		weight: b.matrix(module + ".weight"), scale: math.Sqrt(float64(width)), fallback: fallback,
		lookup: b.point(module + ".lookup"), out: b.point(module),
	}
}
