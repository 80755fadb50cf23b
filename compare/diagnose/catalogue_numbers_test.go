package diagnose

import "testing"

func TestSentencesOfNumbersAndFunctions(t *testing.T) {
	number := func(kind Kind, what TermKind, x, right float64) Mistake {
		return Mistake{Kind: kind, Of: Term{Kind: what}, By: literal(x), For: literal(right)}
	}
	variant := func(kind Kind, of, by Term) Mistake {
		return Mistake{Kind: kind, Place: "gelu_tanh", Of: of, By: by, For: function("silu")}
	}
	named := func(name string) Term { return Term{Kind: AName, Name: name} }
	gate, post, up := tensorTerm("layers.0.mlp.gate_proj"), weightTerm("layers.0.post_attention_layernorm.weight"), weightTerm("layers.0.mlp.up_proj.weight")
	ofRow := func(kind Kind, of TermKind, name string, x Number) Mistake {
		return Mistake{Kind: kind, Of: Term{Kind: of}, By: tensorTerm("layers.0.in"), For: Term{Kind: RowStatistic, Name: name}, X: x, Right: some(1e-6)}
	}
	const logits, out, scores, gated, o = "logits", "layers.*.out", "layers.*.self_attn.scores", "layers.*.mlp.gated", "layers.*.self_attn.o_proj"
	saying(t, numberRows(), []said{
		{number("number.doubled", SoftCap, 60, 30), "the soft cap is doubled: 60 instead of 30", logits, "logit-soft-cap"},
		{number("number.halved", AFactor, 0.5, 1), "the factor is halved: 0.5 instead of 1", scores, "attention-scale"},
		{number("number.times-root-2", ADivisor, 1.41421, 1), "the divisor is multiplied by √2: 1.41421 instead of 1", scores, "attention-scale"},
		{number("number.over-root-2", Floor, 0.707107, 1), "the floor under the root is divided by √2: 0.707107 instead of 1", "norm", "inverted-norm"},
		{number("number.negated", Epsilon, -1, 1), "epsilon has the wrong sign: -1 instead of 1", "layers.*.input_layernorm", "epsilon"},
		{number("number.squared", SomeValue, 4, 2), "a number is squared: 4 instead of 2", "layers.*.mlp.cutoff", "activation-sparsity"},
		{Mistake{Kind: "number.rooted", Of: named("√n"), By: literal(2), For: literal(4)}, "√n is the square root of the right value: 2 instead of 4", "embed_tokens", "embedding-scale"},
		{number("number.inverted", AFactor, 0.25, 4), "the factor is the reciprocal of the right value: 0.25 instead of 4", "embed_tokens", "embedding-scale"},
		{number("number.two-sided-quantile", AFactor, 1.95996, 1.64485), "the factor is the two-sided quantile of a normal distribution, not the one-sided: 1.95996 instead of 1.64485", "layers.*.mlp.act_fn", "activation-sparsity"},

		{ofRow("number.times-statistic", Epsilon, "largest-square", Number{}), "epsilon is multiplied by the square of the largest magnitude of each row of layers.*.in", "layers.*.input_layernorm", "place-of-epsilon"},
		{ofRow("number.over-statistic", AFactor, "length", Number{}), "the factor is divided by the length of each row of layers.*.in", scores, "attention-scale"},
		{ofRow("number.statistic", Epsilon, "mean-square", Number{}), "epsilon is the mean square of each row of layers.*.in, not 1e-06", "layers.*.input_layernorm", "place-of-epsilon"},
		{ofRow("number.statistic", Epsilon, "deviation", some(0.5)), "epsilon is 0.5 times the standard deviation of each row of layers.*.in, not 1e-06", "layers.*.input_layernorm", "place-of-epsilon"},

		{Mistake{Kind: "activation.other", By: function("gelu"), For: function("gelu_tanh")}, "the activation is gelu, not gelu_tanh", "layers.*.mlp.act_fn", "exact-gelu"},
		{Mistake{Kind: "activation.other", By: function("gelu_tanh"), For: function("gelu")}, "the activation is gelu_tanh, not gelu", gated, "exact-gelu"},
		{Mistake{Kind: "activation.other", By: function("silu"), For: function("gelu_tanh")}, "the activation is silu, not gelu_tanh", gated, "activation"},
		{Mistake{Kind: "activation.other-rounded", By: function("gelu"), For: function("gelu_tanh")}, "the activation is gelu, not gelu_tanh, with each step rounded", gated, "exact-gelu"},
		{Mistake{Kind: "activation.left-out", For: function("silu")}, "the activation silu is missing", gated, "activation"},
		{variant("activation.step-left-out", named("tanh"), Term{}), "the activation gelu_tanh lacks tanh", gated, "activation"},
		{variant("activation.step-left-out", Term{Kind: TheMinus}, Term{}), "the activation gelu_tanh lacks the minus sign", gated, "activation"},
		{variant("activation.operand-alone", named("sum"), Term{}), "the activation gelu_tanh uses only one operand of sum", gated, "activation"},
		{variant("activation.step-as", named("tanh"), function("erf(x)")), "the activation gelu_tanh has erf(x) instead of tanh", gated, "activation"},
		{
			variant("activation.number", Term{Kind: Constant, Name: "√(2/π)", X: 0.797885}, Term{Kind: ItsSquare, X: 0.63662}),
			"the activation gelu_tanh has 0.63662, its square instead of √(2/π), 0.797885", gated, "activation",
		},
		{variant("activation.number", literal(4), Term{Kind: ItsRoot, X: 2}), "the activation gelu_tanh has 2, its square root instead of 4", gated, "activation"},
		{variant("activation.number", literal(4), Term{Kind: ItsReciprocal, X: 0.25}), "the activation gelu_tanh has 0.25, its reciprocal instead of 4", gated, "activation"},
		{variant("activation.number", literal(4), Term{Kind: TwiceIt, X: 8}), "the activation gelu_tanh has 8, its double instead of 4", gated, "activation"},
		{variant("activation.number", literal(4), Term{Kind: HalfOfIt, X: 2}), "the activation gelu_tanh has 2, its half instead of 4", gated, "activation"},
		{variant("activation.number", literal(4), Term{Kind: ItsNegative, X: -4}), "the activation gelu_tanh has -4, its negative instead of 4", gated, "activation"},
		{
			Mistake{Kind: "activation.other-with-number", Place: "quick_gelu", Of: literal(1.702), For: function("gelu_tanh"), X: some(1.773)},
			"the activation is quick_gelu, not gelu_tanh, with 1.773 instead of 1.702", gated, "activation",
		},
		{Mistake{Kind: "activation.zero-below", Place: "gelu_tanh", X: some(-2.5)}, "the activation gelu_tanh is 0 for inputs below -2.5", gated, "activation"},
		{Mistake{Kind: "activation.input-above", Place: "gelu_tanh", X: some(3)}, "the activation gelu_tanh is its input for inputs above 3", gated, "activation"},
		{Mistake{Kind: "activation.saturated", Place: "gelu_tanh", X: some(3)}, "the activation gelu_tanh is 0 for inputs below -3, and its input for inputs above 3", gated, "activation"},
		{variant("activation.other-step-left-out", named("tanh"), Term{}), "the activation is gelu_tanh, not silu, and lacks tanh", gated, "activation"},
		{variant("activation.other-operand-alone", named("sum"), Term{}), "the activation is gelu_tanh, not silu, and uses only one operand of sum", gated, "activation"},
		{variant("activation.other-step-as", named("sum"), function("sub")), "the activation is gelu_tanh, not silu, with sub instead of sum", gated, "activation"},
		{
			variant("activation.other-number", Term{Kind: Constant, Name: "√(2/π)", X: 0.797885}, Term{Kind: ItsSquare, X: 0.63662}),
			"the activation is gelu_tanh, not silu, with 0.63662, its square instead of √(2/π), 0.797885", gated, "activation",
		},
		{
			Mistake{Kind: "function.of-lines", Of: stepTerm("softcap.tanh"), By: tensorTerm(scores), N: 3, Numbers: "3,-1,1,-2,1,1,-1,0,1,2,0,1,2,1,1,1"},
			"step softcap.tanh is made of 3 lines of layers.*.self_attn.scores, which meet near -1, 1", scores, "attention-soft-cap",
		},
		{
			Mistake{Kind: "function.lines-times-input", Of: function("silu"), By: gate, N: 2, Numbers: "2,-0.5,-2,1,1,0,1,1,2,0.5,0.2"},
			"silu is layers.*.mlp.gate_proj times a function that is made of 2 lines, which meet near -0.5", gated, "activation",
		},
		{
			Mistake{Kind: "function.near", Of: function("gelu"), By: gate, For: literal(2.37), X: some(2.6e-5), N: 2},
			"a function near gelu takes its place: it is up to 2.6e-05 off, where layers.*.mlp.gate_proj is 2.37", gated, "activation",
		},
		{
			Mistake{Kind: "function.near-powers-of-2", Of: function("silu"), X: some(0.061), N: 2},
			"the exponential in silu is a whole power of 2 times a function near the rest of the power: it is off by up to 0.061 of its value", gated, "activation",
		},
		{Mistake{Kind: "tanh.clip"}, "a hard clip to ±1 replaces tanh", logits, "logit-soft-cap"},
		{Mistake{Kind: "tanh.softmax"}, "a softmax over the channels replaces tanh", scores, "attention-soft-cap"},
		{Mistake{Kind: "tanh.sigmoid"}, "a sigmoid replaces tanh", o, "attention-soft-cap"},

		{Mistake{Kind: "result.clipped-below", X: some(-10)}, "the result is clipped at a minimum of -10", scores, "attention-soft-cap"},
		{Mistake{Kind: "result.clipped-above", X: some(10)}, "the result is clipped at a maximum of 10", scores, "attention-soft-cap"},
		{Mistake{Kind: "result.clamped", X: some(10)}, "the result is clamped to ±10", "mask.full", "mask-value"},
		{Mistake{Kind: "factor.inserted", Of: theResult, X: some(0.125)}, "the result is multiplied by 0.125", scores, "attention-scale"},
		{Mistake{Kind: "factor.inserted", Of: theResult, X: some(0.125), Called: "1/√head_dim"}, "the result is multiplied by 0.125 (1/√head_dim)", "layers.*.self_attn.q_rope", "scale-moved-to-the-queries"},
		{Mistake{Kind: "factor.inserted", Of: gate, X: some(2)}, "layers.*.mlp.gate_proj is multiplied by 2", gated, ""},
		{Mistake{Kind: "addend.inserted", Of: gate, X: some(1)}, "1 is added to layers.*.mlp.gate_proj", gated, ""},
		{Mistake{Kind: "factors.inserted", Of: theResult, Axis: "heads", Numbers: "1,2,0.5,2"}, "the result is multiplied by 2 at heads 1, 3; 0.5 at head 2", scores, "attention-scale"},
		{Mistake{Kind: "addends.inserted", Of: gate, Axis: "channels", Numbers: "0,0,0.5"}, "constants are added to layers.*.mlp.gate_proj: 0.5 at channel 2", gated, ""},
		{Mistake{Kind: "slopes.inserted", Of: theResult, Axis: "heads", Other: "keys", Numbers: "0.5,0.25"}, "a bias that grows along the keys is added to the result, with its own slope for each of the heads: 0.5 at head 0; 0.25 at head 1 per step", scores, ""},
		{Mistake{Kind: "slopes.inserted", Of: theResult, Other: "keys", Numbers: "0.5"}, "a bias that grows along the keys is added to the result: 0.5 per step", scores, ""},
		{Mistake{Kind: "input.whole", Of: listTerm(Operations, []string{"layers.*.in"})}, "layers.*.in is rounded to whole numbers: its quantisation has no scale, or a scale that is never below 1", out, ""},
		{Mistake{Kind: "input.truncated", Of: listTerm(Operations, []string{"layers.*.in"})}, "layers.*.in is truncated to whole numbers", out, ""},
		{Mistake{Kind: "value.other", Of: theResult, By: gate}, "layers.*.mlp.gate_proj takes the place of the result", gated, ""},
		{Mistake{Kind: "heads.others", Of: theResult, By: gate, Numbers: "0,1,0,1"}, "heads of the result read the wrong heads of layers.*.mlp.gate_proj: 0, 1, 0, 1, in this order", scores, "key-heads-of-a-group"},
		{Mistake{Kind: "value.formula", Of: theResult, By: gate, Other: "tanh *", For: up}, "the result is the tanh of layers.*.mlp.gate_proj * layers.*.mlp.up_proj.weight", gated, ""},
		{Mistake{Kind: "weights.of-another-layer", By: Term{Kind: ALayer, Name: "layers.3"}}, "all weights come from layers.3", gated, "another-layers-weight"},
		{Mistake{Kind: "weight.input-factors", Of: up, Numbers: "1,1,0.5,0.5"}, "the inputs of layers.*.mlp.up_proj.weight are multiplied by a factor each: 0.5 at inputs 2, 3", gated, ""},
		{Mistake{Kind: "number.of-layers", Of: Term{Kind: AFactor}, Axis: "layers", Numbers: "NaN,0.5,0.25", RightNumbers: "NaN,1,0.5"}, "the factor differs by layer: 0.5 at layer 1; 0.25 at layer 2, instead of 1 at layer 1; 0.5 at layer 2", scores, "attention-scale"},
		{Mistake{Kind: "number.of-layers", Of: Term{Kind: AFactor}, Axis: "layers", Numbers: "NaN,0.5,0.25"}, "the factor differs by layer: 0.5 at layer 1; 0.25 at layer 2", scores, "attention-scale"},
		{Mistake{Kind: "factors.inserted", Of: theResult, Axis: "channels, layers", Numbers: "1,2,0.5,2"}, "the result is multiplied by a number for each channel and layer: 2, 0.5, 2, ... (3 different values, from 0.5 to 2)", gated, ""},
		{Mistake{Kind: "factor.by-position", Of: theResult, X: some(0.5), Other: "√(1+p)"}, "the result is multiplied by 0.5 times √(1+p), with p the token's position", scores, "attention-scale"},
		{Mistake{Kind: "factor.by-late-position", Of: theResult, X: some(0.480898), Called: "1/log(8)", Other: "log(1+p)"}, "the result is multiplied by 0.480898 (1/log(8)) times log(1+p), with p the token's position, where that exceeds 1", scores, "attention-scale"},
		{Mistake{Kind: "value.on-grid", Of: stepTerm("rms_norm.rsqrt"), X: some(1. / 4096)}, "step rms_norm.rsqrt has only multiples of 0.000244141: it is quantised", "layers.*.input_layernorm", ""},
		{Mistake{Kind: "value.mixed", Of: theResult, Axis: "heads", Numbers: "1*2,0,1"}, "the heads of the result are sums of heads: head 0 is head 0 + head 1", "layers.*.self_attn.scores", ""},
		{Mistake{Kind: "value.mixed", Of: theResult, By: gate, Axis: "channels", Numbers: "0,1,-1,0"}, "the channels of the result are sums of channels of layers.*.mlp.gate_proj: channel 0 is channel 1; channel 1 is -1 times channel 0", "layers.*.mlp.act_fn", ""},
		{Mistake{Kind: "value.of-rank", Of: stepTerm("cutoff.sum"), By: gate, N: 5}, "step cutoff.sum is the value of rank 5 in each row of layers.*.mlp.gate_proj, counted from the largest", "layers.*.mlp.gate_sparse", "activation-sparsity"},
		{Mistake{Kind: "value.statistic", Of: gate, For: Term{Kind: RowStatistic, Name: "average"}}, "layers.*.mlp.gate_proj is one number in each row: the mean of the row", gated, ""},
		{Mistake{Kind: "result.accumulated", By: tensorTerm("layers.2.mlp.gated")}, "layers.*.mlp.gated of the layer before is added: the result is added to a buffer that was not cleared", gated, ""},
		{Mistake{Kind: "factor.inserted", Of: theResult, X: some(2), Only: "tokens=5-9,12"}, "the result is multiplied by 2, only at tokens 5 to 9, 12", gated, ""},
		{Mistake{Kind: "factor.inserted", Of: theResult, X: some(2), Only: "tokens=4-7;channels=8,9"}, "the result is multiplied by 2, only at tokens 4 to 7 and channels 8, 9", gated, ""},
		{Mistake{Kind: "factor.inserted", Of: theResult, X: some(2), Only: "heads=1"}, "the result is multiplied by 2, only at head 1", scores, "attention-scale"},
		{Mistake{Kind: "value.of-one-index", Of: gate, Axis: "streams", N: 2}, "layers.*.mlp.gate_proj has the value of index 2 at all streams", gated, ""},
		{Mistake{Kind: "value.of-last-index", Of: gate, Axis: "tokens"}, "layers.*.mlp.gate_proj has the value of the last index at all tokens", gated, ""},
		{Mistake{Kind: "value.of-index-before", Of: gate, Axis: "tokens"}, "layers.*.mlp.gate_proj has the value of the index before at all tokens", gated, ""},
		{Mistake{Kind: "value.of-index-after", Of: gate, Axis: "tokens"}, "layers.*.mlp.gate_proj has the value of the next index at all tokens", gated, ""},
		{Mistake{Kind: "value.of-block-index", Of: gate, Axis: "tokens", N: 4}, "layers.*.mlp.gate_proj has the value of index 0 of each block of 4 at all tokens of the block", gated, ""},
		{Mistake{Kind: "weight.shifted", Of: up, Axis: "channels", Numbers: "0,0.5"}, "the weights of each output of layers.*.mlp.up_proj.weight have a constant added: 0.5 at channel 1", gated, "quantised-weight"},
		{Mistake{Kind: "weight.factors", Of: up, M: 8, K: 16, Numbers: "1,0.5"}, "blocks of 8 by 16 of layers.*.mlp.up_proj.weight are multiplied by a factor each: 0.5 at block 1", gated, ""},
		{Mistake{Kind: "weight.shifted-in-blocks", Of: up, M: 1, K: 16, Numbers: "0,0.5"}, "blocks of 1 by 16 of layers.*.mlp.up_proj.weight have a constant added each: 0.5 at block 1", gated, "quantised-weight"},
		{Mistake{Kind: "weight.rows-read-apart", Of: up, N: 24, M: 20}, "the rows of layers.*.mlp.up_proj.weight are stored 20 elements apart and read 24 elements apart", "layers.*.mlp.up_proj", "damaged-weight"},
		{Mistake{Kind: "weight.columns-read-later", Of: up, N: 18, K: 18}, "from column 18 on, the elements of each row of layers.*.mlp.up_proj.weight are read at an offset of +18", "layers.*.mlp.up_proj", "damaged-weight"},
		{Mistake{Kind: "soft-cap.inserted", Of: theResult, X: some(30)}, "the result has a tanh soft cap of 30", logits, "logit-soft-cap"},
		{Mistake{Kind: "soft-cap.inserted", Of: theResult, X: some(50), Called: "attn_logit_softcapping"}, "the result has a tanh soft cap of 50 (attn_logit_softcapping)", scores, "attention-soft-cap"},
		{Mistake{Kind: "value.unused", Of: gate}, "layers.*.mlp.gate_proj is not used: it counts as 0", gated, ""},
		{Mistake{Kind: "tensor.added", Of: theResult, By: gate}, "layers.*.mlp.gate_proj is added to the result", out, "source-of-the-residual"},
		{Mistake{Kind: "tensor.taken-off", Of: theResult, By: gate}, "layers.*.mlp.gate_proj is subtracted from the result", out, ""},
		{Mistake{Kind: "vector.inserted", Of: theResult, By: post}, "the result is multiplied by layers.*.post_attention_layernorm.weight", logits, "logit-scale"},
		{Mistake{Kind: "vector.inserted", Of: gate, By: Term{Kind: OnePlus, Name: post.Name}}, "layers.*.mlp.gate_proj is multiplied by 1+layers.*.post_attention_layernorm.weight", gated, ""},
		{
			Mistake{Kind: "weight.folded", Of: up, By: Term{Kind: OnePlus, Name: post.Name}},
			"the columns of layers.*.mlp.up_proj.weight are multiplied by 1+layers.*.post_attention_layernorm.weight: the vector is folded into the matrix", "layers.*.mlp.up_proj", "",
		},
		{
			Mistake{Kind: "logits.repetition-penalty", X: some(1.1)},
			"a repetition penalty of 1.1 is applied to the logits of the input's ids: positive logits are divided, negative ones multiplied", logits, "logit-scale",
		},
		{Mistake{Kind: "logits.presence-penalty", X: some(0.5)}, "a presence penalty of 0.5 is subtracted from the logits of the input's ids", logits, ""},
	})
}
