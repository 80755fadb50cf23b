package mistakes

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

var rotary = []Mistake{
	{
		Name: "neighbours", Page: "rotary-pairs", What: "neighbours are rotated, not halves", at: []string{"*.self_attn.[qk]_rope"}, inputs: 1, axes: 4, needs: tokens(2),
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
		Name: "rotation-missing", Page: "missing-rotation", What: "queries and keys are not rotated", at: []string{"*.self_attn.[qk]_rope"}, inputs: 1, axes: 4, needs: tokens(2),
		edit: func(s *spot) bool { return s.put(unturned(s)) },
	},
	{
		Name: "rotation-direction", Page: "direction-of-rotation", What: "the rotation turns the other way", at: []string{"*.self_attn.[qk]_rope"}, needs: tokens(2),
		edit: input(2, func(s *spot, v program.Var) (program.Var, bool) { return s.Neg(v), true }),
	},
	{
		Name: "rotation-partial", Page: "partial-rotation", What: "the last half of each head is not rotated", at: []string{"*.self_attn.[qk]_rope"}, inputs: 1, axes: 4, needs: tokens(2),
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			d := v.Shape()[3]
			return s.Cat(3, s.Slice(v, 3, 0, d/2), s.Slice(unturned(s), 3, d/2, d)), true
		}),
	},
	{
		Name: "rotation-before-norm", Page: "rotary-before-norm", What: "queries and keys are rotated before their norms", at: []string{"*.self_attn.[qk]_rope"}, inputs: 1, axes: 4, needs: tokens(2),
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
