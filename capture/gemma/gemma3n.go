package gemma

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/internal/kernel"
	"github.com/tracediff/tracediff/order"
)

// Model is the text decoder of Gemma 3n. Its fields are named as the checkpoint's modules; a module fires the hook of
// its own output, and values that no module shows have a point of their own.
type Model struct {
	EmbedTokens             Embedding
	EmbedTokensPerLayer     Embedding
	PerLayerModelProjection Linear
	PerLayerProjectionNorm  RMSNorm
	AltupProjections        []Linear
	AltupUnembedProjections []Linear
	Layers                  []*Layer
	Norm                    RMSNorm
	LMHead                  Linear

	*settings
	arith  kernel.Arith
	inv    map[string][]float32 // inverse frequencies by layer type
	points modelPoints
	arena  arena

	progress func(pass, layer int) // told before each layer; nil for nobody
	past     int                   // tokens of the passes so far
}

type modelPoints struct {
	inputIDs, positionIDs, inputsEmbeds, projectionScaled, perLayerInputs point
	initTarget, init, finalTarget, finalMean, logits                      point
	initMagnitude, finalMagnitude, finalStream                            []point
	mask, cos, sin                                                        map[string]point
}

// forward runs one pass over ids, which follow the tokens of the passes before, and returns the logits [T, V]; nil when
// the pass stopped after the last layer needed.
func (m *Model) forward(p *pass) []float32 {
	p.seeInts(m.points.inputIDs, p.ids)
	p.seeInts(m.points.positionIDs, p.positions)
	if p.err = cmp.Or(p.err, CheckPasses(m.config, [][]int{p.ids}, 0)); p.err != nil { // a replacer may have put anything there
		return nil
	}

	x0 := m.EmbedTokens.forward(p)
	tok := m.EmbedTokensPerLayer.forward(p)
	x0 = p.see(m.points.inputsEmbeds, p.own(m.points.inputsEmbeds, x0))
	ple := m.projectPerLayerInputs(p, x0, tok)
	p.masks = m.masks(p)
	x := m.expand(p, x0)
	p.cos, p.sin = m.rotary(p)

	for i, layer := range m.Layers {
		if p.err == nil {
			p.err = p.ctx.Err()
		}
		if i > p.lastLayer || p.err != nil {
			return nil
		}
		if m.progress != nil {
			m.progress(p.number, i)
		}
		x = layer.forward(p, x, ple)
	}
	if p.lastLayer < m.layers || p.err != nil {
		return nil
	}
	return m.output(p, x)
}

// projectPerLayerInputs mixes tok, the tokens' rows of the per-layer table, with a projection of x0: [T, L, P].
func (m *Model) projectPerLayerInputs(p *pass, x0, tok []float32) []float32 {
	proj := m.PerLayerModelProjection.forward(p, x0)
	proj = p.see(m.points.projectionScaled, p.scale(proj, p.R(m.perLayerProjectionScale)))
	proj = m.PerLayerProjectionNorm.forward(p, proj)
	return p.see(m.points.perLayerInputs, p.scale(p.add(proj, tok), p.R(math.Sqrt2/2)))
}

// expand stacks the embedding and its projections, each brought to the embedding's magnitude: [A, T, H].
func (m *Model) expand(p *pass, x0 []float32) []float32 {
	tm := p.see(m.points.initTarget, p.magnitude(x0, m.hidden, 0))
	x := p.take(m.streams * len(x0))
	copy(x, x0)
	for k, projection := range m.AltupProjections {
		y := projection.forward(p, x0)
		nm := p.see(m.points.initMagnitude[k], p.magnitude(y, m.hidden, magnitudeFloor))
		copy(x[(k+1)*len(x0):], p.rescale(y, tm, nm))
	}
	return p.see(m.points.init, x)
}

// magnitudeFloor is the least mean square that a projection is rescaled from.
const magnitudeFloor = 1e-5

// output merges the streams and reads the vocabulary: logits [T, V].
func (m *Model) output(p *pass, x []float32) []float32 {
	tm := p.see(m.points.finalTarget, p.magnitude(p.stream(x, 0), m.hidden, 0))
	streams := [][]float32{p.stream(x, 0)}
	for k, projection := range m.AltupUnembedProjections {
		y := projection.forward(p, p.stream(x, k+1))
		nm := p.see(m.points.finalMagnitude[k], p.magnitude(y, m.hidden, magnitudeFloor))
		streams = append(streams, p.see(m.points.finalStream[k], p.rescale(y, tm, nm)))
	}
	h := p.see(m.points.finalMean, p.mean(streams))
	logits := m.LMHead.forward(p, m.Norm.forward(p, h))
	if m.softcap > 0 {
		logits = p.softcap(logits, m.softcap)
	}
	return p.see(m.points.logits, logits)
}

// masks builds the additive mask [T, S] of each layer type: 0 where query q may see key k, that is k ≤ q and, in a
// window of W, k > q − W.
func (m *Model) masks(p *pass) map[string][]float32 {
	masks := map[string][]float32{}
	for _, t := range m.config.Types() {
		window := m.config.Window(t)
		first, s := m.keys(p, t)
		mask := p.take(len(p.ids) * s)
		clear(mask)
		for i := range p.ids {
			q := m.past + i
			for j := range s {
				if k := first + j; k > q || window > 0 && k <= q-window {
					mask[i*s+j] = p.Lowest()
				}
			}
		}
		masks[t] = p.see(m.points.mask[t], mask)
	}
	return masks
}

// keys returns the position of the first key that layers of type t see in this pass, and how many they see. Of the past
// a sliding layer has kept the last W−1.
func (m *Model) keys(p *pass, t string) (first, n int) {
	kept := m.past
	if w := m.config.Window(t); w > 0 {
		kept = min(kept, w-1)
	}
	return m.past - kept, kept + len(p.ids)
}

// rotary fills the tables cos and sin [T, D] of each layer type.
func (m *Model) rotary(p *pass) (cos, sin map[string][]float32) {
	cos, sin = map[string][]float32{}, map[string][]float32{}
	for _, t := range m.config.Types() {
		c, s := p.take(len(p.ids)*m.headDim), p.take(len(p.ids)*m.headDim)
		p.RotaryTables(c, s, m.inv[t], p.positions)
		cos[t], sin[t] = p.see(m.points.cos[t], c), p.see(m.points.sin[t], s)
	}
	return cos, sin
}

// Embedding is a table of scaled rows.
type Embedding struct {
	weight      kernel.Matrix
	scale       float64
	fallback    bool // an id outside the table reads row 0
	lookup, out point
}

// forward returns R(row · R(scale)) for every id: [T, columns].
func (e *Embedding) forward(p *pass) []float32 {
	x := p.take(len(p.ids) * e.weight.Cols)
	for t, id := range p.ids {
		if e.fallback && id >= e.weight.Rows {
			id = 0
		}
		e.weight.Row(x[t*e.weight.Cols:(t+1)*e.weight.Cols], id)
	}
	x = p.see(e.lookup, x)
	return p.see(e.out, p.scale(x, p.R(e.scale)))
}

// Linear is a product with W [out, in], and a bias if the checkpoint has one.
type Linear struct {
	weight kernel.Matrix
	bias   []float32
	out    point
}

// forward returns R(Σ W·x + b): [T, out].
func (l *Linear) forward(p *pass, x []float32) []float32 {
	rows := len(x) / l.weight.Cols
	y := p.take(rows * l.weight.Rows)
	l.weight.Mul(y, x, rows, l.bias)
	return p.see(l.out, y)
}

// RMSNorm normalises rows as long as its weight.
type RMSNorm struct {
	weight []float32 // nil: no gain
	width  int
	eps    float32
	out    point
}

func (n *RMSNorm) forward(p *pass, x []float32) []float32 { return n.at(p, x, n.out) }

// at is forward with another point, for a module that runs twice a layer.
func (n *RMSNorm) at(p *pass, x []float32, out point) []float32 {
	y := p.take(len(x))
	p.RMSNorm(y, x, n.weight, n.width, n.eps)
	return p.see(out, y)
}

// CheckPasses reports the first pass without tokens, the first id outside the vocabulary, and more tokens than the model
// has positions; further is the number of tokens to be decoded after the passes.
func CheckPasses(c *order.Config, passes [][]int, further int) error {
	at := 0
	for n, ids := range passes {
		if len(ids) == 0 {
			return fmt.Errorf("pass %d has no tokens", n)
		}
		for _, id := range ids {
			if id < 0 || id >= c.VocabSize {
				return fmt.Errorf("token id %d at position %d is outside the vocabulary of %d", id, at, c.VocabSize)
			}
			at++
		}
	}
	if at+further > c.MaxPositions {
		return fmt.Errorf("%d tokens are more than the %d positions of the model", at+further, c.MaxPositions)
	}
	return nil
}
