// Package gemma is the built-in model: the text decoders of Gemma 3n, Gemma 3, Gemma 2 and Gemma 1, readable before fast,
// with the hooks of TENSOR_ORDER fired from the forward pass itself. What the families share is written once; the file of
// a family has what is its own.
//
// It is an implementation to debug with and to be compared against, not a serving engine: one sequence, no batching.
// In bfloat16 and float16 every place where transformers rounds is a rounding here. Other families have no built-in model.
package gemma

import (
	"errors"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/kernel"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
)

// families by the model type of a resolved configuration: each builds its layers up to the last one that will run.
var families = map[string]func(b *builder, lastLayer int) stack{
	"gemma3n_text": newGemma3n,
	"gemma3_text":  newGemma3,
	"gemma2":       newGemma2,
	"gemma":        newGemma,
}

// settings are the sizes that the whole model shares.
type settings struct {
	config                  *order.Config
	hidden, layers          int
	heads, kvHeads, headDim int
}

// CheckFamily reports a list whose model has no forward pass here.
func CheckFamily(list *order.List) error {
	if list.Config == nil {
		return errors.New("a list of names has no built-in model; give a trace or a command with --local")
	}
	if families[list.Config.ModelType] == nil {
		return fmt.Errorf("a model of type %q has no built-in model; give a trace or a command with --local", list.Config.ModelType)
	}
	return nil
}

// New builds the model of a checkpoint in a dtype: float32, bfloat16 or float16. Points are resolved from reg by the
// names of list, which is the order of the checkpoint's configuration; reg may be nil. lastLayer is the last one that
// will run, or [All]: the weights of the others are looked for and not read. Weights stay in the checkpoint, which has to
// stay open. The error is that of [CheckFamily], or lists every weight that is missing or misshapen.
func New(ck *checkpoint.Checkpoint, list *order.List, dtype hooks.DType, reg *hooks.Registry, lastLayer int) (*Model, error) {
	if err := CheckFamily(list); err != nil {
		return nil, err
	}
	if dtype != hooks.F32 && dtype != hooks.BF16 && dtype != hooks.F16 {
		return nil, fmt.Errorf("the built-in model computes in float32, bfloat16 or float16, not in %s", dtype)
	}
	if err := CheckWeights(ck, list); err != nil {
		return nil, err
	}
	c := list.Config
	b := &builder{ck: ck, list: list, arith: kernel.Arith{DType: dtype}, registry: reg}
	b.settings = &settings{
		config: c, hidden: c.HiddenSize, layers: c.NumLayers, heads: c.NumHeads, kvHeads: c.NumKVHeads, headDim: c.HeadDim,
	}
	m := b.model(min(lastLayer, c.NumLayers-1))
	return m, b.err
}

// CheckWeights reports, in one error, every missing or wrong weight of the checkpoint.
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
	ck         *checkpoint.Checkpoint
	list       *order.List
	arith      kernel.Arith
	registry   *hooks.Registry
	onePlus    bool // norms multiply by 1 + w, not by w; a family sets it before it builds
	prefix     string
	attentions []*Attention // by layer, those built so far
	err        error
}

func (b *builder) model(lastLayer int) *Model {
	m := &Model{settings: b.settings, arith: b.arith, softcap: b.config.FinalSoftcap}
	m.stack = families[b.config.ModelType](b, lastLayer)
	m.attentions = b.attentions
	m.EmbedTokens = b.embedding("embed_tokens", b.hidden, false)
	m.points = modelPoints{b.point("input_ids"), b.point("position_ids"), b.point("logits")}
	m.Norm = b.norm("norm")
	m.LMHead = b.linear("lm_head")
	return m
}

// enter makes names relative to layer i, leave to the text model again.
func (b *builder) enter(i int) { b.prefix = order.InLayer(i, "").String() }
func (b *builder) leave()      { b.prefix = "" }

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
	full := b.prefix + name
	t, ok := b.ck.Tensor(full)
	if !ok && name == spelling.Head {
		full = spelling.Embedding
		t, _ = b.ck.Tensor(full)
	}
	m, err := kernel.NewMatrix(t, b.arith)
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", b.prefix+name, err))
	}
	if place, ok := b.ck.Place(full); ok {
		m.In(place.File, place.At)
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

func (b *builder) norm(module string) *RMSNorm { return b.normAt(module, b.point(module)) }

// normAt reads the norm's weight as what it multiplies by: 1 + w is a float32, whatever the dtype of w.
func (b *builder) normAt(module string, out point) *RMSNorm {
	w := b.vector(module + ".weight")
	if b.onePlus {
		for i := range w {
			w[i]++
		}
	}
	return &RMSNorm{gain: w, width: len(w), eps: float32(b.config.RMSNormEps), out: out}
}

func (b *builder) embedding(module string, width int, fallback bool) Embedding {
	return Embedding{
		weight: b.matrix(module + ".weight"), scale: math.Sqrt(float64(width)), fallback: fallback,
		lookup: b.point(module + ".lookup"), out: b.point(module),
	}
}
