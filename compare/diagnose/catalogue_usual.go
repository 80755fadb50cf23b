package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Norms by what they are of.
const (
	aNorm     = "*=rms_norm"
	queryNorm = "*.self_attn.q_norm"
	keyNorm   = "*.self_attn.k_norm"
)

var usualEmbeddings = []Usual{
	{Name: "embedding-unscaled", Page: "embedding-scale", What: "the embedding is not scaled", at: []string{"embed_tokens=scale"}, is: leftOut(0)},
	{Name: "embedding-scaled-twice", Page: "embedding-scale", What: "the embedding is scaled twice", at: []string{"embed_tokens=scale"}, is: takenTwice},
	{
		Name: "embedding-scaled", Page: "embedding-scale", What: "the embedding is scaled by √hidden_size", at: []string{"embed_tokens=identity"},
		is: insertedIs("factor.inserted", byRootWidth),
	},
	{
		Name: "embedding-scale-rounding", Page: "rounded-embedding-scale", What: "the embedding's scale is rounded differently", at: []string{"embed_tokens=scale"},
		when: func(c *order.Config) bool {
			by := math.Sqrt(float64(c.HiddenSize))
			return floats.Round(hooks.BF16, by) != by
		},
		is: roundedScale,
	},
	{
		Name: "embedding-rows", Page: "embedding-rows", What: "the rows of the embedding are shifted by one", at: []string{"embed_tokens.lookup"},
		is: always(Mistake{Kind: "ids.row-after", Place: "lookup.ids"}),
	},
}

var usualNorms = []Usual{
	{Name: "epsilon-1e-6", Page: "epsilon", What: "epsilon is 1e-6", at: []string{aNorm}, when: epsilonIsNot(1e-6), is: numberIs("eps", just(1e-6))},
	{Name: "epsilon-1e-5", Page: "epsilon", What: "epsilon is 1e-5", at: []string{aNorm}, when: epsilonIsNot(1e-5), is: numberIs("eps", just(1e-5))},
	{Name: "epsilon-1e-3", Page: "epsilon", What: "epsilon is 1e-3", at: []string{aNorm}, when: epsilonIsNot(1e-3), is: numberIs("eps", just(1e-3))},
	{
		Name: "epsilon-outside", Page: "place-of-epsilon", What: "epsilon is added after the root, not under it", at: []string{aNorm},
		is: editOf(edit.Edits.Behind, valued(0)),
	},
	{
		Name: "epsilon-inflated", Page: "place-of-epsilon", What: "the input is divided by its maximum, but epsilon is not", at: []string{aNorm},
		is: numberTimes("+eps", "square", "largest-square"),
	},
	{
		Name: "plus-one", Page: "one-plus-the-weight", What: "norms multiply by 1+w", at: []string{"*=rms_norm(eps, gain=plain", "*=rms_norm(eps, gain=after"},
		is: weightIs(Mistake{Kind: "weight.plus-one"}),
	},
	{Name: "without-one", Page: "one-plus-the-weight", What: "norms multiply by w and not by 1+w", at: []string{"*=rms_norm(eps, gain=oneplus"}, is: stepLeftOut("1+w", 1)},
	{
		Name: "one-twice", Page: "one-plus-the-weight", What: "norms add 1 to a weight that holds it", at: []string{"*=rms_norm(eps, gain=oneplus"},
		is: weightIs(Mistake{Kind: "weight.stored-plus-one"}),
	},
	{Name: "layernorm", Page: "layernorm", What: "LayerNorm instead of RMSNorm", at: []string{aNorm}, is: always(Mistake{Kind: "norm.layernorm"})},
	{Name: "norm-of-queries-missing", Page: "missing-norm", What: "queries and keys are not normalised", at: []string{queryNorm, keyNorm}, is: leftOut(0)},
	{Name: "norm-of-values-missing", Page: "missing-norm", What: "values are not normalised", at: []string{"*.self_attn.v_norm"}, is: leftOut(0)},
	{Name: "norm-final-missing", Page: "missing-norm", What: "the last norm is missing", at: []string{"norm"}, is: leftOut(0)},
	{
		Name: "norm-after-missing", Page: "missing-norm", What: "the norms after attention and MLP are missing", at: []string{"*.post_attention_layernorm", "*.post_feedforward_layernorm"},
		when: hasPostNorms, is: leftOut(0),
	},
	{Name: "norm-of-laurel-missing", Page: "missing-norm", What: "the norm of LAUREL is missing", at: []string{"*.laurel.post_laurel_norm"}, is: leftOut(0)},
	{
		Name: "norm-of-projection-missing", Page: "missing-norm", What: "the norm of the per-layer projection is missing", at: []string{"per_layer_projection_norm"},
		is: leftOut(0),
	},
	{Name: "norm-missing-in-decode", Page: "missing-norm", What: "keys are not normalised in decode steps", at: []string{keyNorm}, needs: aStep, is: decoding(leftOut(0))},
	{Name: "norm-twice", Page: "missing-norm", What: "a norm is applied twice", at: []string{"norm", "*.input_layernorm"}, is: takenTwice},
	{
		Name: "norm-of-another", Page: "another-norms-weight", What: "the norm after attention has the weight of the norm before it", at: []string{"*.post_attention_layernorm"},
		is: weightOf("input_layernorm"),
	},
	{Name: "norm-of-queries", Page: "another-norms-weight", What: "the key norm has the query norm's weight", at: []string{keyNorm}, is: weightOf("self_attn.q_norm")},
	{Name: "norm-inverted", Page: "inverted-norm", What: "norms multiply by the root mean square, not divide by it", at: []string{aNorm}, is: stepIs("rsqrt", program.Rsqrt, program.Sqrt)},
	{
		Name: "norm-over-heads", Page: "norm-over-all-heads", What: "queries are normalised over all heads", at: []string{queryNorm},
		when: manyHeads, is: editOf(edit.Edits.Wider, valued(0)),
	},
}

var usualProjections = []Usual{
	{Name: "bias-of-attention", Page: "missing-bias", What: "the biases of attention are missing", at: []string{"*.self_attn.*=linear(bias)"}, is: editOf(edit.Edits.LeftOut, biasLeftOut)},
	{Name: "bias-of-mlp", Page: "missing-bias", What: "the biases of the MLP are missing", at: []string{"*.mlp.*=linear(bias)"}, is: editOf(edit.Edits.LeftOut, biasLeftOut)},
	{
		Name: "keys-of-values", Page: "crossed-projections", What: "keys are projected by the weight of values", at: []string{"*.self_attn.k_proj"},
		is: weightOf("self_attn.v_proj"),
	},
	{
		Name: "values-of-keys", Page: "crossed-projections", What: "values are projected by the weight of keys", at: []string{"*.self_attn.v_proj"},
		is: weightOf("self_attn.k_proj"),
	},
	{
		Name: "heads-by-size", Page: "head-layout", What: "channels of queries are read as [head_dim, heads]", at: []string{"*.self_attn.q_proj"},
		when: func(c *order.Config) bool { return c.NumHeads > 1 && c.HeadDim > 1 }, is: weightHas(headsBySize),
	},
	{
		Name: "heads-tiled", Page: "key-heads-of-a-group", What: "KV heads are tiled, not repeated", at: []string{"*.self_attn.scores", "*.self_attn.context"},
		when: isGrouped, needs: twoKeyHeads, is: editOf(mapsOf, ofRepeated),
	},
	{
		Name: "heads-first", Page: "key-heads-of-a-group", What: "all query heads read the first KV head", at: []string{"*.self_attn.scores", "*.self_attn.context"},
		when: manyHeads, needs: twoKeyHeads, is: inputMapped(1, false, firstHead),
	},
	{
		Name: "heads-not-transposed", Page: "heads-merged-without-transposing", What: "heads are merged without transposing", at: []string{"*.self_attn.context"},
		when:  manyHeads,
		needs: tokens(2),
		is: resultMapped(func(c *order.Config) edit.Map {
			return edit.Map{Kind: edit.Reread, Axis: 1, Other: 2, By: c.HeadDim}
		}),
	},
}

var usualLayers = []Usual{
	{Name: "gelu-exact", Page: "exact-gelu", What: "GELU is exact (erf), not the tanh approximation", at: []string{"*=gelu_tanh"}, is: activationIs("gelu")},
	{Name: "gelu-is-silu", Page: "activation", What: "the activation is SiLU", at: []string{"*=gelu"}, is: activationIs("silu")},
	{Name: "silu-is-gelu", Page: "activation", What: "the activation is GELU", at: []string{"*=silu"}, is: activationIs("gelu_tanh")},
	{Name: "activation-relu", Page: "activation", What: "the activation is ReLU", at: []string{"*=gelu", "*=silu"}, is: activationIs("relu")},
	{Name: "activation-missing", Page: "activation", What: "the activation is missing", at: []string{"*=gelu", "*=silu"}, is: activationIs("")},
	{Name: "gate-for-up", Page: "gate-and-up", What: "gate and up are exchanged", at: []string{"*.mlp.gate_proj"}, is: weightOf("mlp.up_proj")},
	{Name: "sparsity-missing", Page: "activation-sparsity", What: "the sparsity of the gate is missing", at: []string{"*.mlp.gate_sparse"}, is: leftOut(0)},
	{
		Name: "sparsity-unshifted", Page: "activation-sparsity", What: "values above the cutoff are not reduced by the cutoff", at: []string{"*.mlp.gate_sparse"},
		is: always(Mistake{Kind: "sparsity.not-shifted"}),
	},
	{Name: "sparsity-sample", Page: "activation-sparsity", What: "the standard deviation divides by n-1", at: []string{"*.mlp.sparsity.std"}, is: sampled},
	{
		Name: "sparsity-two-sided", Page: "activation-sparsity", What: "the cutoff has the two-sided quantile", at: []string{"*.mlp.sparsity.cutoff"},
		when: isGemma3n, is: twoSided,
	},
	{
		Name: "norm-after-residual", Page: "order-of-norm-and-residual", What: "attention is added before its norm", at: []string{"*.post_attention_layernorm"},
		when: hasPostNorms, is: inputIs("tensor.added", 0, "active_prediction", "in"),
	},
	{
		Name: "residual-normalised", Page: "source-of-the-residual", What: "the residual is taken after the norm", at: []string{"*.attn_residual", "*.attn_gated"},
		is: inputIs("input.other", 0, "input_layernorm"),
	},
	{
		Name: "residual-missing", Page: "missing-residual", What: "the residual is not added", at: []string{"*.attn_residual", "*.attn_gated", "*.out=add", "*.attn_ffw_laurel_gated"},
		is: leftOut(1),
	},
	{Name: "branch-zero", Page: "branch-of-zeros", What: "attention gives zeros", at: []string{"*.self_attn.o_proj"}, is: insertedIs("factor.inserted", byNumber(0))},
}

var usualWeights = []Usual{
	{
		Name: "transposed", Page: "transposed-weight", What: "square weights are transposed", at: []string{"*=linear"},
		when: hasSquare, is: weightIs(Mistake{Kind: "weight.transposed"}),
	},
	{
		Name: "next-layer", Page: "another-layers-weight", What: "projections have the weight of the next layer", at: []string{order.AnyLayer + "self_attn.q_proj"},
		when: manyLayers, is: weightOfNextLayer,
	},
	{Name: "norm-weight-one", Page: "weight-not-loaded", What: "the weight of the last norm is not loaded", at: []string{"norm"}, is: weightHas(notLoaded)},
	{Name: "weight-8-bits", Page: "quantised-weight", What: "weights are quantised to 8 bits", at: []string{"*.mlp.down_proj"}, is: weightIs(rounded(Int8, ByRow))},
	{Name: "weight-4-bits", Page: "quantised-weight", What: "weights are quantised to 4 bits", at: []string{"*.mlp.down_proj"}, is: weightHas(inGroups)},
	{
		Name: "row-twice", Page: "damaged-weight", What: "a row of a weight is written twice", at: []string{"*.self_attn.o_proj"},
		is: weightIs(Mistake{Kind: blocksKind, N: 2, Runs: makeRuns(slotRun(0, 0), slotRun(1, 0))}),
	},
	{Name: "shard-zero", Page: "shards", What: "half of the channels are zero", at: []string{"*.mlp.down_proj"}, is: weightHas(halfOfRows)},
	{Name: "shard-sum", Page: "shards", What: "the product sums only half of the inputs", at: []string{"*.mlp.down_proj"}, is: weightHas(halfOfColumns)},
}

var usualHeads = []Usual{
	{
		Name: "head-tied", Page: "tied-head", What: "the LM head is tied to the embedding", at: []string{"lm_head"},
		when: func(c *order.Config) bool { return !c.Tied }, is: weightOf("embed_tokens"),
	},
	{
		Name: "head-scaled", Page: "logit-scale", What: "logits are scaled by √hidden_size", at: []string{"lm_head"},
		is: weightHas(timesRootWidth),
	},
	{Name: "logits-uncapped", Page: "logit-soft-cap", What: "the soft cap on logits is missing", at: []string{"logits=softcap"}, is: leftOut(0)},
	{
		Name: "logits-cap-50", Page: "logit-soft-cap", What: "logits are capped at 50", at: []string{"logits=softcap"},
		when: func(c *order.Config) bool { return c.FinalSoftcap != 50 }, is: numberIs("cap", just(50)),
	},
	{Name: "logits-cap-once", Page: "logit-soft-cap", What: "the tanh of the soft cap is not multiplied by the cap", at: []string{"logits=softcap"}, is: stepLeftOut("product", 0)},
	{
		Name: "logits-capped", Page: "logit-soft-cap", What: "logits are capped at 30", at: []string{"logits=identity"},
		when: not(isFinalCapped), is: insertedIs("soft-cap.inserted", byNumber(30)),
	},
	{
		Name: "logits-shifted", Page: "shifted-logits", What: "off by one: logits belong to the previous token", at: []string{"lm_head"},
		needs: tokens(2), is: resultMapped(rolled(1)),
	},
}
