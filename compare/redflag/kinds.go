package redflag

// Kind is what a flag is about.
type Kind string

// The kinds, in the order in which they are looked at. [Kinds] says what each means.
const (
	NonFinite         Kind = "non-finite"
	Zero              Kind = "zero"
	Constant          Kind = "constant"
	Magnitude         Kind = "magnitude"
	Overflow          Kind = "overflow"
	DTypeChange       Kind = "dtype-change"
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
	LossPlateau       Kind = "loss-plateau"
)

// About describes a kind.
type About struct {
	Kind  Kind
	Wants string // the tensors that it looks at
	When  string // it is raised, with the limit in numbers
	Means string // what is usually behind it
	Try   string // what to do first
	// follows: the fault passes from tensor to tensor, so that one that is computed from a flagged one is no flag of its own.
	// Of other kinds there is one flag, which lists the tensors.
	follows bool
}

// Kinds describes every kind. The sentences are those of the flags, and docs/check.md has the same.
var Kinds = []About{
	{
		NonFinite, "floats; the minus infinity of masks does not count", "an element is NaN or infinite",
		"an overflow (exp, a square, float16), a division by zero in a norm or softmax, a row that is masked everywhere, or memory that nobody wrote",
		"look at this entry's inputs at the element named: the first tensor that has one is where it began", true,
	},
	{
		Zero, "floats of 2 elements or more, but for masks, tables of rotation, biases and gradients", "every element is 0",
		"a buffer that is read before it is written, a weight that was not loaded, or a kernel that did not run",
		"see whether the entry's weights are loaded and its inputs are not zero; then whether the kernel writes the buffer that was recorded", true,
	},
	{
		Constant, "as for zero, of 16 elements or more, but for weights and where there is one number a token", "every element is the same number",
		"a buffer filled with its initial value, an activation in saturation, or one element broadcast over the tensor",
		"look at strides and broadcasting where the entry is computed", true,
	},
	{
		Magnitude, "floats, but for masks, masked scores and tables of rotation", "an element is beyond ±1000, or what --magnitude says",
		"a norm or a scale that is left out (1/√d, √H), a weight in another unit, or a residual that grows from layer to layer; a few large models have such channels by nature",
		"compare the scale with the layer before; where the checkpoint is known for it, raise --magnitude", true,
	},
	{
		Overflow, "as for magnitude", "an element is beyond an eighth of the largest number of its dtype (8188 in float16)",
		"three doublings from infinity: a square, a sum or a longer prompt overflows",
		"norm before it; in float16 keep this part in bfloat16 or float32", true,
	},
	{
		DTypeChange, "floats, but for masks, tables of rotation, weights, losses, gradients, `*_f32`, and scores and probabilities that are wider", "a tensor has another dtype than most of the model, or than the order says",
		"a cast that was added or forgotten at a boundary, such as a float32 head on a bfloat16 body: it costs memory and speed, and it rounds where the reference does not",
		"look for the cast between the two entries named", true,
	},
	{
		NarrowValues, "floats, but for embeddings, masks and tables of rotation, with 32 different numbers or more that are neither 0 nor ±1", "every element is exactly a number of a narrower type",
		"the tensor was computed or stored in the narrower type and widened afterwards: it has the size of the wide type and the errors of the narrow one",
		"look for a cast, or a buffer of the narrow type, on the way to this entry", true,
	},
	{
		ProbabilitySum, "probabilities of attention", "a row sums to another number than 1, by more than 2u + 8·√S·2^-24 + S·t/2 (u: unit roundoff, t: smallest number of the dtype), or has a number below 0",
		"the softmax runs along the wrong axis, is not divided by its sum, or the masking comes after it",
		"check the axis and the order of mask, softmax and cast", false,
	},
	{
		AttentionUniform, "probabilities of attention, rows of 4 keys or more", "in every such row of every head all keys that are seen weigh the same, within 1 %",
		"the scores are all equal: queries or keys are zero, the scale is 0, or the scores were never written",
		"look at the scores of this layer, then at q_rope and keys", false,
	},
	{
		AttentionStuck, "probabilities of attention, rows of 2 keys or more, 4 rows or more", "every row of every head puts 99 % or more on one and the same key, which is not the token itself",
		"scores far too large (a scale that is left out), or keys of which only one was written",
		"look at the magnitude of the scores of this layer, and at its keys position by position", false,
	},
	{
		AttentionRepeated, "probabilities of attention, 3 decode passes or more that are fed different tokens", "every pass has the weights of the pass before, within 1e-6",
		"the query is not computed anew, or a buffer (or a captured graph) of the first step is used again",
		"see whether q_rope changes from pass to pass", false,
	},
	{
		ContextIgnored, "probabilities of attention, rows with an earlier key", "in no row of any head the earlier positions weigh more than 1e-6 together",
		"the cache is not read, a mask hides it, or the position of the step is 0",
		"look at keys, at the mask and at position_ids of this pass", false,
	},
	{
		RopeUnchanged, "q_rope and k_rope beside what they are made of, up to 64 tokens a pass", "at a position above 0 the rotation changes the vector by less than 1e-3 of its length",
		"the rotation is left out, or turns by position 0",
		"look at rotary.*.sin and position_ids of this pass", false,
	},
	{
		RotaryZero, "tables of cosines and sines", "at a position above 0 every angle is 0, within 1e-6",
		"positions that are all zero, or frequencies that are",
		"look at position_ids, then at theta and the head size that the frequencies are made of", false,
	},
	{
		RotaryFrozen, "tables of cosines and sines", "two positions that follow one another have the same angles, within 1e-6, or the first angle goes back",
		"the position is not advanced: a decode step that starts at 0 again, or a counter that is not raised",
		"look at position_ids of this pass and of the one before", false,
	},
	{
		CacheZero, "keys and values", "the vector of a position is all zero in a head; behind the tokens fed so far, as `input_ids` count them, only if not all are",
		"a slot of the cache that was not written before it was read, or is read at the wrong index",
		"see where this pass writes its key and where it reads; with a ring buffer, at the wrap", false,
	},
	{
		HiddenStatic, "hidden states behind a layer and before it", "no token's state changes by more than 1e-5 of its length",
		"the layer is skipped, or its output is added to nothing: attention and MLP give zero",
		"look at o_proj and down_proj of this layer", false,
	},
	{
		TokensIdentical, "embeddings, hidden states, logits, of two different tokens or more", "all tokens but the first have the same state, within 1e-5 of its length",
		"one row is broadcast over all, ids are read with the wrong stride, or attention gives every token the same",
		"look at input_ids as the engine has them, then at embed_tokens row by row", false,
	},
	{
		ArgmaxSame, "logits, 4 rows or more, of 3 different tokens or more; or 3 passes", "every row has its maximum at the same token; or every pass ends with the same numbers",
		"the logits do not depend on the input: a head that is dominated by one row, a hidden state that is constant, or a buffer that is not written again",
		"look at norm and at the hidden states, token by token", false,
	},
	{
		GradientMissing, "gradients", "a gradient that another step has, or that the trace lists, is not there",
		"the parameter takes no part in the loss: it is frozen, detached, or not used in this step",
		"check requires_grad, detach and no_grad on the way, and that the optimizer has the parameter", false,
	},
	{
		GradientZero, "gradients", "every element is 0 in the last step that has the gradient",
		"the way to the loss is multiplied by zero: a dead activation, a mask, a factor that starts at zero",
		"look at the activations behind this parameter", false,
	},
	{
		GradientNonFinite, "gradients", "an element is NaN or infinite",
		"an overflow in the backward pass, often in float16 without a scaled loss; a root or logarithm at 0",
		"look at the loss of this step; clip, scale the loss, or keep the step in float32", false,
	},
	{
		LossPlateau, "losses, 8 or more", "the best loss of the second half is not 0.1 % below the best of the first half",
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
