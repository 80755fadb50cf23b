package mistakes

import (
	"math"
	"strconv"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

var attentions = []Mistake{
	{
		Name: "scale-of-head", Page: "attention-scale", What: "scores are scaled by 1/√head_dim", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scale(c) != byHead(c) },
		edit: number("scale", func(s *spot, _ float64) float64 { return byHead(s.m.List.Config) }),
	},
	{
		Name: "scale-missing", Page: "attention-scale", What: "scores are not scaled", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scale(c) != 1 }, edit: number("scale", is(1)),
	},
	{
		Name: "scale-of-width", Page: "attention-scale", What: "scores are scaled by 1/√hidden_size", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scale(c) != byWidth(c) },
		edit: number("scale", func(s *spot, _ float64) float64 { return byWidth(s.m.List.Config) }),
	},
	{
		Name: "scale-twice", Page: "attention-scale", What: "scores are scaled twice", at: []string{"*.self_attn.scores"},
		when: func(c *order.Config) bool { return scale(c) != 1 },
		edit: number("scale", func(_ *spot, old float64) float64 { return old * old }),
	},
	{
		Name: "scores-uncapped", Page: "attention-soft-cap", What: "the cap on scores is left out", at: []string{"*.self_attn.scores_softcap"},
		edit: leftOut(0),
	},
	{
		Name: "scores-cap-final", Page: "attention-soft-cap", What: "scores have the cap of logits", at: []string{"*.self_attn.scores_softcap"},
		when: func(c *order.Config) bool { return c.FinalSoftcap > 0 && c.FinalSoftcap != c.AttnSoftcap },
		edit: number("cap", func(s *spot, _ float64) float64 { return s.m.List.Config.FinalSoftcap }),
	},
	{
		Name: "scores-clipped", Page: "attention-soft-cap", What: "scores are clipped at the cap, not bent", at: []string{"*.self_attn.scores_softcap"},
		edit: func(s *spot) bool {
			c := s.Literal(s.m.List.Config.AttnSoftcap)
			return s.put(s.Neg(s.Max(s.Neg(s.Max(s.In[0], s.Neg(c))), s.Neg(c))))
		},
	},
	{
		Name: "scores-capped", Page: "attention-soft-cap", What: "scores are capped at 50", at: []string{"*.self_attn.scores"}, when: not(isCapped),
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			return s.Insert(op.Softcap{Cap: 50}, s.Rounded(v)), true
		}),
	},
	{Name: "window+1", Page: "window-size", What: "the window is one key too wide", at: []string{"mask.sliding"}, needs: window(1), edit: windowed(1)},
	{
		Name: "window-1", Page: "window-size", What: "the window is one key too narrow", at: []string{"mask.sliding"}, needs: window(0),
		when: func(c *order.Config) bool { return c.SlidingWindow > 1 }, edit: windowed(-1),
	},
	{
		Name: "window-missing", Page: "window-on-the-wrong-layers", What: "sliding layers have no window", at: []string{"mask.sliding"}, needs: window(1),
		edit: masked(func(s *spot, st *program.Step) { st.Value = 0 }),
	},
	{
		Name: "window-everywhere", Page: "window-on-the-wrong-layers", What: "full layers have the window", at: []string{"mask.full"}, needs: anyWindow, when: slidesInPart,
		edit: masked(func(s *spot, st *program.Step) { st.Value = float64(s.m.List.Config.SlidingWindow) }),
	},
	{
		Name: "not-causal", Page: "causal-mask", What: "queries see the keys behind them", at: []string{"mask.*"}, needs: tokens(2),
		edit: masked(func(_ *spot, st *program.Step) { st.Value = -1 }),
	},
	{
		Name: "without-itself", Page: "causal-mask", What: "queries do not see their own key", at: []string{"mask.*"},
		edit: masked(func(_ *spot, st *program.Step) { st.Rows = -1 }),
	},
	{
		Name: "mask-of-5", Page: "mask-value", What: "the mask adds -5, not the lowest number", at: []string{"*.self_attn.scores_masked"}, needs: tokens(2),
		edit: input(1, func(s *spot, v program.Var) (program.Var, bool) { return s.Max(v, s.Literal(-5)), true }),
	},
	{
		Name: "softmax-axis", Page: "softmax-axis", What: "the softmax runs over the queries", at: []string{"*=softmax"}, needs: tokens(2),
		edit: func(s *spot) bool {
			x := s.Permute(s.In[0], 0, 1, 3, 2)
			exp := s.Exp("", s.Sub("", x, s.RowMax(x)))
			return s.put(s.Permute(s.Div("", exp, s.Sum("", exp)), 0, 1, 3, 2))
		},
	},
	{
		Name: "softmax-unwritten", Page: "unwritten-cache-slots", What: "the softmax counts a slot that is not written", at: []string{"*=softmax"},
		edit: func(s *spot) bool {
			for _, i := range s.steps("quotient") {
				for _, d := range s.steps("difference") {
					sum, most := s.p.Steps[i].Args[1], s.p.Steps[d].Args[1]
					s.Read(i, 1, s.Add("", s.Held(firstOfLast(s, sum)), s.Exp("", s.Neg(firstOfLast(s, most)))))
				}
			}
			return true
		},
	},
}

// firstOfLast is a view without the repetitions of its last axis.
func firstOfLast(s *spot, v program.Var) program.Var {
	return s.Slice(v, len(v.Shape())-1, 0, 1)
}

// anyWindow is a pass in which full layers see more keys than a window has.
func anyWindow(c *order.Config) Needs { return Needs{Total: c.SlidingWindow + 1} }

func byHead(c *order.Config) float64  { return 1 / math.Sqrt(float64(c.HeadDim)) }
func byWidth(c *order.Config) float64 { return 1 / math.Sqrt(float64(c.HiddenSize)) }

// scale is that of scores.
func scale(c *order.Config) float64 {
	switch {
	case c.Gemma3n != nil:
		return 1
	case c.QueryPreAttnScalar > 0:
		return 1 / math.Sqrt(c.QueryPreAttnScalar)
	}
	return byHead(c)
}

// masked changes the step that makes a mask.
func masked(f func(s *spot, st *program.Step)) change {
	return func(s *spot) bool {
		some := false
		for i := s.From; i < s.To; i++ {
			if s.p.Steps[i].Prim == program.Mask {
				f(s, s.Step(i))
				some = true
			}
		}
		return some
	}
}

func windowed(by float64) change {
	return masked(func(_ *spot, st *program.Step) { st.Value += by })
}

var caches = []Mistake{
	{
		Name: "stale-slot", Page: "stale-cache-slot", What: "the last slot of the cache is still that of the step before", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"}, needs: aStep,
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
		Name: "zero-slot", Page: "zero-cache-slot", What: "a slot of the cache is not written", at: []string{"*.self_attn.keys=cache", "*.self_attn.values=cache"}, needs: aStep,
		edit: decoding(slots(func(s *spot, own, _ program.Var) (program.Var, bool) {
			n := own.Shape()[2]
			return s.Cat(2, s.Mul("", s.Slice(own, 2, 0, 1), s.Literal(0)), s.Slice(own, 2, 1, n)), n > 1
		})),
	},
	{
		Name: "oldest-kept", Page: "evicted-keys", What: "a full sliding cache drops the newest key", at: []string{"*.self_attn.keys=cache(window)", "*.self_attn.values=cache(transpose, window)"},
		when:  func(c *order.Config) bool { return c.SlidingWindow > 1 },
		needs: func(c *order.Config) Needs { return Needs{Before: c.SlidingWindow, Steps: 1} },
		edit: decoding(slots(func(s *spot, own, before program.Var) (program.Var, bool) {
			n, m, now := own.Shape()[2], before.Shape()[2], s.pass().Tokens
			return s.Cat(2, s.Slice(before, 2, 0, n-now), s.Slice(own, 2, n-now, n)), m > n-now && n > now
		})),
	},
	{
		Name: "cached-unturned", Page: "keys-cached-before-rotation", What: "keys are cached before the rotation", at: []string{"*.self_attn.keys=cache"},
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
		if len(s.In) < 2 {
			return false
		}
		v, ok := f(s, s.own(), s.In[1])
		return ok && s.put(v)
	}
}

var rotary = []Mistake{
	{
		Name: "neighbours", Page: "rotary-pairs", What: "neighbours are rotated, not halves", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2),
		edit: mapped(0, pairs, func(*spot) program.Map { return program.Map{Kind: program.Weave, Axis: 3, N: 2} }),
	},
	{
		Name: "angles-of-neighbours", Page: "rotary-pairs", What: "angles are laid out for neighbours", at: []string{"rotary.*"}, needs: tokens(2),
		when: func(c *order.Config) bool { return c.HeadDim > 2 },
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			return s.Mapped(v, program.Map{Kind: program.Weave, Axis: 2, N: s.m.List.Config.HeadDim / 2})
		}),
	},
	{
		Name: "keys-permuted", Page: "permuted-query-and-key-rows", What: "the rows of k_proj are in the order of the other rotation", at: []string{"*.self_attn.k_proj"},
		when: func(c *order.Config) bool { return c.HeadDim > 2 }, edit: rowsAt(permuted),
	},
	{
		Name: "queries-permuted", Page: "permuted-query-and-key-rows", What: "the rows of q_proj are in the order of the other rotation", at: []string{"*.self_attn.q_proj"},
		when: func(c *order.Config) bool { return c.HeadDim > 2 }, edit: rowsAt(permuted),
	},
	{
		Name: "theta-10000", Page: "rotary-base", What: "theta is 10000", at: []string{"rotary.*"}, needs: tokens(2),
		when: anyRope(func(r order.Rope) bool { return r.Theta > 0 && r.Theta != 1e4 }),
		edit: tableOf(func(o *op.Rotary, _ *order.Config) bool { was := o.Theta; o.Theta = 1e4; return was != 1e4 }),
	},
	{
		Name: "theta-1000000", Page: "rotary-base", What: "theta is 1000000", at: []string{"rotary.*"}, needs: tokens(2),
		when: not(anyRope(func(r order.Rope) bool { return r.Theta > 0 && r.Theta != 1e4 })),
		edit: tableOf(func(o *op.Rotary, _ *order.Config) bool { o.Theta = 1e6; return true }),
	},
	{
		Name: "one-theta", Page: "rotary-base", What: "sliding layers have the theta of full ones", at: []string{"rotary.sliding.*"}, needs: tokens(2),
		when: func(c *order.Config) bool {
			return twoRopes(c) && c.Rope[order.Sliding].Theta != c.Rope[order.Full].Theta
		},
		edit: tableOf(func(o *op.Rotary, c *order.Config) bool { o.Theta = c.Rope[order.Full].Theta; return true }),
	},
	{
		Name: "unscaled", Page: "rotary-scaling", What: "the scaling of rotary frequencies is left out", at: []string{"rotary.*"}, needs: tokens(2),
		when: anyRope(isScaledRope),
		edit: tableOf(func(o *op.Rotary, _ *order.Config) bool {
			was := o.Scaling
			o.Scaling = "default"
			return was != "default"
		}),
	},
	{
		Name: "scaled-everywhere", Page: "rotary-scaling", What: "sliding layers are scaled as full ones", at: []string{"rotary.sliding.*"}, needs: tokens(2),
		when: func(c *order.Config) bool {
			return twoRopes(c) && c.Rope[order.Sliding].Type != c.Rope[order.Full].Type && isScaledRope(c.Rope[order.Full])
		},
		edit: tableOf(func(o *op.Rotary, c *order.Config) bool {
			r := c.Rope[order.Full]
			o.Scaling, o.Factor, o.LowFreq, o.HighFreq, o.Positions = r.Type, r.Factor, r.LowFreq, r.HighFreq, r.OriginalPositions
			return true
		}),
	},
	{
		Name: "llama3-as-linear", Page: "rotary-scaling", What: "all frequencies are divided by the factor", at: []string{"rotary.*"}, needs: tokens(2),
		when: anyRope(func(r order.Rope) bool { return r.Type == "llama3" }),
		edit: tableOf(func(o *op.Rotary, _ *order.Config) bool {
			was := o.Scaling
			o.Scaling = "linear"
			return was == "llama3"
		}),
	},
	{
		Name: "attention-factor", Page: "rotary-scaling", What: "cosines and sines have the factor of YaRN", at: []string{"rotary.*"}, when: anyRope(isScaledRope),
		edit: func(s *spot) bool {
			o, is := s.entry.Op.(op.Rotary)
			return is && o.Factor > 1 && times(func(*spot) float64 { return 0.1*math.Log(o.Factor) + 1 })(s)
		},
	},
	{
		Name: "frequencies-bfloat16", Page: "rotary-precision", What: "rotary frequencies are rounded to bfloat16", at: []string{"rotary.*"}, needs: tokens(2),
		edit: func(s *spot) bool {
			some := false
			for _, i := range s.steps("inv_freq") {
				v := append([]float64{}, s.p.Steps[i].Values...)
				for k := range v {
					v[k] = float64(floats.RoundBF16(float32(v[k])))
				}
				s.SetVector(i, v)
				some = true
			}
			return some
		},
	},
	{
		Name: "positions-bfloat16", Page: "rotary-precision", What: "positions are rounded to bfloat16", at: []string{"rotary.*"},
		when:  func(c *order.Config) bool { return c.MaxPositions >= exactPositions+2 }, // up to here bfloat16 has them all
		needs: func(*order.Config) Needs { return Needs{Total: exactPositions + 2} },
		edit:  positions(func(_ *spot, p float64) float64 { return float64(floats.RoundBF16(float32(p))) }),
	},
	{
		Name: "queries-ahead", Page: "position-offset", What: "queries are turned by one position more than keys", at: []string{"rotary.*"}, seen: "*.self_attn.q_rope",
		edit: positions(func(_ *spot, p float64) float64 { return p + 1 }),
	},
	{
		Name: "positions-from-0", Page: "positions-of-decode-steps", What: "positions are counted in each pass", at: []string{"rotary.*"}, needs: aStep,
		edit: decoding(positions(func(s *spot, p float64) float64 { return p - float64(s.pass().Past) })),
	},
	{
		Name: "rotation-missing", Page: "missing-rotation", What: "queries and keys are not rotated", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2),
		edit: func(s *spot) bool { return s.put(unturned(s)) },
	},
	{
		Name: "rotation-direction", Page: "direction-of-rotation", What: "the rotation turns the other way", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2),
		edit: input(2, func(s *spot, v program.Var) (program.Var, bool) { return s.Neg(v), true }),
	},
	{
		Name: "rotation-partial", Page: "partial-rotation", What: "the last half of each head is not rotated", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2),
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			d := v.Shape()[3]
			return s.Cat(3, s.Slice(v, 3, 0, d/2), s.Slice(unturned(s), 3, d/2, d)), true
		}),
	},
	{
		Name: "rotation-before-norm", Page: "rotary-before-norm", What: "queries and keys are rotated before their norms", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2),
		when: func(c *order.Config) bool { return c.ModelType == "qwen3" || hasHeadNorms(c) },
		edit: func(s *spot) bool { return s.put(unturned(s)) },
	},
}

// exactPositions is up to where bfloat16 has every whole number.
const exactPositions = 256

func hasHeadNorms(c *order.Config) bool { return c.Gemma3n != nil || c.ModelType == "gemma3_text" }

// unturned is what is rotated, heads before tokens.
func unturned(s *spot) program.Var {
	shape := s.shape()
	return s.Permute(s.Reshape(s.In[0], shape[0], shape[2], shape[1], shape[3]), 0, 2, 1, 3)
}

// pairs reads neighbours as halves.
func pairs(s *spot) program.Map {
	axis := len(s.In[0].Shape()) - 1
	if len(s.In[0].Shape()) == 3 { // the heads are in one axis; in the result they are not
		return program.Map{Kind: program.Weave, Axis: axis, By: s.m.List.Config.HeadDim, N: 2}
	}
	return program.Map{Kind: program.Weave, Axis: axis, N: 2}
}

// permuted is the row that stands in place of one in files for engines that rotate neighbours.
func permuted(s *spot, i, _ int) int {
	d := s.m.List.Config.HeadDim
	at := i % d
	return i - at + at%2*(d/2) + at/2
}

// tableOf computes a rotary table with other constants; it reports whether they are others.
func tableOf(f func(o *op.Rotary, c *order.Config) bool) change {
	return operation(func(s *spot) op.Op {
		o, is := s.entry.Op.(op.Rotary)
		if !is || !f(&o, s.m.List.Config) {
			return nil
		}
		return o
	})
}

// positions computes a table at other positions.
func positions(f func(s *spot, p float64) float64) change {
	return func(s *spot) bool {
		v, ok := s.given(0)
		if !ok {
			return false
		}
		data := make([]float64, len(v.Data))
		for i, p := range v.Data {
			data[i] = f(s, p)
		}
		return s.reads(0, s.Other(program.Value{Shape: v.Shape, Data: data}))
	}
}
