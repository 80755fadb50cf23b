package gemma

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tracediff/tracediff/internal/kernel"
	"github.com/tracediff/tracediff/order"
)

// Model is a text decoder: embedding, the layers of its family, norm and head. Its fields, and those of the family's
// layers, are named as the checkpoint's modules; a module fires the hook of its own output, and values that no module
// shows have a point of their own.
type Model struct {
	EmbedTokens Embedding
	Norm        *RMSNorm
	LMHead      Linear

	stack
	*settings
	softcap    float64 // of the logits; 0 for none
	arith      kernel.Arith
	attentions []*Attention // by layer: the cache
	points     modelPoints
	arena      arena

	progress func(pass, layer int) // told before each layer; nil for nobody
	past     int                   // tokens of the passes so far
}

type modelPoints struct{ inputIDs, positionIDs, logits point }

// stack is what a family has between the embedding and the last norm. What flows from layer to layer is its own affair.
type stack interface {
	// begin takes the embedding [T, H] to the input of the first layer. It also fills the pass's masks and rotary tables,
	// since the families differ in when they are there.
	begin(p *pass, x []float32) []float32
	// layer runs layer i of those that were built.
	layer(p *pass, i int, x []float32) []float32
	// end takes what the last layer gave to the input [T, H] of the last norm.
	end(p *pass, x []float32) []float32
}

// forward runs one pass over ids, which follow the tokens of the passes before, and returns the logits [T, V]; nil when
// the pass stopped after the last layer needed.
func (m *Model) forward(ctx context.Context, p *pass) []float32 {
	p.seeInts(m.points.inputIDs, p.ids)
	p.seeInts(m.points.positionIDs, p.positions)
	if p.err = cmp.Or(p.err, CheckPasses(m.config, [][]int{p.ids}, 0)); p.err != nil { // a replacer may have put anything there
		return nil
	}
	x := m.begin(p, m.EmbedTokens.forward(p))
	for i := range m.attentions {
		if p.err == nil {
			p.err = ctx.Err()
		}
		if i > p.lastLayer || p.err != nil {
			return nil
		}
		if m.progress != nil {
			m.progress(p.number, i)
		}
		x = m.layer(p, i, x)
	}
	if p.lastLayer < m.layers || p.err != nil {
		return nil
	}
	logits := m.LMHead.forward(p, m.Norm.forward(p, m.end(p, x)))
	if m.softcap > 0 {
		logits = p.softcap(logits, m.softcap)
	}
	return p.see(m.points.logits, logits)
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
