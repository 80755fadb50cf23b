package mistakes

import (
	"math"

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
		Name: "scores-clipped", Page: "attention-soft-cap", What: "scores are clipped at the cap, not bent", at: []string{"*.self_attn.scores_softcap"}, inputs: 1,
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
		Name: "softmax-axis", Page: "softmax-axis", What: "the softmax runs over the queries", at: []string{"*=softmax"}, inputs: 1, axes: 4, needs: tokens(2),
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
