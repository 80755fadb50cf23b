package mistakes

import (
	"strconv"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

var caches = []Mistake{
	{
		Name: "stale-slot", Page: "stale-cache-slot", What: "the last slot of the cache is still that of the step before", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"}, inputs: 2, axes: 4, needs: aStep,
		edit: decoding(slots(func(s *spot, own, before program.Var) (program.Var, bool) {
			n, m := own.Shape()[2], before.Shape()[2]
			return s.Cat(2, s.Slice(own, 2, 0, n-1), s.Slice(before, 2, m-1, m)), n > 1
		})),
	},
	{
		Name: "values-moved", Page: "stale-cache-slot", What: "values stand one slot off their keys", at: []string{"*.self_attn.values=cache"},
		needs: func(*order.Config) Needs { return Needs{Total: 2} },
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			return s.Mapped(v, program.Map{Kind: program.Roll, Axis: 2, By: 1})
		}),
	},
	{
		Name: "zero-slot", Page: "zero-cache-slot", What: "a slot of the cache is not written", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"}, inputs: 2, axes: 4, needs: aStep,
		edit: decoding(slots(func(s *spot, own, _ program.Var) (program.Var, bool) {
			n := own.Shape()[2]
			return s.Cat(2, s.Mul("", s.Slice(own, 2, 0, 1), s.Literal(0)), s.Slice(own, 2, 1, n)), n > 1
		})),
	},
	{
		Name: "oldest-kept", Page: "evicted-keys", What: "a full sliding cache drops the newest key", at: []string{"*.self_attn.keys=cache(window)", "*.self_attn.values=cache(transpose, window)"}, inputs: 2, axes: 4,
		when:  func(c *order.Config) bool { return c.SlidingWindow > 1 },
		needs: func(c *order.Config) Needs { return Needs{Before: c.SlidingWindow, Steps: 1} },
		edit: decoding(slots(func(s *spot, own, before program.Var) (program.Var, bool) {
			n, m, now := own.Shape()[2], before.Shape()[2], s.pass().Tokens
			return s.Cat(2, s.Slice(before, 2, 0, n-now), s.Slice(own, 2, n-now, n)), m > n-now && n > now
		})),
	},
	{
		Name: "cached-unturned", Page: "keys-cached-before-rotation", What: "keys are cached before the rotation", at: []string{"*.self_attn.keys=cache"}, inputs: 2, axes: 4,
		needs: func(*order.Config) Needs { return Needs{Tokens: 2, Steps: 1} },
		edit: decoding(slots(func(s *spot, own, before program.Var) (program.Var, bool) {
			old, ok := s.captured("self_attn.k_norm", 1)
			if !ok {
				old, ok = s.captured("self_attn.k_proj", 1)
			}
			shape := own.Shape()
			tokens := s.m.Passes[s.Node.Pass-1].Tokens
			if !ok || s.Node.Pass != 1 || product(old.Shape()) != tokens*shape[1]*shape[3] {
				return own, false
			}
			kept := shape[2] - s.pass().Tokens
			turned := s.Permute(s.Reshape(old, shape[0], tokens, shape[1], shape[3]), 0, 2, 1, 3)
			return s.Cat(2, s.Slice(turned, 2, tokens-kept, tokens), s.Slice(own, 2, kept, shape[2])), kept > 0
		})),
	},
	{
		Name: "cache-8-bits", Page: "quantised-cache", What: "earlier keys and values are kept in 8 bits", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"}, needs: aStep,
		edit: decoding(func(s *spot) bool {
			v, ok := s.given(1)
			if !ok {
				return false
			}
			data := append([]float64{}, v.Data...)
			d := v.Shape[len(v.Shape)-1]
			for at := 0; at+d <= len(data); at += d {
				narrow(s.m.DType, data[at:at+d], 127)
			}
			return s.reads(1, s.Other(program.Value{Shape: v.Shape, Data: data}))
		}),
	},
	{
		Name: "keys-of-first", Page: "shared-keys-and-values", What: "sharing layers take keys and values of another layer", at: []string{"*.self_attn.keys=identity", "*.self_attn.values=identity"},
		when: func(c *order.Config) bool { return otherSource(c, c.FirstShared()) >= 0 },
		edit: func(s *spot) bool {
			from := otherSource(s.m.List.Config, s.entry.Layer)
			if from < 0 {
				return false
			}
			name := order.Node{Entry: s.m.List.Index("layers." + strconv.Itoa(from) + "." + s.entry.Name[len(layer(s.entry.Name)):]), Pass: s.Node.Pass}
			v, ok := s.m.Read(name)
			return ok && s.put(s.Other(v))
		},
	},
}

// otherSource is a layer that has keys of its own, of the type of a sharing layer, and is not the one that it shares with; −1 for none.
func otherSource(c *order.Config, sharing int) int {
	for i := range c.FirstShared() {
		if sharing < c.NumLayers && c.LayerTypes[i] == c.LayerTypes[sharing] && i != c.KVSource(sharing) {
			return i
		}
	}
	return -1
}

// slots makes a cache another one of what it should hold and what it held in the pass before.
func slots(f func(s *spot, own, before program.Var) (program.Var, bool)) change {
	return func(s *spot) bool {
		if len(s.In) < 2 || len(s.In[1].Shape()) != len(s.shape()) {
			return false
		}
		v, ok := f(s, s.own(), s.In[1])
		return ok && s.put(v)
	}
}
