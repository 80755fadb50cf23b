package order

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/order/op"
)

// gemma3n lists the text decoder of Gemma 3n as transformers 5.23 runs it (modeling_gemma3n). Rows stand in the order
// of data flow; where it leaves a choice, sliding comes before full, cos before sin, and streams ascend, each
// projection followed by its magnitude.
func gemma3n(c *Config) *List {
	b := &gemma3nList{Config: c, g: c.Gemma3n, norm: op.RMSNorm{Eps: c.RMSNormEps, Gain: op.Plain}}
	b.hidden = shape("btc", 1, T, c.HiddenSize)
	b.streams = shape("abtc", b.g.AltUpStreams, 1, T, c.HiddenSize)
	b.scalar = shape("btc", 1, T, 1)
	b.embedding()
	b.perLayerInputs()
	b.masks()
	b.expand()
	b.rotary()
	in := "altup.init"
	for i := range c.NumLayers {
		b.layer(i, in)
		in = fmt.Sprintf("layers.%d.out", i)
	}
	b.output(in)
	return newList(c, b.entries)
}

// magnitudeFloor keeps the mean square of a stream from zero.
const magnitudeFloor = 1e-5

type gemma3nList struct {
	*Config
	g       *Gemma3nConfig
	norm    op.RMSNorm
	entries []Entry
	prefix  string // of the layer being listed
	index   int    // that layer, −1 outside

	hidden, streams, scalar layout // [1,T,H], [A,1,T,H], [1,T,1]
}

// layout is a shape with the roles of its axes.
type layout struct {
	dims []Dim
	axes string
}

// shape builds a layout from axis letters and sizes, a size being an int or a Dim.
func shape(axes string, sizes ...any) layout {
	l := layout{axes: axes}
	for _, s := range sizes {
		switch s := s.(type) {
		case int:
			l.dims = append(l.dims, Dim(s))
		case Dim:
			l.dims = append(l.dims, s)
		}
	}
	return l
}

// add appends an entry; name, inputs and weights are relative to the current layer. An input that starts with "/" is
// not.
func (b *gemma3nList) add(level int, name string, l layout, hf Source, o op.Op, inputs ...Ref) *Entry {
	for i := range inputs {
		inputs[i].Name = b.path(inputs[i].Name)
	}
	b.entries = append(b.entries, Entry{
		Name: b.prefix + name, Layer: b.layerIndex(), Level: level, Op: o, Inputs: inputs, Shape: l.dims, Axes: l.axes, HF: hf,
	})
	return &b.entries[len(b.entries)-1]
}

func (b *gemma3nList) layerIndex() int {
	if b.prefix == "" {
		return -1
	}
	return b.index
}

func (b *gemma3nList) path(name string) string {
	if name[0] == '/' {
		return name[1:]
	}
	return b.prefix + name
}

func (b *gemma3nList) weight(name string, shape ...int) Weight {
	return Weight{Name: b.path(name), Shape: shape}
}

// linear appends a Linear shown as a module's output; the layer's attention projections may have a bias.
func (b *gemma3nList) linear(level int, name string, l layout, out, in int, bias bool, from Ref) {
	e := b.add(level, name, l, b.out(name), op.Linear{Bias: bias}, from)
	e.Weights = []Weight{b.weight(name+".weight", out, in)}
	if bias {
		e.Weights = append(e.Weights, b.weight(name+".bias", out))
	}
}

// rms appends an RMSNorm shown as a module's output, its weight as long as the last axis.
func (b *gemma3nList) rms(level int, name string, l layout, from string) {
	e := b.add(level, name, l, b.out(name), b.norm, ref(from))
	e.Weights = []Weight{b.weight(name+".weight", int(l.dims[len(l.dims)-1]))}
}

func ref(name string) Ref { return Ref{Name: name} }

// stream refers to one stream of a stack.
func stream(name string, k int) Ref { return Ref{Name: name, Index: &k} }

var derived = Source{Kind: Derived}

func (b *gemma3nList) out(module string) Source { return Source{Kind: Out, Module: b.prefix + module} }

func (b *gemma3nList) in(module, parameter string) Source {
	return Source{Kind: In, Module: b.prefix + module, Name: parameter}
}

// inLinear is the input of a torch Linear, whose parameter is called input.
func (b *gemma3nList) inLinear(module string) Source { return b.in(module, "input") }

func (b *gemma3nList) call(module, method, arg string) Source {
	if module != "" {
		module = b.prefix + module
	}
	return Source{Kind: Call, Module: module, Name: method, Arg: arg}
}

func cast(v float64) op.Const   { return op.Const{Value: v, Cast: true} }
func scalar(v float64) op.Const { return op.Const{Value: v} }

func (b *gemma3nList) embedding() {
	table := Weight{Name: "embed_tokens.weight", Shape: []int{b.VocabSize, b.HiddenSize}}
	ids := b.add(1, "input_ids", shape("bt", 1, T), Source{Kind: Input, Name: "input_ids"}, op.Argument{})
	ids.DType = "int64"
	pos := b.add(2, "position_ids", shape("bt", 1, T), b.in("layers.0", "position_ids"), op.Argument{})
	pos.DType = "int64"
	b.add(3, "embed_tokens.lookup", b.hidden, derived, op.Lookup{Rows: b.VocabSize}, ref("input_ids")).Weights = []Weight{table}
	b.add(1, "embed_tokens", b.hidden, b.out("embed_tokens"), op.Scale{By: cast(math.Sqrt(float64(b.HiddenSize)))}, ref("embed_tokens.lookup"))
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
	b.linear(2, "per_layer_model_projection", l, width, b.HiddenSize, false, ref("inputs_embeds"))
	b.add(3, "per_layer_model_projection.scaled", l, b.in("per_layer_projection_norm", "hidden_states"),
		op.Scale{By: cast(1 / math.Sqrt(float64(b.HiddenSize)))}, ref("per_layer_model_projection"))
	b.rms(2, "per_layer_projection_norm", l, "per_layer_model_projection.scaled")
	b.add(1, "per_layer_inputs", l, b.call("", "project_per_layer_inputs", ""),
		op.AddScale{By: cast(1 / math.Sqrt2)}, ref("per_layer_projection_norm"), ref("embed_tokens_per_layer"))
}

func (b *gemma3nList) masks() {
	for _, t := range b.Types() {
		first := 0
		for b.LayerTypes[first] != t {
			first++
		}
		e := b.add(3, "mask."+short(t), shape("bhts", 1, 1, T, keys(t)), b.in(fmt.Sprintf("layers.%d", first), "attention_mask"),
			op.Mask{Window: b.Window(t)}, ref("position_ids"))
		e.Compare = Pattern
	}
}

// short is the layer type as tensor names have it: "sliding" or "full".
func short(layerType string) string {
	if layerType == Sliding {
		return "sliding"
	}
	return "full"
}

// keys is the number of keys that layers of a type see.
func keys(layerType string) Dim {
	if layerType == Sliding {
		return SSliding
	}
	return SFull
}

// expand turns the embedding into AltUp's streams.
func (b *gemma3nList) expand() {
	b.add(3, "altup.init.target_magnitude", b.scalar, derived, op.Magnitude{}, ref("inputs_embeds"))
	inputs := []Ref{ref("inputs_embeds"), ref("altup.init.target_magnitude")}
	for k := 1; k < b.g.AltUpStreams; k++ {
		projection, magnitude := fmt.Sprintf("altup_projections.%d", k-1), fmt.Sprintf("altup.init.magnitude.%d", k)
		b.linear(2, projection, b.hidden, b.HiddenSize, b.HiddenSize, false, ref("inputs_embeds"))
		b.add(3, magnitude, b.scalar, derived, op.Magnitude{Floor: magnitudeFloor}, ref(projection))
		inputs = append(inputs, ref(projection), ref(magnitude))
	}
	b.add(1, "altup.init", b.streams, b.in("layers.0", "hidden_states"), op.AltUpInit{}, inputs...)
}

func (b *gemma3nList) rotary() {
	for _, t := range b.Types() {
		r := b.Rope[t]
		for item, part := range []string{"cos", "sin"} {
			hf := b.out("rotary_emb")
			hf.When, hf.Item = t, &item
			b.add(2, "rotary."+short(t)+"."+part, shape("btc", 1, T, b.HeadDim), hf, op.Rotary{
				Theta: r.Theta, Dim: b.HeadDim, Scaling: r.Type, Factor: r.Factor, LowFreq: r.LowFreq, HighFreq: r.HighFreq,
				Positions: r.OriginalPositions, Sin: part == "sin",
			}, ref("position_ids"))
		}
	}
}

// layer lists decoder layer i, whose streams come from the entry in.
func (b *gemma3nList) layer(i int, in string) {
	b.prefix, b.index = fmt.Sprintf("layers.%d.", i), i
	active := b.g.AltUpActive
	layerInput := func(parameter string) Source {
		return Source{Kind: In, Module: fmt.Sprintf("layers.%d", i), Name: parameter}
	}
	b.add(2, "in", b.streams, layerInput("hidden_states"), op.Identity{}, ref("/"+in))
	b.add(3, "per_layer_input", shape("btc", 1, T, b.g.PerLayerWidth), layerInput("per_layer_input"),
		op.Select{Axis: 2, Index: i}, ref("/per_layer_inputs"))
	b.router("altup.predict", 0, stream("in", active))
	coefs := b.g.AltUpStreams * b.g.AltUpStreams
	b.linear(2, "altup.prediction_coefs", shape("btc", 1, T, coefs), coefs, b.g.AltUpStreams, false, ref("altup.predict.modalities"))
	b.add(1, "altup.predict", b.streams, b.call("altup", "predict", ""), op.AltUpPredict{Streams: b.g.AltUpStreams},
		ref("altup.prediction_coefs"), ref("in"))
	b.add(2, "active_prediction", b.hidden, b.in("input_layernorm", "hidden_states"), op.Identity{}, stream("altup.predict", active))
	b.rms(2, "input_layernorm", b.hidden, "active_prediction")
	b.laurel()
	b.attention(i)
	b.rms(2, "post_attention_layernorm", b.hidden, "self_attn.o_proj")
	b.add(3, "attn_gated", b.hidden, derived, op.Add{}, ref("active_prediction"), ref("post_attention_layernorm"))
	b.add(1, "attn_laurel", b.hidden, b.in("pre_feedforward_layernorm", "hidden_states"),
		op.AddScale{By: scalar(math.Sqrt2), Divide: true}, ref("attn_gated"), ref("laurel"))
	b.rms(2, "pre_feedforward_layernorm", b.hidden, "attn_laurel")
	b.mlp(i)
	b.rms(2, "post_feedforward_layernorm", b.hidden, "mlp.down_proj")
	b.add(1, "attn_ffw_laurel_gated", b.hidden, b.call("altup", "correct", "activated"), op.Add{},
		ref("attn_laurel"), ref("post_feedforward_layernorm"))
	b.correct()
	b.perLayer(active)
	b.add(1, "out", b.streams, Source{Kind: Out, Module: fmt.Sprintf("layers.%d", i)}, op.AddToOthers{},
		ref("altup.correct"), ref("post_per_layer_input_norm"))
	b.prefix = ""
}

// router lists AltUp's router, which runs twice a layer: call is 0 in predict and 1 in correct.
func (b *gemma3nList) router(of string, call int, from Ref) {
	a := b.g.AltUpStreams
	second := func(s Source) Source { s.Call = call; return s }
	norm := b.add(3, of+".router_norm", b.hidden, second(b.out("altup.router_norm")), b.norm, from)
	norm.Weights = []Weight{b.weight("altup.router_norm.weight", b.HiddenSize)}
	b.add(3, of+".router_input", b.hidden, second(b.inLinear("altup.modality_router")),
		op.Scale{By: cast(1 / float64(b.HiddenSize))}, ref(of+".router_norm"))
	routed := b.add(3, of+".modality_router", shape("btc", 1, T, a), second(b.out("altup.modality_router")), op.Linear{}, ref(of+".router_input"))
	routed.Weights = []Weight{b.weight("altup.modality_router.weight", a, b.HiddenSize)}
	coefs := "altup.prediction_coefs"
	if call == 1 {
		coefs = "altup.correction_coefs"
	}
	b.add(2, of+".modalities", shape("btc", 1, T, a), b.inLinear(coefs), op.Tanh{}, ref(of+".modality_router"))
}

func (b *gemma3nList) laurel() {
	rank := b.g.LaurelRank
	b.linear(2, "laurel.linear_left", shape("btc", 1, T, rank), rank, b.HiddenSize, false, ref("input_layernorm"))
	b.linear(2, "laurel.linear_right", b.hidden, b.HiddenSize, rank, false, ref("laurel.linear_left"))
	b.rms(2, "laurel.post_laurel_norm", b.hidden, "laurel.linear_right")
	b.add(1, "laurel", b.hidden, b.out("laurel"), op.Add{}, ref("input_layernorm"), ref("laurel.post_laurel_norm"))
}

func (b *gemma3nList) attention(i int) {
	t := b.LayerTypes[i]
	cos, sin := ref("/rotary."+short(t)+".cos"), ref("/rotary."+short(t)+".sin")
	heads := func(n int) layout { return shape("bthc", 1, T, n, b.HeadDim) }
	roped := func(n int) layout { return shape("bhtc", 1, n, T, b.HeadDim) }
	cached := shape("bhsc", 1, b.NumKVHeads, keys(t), b.HeadDim)
	scores := shape("bhts", 1, b.NumHeads, T, keys(t))
	attn := func(role string) Source {
		return Source{Kind: Attention, Module: b.prefix + "self_attn", Name: role}
	}
	qWidth, kvWidth := b.NumHeads*b.HeadDim, b.NumKVHeads*b.HeadDim
	flat := func(n int) layout { return shape("btc", 1, T, n) }

	b.linear(2, "self_attn.q_proj", flat(qWidth), qWidth, b.HiddenSize, b.AttentionBias, ref("input_layernorm"))
	b.rms(2, "self_attn.q_norm", heads(b.NumHeads), "self_attn.q_proj")
	b.add(2, "self_attn.q_rope", roped(b.NumHeads), attn("query"), op.RoPE{}, ref("self_attn.q_norm"), cos, sin)
	if source := b.KVSource(i); source == i {
		b.linear(2, "self_attn.k_proj", flat(kvWidth), kvWidth, b.HiddenSize, b.AttentionBias, ref("input_layernorm"))
		b.rms(2, "self_attn.k_norm", heads(b.NumKVHeads), "self_attn.k_proj")
		last := attn("key")
		last.LastT = true
		b.add(2, "self_attn.k_rope", roped(b.NumKVHeads), last, op.RoPE{}, ref("self_attn.k_norm"), cos, sin)
		b.linear(2, "self_attn.v_proj", flat(kvWidth), kvWidth, b.HiddenSize, b.AttentionBias, ref("input_layernorm"))
		b.add(2, "self_attn.v_norm", heads(b.NumKVHeads), b.out("self_attn.v_norm"),
			op.RMSNorm{Eps: b.RMSNormEps, Gain: op.NoScale}, ref("self_attn.v_proj"))
		b.add(3, "self_attn.keys", cached, attn("key"), op.Cache{Window: b.Window(t)},
			ref("self_attn.k_rope"), Ref{Name: "self_attn.keys", Prev: true})
		b.add(3, "self_attn.values", cached, attn("value"), op.Cache{Window: b.Window(t), Transpose: true},
			ref("self_attn.v_norm"), Ref{Name: "self_attn.values", Prev: true})
	} else {
		b.add(3, "self_attn.keys", cached, attn("key"), op.Identity{}, ref(fmt.Sprintf("/layers.%d.self_attn.keys", source)))
		b.add(3, "self_attn.values", cached, attn("value"), op.Identity{}, ref(fmt.Sprintf("/layers.%d.self_attn.values", source)))
	}
	b.add(3, "self_attn.scores", scores, attn("scores"), op.Scores{Scale: 1}, ref("self_attn.q_rope"), ref("self_attn.keys"))
	masked := b.add(3, "self_attn.scores_masked", scores, attn("scores_masked"), op.Add{}, ref("self_attn.scores"), ref("/mask."+short(t)))
	masked.Compare = Allowed
	b.add(3, "self_attn.probs_f32", scores, attn("probs_f32"), op.Softmax{}, ref("self_attn.scores_masked")).DType = "float32"
	b.add(2, "self_attn.probs", scores, attn("probs"), op.Cast{}, ref("self_attn.probs_f32"))
	b.add(2, "self_attn.context", flat(qWidth), b.inLinear("self_attn.o_proj"), op.Context{}, ref("self_attn.probs"), ref("self_attn.values"))
	b.linear(1, "self_attn.o_proj", b.hidden, b.HiddenSize, qWidth, b.AttentionBias, ref("self_attn.context"))
}

func (b *gemma3nList) mlp(i int) {
	width := b.IntermediateSize[i]
	wide := shape("btc", 1, T, width)
	b.linear(2, "mlp.gate_proj", wide, width, b.HiddenSize, false, ref("pre_feedforward_layernorm"))
	gate := "mlp.gate_proj"
	if p := b.g.Sparsity[i]; p > 0 {
		b.add(3, "mlp.sparsity.mean", b.scalar, derived, op.Mean{}, ref(gate))
		b.add(3, "mlp.sparsity.std", b.scalar, derived, op.Std{}, ref(gate))
		b.add(3, "mlp.sparsity.cutoff", b.scalar, derived, op.Cutoff{Multiplier: cast(normalQuantile(p))},
			ref("mlp.sparsity.mean"), ref("mlp.sparsity.std"))
		b.add(2, "mlp.gate_sparse", wide, b.call("mlp", "_gaussian_topk", ""), op.ShiftedReLU{}, ref(gate), ref("mlp.sparsity.cutoff"))
		gate = "mlp.gate_sparse"
	}
	b.add(2, "mlp.act_fn", wide, b.out("mlp.act_fn"), op.GELUTanh{}, ref(gate))
	b.linear(2, "mlp.up_proj", wide, width, b.HiddenSize, false, ref("pre_feedforward_layernorm"))
	b.add(2, "mlp.gated", wide, b.inLinear("mlp.down_proj"), op.Mul{}, ref("mlp.act_fn"), ref("mlp.up_proj"))
	b.linear(1, "mlp.down_proj", b.hidden, b.HiddenSize, width, false, ref("mlp.gated"))
}

// normalQuantile is Φ⁻¹(p) as torch has it in float32: √2·erfinv(2p−1), with p and 2p−1 rounded to float32.
func normalQuantile(p float64) float64 {
	x := float32(2*float32(p)) - 1
	return float64(float32(math.Erfinv(float64(x))) * float32(math.Sqrt2))
}

func (b *gemma3nList) correct() {
	a := b.g.AltUpStreams
	b.router("altup.correct", 1, ref("attn_ffw_laurel_gated"))
	b.linear(2, "altup.correction_coefs", shape("btc", 1, T, a), a, a, false, ref("altup.correct.modalities"))
	b.add(3, "altup.correct.innovation", b.hidden, derived, op.Sub{}, ref("attn_ffw_laurel_gated"), ref("active_prediction"))
	b.add(1, "altup.correct", b.streams, b.call("altup", "correct", ""), op.AltUpCorrect{Streams: a},
		ref("altup.correct.innovation"), ref("altup.correction_coefs"), ref("altup.predict"))
}

// perLayer lists the per-layer input's way into the streams.
func (b *gemma3nList) perLayer(active int) {
	narrow := shape("btc", 1, T, b.g.PerLayerWidth)
	scaled := b.add(2, "altup.scale_corrected_output", b.hidden, b.inLinear("per_layer_input_gate"), op.Identity{}, stream("altup.correct", active))
	if b.g.AltUpCorrectScale {
		scaled.Op = op.ScaleChannels{}
		scaled.Weights = []Weight{b.weight("altup.correct_output_scale", b.HiddenSize)}
	}
	b.linear(2, "per_layer_input_gate", narrow, b.g.PerLayerWidth, b.HiddenSize, false, ref("altup.scale_corrected_output"))
	b.add(2, "act_fn", narrow, b.out("act_fn"), op.GELUTanh{}, ref("per_layer_input_gate"))
	b.add(2, "per_layer_gated", narrow, b.inLinear("per_layer_projection"), op.Mul{}, ref("act_fn"), ref("per_layer_input"))
	b.linear(2, "per_layer_projection", b.hidden, b.HiddenSize, b.g.PerLayerWidth, false, ref("per_layer_gated"))
	b.rms(2, "post_per_layer_input_norm", b.hidden, "per_layer_projection")
}

// output lists the way from the last layer's streams to the logits.
func (b *gemma3nList) output(in string) {
	b.add(3, "altup.final.target_magnitude", b.scalar, derived, op.Magnitude{}, stream(in, 0))
	mean := []Ref{stream(in, 0)}
	for k := 1; k < b.g.AltUpStreams; k++ {
		projection := fmt.Sprintf("altup_unembed_projections.%d", k-1)
		magnitude, rescaled := fmt.Sprintf("altup.final.magnitude.%d", k), fmt.Sprintf("altup.final.stream.%d", k)
		b.linear(2, projection, b.hidden, b.HiddenSize, b.HiddenSize, false, stream(in, k))
		b.add(3, magnitude, b.scalar, derived, op.Magnitude{Floor: magnitudeFloor}, ref(projection))
		b.add(3, rescaled, b.hidden, derived, op.Rescale{}, ref(projection), ref("altup.final.target_magnitude"), ref(magnitude))
		mean = append(mean, ref(rescaled))
	}
	b.add(1, "altup.final.mean", b.hidden, b.in("norm", "hidden_states"), op.StreamMean{}, mean...)
	b.rms(1, "norm", b.hidden, "altup.final.mean")
	logits := shape("btv", 1, T, b.VocabSize)
	tied := "" // an untied model without a head has no head: the embedding does not stand in
	if b.Tied {
		tied = "embed_tokens.weight"
	}
	head := b.add(2, "lm_head", logits, b.out("^lm_head"), op.Linear{}, ref("norm"))
	head.Weights = []Weight{{Name: "lm_head.weight", Fallback: tied, Shape: []int{b.VocabSize, b.HiddenSize}}}
	var softcap op.Op = op.Identity{}
	if b.FinalSoftcap > 0 {
		softcap = op.Softcap{Cap: b.FinalSoftcap}
	}
	b.add(1, "logits", logits, Source{Kind: Result, Name: "logits"}, softcap, ref("lm_head"))
}
