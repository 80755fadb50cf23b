package gemma

import (
	"context"
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// Input says what a run computes.
type Input struct {
	Passes       [][]int // token ids of each forward call; the first is the prompt, the others are replayed
	MaxNewTokens int     // further passes, one token each, chosen greedily
	LastLayer    int     // stop after this layer, −1 before the first; All for the whole model. At most what was built
}

// All as Input.LastLayer runs every layer and the output.
const All = math.MaxInt

// Output is what a run computed.
type Output struct {
	Passes [][]int // the ids fed in each pass
	Greedy []int   // per pass, the token that the model itself would have gone on with; −1 where it stopped early
}

// Run feeds the passes one after the other, telling reg when each begins, then decodes greedily. It starts from an empty
// cache, and every pass is computed from the cache of those before. A pass stops after LastLayer unless tokens are decoded after it. The error is
// that of ids outside the vocabulary, of a hook, or of ctx.
func (m *Model) Run(ctx context.Context, reg *hooks.Registry, in Input) (Output, error) {
	var out Output
	m.reset()
	total := len(in.Passes) + in.MaxNewTokens
	for n := range total {
		var ids []int
		if n < len(in.Passes) {
			ids = in.Passes[n]
		} else {
			ids = out.Greedy[n-1:]
		}
		last := in.LastLayer
		if in.MaxNewTokens > 0 && n+1 < total { // a later pass chooses a token and needs the cache of every layer
			last = All
		}
		reg.BeginPass(n)
		logits, err := m.pass(ctx, n, ids, last)
		if err != nil {
			return out, err
		}
		out.Passes = append(out.Passes, ids)
		next := -1
		if logits != nil {
			next = argmax(logits[len(logits)-m.LMHead.weight.Rows:])
		}
		out.Greedy = append(out.Greedy, next)
	}
	return out, nil
}

// reset forgets the passes of an earlier run.
func (m *Model) reset() {
	m.past = 0
	for _, a := range m.attentions {
		a.cache = cache{}
	}
}

// pass runs one forward call and counts its tokens as past.
func (m *Model) pass(ctx context.Context, number int, ids []int, lastLayer int) ([]float32, error) {
	m.arena.release(arena{})
	p := &pass{
		Arith: m.arith, settings: m.settings, arena: &m.arena, number: number, ids: append([]int(nil), ids...), past: m.past,
		lastLayer: min(lastLayer, m.layers),
	}
	for i := range ids {
		p.positions = append(p.positions, m.past+i)
	}
	logits := m.forward(ctx, p)
	if p.err != nil {
		return nil, p.err
	}
	m.past += len(ids)
	return logits, nil
}

// argmax is the first of the largest elements, as torch's.
func argmax(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}
