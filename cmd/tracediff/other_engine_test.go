package main

import (
	"context"
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// otherEngine is a port with an arithmetic and a cache of its own: the built-in model, in which every entry that the port
// computes otherwise is replaced as it is fired, so that what follows is computed from it. Norms round before the weight.
// Scores, probabilities and AltUp's coefficients stay float32: the model's own buffers have no room for that, so their
// readers, the context and the streams, are computed here from float32 too, and the trace gets what the port
// would have shown. Sliding layers keep their keys in a ring buffer of the window's size, of which the trace gets the slots.
type otherEngine struct {
	list    *order.List
	dtype   hooks.DType
	weights func(order.Weight) (program.Rows, error)
	trace   *capture.Writer
	past    int // tokens before this pass
	tokens  int // of this pass

	seen map[string][]float32 // the tensors of this pass as the port has them
	wide map[string]bool      // those that are float32 whatever the model's dtype

	model bool // the arithmetic is the built-in model's after all
	norms bool // only its norms are the port's own, and the cache is the built-in model's
	level int  // of what is recorded; 0 is all
	// spoil, if it is not nil, is a mistake of the port: what follows is computed with it.
	spoil func(e *order.Entry, pass int, y []float32)
	// straight names entries that are shown from the oldest key to the newest whatever the others are.
	straight string
}

// run feeds passes to the port and returns the path of its trace.
func (p *otherEngine) run(t *testing.T, ck *checkpoint.Checkpoint, passes [][]int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.safetensors")
	if p.level == 0 {
		p.level = 3
	}
	m := capture.Manifest{
		Side: "local", Producer: capture.Producer{Name: "other-engine", Version: "1"}, DType: p.dtype, Scope: capture.Scope{Level: p.level},
		Passes: len(passes), Config: p.list.Config.Canonical(), Weights: ck.Digest(),
	}
	for _, e := range m.Scope.Select(p.list) {
		m.Entries = append(m.Entries, e.Name)
	}
	p.weights, p.wide = reference.Weights(ck, p.dtype), map[string]bool{}
	var err error
	p.trace, err = capture.Create(path, m, 0)
	must(t, err)
	var reg hooks.Registry
	pass := -1
	must(t, reg.Replace("*", func(e hooks.Event) (hooks.Tensor, error) {
		if e.Pass != pass {
			if pass >= 0 {
				p.past += len(passes[pass])
			}
			pass, p.tokens, p.seen = e.Pass, len(passes[e.Pass]), map[string][]float32{}
		}
		return p.replace(e)
	}))
	must(t, reg.Observe("*", p.record))
	model, err := gemma.New(ck, p.list, p.dtype, &reg, gemma.All)
	must(t, err)
	_, err = model.Run(context.Background(), &reg, gemma.Input{Passes: passes, LastLayer: gemma.All})
	must(t, err)
	must(t, p.trace.Close())
	return path
}

// replace gives the model what the port computes.
func (p *otherEngine) replace(ev hooks.Event) (hooks.Tensor, error) {
	e, ok := p.list.Lookup(ev.Name)
	if !ok || !ev.Tensor.DType.Float() {
		return hooks.Tensor{}, nil
	}
	var y []float32
	var wide bool
	if _, norm := e.Op.(op.RMSNorm); !p.model && (norm || !p.norms) {
		var err error
		if y, wide, err = p.compute(e, ev.Tensor); err != nil {
			return hooks.Tensor{}, err
		}
	}
	if y == nil {
		y = decoded(ev.Tensor)
	} else if !wide {
		for i := range y {
			y[i] = p.round(y[i])
		}
	}
	if p.spoil != nil {
		p.spoil(e, ev.Pass, y)
	}
	p.seen[e.Name], p.wide[e.Name] = y, wide
	return encoded(ev.Tensor.DType, ev.Tensor.Shape, y), nil
}

// record writes what the port shows.
func (p *otherEngine) record(ev hooks.Event) error {
	e, ok := p.list.Lookup(ev.Name)
	if ok && e.Level > p.level {
		return nil
	}
	if y := p.seen[ev.Name]; ok && y != nil {
		d := ev.Tensor.DType
		if p.wide[ev.Name] {
			d = hooks.F32
		}
		ev.Tensor = encoded(d, ev.Tensor.Shape, p.inSlots(e, y))
	}
	return p.trace.Observe(ev)
}

// inSlots is a tensor with its keys where a ring buffer of the window's size has them: the key of position p in slot p mod W.
// The port fills it as decoding goes on; a prefill attends to all its keys and needs none.
func (p *otherEngine) inSlots(e *order.Entry, y []float32) []float32 {
	axis, window := slices.Index(e.Shape, order.SSliding), p.list.Config.SlidingWindow
	if axis < 0 || p.norms || strings.HasSuffix(e.Name, p.straight) && p.straight != "" || p.tokens > 1 || p.past+1 < window {
		return y
	}
	shape := e.Size(order.Pass{Past: p.past, Tokens: p.tokens}, window)
	inner, _ := hooks.Elements(shape[axis+1:])
	out := make([]float32, len(y))
	for i := range y {
		key := i / inner % window
		position := p.past + 1 - window + key
		out[i+(position%window-key)*inner] = y[i]
	}
	return out
}

func (p *otherEngine) round(x float32) float32 { return float32(floats.Round(p.dtype, float64(x))) }

// compute is the port's own computation of an entry, in float32, and whether it stays that; nil for what the model does.
func (p *otherEngine) compute(e *order.Entry, like hooks.Tensor) ([]float32, bool, error) {
	_, part, _ := strings.Cut(strings.TrimPrefix(e.Name, "layers."), ".")
	switch part {
	case "self_attn.scores":
		return p.scores(e, like.Shape), true, nil
	case "self_attn.scores_masked":
		scores, mask := p.in(e, 0), p.in(e, 1)
		return each(len(scores), func(i int) float32 { return scores[i] + mask[i%len(mask)] }), true, nil
	case "self_attn.probs_f32":
		return softmax(p.in(e, 0), like.Shape[3]), true, nil
	case "self_attn.probs":
		return slices.Clone(p.in(e, 0)), true, nil
	case "self_attn.context":
		return p.context(e), false, nil
	case "altup.prediction_coefs", "altup.correction_coefs":
		y, err := p.linear(e)
		return y, true, err
	case "altup.predict":
		return p.predict(e), false, nil
	case "altup.correct":
		return p.correct(e), false, nil
	}
	if o, ok := e.Op.(op.RMSNorm); ok && o.Gain != op.NoScale {
		y, err := p.norm(e, o)
		return y, false, err
	}
	return nil, false, nil
}

// in is an input of an entry.
func (p *otherEngine) in(e *order.Entry, i int) []float32 {
	ref := e.Inputs[i]
	x := p.seen[ref.Name]
	if ref.Index == nil {
		return x
	}
	n := len(x) / p.list.Config.Gemma3n.AltUpStreams
	return x[*ref.Index*n:][:n]
}

// weight is a row of an entry's weight.
func (p *otherEngine) weight(e *order.Entry, row int) ([]float32, error) {
	w, err := p.weights(e.Weights[0])
	if err != nil {
		return nil, err
	}
	_, cols := w.Size()
	v := make([]float64, cols)
	if err := w.Row(v, row); err != nil {
		return nil, err
	}
	return each(cols, func(i int) float32 { return float32(v[i]) }), nil
}

// norm rounds what has been normed, and then multiplies it with the weight.
func (p *otherEngine) norm(e *order.Entry, o op.RMSNorm) ([]float32, error) {
	x := p.in(e, 0)
	w, err := p.weight(e, 0)
	if err != nil {
		return nil, err
	}
	y := make([]float32, len(x))
	for from := 0; from < len(x); from += len(w) {
		row := x[from:][:len(w)]
		inv := float32(1 / math.Sqrt(float64(dot(row, row)/float32(len(w))+float32(o.Eps))))
		for i, v := range row {
			gain := w[i]
			if o.Gain == op.OnePlus {
				gain = 1 + gain
			}
			y[from+i] = p.round(v*inv) * gain
		}
	}
	return y, nil
}

func (p *otherEngine) scores(e *order.Entry, shape []int) []float32 {
	q, k := p.in(e, 0), p.in(e, 1)
	c := p.list.Config
	heads, tokens, keys, d := shape[1], shape[2], shape[3], c.HeadDim
	scale := float32(e.Op.(op.Scores).Scale)
	return each(heads*tokens*keys, func(i int) float32 {
		h, t, s := i/keys/tokens, i/keys%tokens, i%keys
		kv := h * c.NumKVHeads / c.NumHeads
		return dot(q[(h*tokens+t)*d:][:d], k[(kv*keys+s)*d:][:d]) * scale
	})
}

func (p *otherEngine) context(e *order.Entry) []float32 {
	probs, v := p.in(e, 0), p.in(e, 1)
	c := p.list.Config
	heads, d := c.NumHeads, c.HeadDim
	keys := len(v) / c.NumKVHeads / d
	tokens := len(probs) / heads / keys
	return each(tokens*heads*d, func(i int) float32 {
		t, h, j := i/d/heads, i/d%heads, i%d
		var sum float32
		for s := range keys {
			sum += probs[(h*tokens+t)*keys+s] * v[(h*c.NumKVHeads/heads*keys+s)*d+j]
		}
		return sum
	})
}

func (p *otherEngine) linear(e *order.Entry) ([]float32, error) {
	x, out := p.in(e, 0), e.Weights[0].Shape[0]
	n := e.Weights[0].Shape[1]
	y := make([]float32, len(x)/n*out)
	for o := range out {
		w, err := p.weight(e, o)
		if err != nil {
			return nil, err
		}
		for t := range len(x) / n {
			y[t*out+o] = dot(x[t*n:][:n], w)
		}
	}
	return y, nil
}

func (p *otherEngine) predict(e *order.Entry) []float32 {
	coefs, x := p.in(e, 0), p.in(e, 1)
	streams, n := e.Op.(op.AltUpPredict).Streams, p.list.Config.HiddenSize
	size := len(x) / streams
	return each(len(x), func(i int) float32 {
		to, j := i/size, i%size
		var sum float32
		for k := range streams {
			sum += x[k*size+j] * coefs[(j/n*streams+to)*streams+k]
		}
		return sum + x[i]
	})
}

func (p *otherEngine) correct(e *order.Entry) []float32 {
	innovation, coefs, predicted := p.in(e, 0), p.in(e, 1), p.in(e, 2)
	streams, n, size := e.Op.(op.AltUpCorrect).Streams, p.list.Config.HiddenSize, len(innovation)
	return each(len(predicted), func(i int) float32 {
		to, j := i/size, i%size
		return innovation[j]*(coefs[j/n*streams+to]+1) + predicted[i]
	})
}

func softmax(x []float32, n int) []float32 {
	y := make([]float32, len(x))
	for from := 0; from < len(x); from += n {
		row := x[from:][:n]
		top, sum := slices.Max(row), float32(0)
		for i, v := range row {
			y[from+i] = float32(math.Exp(float64(v - top)))
			sum += y[from+i]
		}
		for i := range row {
			y[from+i] /= sum
		}
	}
	return y
}

func dot(a, b []float32) float32 {
	var sum float32
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func each(n int, f func(i int) float32) []float32 {
	y := make([]float32, n)
	for i := range y {
		y[i] = f(i)
	}
	return y
}

func decoded(x hooks.Tensor) []float32 {
	v := make([]float64, len(x.Data)/x.DType.Size())
	if err := floats.Decode(v, x.DType, x.Data); err != nil {
		panic(err)
	}
	return each(len(v), func(i int) float32 { return float32(v[i]) })
}

// goldenFile copies a golden and opens what it was made of.
func goldenFile(t *testing.T, dir, name string) (path string, passes [][]int, ck *checkpoint.Checkpoint, list *order.List) {
	t.Helper()
	data, err := fs.ReadFile(ondisk.Files(), "golden/"+dir+"/"+name+".safetensors")
	must(t, err)
	path = filepath.Join(t.TempDir(), "golden.safetensors")
	must(t, os.WriteFile(path, data, 0o666))
	golden, err := capture.Open(path)
	must(t, err)
	defer golden.Close()
	passes, err = golden.IDs()
	must(t, err)
	files, err := fs.Sub(ondisk.Files(), dir)
	must(t, err)
	ck, err = checkpoint.OpenFS(dir, files)
	must(t, err)
	config, err := order.ReadConfig(ck.Config())
	must(t, err)
	list, err = order.New(config)
	must(t, err)
	return path, passes, ck, list
}

func encoded(d hooks.DType, shape []int, y []float32) hooks.Tensor {
	x := hooks.Tensor{DType: d, Shape: shape}
	for _, v := range y {
		switch d {
		case hooks.BF16:
			x.Data = binary.LittleEndian.AppendUint16(x.Data, floats.BF16(v))
		default:
			x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(v))
		}
	}
	return x
}
