package order

import (
	"math"

	"github.com/tracediff/tracediff/order/op"
)

// builder appends the entries of one list. It holds what all families spell alike: names below the current layer,
// Linear and norm modules with their weights, and where transformers shows the tensors.
type builder struct {
	*Config
	place
	norm      op.RMSNorm // of every norm that has a weight
	normInput string     // what the family's norm modules call their input
	entries   []Entry
	hidden    layout // [1,T,H]
}

// place is the layer that is being listed. Names of entries, weights and modules are relative to it.
type place struct {
	prefix string // of its names
	index  int    // −1 outside of layers
}

func newBuilder(c *Config, gain op.Gain, normInput string) *builder {
	return &builder{
		Config: c, norm: op.RMSNorm{Eps: c.RMSNormEps, Gain: gain}, normInput: normInput, place: place{index: -1},
		hidden: shape("btc", 1, T, c.HiddenSize),
	}
}

// enter makes names relative to layer i, leave to the text model again.
func (p *place) enter(i int) { p.prefix, p.index = InLayer(i, "").String(), i }
func (p *place) leave()      { p.prefix, p.index = "", -1 }

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

// flat is [1,T,n].
func flat(n int) layout { return shape("btc", 1, T, n) }

// channels is how many numbers l, which is [1,T,..], has for a token.
func (l layout) channels() int {
	n := 1
	for _, d := range l.dims[2:] {
		n *= int(d)
	}
	return n
}

// add appends an entry; name, inputs and weights are relative to the current layer. An input that starts with "/" is
// not.
func (b *builder) add(level int, name string, l layout, hf Source, o op.Op, inputs ...Ref) *Entry {
	for i := range inputs {
		inputs[i].Name = b.path(inputs[i].Name)
	}
	b.entries = append(b.entries, Entry{
		Name: b.prefix + name, Layer: b.index, Level: level, Op: o, Inputs: inputs, Shape: l.dims, Axes: l.axes, HF: hf,
	})
	return &b.entries[len(b.entries)-1]
}

func (p *place) path(name string) string {
	if name[0] == '/' {
		return name[1:]
	}
	return p.prefix + name
}

func (p *place) weight(name string, shape ...int) Weight {
	return Weight{Name: p.path(name), Shape: shape}
}

// linear appends a Linear from so many channels, shown as a module's output.
func (b *builder) linear(level int, name string, l layout, in int, bias bool, from Ref) {
	out := l.channels()
	e := b.add(level, name, l, b.out(name), op.Linear{Bias: bias}, from)
	e.Weights = []Weight{b.weight(name+".weight", out, in)}
	if bias {
		e.Weights = append(e.Weights, b.weight(name+".bias", out))
	}
}

// rms appends an RMSNorm that is shown as a module's output. The weight has the length of the last axis.
func (b *builder) rms(level int, name string, l layout, from string) *Entry {
	e := b.add(level, name, l, b.out(name), b.norm, ref(from))
	e.Weights = []Weight{b.weight(name+".weight", int(l.dims[len(l.dims)-1]))}
	return e
}

func ref(name string) Ref { return Ref{Name: name} }

var derived = Source{Kind: Derived}

func (p *place) out(module string) Source { return Source{Kind: Out, Module: p.prefix + module} }

func (p *place) in(module, parameter string) Source {
	return Source{Kind: In, Module: p.prefix + module, Name: parameter}
}

// inLinear is the input of a torch Linear, whose parameter is called input.
func (p *place) inLinear(module string) Source { return p.in(module, "input") }

// inNorm is the input of one of the family's norms.
func (b *builder) inNorm(module string) Source { return b.in(module, b.normInput) }

// inLayer is an argument of the current layer.
func (p *place) inLayer(parameter string) Source {
	return Source{Kind: In, Module: LayerPath(p.index), Name: parameter}
}

// outLayer is the output of the current layer.
func (p *place) outLayer() Source { return Source{Kind: Out, Module: LayerPath(p.index)} }

func cast(v float64) op.Const   { return op.Const{Value: v, Cast: true} }
func scalar(v float64) op.Const { return op.Const{Value: v} }

// arguments lists what the caller gives.
func (b *builder) arguments() {
	b.add(1, InputIDs, shape("bt", 1, T), Source{Kind: Input, Name: InputIDs}, op.Argument{}).DType = "int64"
	b.add(2, PositionIDs, shape("bt", 1, T), b.in(LayerPath(0), "position_ids"), op.Argument{}).DType = "int64"
}

// lookup lists the rows of the embedding, before any scale.
func (b *builder) lookup(hf Source) {
	e := b.add(3, "embed_tokens.lookup", b.hidden, hf, op.Lookup{Rows: b.VocabSize}, ref(InputIDs))
	e.Weights = []Weight{{Name: embedding, Shape: []int{b.VocabSize, b.HiddenSize}}}
}

// embedding is the table of token vectors, which a tied head uses too.
const embedding = "embed_tokens.weight"

// scaledEmbedding lists Gemma's embedding, whose module multiplies by √H, rounded to the dtype, itself: what it looked
// up is shown nowhere.
func (b *builder) scaledEmbedding() {
	b.lookup(derived)
	b.add(1, "embed_tokens", b.hidden, b.out("embed_tokens"), op.Scale{By: cast(math.Sqrt(float64(b.HiddenSize)))}, ref("embed_tokens.lookup"))
}

func (b *builder) masks() {
	for _, t := range b.Types() {
		first := 0
		for b.LayerTypes[first] != t {
			first++
		}
		e := b.add(3, mask(t), shape("bhts", 1, 1, T, keys(t)), b.in(LayerPath(first), "attention_mask"),
			op.Mask{Window: b.Window(t)}, ref("position_ids"))
		e.Compare = Pattern
	}
}

func mask(layerType string) string { return "mask." + short(layerType) }

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

// rotary lists the tables of the rotary embedding: a pair of tables per layer type, or one pair for all layers.
func (b *builder) rotary() {
	if b.singleRope() {
		b.rotaryPair("rotary", "", b.Rope[Full])
		return
	}
	for _, t := range b.Types() {
		b.rotaryPair("rotary."+short(t), t, b.Rope[t])
	}
}

// rotaryPair lists cos and sin. The module returns both at once, and is called with the layer type where there is more
// than one pair.
func (b *builder) rotaryPair(name, layerType string, r Rope) {
	for item, part := range []string{"cos", "sin"} {
		hf := b.out("rotary_emb")
		hf.When, hf.Item = layerType, &item
		table := b.table(r)
		table.Sin = part == "sin"
		b.add(2, name+"."+part, flat(b.HeadDim), hf, table, ref("position_ids"))
	}
}

// table is that of cosines with some settings.
func (c *Config) table(r Rope) op.Rotary {
	return op.Rotary{
		Theta: r.Theta, Dim: c.HeadDim, Scaling: r.Type, Factor: r.Factor, LowFreq: r.LowFreq, HighFreq: r.HighFreq,
		Positions: r.OriginalPositions,
	}
}

// Frequencies are what the rotary pairs of layers of a type turn by, a position, and what they would be without the scaling.
func (c *Config) Frequencies(layerType string) (scaled, unscaled []float64) {
	r, ok := c.Rope[layerType]
	if !ok {
		r = c.Rope[Full]
	}
	return op.Frequencies(c.table(r)), op.Frequencies(c.table(Rope{Type: "default", Theta: r.Theta}))
}

// tables are the cos and sin that layers of a type turn by.
func (c *Config) tables(layerType string) (cos, sin Ref) {
	name := "/rotary"
	if !c.singleRope() {
		name += "." + short(layerType)
	}
	return ref(name + ".cos"), ref(name + ".sin")
}

// head lists the way from the last norm to the logits.
func (b *builder) head() {
	logits := shape("btv", 1, T, b.VocabSize)
	tied := "" // an untied model without a head has no head: the embedding does not stand in
	if b.Tied {
		tied = embedding
	}
	head := b.add(2, "lm_head", logits, b.out("^lm_head"), op.Linear{}, ref("norm"))
	head.Weights = []Weight{{Name: "lm_head.weight", Fallback: tied, Shape: []int{b.VocabSize, b.HiddenSize}}}
	var softcap op.Op = op.Identity{}
	if b.FinalSoftcap > 0 {
		softcap = op.Softcap{Cap: b.FinalSoftcap}
	}
	b.add(1, "logits", logits, Source{Kind: Result, Name: "logits"}, softcap, ref("lm_head"))
}

// activations are the operations of the families' activations, by their names in configurations.
var activations = map[string]op.Op{
	"gelu_pytorch_tanh": op.GELUTanh{},
	"gelu":              op.GELU{},
	"silu":              op.SiLU{},
}

// gate lists the gate's projection of layer i's MLP and returns its name.
func (b *builder) gate(i int, from string) string {
	width := b.IntermediateSize[i]
	b.linear(2, "mlp.gate_proj", flat(width), b.HiddenSize, b.MLPBias, ref(from))
	return "mlp.gate_proj"
}

// gated lists the rest of layer i's MLP: down(act(gate) ⊙ up(from)).
func (b *builder) gated(i int, from, gate string) {
	width := b.IntermediateSize[i]
	b.add(2, "mlp.act_fn", flat(width), b.out("mlp.act_fn"), activations[b.Activation], ref(gate))
	b.linear(2, "mlp.up_proj", flat(width), b.HiddenSize, b.MLPBias, ref(from))
	b.add(2, "mlp.gated", flat(width), b.inLinear("mlp.down_proj"), op.Mul{}, ref("mlp.act_fn"), ref("mlp.up_proj"))
	b.linear(1, "mlp.down_proj", b.hidden, width, b.MLPBias, ref("mlp.gated"))
}
