package mistakes

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

func rootWidth(s *spot) float64 { return math.Sqrt(float64(s.m.List.Config.HiddenSize)) }

var embeddings = []Mistake{
	{Name: "embedding-unscaled", Page: "embedding-scale", What: "the embedding is not scaled", at: []string{"embed_tokens=scale"}, edit: leftOut(0)},
	{Name: "embedding-scaled-twice", Page: "embedding-scale", What: "the embedding is scaled twice", at: []string{"embed_tokens=scale"}, edit: twice},
	{Name: "embedding-scaled", Page: "embedding-scale", What: "the embedding is scaled by √hidden_size", at: []string{"embed_tokens=identity"}, edit: times(rootWidth)},
	{
		Name: "embedding-scale-rounding", Page: "rounded-embedding-scale", What: "the embedding's scale is rounded otherwise", at: []string{"embed_tokens=scale"},
		when: func(c *order.Config) bool {
			by := math.Sqrt(float64(c.HiddenSize))
			return floats.Round(hooks.BF16, by) != by
		},
		edit: func(s *spot) bool {
			for _, i := range s.steps("constant") {
				if st := s.Step(i); s.m.DType == hooks.F32 {
					st.Value = floats.Round(hooks.BF16, st.Value)
				} else {
					st.Round = program.Plain
				}
			}
			return true
		},
	},
	{
		Name: "embedding-rows", Page: "embedding-rows", What: "the rows of the embedding are shifted by one", at: []string{"embed_tokens.lookup"},
		edit: rowsAt(func(_ *spot, i, n int) int { return (i + 1) % n }),
	},
}

// Norms by what they are of.
const (
	aNorm     = "*=rms_norm"
	queryNorm = "*.self_attn.q_norm"
	keyNorm   = "*.self_attn.k_norm"
)

// epsilon lists the mistakes of one epsilon.
func epsilon(x float64, name, words string) Mistake {
	return Mistake{
		Name: "epsilon-" + name, Page: "epsilon", What: words, at: []string{aNorm},
		when: epsilonIsNot(x), edit: number("eps", is(x)),
	}
}

var norms = []Mistake{
	epsilon(1e-6, "1e-6", "epsilon is 1e-6"),
	epsilon(1e-5, "1e-5", "epsilon is 1e-5"),
	epsilon(1e-3, "1e-3", "epsilon is 1e-3"),
	{
		Name: "epsilon-outside", Page: "place-of-epsilon", What: "epsilon is added to the root, not below it", at: []string{aNorm},
		edit: func(s *spot) bool {
			for _, i := range s.steps("rsqrt") {
				sum := s.p.Steps[s.p.Source(s.p.Steps[i].Args[0])]
				if sum.Prim != program.Add {
					return false
				}
				s.Become(i, program.Div, s.Literal(1), s.Add("", s.Sqrt("", sum.Args[0]), sum.Args[1]))
			}
			return true
		},
	},
	{
		Name: "epsilon-inflated", Page: "place-of-epsilon", What: "the input is divided by its largest value, and epsilon is not", at: []string{aNorm},
		edit: func(s *spot) bool {
			for _, i := range s.steps("+eps") {
				for _, sq := range s.steps("square") {
					x := s.p.Steps[sq].Args[0]
					most := s.RowMax(s.Max(x, s.Neg(x)))
					s.Read(i, 1, s.Mul("", s.p.Steps[i].Args[1], s.Mul("", most, most)))
				}
			}
			return true
		},
	},
	{
		Name: "plus-one", Page: "one-plus-the-weight", What: "norms multiply by 1+w", at: []string{"*=rms_norm(eps, gain=plain", "*=rms_norm(eps, gain=after"},
		edit: each(false, func(_ *spot, w float64) float64 { return 1 + w }),
	},
	{Name: "without-one", Page: "one-plus-the-weight", What: "norms multiply by w and not by 1+w", at: []string{"*=rms_norm(eps, gain=oneplus"}, edit: skipped("1+w", 1)},
	{
		Name: "one-twice", Page: "one-plus-the-weight", What: "norms add 1 to a weight that holds it", at: []string{"*=rms_norm(eps, gain=oneplus"},
		edit: each(true, func(_ *spot, w float64) float64 { return 1 + w }),
	},
	{
		Name: "layernorm", Page: "layernorm", What: "LayerNorm in place of RMSNorm", at: []string{aNorm},
		edit: func(s *spot) bool {
			for _, i := range s.steps("square") {
				x := s.p.Steps[i].Args[0]
				y := s.Held(s.Sub("", x, s.Mean("", x)))
				s.Read(i, 0, y)
				s.Read(i, 1, y)
				for _, k := range s.steps("product") {
					s.Read(k, 0, y)
				}
			}
			return true
		},
	},
	{Name: "norm-of-queries-missing", Page: "missing-norm", What: "queries and keys are not normalised", at: []string{queryNorm, keyNorm}, edit: leftOut(0)},
	{Name: "norm-of-values-missing", Page: "missing-norm", What: "values are not normalised", at: []string{"*.self_attn.v_norm"}, edit: leftOut(0)},
	{Name: "norm-final-missing", Page: "missing-norm", What: "the last norm is left out", at: []string{"norm"}, edit: leftOut(0)},
	{
		Name: "norm-after-missing", Page: "missing-norm", What: "the norms behind attention and MLP are left out",
		at: []string{"*.post_attention_layernorm", "*.post_feedforward_layernorm"}, when: hasPostNorms, edit: leftOut(0),
	},
	{Name: "norm-of-laurel-missing", Page: "missing-norm", What: "the norm of LAUREL is left out", at: []string{"*.laurel.post_laurel_norm"}, edit: leftOut(0)},
	{Name: "norm-of-projection-missing", Page: "missing-norm", What: "the norm of the per-layer projection is left out", at: []string{"per_layer_projection_norm"}, edit: leftOut(0)},
	{Name: "norm-missing-in-decode", Page: "missing-norm", What: "keys are not normalised in decode steps", at: []string{keyNorm}, needs: aStep, edit: decoding(leftOut(0))},
	{Name: "norm-twice", Page: "missing-norm", What: "a norm is applied twice", at: []string{"norm", "*.input_layernorm"}, edit: twice},
	{
		Name: "norm-of-another", Page: "another-norms-weight", What: "the norm behind attention has the weight of the one before", at: []string{"*.post_attention_layernorm"},
		edit: weightOf(beside("input_layernorm")),
	},
	{Name: "norm-of-queries", Page: "another-norms-weight", What: "keys are normalised by the weight of queries", at: []string{keyNorm}, edit: weightOf(beside("self_attn.q_norm"))},
	{Name: "norm-inverted", Page: "inverted-norm", What: "norms multiply by the root", at: []string{aNorm}, edit: as("rsqrt", program.Sqrt)},
	{
		Name: "norm-over-heads", Page: "norm-over-all-heads", What: "queries are normalised over all heads", at: []string{queryNorm}, axes: 2, when: manyHeads,
		edit: func(s *spot) bool {
			for _, i := range s.steps("mean") {
				for _, sq := range s.steps("square") {
					all := s.Reshape(s.p.Result(sq), s.shape()[0], s.shape()[1], 1, -1)
					s.Become(i, program.Div, s.Sum("", all), s.Literal(float64(all.Last())))
				}
			}
			return true
		},
	},
}

var projections = []Mistake{
	{Name: "bias-of-attention", Page: "missing-bias", What: "the biases of attention are left out", at: []string{"*.self_attn.*=linear(bias)"}, edit: unbiased},
	{Name: "bias-of-mlp", Page: "missing-bias", What: "the biases of the MLP are left out", at: []string{"*.mlp.*=linear(bias)"}, edit: unbiased},
	{Name: "keys-of-values", Page: "crossed-projections", What: "keys are projected by the weight of values", at: []string{"*.self_attn.k_proj"}, edit: weightOf(beside("self_attn.v_proj"))},
	{Name: "values-of-keys", Page: "crossed-projections", What: "values are projected by the weight of keys", at: []string{"*.self_attn.v_proj"}, edit: weightOf(beside("self_attn.k_proj"))},
	{
		Name: "heads-by-size", Page: "head-layout", What: "channels of queries are read as [head_dim, heads]", at: []string{"*.self_attn.q_proj"},
		when: func(c *order.Config) bool { return c.NumHeads > 1 && c.HeadDim > 1 },
		edit: rowsAt(func(s *spot, i, _ int) int {
			c := s.m.List.Config
			return i%c.HeadDim*c.NumHeads + i/c.HeadDim
		}),
	},
	{
		Name: "heads-tiled", Page: "key-heads-of-a-group", What: "key heads are tiled, not repeated", at: []string{"*.self_attn.scores", "*.self_attn.context"}, inputs: 1, axes: 2,
		when: isGrouped, needs: twoKeyHeads, edit: tiled,
	},
	{
		Name: "heads-first", Page: "key-heads-of-a-group", What: "all queries read the first key head", at: []string{"*.self_attn.scores", "*.self_attn.context"},
		when: func(c *order.Config) bool { return c.NumHeads > 1 }, needs: twoKeyHeads,
		edit: input(1, func(s *spot, v program.Var) (program.Var, bool) {
			if len(v.Shape()) < 2 {
				return v, false
			}
			heads := v.Shape()[1]
			all := make([]program.Var, heads)
			for h := range all {
				all[h] = s.Slice(v, 1, 0, 1)
			}
			return s.Cat(1, all...), heads > 1
		}),
	},
	{
		Name: "heads-not-transposed", Page: "heads-merged-without-transposing", What: "heads are merged without transposing", at: []string{"*.self_attn.context"},
		needs: tokens(2), when: manyHeads,
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			c := s.m.List.Config
			return s.Held(s.Permute(s.Reshape(s.Held(v), 1, -1, c.NumHeads, c.HeadDim), 0, 2, 1, 3)), true
		}),
	},
}

func unbiased(s *spot) bool {
	for _, i := range s.steps("product") {
		st := s.Step(i)
		st.Args = append([]program.Var{}, st.Args[:2]...)
	}
	return true
}

// tiled makes query head h read key head h mod n: heads in the order of their remainders, and those of the result back.
func tiled(s *spot) bool {
	c := s.m.List.Config
	v, ok := s.Mapped(s.In[0], program.Map{Kind: program.Weave, Axis: 1, N: c.NumKVHeads})
	if !ok || !s.reads(0, v) {
		return false
	}
	own, axis := s.own(), 1
	if len(own.Shape()) == 3 { // the heads are merged behind the tokens
		own, axis = s.Reshape(s.Held(own), 1, -1, c.NumHeads, c.HeadDim), 2
	}
	m := program.Map{Kind: program.Weave, Axis: axis, N: c.NumKVHeads}
	w, ok := s.Mapped(own, m.Inverse(own.Shape()))
	return ok && s.put(w)
}

var layers = []Mistake{
	{Name: "gelu-exact", Page: "exact-gelu", What: "GELU has the error function, not tanh", at: []string{"*=gelu_tanh"}, edit: operation(func(*spot) op.Op { return op.GELU{} })},
	{Name: "gelu-is-silu", Page: "activation", What: "the activation is SiLU", at: []string{"*=gelu"}, edit: operation(func(*spot) op.Op { return op.SiLU{} })},
	{Name: "silu-is-gelu", Page: "activation", What: "the activation is GELU", at: []string{"*=silu"}, edit: operation(func(*spot) op.Op { return op.GELUTanh{} })},
	{
		Name: "activation-relu", Page: "activation", What: "the activation is ReLU", at: []string{"*=gelu", "*=silu"}, inputs: 1,
		edit: func(s *spot) bool { return s.put(s.Max(s.Literal(0), s.In[0])) },
	},
	{Name: "activation-missing", Page: "activation", What: "the activation is left out", at: []string{"*=gelu", "*=silu"}, edit: leftOut(0)},
	{Name: "gate-for-up", Page: "gate-and-up", What: "gate and up are exchanged", at: []string{"*.mlp.gate_proj"}, edit: weightOf(beside("mlp.up_proj"))},
	{Name: "sparsity-missing", Page: "activation-sparsity", What: "the sparsity of the gate is left out", at: []string{"*.mlp.gate_sparse"}, edit: leftOut(0)},
	{
		Name: "sparsity-unshifted", Page: "activation-sparsity", What: "what passes the cutoff is not shifted by it", at: []string{"*.mlp.gate_sparse"}, inputs: 2,
		edit: func(s *spot) bool {
			return s.put(s.Mul("", s.In[0], s.Gate(s.Sub("", s.In[0], s.In[1]))))
		},
	},
	{
		Name: "sparsity-sample", Page: "activation-sparsity", What: "the deviation divides by n-1", at: []string{"*.mlp.sparsity.std"},
		edit: func(s *spot) bool {
			for _, i := range s.steps("variance") {
				n := s.p.Steps[s.p.Source(s.p.Steps[i].Args[1])].Value
				s.Read(i, 1, s.Literal(n-1))
			}
			return true
		},
	},
	{
		Name: "sparsity-two-sided", Page: "activation-sparsity", What: "the cutoff has the two-sided quantile", at: []string{"*.mlp.sparsity.cutoff"}, when: isGemma3n,
		edit: number("multiplier", func(s *spot, _ float64) float64 {
			return math.Sqrt2 * math.Erfinv(s.m.List.Config.Gemma3n.Sparsity[s.entry.Layer])
		}),
	},
	{
		Name: "norm-after-residual", Page: "order-of-norm-and-residual", What: "attention is added before its norm", at: []string{"*.post_attention_layernorm"}, when: hasPostNorms,
		edit: input(0, func(s *spot, v program.Var) (program.Var, bool) {
			name := "in"
			if s.m.List.Config.Gemma3n != nil {
				name = "active_prediction"
			}
			w, ok := s.captured(name, 0)
			return s.Rounded(s.Add("", v, w)), ok
		}),
	},
	{
		Name: "residual-normalised", Page: "source-of-the-residual", What: "the residual is taken behind the norm", at: []string{"*.attn_residual", "*.attn_gated"},
		edit: inputIs(0, "input_layernorm"),
	},
	{
		Name: "residual-missing", Page: "missing-residual", What: "the residual is not added", at: []string{"*.attn_residual", "*.attn_gated", "*.out=add", "*.attn_ffw_laurel_gated"},
		edit: func(s *spot) bool { return len(s.In) == 2 && leftOut(1)(s) },
	},
	{Name: "branch-zero", Page: "branch-of-zeros", What: "attention gives zeros", at: []string{"*.self_attn.o_proj"}, edit: times(func(*spot) float64 { return 0 })},
}

var weights = []Mistake{
	{
		Name: "transposed", Page: "transposed-weight", What: "square weights are transposed", at: []string{"*=linear"}, when: hasSquare,
		edit: weight(0, func(_ *spot, w program.Rows) program.Rows {
			if rows, cols := w.Size(); rows != cols || rows < 2 {
				return nil
			}
			return transposed{w}
		}),
	},
	{Name: "next-layer", Page: "another-layers-weight", What: "projections have the weight of the next layer", at: []string{"layers.*.self_attn.q_proj"}, when: manyLayers, edit: weightOf(nextLayer)},
	{
		Name: "norm-weight-one", Page: "weight-not-loaded", What: "the weight of the last norm is not loaded", at: []string{"norm"},
		edit: each(true, func(s *spot, _ float64) float64 {
			if len(s.steps("1+w")) > 0 {
				return 0
			}
			return 1
		}),
	},
	{
		Name: "weight-8-bits", Page: "quantised-weight", What: "weights have 8 bits", at: []string{"*.mlp.down_proj"},
		edit: weight(0, func(s *spot, w program.Rows) program.Rows { return quantised(s, w, 0, 127) }),
	},
	{
		Name: "weight-4-bits", Page: "quantised-weight", What: "weights have 4 bits", at: []string{"*.mlp.down_proj"},
		edit: weight(0, func(s *spot, w program.Rows) program.Rows { return quantised(s, w, 32, 7) }),
	},
	{
		Name: "row-twice", Page: "damaged-weight", What: "a row of a weight is written twice", at: []string{"*.self_attn.o_proj"},
		edit: rowsAt(func(_ *spot, i, _ int) int { return max(i-i%2, 0) }),
	},
	{
		Name: "shard-zero", Page: "shards", What: "half of the channels are zero", at: []string{"*.mlp.down_proj"},
		edit: weight(0, func(_ *spot, w program.Rows) program.Rows {
			n, _ := w.Size()
			return row{w, func(i int, x []float64) {
				if i >= n/2 {
					clear(x)
				}
			}}
		}),
	},
	{
		Name: "shard-sum", Page: "shards", What: "the sum is of half of the inputs", at: []string{"*.mlp.down_proj"},
		edit: weight(0, func(_ *spot, w program.Rows) program.Rows {
			return row{w, func(_ int, x []float64) { clear(x[len(x)/2:]) }}
		}),
	},
}

func hasSquare(c *order.Config) bool {
	return c.NumHeads*c.HeadDim == c.HiddenSize || c.NumKVHeads*c.HeadDim == c.HiddenSize
}

var heads = []Mistake{
	{
		Name: "head-tied", Page: "tied-head", What: "the head is the embedding", at: []string{"lm_head"}, when: func(c *order.Config) bool { return !c.Tied },
		edit: weightOf(func(*spot, string) string { return "embed_tokens.weight" }),
	},
	{
		Name: "head-scaled", Page: "logit-scale", What: "logits are scaled by √hidden_size", at: []string{"lm_head"},
		edit: each(true, func(s *spot, w float64) float64 { return w * rootWidth(s) }),
	},
	{Name: "logits-uncapped", Page: "logit-soft-cap", What: "the cap on logits is left out", at: []string{"logits=softcap"}, edit: leftOut(0)},
	{
		Name: "logits-cap-50", Page: "logit-soft-cap", What: "logits are capped at 50", at: []string{"logits=softcap"},
		when: func(c *order.Config) bool { return c.FinalSoftcap != 50 }, edit: number("cap", is(50)),
	},
	{Name: "logits-cap-once", Page: "logit-soft-cap", What: "the cap is not multiplied behind the tanh", at: []string{"logits=softcap"}, edit: skipped("product", 0)},
	{
		Name: "logits-capped", Page: "logit-soft-cap", What: "logits are capped at 30", at: []string{"logits=identity"}, when: not(isFinalCapped),
		edit: operation(func(*spot) op.Op { return op.Softcap{Cap: 30} }),
	},
	{
		Name: "logits-shifted", Page: "shifted-logits", What: "logits belong to the token before", at: []string{"lm_head"}, needs: tokens(2),
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			return s.Mapped(v, program.Map{Kind: program.Roll, Axis: 1, By: 1})
		}),
	},
}
