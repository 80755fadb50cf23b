package gemma

import (
	"github.com/tracediff/tracediff/internal/kernel"
	"github.com/tracediff/tracediff/order"
)

// positional makes what layers know of positions: the masks of each layer type, and the tables of the rotary embeddings.
type positional struct {
	*settings
	masks  map[string]point // by layer type
	rotary []rotary
}

// rotary is one rotary embedding and the layer types that turn by it.
type rotary struct {
	types    []string
	inv      []float32 // inverse frequencies
	cos, sin point
}

// positional resolves what a configuration has: a mask for each layer type, and a rotary embedding for each or one for
// all.
func (b *builder) positional() positional {
	ps := positional{settings: b.settings, masks: map[string]point{}}
	short := map[string]string{order.Sliding: "sliding", order.Full: "full"}
	types := b.config.Types()
	for _, t := range types {
		ps.masks[t] = b.point("mask." + short[t])
	}
	if _, local := b.config.Rope[order.Sliding]; !local {
		ps.rotary = []rotary{b.rotary("rotary", b.config.Rope[order.Full], types...)}
		return ps
	}
	for _, t := range types {
		ps.rotary = append(ps.rotary, b.rotary("rotary."+short[t], b.config.Rope[t], t))
	}
	return ps
}

func (b *builder) rotary(name string, r order.Rope, types ...string) rotary {
	inv := kernel.InverseFrequencies(r.Theta, b.headDim)
	switch r.Type {
	case "linear":
		kernel.ScaleLinear(inv, r.Factor)
	case "llama3":
		kernel.ScaleLlama3(inv, r.Factor, r.LowFreq, r.HighFreq, r.OriginalPositions)
	}
	return rotary{types, inv, b.point(name + ".cos"), b.point(name + ".sin")}
}

// mask builds the additive mask [T, S] of each layer type: 0 where query q may see key k, that is k ≤ q and, in a
// window of W, k > q − W.
func (ps *positional) mask(p *pass) {
	p.masks = map[string][]float32{}
	for _, t := range ps.config.Types() {
		window := ps.config.Window(t)
		first, s := ps.keys(p, t)
		mask := p.take(len(p.ids) * s)
		clear(mask)
		for i := range p.ids {
			q := p.past + i
			for j := range s {
				if k := first + j; k > q || window > 0 && k <= q-window {
					mask[i*s+j] = p.Lowest()
				}
			}
		}
		p.masks[t] = p.see(ps.masks[t], mask)
	}
}

// keys returns the position of the first key that layers of type t see in this pass, and how many they see. Of the past
// a sliding layer has kept the last W−1.
func (ps *positional) keys(p *pass, t string) (first, n int) {
	kept := p.past
	if w := ps.config.Window(t); w > 0 {
		kept = min(kept, w-1)
	}
	return p.past - kept, kept + len(p.ids)
}

// turn fills the tables [T, D] of each layer type.
func (ps *positional) turn(p *pass) {
	p.rotary = map[string]kernel.Tables{}
	for _, r := range ps.rotary {
		tables := kernel.Tables{Cos: p.take(len(p.ids) * ps.headDim), Sin: p.take(len(p.ids) * ps.headDim)}
		p.RotaryTables(tables, r.inv, p.positions)
		tables.Cos, tables.Sin = p.see(r.cos, tables.Cos), p.see(r.sin, tables.Sin)
		for _, t := range r.types {
			p.rotary[t] = tables
		}
	}
}
