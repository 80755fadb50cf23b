package redflag

// Kind is the fault that a flag reports.
type Kind string

// The kinds, in the order of the checks. [Kinds] describes each kind.
const (
	NonFinite         Kind = "non-finite"
	Zero              Kind = "zero"
	Constant          Kind = "constant"
	Magnitude         Kind = "magnitude"
	Overflow          Kind = "overflow"
	DTypeChange       Kind = "dtype-change"
	WeightDType       Kind = "weight-dtype"
	NarrowValues      Kind = "narrow-values"
	ProbabilitySum    Kind = "probability-sum"
	AttentionUniform  Kind = "attention-uniform"
	AttentionStuck    Kind = "attention-stuck"
	AttentionRepeated Kind = "attention-repeated"
	ContextIgnored    Kind = "context-ignored"
	RopeUnchanged     Kind = "rope-unchanged"
	RotaryZero        Kind = "rotary-zero"
	RotaryFrozen      Kind = "rotary-frozen"
	CacheZero         Kind = "cache-zero"
	HiddenStatic      Kind = "hidden-static"
	TokensIdentical   Kind = "tokens-identical"
	ArgmaxSame        Kind = "argmax-same"
	GradientMissing   Kind = "gradient-missing"
	GradientZero      Kind = "gradient-zero"
	GradientNonFinite Kind = "gradient-non-finite"
	GradientVanishing Kind = "gradient-vanishing"
	GradientExploding Kind = "gradient-exploding"
	LossRising        Kind = "loss-rising"
	LossOscillating   Kind = "loss-oscillating"
	LossPlateau       Kind = "loss-plateau"
)

// About describes a kind.
type About struct {
	Kind  Kind
	Wants string // the tensors in which the kind is looked for
	When  string // the condition for a flag, with the limit in numbers
	Means string // the usual cause
	Try   string // what to do first
	// follows: the fault passes from tensor to tensor, so a tensor that is computed from a flagged tensor raises no flag of its own. A kind that does
	// not follow has one flag, which lists all tensors.
	follows bool
}

// Kinds describes every kind. A flag has Means and Try, and docs/inside.md has Wants and When.
var Kinds = []About{
	{
		NonFinite, "floats; the minus infinity of masks and of causal scores does not count", "an element is NaN or infinite",
		"an overflow (exp, a square, float16), a division by zero in a norm or softmax, a row that is masked everywhere, or memory that was never written",
		"look at this entry's inputs at the element named: the fault began in the first tensor that is not finite", true,
	},
	{
		Zero, "floats of 2 elements or more, except masks, rotary tables, biases and gradients; scores by head", "every element is 0, or every element of one head of scores",
		"a buffer that is read before it is written, a weight that was not loaded, or a kernel that did not run",
		"check that the entry's weights are loaded and its inputs are not zero; then check that the kernel writes the recorded buffer", true,
	},
	{
		Constant, "as for zero, of 16 elements or more, except weights and tensors with one number per token", "every element is the same number",
		"a buffer filled with its initial value, a saturated activation, or one element broadcast over the tensor",
		"look at strides and broadcasting where the entry is computed", true,
	},
	{
		Magnitude, "floats, except masks, masked scores and rotary tables", "half of the elements are beyond ±1000, or beyond the value of --magnitude",
		"a missing norm or scale (1/√d, √H), a weight in another unit, or a residual that grows from layer to layer",
		"compare the scale with the layer before; if the checkpoint is known to have large values, raise --magnitude", true,
	},
	{
		Overflow, "as for magnitude", "an element is beyond an eighth of the largest number of its dtype (8188 in float16)",
		"a factor of 8 below the largest number: a square, a sum or a longer prompt overflows",
		"normalise before it; in a float16 model, keep this part in bfloat16 or float32", true,
	},
	{
		DTypeChange, "floats, except masks, rotary tables, weights, losses, gradients and `*_f32`; scores, probabilities and rows of 16 numbers or fewer may be wider", "a tensor has another dtype than most of the model, or than the order",
		"a cast that was added or forgotten at a boundary, such as a float32 head on a bfloat16 body: it costs memory and speed, and it rounds where the reference does not",
		"look for the cast between the two entries named", true,
	},
	{
		WeightDType, "weights of 2 axes or more, compared with activations of floats", "most elements of the weights have another dtype than most of the model; 8-bit weights do not count",
		"a checkpoint that was loaded in another dtype than the compute dtype: it costs memory and bandwidth, and every product is cast",
		"look at the dtype that the loader asks for; if weights are float32 on purpose (autocast), skip the flag with --skip weight-dtype", false,
	},
	{
		NarrowValues, "floats, except embeddings, masks and rotary tables, with 32 different numbers or more that are neither 0 nor ±1", "every element is exactly a number of a narrower type",
		"the tensor was computed or stored in the narrower type and widened afterwards: it has the size of the wide type and the errors of the narrow type",
		"look for a cast, or a buffer of the narrow type, on the way to this entry", true,
	},
	{
		ProbabilitySum, "probabilities of attention", "the sum of a row differs from 1 by more than 2u + 8·√S·2^-24 + S·t/2 (u: unit roundoff, t: smallest number of the dtype), or a row has a number below 0",
		"the softmax runs along the wrong axis, is not divided by its sum, or the masking comes after it",
		"check the axis and the order of mask, softmax and cast", false,
	},
	{
		AttentionUniform, "probabilities of attention, rows of 4 keys or more", "all visible keys have the same weight, within 1 %: in every such row of a layer; or in every such row of one head of each layer, of 2 layers or more; or in one row of each head of each layer",
		"the scores are all equal: queries or keys are zero, the scale is 0, or the scores were never written",
		"look at the scores of this layer, then at q_rope and keys", false,
	},
	{
		AttentionStuck, "probabilities of attention, rows of 2 keys or more, 4 rows or more", "every row of every head puts 99 % or more of its weight on the same key, which is not the token itself, or on the oldest key of a window of 3 or more; or every row of one head does so in the first 3 layers or more, or in 8 layers or more; or with 99.9999 %, in each layer with a window, or in each layer without, if they are 3 or more",
		"scores far too large (a missing scale), or a key cache in which only one key was written",
		"look at the magnitude of the scores of this layer, and at its keys position by position", false,
	},
	{
		AttentionRepeated, "probabilities of attention, 3 decode passes or more that are fed different tokens", "every pass has the same weights as the pass before, within 1e-6",
		"the query is not recomputed, or a buffer (or a captured graph) of the first step is used again",
		"see whether q_rope changes from pass to pass", false,
	},
	{
		ContextIgnored, "probabilities of attention, rows with an earlier key", "in every row of every head, the weights of the earlier positions sum to 1e-6 or less",
		"the cache is not read, a mask hides it, or the position of the step is 0",
		"look at keys, at the mask and at position_ids of this pass", false,
	},
	{
		RopeUnchanged, "q_rope and k_rope compared with their inputs, up to 64 tokens a pass", "the rotation changes all vectors of a token at a position above 0, or the vectors of one head at all positions, by less than 1e-3 of their length",
		"the rotation is left out, or turns by position 0",
		"look at rotary.*.sin and position_ids of this pass", false,
	},
	{
		RotaryZero, "tables of cosines and sines", "at a position above 0 every angle is 0, within 1e-6",
		"positions or frequencies that are all zero",
		"look at position_ids, then at theta and the head size that the frequencies are made of", false,
	},
	{
		RotaryFrozen, "tables of cosines and sines", "two consecutive positions have the same angles, within 1e-6, or the first angle goes back",
		"the position does not advance: a decode step that starts at 0 again, or a counter that is not incremented",
		"look at position_ids of this pass and of the one before", false,
	},
	{
		CacheZero, "keys and values", "the vector of a position is all zero in a head; positions after the tokens fed so far (counted by `input_ids`) count only if some of them are not zero",
		"a cache slot that was read before it was written, or a read at the wrong index",
		"check where this pass writes its key and where it reads; in a ring buffer, check the wrap", false,
	},
	{
		HiddenStatic, "hidden states after a layer and before it", "no token's state changes by more than 1e-5 of its length",
		"the layer is skipped, or adds nothing: attention and MLP give zero",
		"look at o_proj and down_proj of this layer", false,
	},
	{
		TokensIdentical, "embeddings, hidden states, logits, of two different tokens or more", "all tokens but the first have the same state, within 1e-5 of its length",
		"one row is broadcast over all, ids are read with the wrong stride, or attention gives every token the same",
		"look at the input_ids of the engine, then at embed_tokens row by row", false,
	},
	{
		ArgmaxSame, "logits, 4 rows or more, of 3 different tokens or more; or 3 passes", "every row has its maximum at the same token; or the last row of every pass has it there, if 4 passes are fed 3 different tokens or more, or 8 passes are fed 2 or more; or every pass ends with the same numbers",
		"the logits do not depend on the input: a head that is dominated by one row, a constant hidden state, or a buffer that is not written again",
		"look at norm and at the hidden states, token by token", false,
	},
	{
		GradientMissing, "gradients", "a gradient that another step has, or that the trace lists, is missing",
		"the parameter takes no part in the loss: it is frozen, detached, or not used in this step",
		"check requires_grad, detach and no_grad on the way, and that the optimizer has the parameter", false,
	},
	{
		GradientZero, "gradients", "every element is 0 in the last step that has the gradient",
		"the way to the loss is multiplied by zero: a dead activation, a mask, a factor that starts at zero",
		"look at the activations after this parameter", false,
	},
	{
		GradientNonFinite, "gradients", "an element is NaN or infinite",
		"an overflow in the backward pass, often in float16 without a scaled loss; a root or logarithm at 0",
		"look at the loss of this step; clip, scale the loss, or keep the step in float32", false,
	},
	{
		GradientVanishing, "gradients, together for each layer or module", "in every step the norm of one is 1e-6 of the largest or less, and the two norms multiply to 1 or less",
		"each layer makes the gradient smaller: saturated activations, weights that were drawn too small, no residual, or float16 without a scaled loss",
		"look at the activations of the layers between the smallest and the largest norm", false,
	},
	{
		GradientExploding, "gradients, together for each layer or module", "in every step the norm of one is 1e6 times the smallest or more, and the two norms multiply to more than 1; or a norm is 1000 times the largest norm of all gradients in the first quarter of the steps",
		"each layer makes the gradient larger: weights that were drawn too large, or a missing norm; if it grows from step to step, a learning rate that is too large",
		"clip the gradients, and lower the learning rate; compare the scale of the activations from layer to layer", false,
	},
	{
		LossRising, "losses, 8 or more", "the median of the second half is above the median of the first half by more than twice the median step between two losses, and by 0.1 %; or the last loss is above all others of the second half by more than ten such steps, and by half of their median",
		"the step goes uphill: a wrong sign in the loss or in the update, or a learning rate that is far too large",
		"take one step on one batch with a tenth of the learning rate: if the loss still rises, the sign is wrong", false,
	},
	{
		LossOscillating, "losses, 8 or more", "the median step between two losses is 10 % of the median loss or more, and either the best loss of the second half is not 0.1 % below the best of the first half, or nine steps in ten turn back and the medians of the halves are at most a step apart",
		"a learning rate that is too large, or batches that differ more than the model learns in a step",
		"lower the learning rate, or take larger batches", false,
	},
	{
		LossPlateau, "losses, 8 or more, that neither rise nor oscillate", "the best loss of the second half is not 0.1 % below the best of the first half",
		"the step changes nothing: a learning rate of 0, an optimizer without the parameters, or gradients that are not applied",
		"compare a parameter before and after a step", false,
	},
}

// about returns the description of a kind.
func about(k Kind) *About {
	for i := range Kinds {
		if Kinds[i].Kind == k {
			return &Kinds[i]
		}
	}
	return &About{Kind: k}
}
