package order

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/order/op"
)

func readGemma3n(f *fields) *Config {
	c := common(f, "gemma3n_text", sizes{262400, 2048, 16384, 35, 8, 2, 256, 32768, "hidden_activation"})
	c.Rope = f.ropeByType(c.MaxPositions)
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return (i+1)%5 == 0 })
	c.SlidingWindow = f.int("sliding_window", 512)
	c.FinalSoftcap = f.softcap("final_logit_softcapping", 30)
	c.Gemma3n = &Gemma3nConfig{
		PerLayerVocab:     f.int("vocab_size_per_layer_input", 262144),
		PerLayerWidth:     f.int("hidden_size_per_layer_input", 256),
		SharedLayers:      f.int("num_kv_shared_layers", 15),
		Sparsity:          readSparsity(f, c.NumLayers),
		LaurelRank:        f.int("laurel_rank", 64),
		AltUpStreams:      f.int("altup_num_inputs", 4),
		AltUpActive:       f.int("altup_active_idx", 0),
		AltUpCoefClip:     f.float("altup_coef_clip", 120),
		AltUpCorrectScale: f.bool("altup_correct_scale", true),
	}
	return c
}

// readSparsity derives, where the pattern is absent: ten layers of 0.95 and then none if there are more than ten.
func readSparsity(f *fields, layers int) []float64 {
	var list []float64
	if f.value("activation_sparsity_pattern", &list, "a list of numbers") || layers < 0 || layers > maxLayers {
		return list
	}
	list = make([]float64, layers)
	if layers > 10 {
		for i := range 10 {
			list[i] = 0.95
		}
	}
	return list
}

// gemma3n lists the text decoder of Gemma 3n as transformers 5.23 runs it (modeling_gemma3n). Rows stand in the order
// of data flow; where it leaves a choice, sliding comes before full, cos before sin, and streams ascend, each
// projection followed by its magnitude.
func gemma3n(c *Config) *List {
	b := &gemma3nList{builder: newBuilder(c, op.Plain, "hidden_states"), g: c.Gemma3n}
	b.streams = shape("abtc", b.g.AltUpStreams, 1, T, c.HiddenSize)
	b.scalar = flat(1)
	b.arguments()
	b.scaledEmbedding()
	b.perLayerInputs()
	b.masks()
	b.expand()
	b.rotary()
	in := "altup.init"
	for i := range c.NumLayers {
		b.layer(i, in)
		in = InLayer(i, "out").String()
	}
	b.output(in)
	return newList(c, b.entries)
}

// magnitudeFloor keeps the mean square of a stream from zero.
const magnitudeFloor = 1e-5

type gemma3nList struct {
	*builder
	g               *Gemma3nConfig
	streams, scalar layout // [A,1,T,H], [1,T,1]
}

// stream refers to one stream of a stack.
func stream(name string, k int) Ref { return Ref{Name: name, Index: &k} }

func (b *gemma3nList) call(module, method, arg string) Source {
	if module != "" {
		module = b.prefix + module
	}
	return Source{Kind: Call, Module: module, Name: method, Arg: arg}
}

func (b *gemma3nList) perLayerInputs() {
	width := b.NumLayers * b.g.PerLayerWidth
	l := shape("btlc", 1, T, b.NumLayers, b.g.PerLayerWidth)
	table := Weight{Name: "embed_tokens_per_layer.weight", Shape: []int{b.g.PerLayerVocab, width}}
	lookup := op.Lookup{Rows: b.g.PerLayerVocab, Fallback: true}
	b.add(3, "embed_tokens_per_layer.lookup", l, derived, lookup, ref("input_ids")).Weights = []Weight{table}
	b.add(2, "embed_tokens_per_layer", l, b.out("embed_tokens_per_layer"),
		op.Scale{By: cast(math.Sqrt(float64(b.g.PerLayerWidth)))}, ref("embed_tokens_per_layer.lookup"))
	b.add(2, "inputs_embeds", b.hidden, b.call("", "project_per_layer_inputs", "inputs_embeds"), op.Identity{}, ref("embed_tokens"))
	b.linear(2, "per_layer_model_projection", l, b.HiddenSize, false, ref("inputs_embeds"))
	b.add(3, "per_layer_model_projection.scaled", l, b.inNorm("per_layer_projection_norm"),
		op.Scale{By: cast(1 / math.Sqrt(float64(b.HiddenSize)))}, ref("per_layer_model_projection"))
	b.rms(2, "per_layer_projection_norm", l, "per_layer_model_projection.scaled")
	b.add(1, "per_layer_inputs", l, b.call("", "project_per_layer_inputs", ""),
		op.AddScale{By: cast(1 / math.Sqrt2)}, ref("per_layer_projection_norm"), ref("embed_tokens_per_layer"))
}

// expand turns the embedding into AltUp's streams.
func (b *gemma3nList) expand() {
	b.add(3, "altup.init.target_magnitude", b.scalar, derived, op.Magnitude{}, ref("inputs_embeds"))
	inputs := []Ref{ref("inputs_embeds"), ref("altup.init.target_magnitude")}
	for k := 1; k < b.g.AltUpStreams; k++ {
		projection, magnitude := fmt.Sprintf("altup_projections.%d", k-1), fmt.Sprintf("altup.init.magnitude.%d", k)
		b.linear(2, projection, b.hidden, b.HiddenSize, false, ref("inputs_embeds"))
		b.add(3, magnitude, b.scalar, derived, op.Magnitude{Floor: magnitudeFloor}, ref(projection))
		inputs = append(inputs, ref(projection), ref(magnitude))
	}
	b.add(1, "altup.init", b.streams, b.in(LayerPath(0), "hidden_states"), op.AltUpInit{}, inputs...)
}

// layer lists decoder layer i, whose streams come from the entry in.
func (b *gemma3nList) layer(i int, in string) {
	b.enter(i)
	defer b.leave()
	active := b.g.AltUpActive
	b.add(2, "in", b.streams, b.inLayer("hidden_states"), op.Identity{}, ref("/"+in))
	b.add(3, "per_layer_input", flat(b.g.PerLayerWidth), b.inLayer("per_layer_input"),
		op.Select{Axis: 2, Index: i}, ref("/per_layer_inputs"))
	b.router("altup.predict", 0, stream("in", active))
	coefs := b.g.AltUpStreams * b.g.AltUpStreams
	b.linear(2, "altup.prediction_coefs", flat(coefs), b.g.AltUpStreams, false, ref("altup.predict.modalities"))
	b.add(1, "altup.predict", b.streams, b.call("altup", "predict", ""), op.AltUpPredict{Streams: b.g.AltUpStreams},
		ref("altup.prediction_coefs"), ref("in"))
	b.add(2, "active_prediction", b.hidden, b.inNorm("input_layernorm"), op.Identity{}, stream("altup.predict", active))
	b.rms(2, "input_layernorm", b.hidden, "active_prediction")
	b.laurel()
	b.attend(i, "input_layernorm", attention{headNorms: true, valueNorm: true, scale: 1})
	b.rms(2, "post_attention_layernorm", b.hidden, "self_attn.o_proj")
	b.add(3, "attn_gated", b.hidden, derived, op.Add{}, ref("active_prediction"), ref("post_attention_layernorm"))
	b.add(1, "attn_laurel", b.hidden, b.inNorm("pre_feedforward_layernorm"),
		op.AddScale{By: scalar(math.Sqrt2), Divide: true}, ref("attn_gated"), ref("laurel"))
	b.rms(2, "pre_feedforward_layernorm", b.hidden, "attn_laurel")
	b.gated(i, "pre_feedforward_layernorm", b.sparsity(i, b.gate(i, "pre_feedforward_layernorm")))
	b.rms(2, "post_feedforward_layernorm", b.hidden, "mlp.down_proj")
	b.add(1, "attn_ffw_laurel_gated", b.hidden, b.call("altup", "correct", "activated"), op.Add{},
		ref("attn_laurel"), ref("post_feedforward_layernorm"))
	b.correct(active)
	b.perLayer(active)
	b.add(1, "out", b.streams, b.outLayer(), op.AddToOthers{},
		ref("altup.correct"), ref("post_per_layer_input_norm"))
}

// router lists AltUp's router, which runs twice a layer: call is 0 in predict and 1 in correct.
func (b *gemma3nList) router(of string, call int, from Ref) {
	a := b.g.AltUpStreams
	second := func(s Source) Source { s.Call = call; return s }
	norm := b.add(3, of+".router_norm", b.hidden, second(b.out("altup.router_norm")), b.norm, from)
	norm.Weights = []Weight{b.weight("altup.router_norm.weight", b.HiddenSize)}
	b.add(3, of+".router_input", b.hidden, second(b.inLinear("altup.modality_router")),
		op.Scale{By: cast(1 / float64(b.HiddenSize))}, ref(of+".router_norm"))
	routed := b.add(3, of+".modality_router", flat(a), second(b.out("altup.modality_router")), op.Linear{}, ref(of+".router_input"))
	routed.Weights = []Weight{b.weight("altup.modality_router.weight", a, b.HiddenSize)}
	coefs := "altup.prediction_coefs"
	if call == 1 {
		coefs = "altup.correction_coefs"
	}
	b.add(2, of+".modalities", flat(a), b.inLinear(coefs), op.Tanh{}, ref(of+".modality_router"))
}

func (b *gemma3nList) laurel() {
	rank := b.g.LaurelRank
	b.linear(2, "laurel.linear_left", flat(rank), b.HiddenSize, false, ref("input_layernorm"))
	b.linear(2, "laurel.linear_right", b.hidden, rank, false, ref("laurel.linear_left"))
	b.rms(2, "laurel.post_laurel_norm", b.hidden, "laurel.linear_right")
	b.add(1, "laurel", b.hidden, b.out("laurel"), op.Add{}, ref("input_layernorm"), ref("laurel.post_laurel_norm"))
}

// sparsity lists the Gaussian top-k of layer i's gate, where it has one, and returns what the activation takes.
func (b *gemma3nList) sparsity(i int, gate string) string {
	p := b.g.Sparsity[i]
	if p == 0 {
		return gate
	}
	b.add(3, "mlp.sparsity.mean", b.scalar, derived, op.Mean{}, ref(gate))
	b.add(3, "mlp.sparsity.std", b.scalar, derived, op.Std{}, ref(gate))
	b.add(3, "mlp.sparsity.cutoff", b.scalar, derived, op.Cutoff{Multiplier: cast(normalQuantile(p))},
		ref("mlp.sparsity.mean"), ref("mlp.sparsity.std"))
	b.add(2, "mlp.gate_sparse", flat(b.IntermediateSize[i]), b.call("mlp", "_gaussian_topk", ""), op.ShiftedReLU{},
		ref(gate), ref("mlp.sparsity.cutoff"))
	return "mlp.gate_sparse"
}

// normalQuantile is Φ⁻¹(p) as torch has it in float32: √2·erfinv(2p−1), with p and 2p−1 rounded to float32.
func normalQuantile(p float64) float64 {
	x := float32(2*float32(p)) - 1
	return float64(float32(math.Erfinv(float64(x))) * float32(math.Sqrt2))
}

// correct lists what the layer changes in all streams: the innovation is against the prediction of the active one.
func (b *gemma3nList) correct(active int) {
	a := b.g.AltUpStreams
	b.router("altup.correct", 1, ref("attn_ffw_laurel_gated"))
	b.linear(2, "altup.correction_coefs", flat(a), a, false, ref("altup.correct.modalities"))
	b.add(3, "altup.correct.innovation", b.hidden, derived, op.Sub{}, ref("attn_ffw_laurel_gated"), stream("altup.predict", active))
	b.add(1, "altup.correct", b.streams, b.call("altup", "correct", ""), op.AltUpCorrect{Streams: a},
		ref("altup.correct.innovation"), ref("altup.correction_coefs"), ref("altup.predict"))
}

// perLayer lists the per-layer input's way into the streams.
func (b *gemma3nList) perLayer(active int) {
	narrow := flat(b.g.PerLayerWidth)
	scaled := b.add(2, "altup.scale_corrected_output", b.hidden, b.inLinear("per_layer_input_gate"), op.Identity{}, stream("altup.correct", active))
	if b.g.AltUpCorrectScale {
		scaled.Op = op.ScaleChannels{}
		scaled.Weights = []Weight{b.weight("altup.correct_output_scale", b.HiddenSize)}
	}
	b.linear(2, "per_layer_input_gate", narrow, b.HiddenSize, false, ref("altup.scale_corrected_output"))
	b.add(2, "act_fn", narrow, b.out("act_fn"), op.GELUTanh{}, ref("per_layer_input_gate"))
	b.add(2, "per_layer_gated", narrow, b.inLinear("per_layer_projection"), op.Mul{}, ref("act_fn"), ref("per_layer_input"))
	b.linear(2, "per_layer_projection", b.hidden, b.g.PerLayerWidth, false, ref("per_layer_gated"))
	b.rms(2, "post_per_layer_input_norm", b.hidden, "per_layer_projection")
}

// output lists the way from the last layer's streams to the logits.
func (b *gemma3nList) output(in string) {
	b.add(3, "altup.final.target_magnitude", b.scalar, derived, op.Magnitude{}, stream(in, 0))
	mean := []Ref{stream(in, 0)}
	for k := 1; k < b.g.AltUpStreams; k++ {
		projection := fmt.Sprintf("altup_unembed_projections.%d", k-1)
		magnitude, rescaled := fmt.Sprintf("altup.final.magnitude.%d", k), fmt.Sprintf("altup.final.stream.%d", k)
		b.linear(2, projection, b.hidden, b.HiddenSize, false, stream(in, k))
		b.add(3, magnitude, b.scalar, derived, op.Magnitude{Floor: magnitudeFloor}, ref(projection))
		b.add(3, rescaled, b.hidden, derived, op.Rescale{}, ref(projection), ref("altup.final.target_magnitude"), ref(magnitude))
		mean = append(mean, ref(rescaled))
	}
	b.add(1, "altup.final.mean", b.hidden, b.inNorm("norm"), op.StreamMean{}, mean...)
	b.rms(1, "norm", b.hidden, "altup.final.mean")
	b.head()
}
