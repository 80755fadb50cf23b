package redflag

import "context"

// check is one step of the search for flags.
type check struct {
	name   string
	looks  string // the tensors that the check reads, or what it looks for
	raises []Kind // the flags that it may raise
	run    func(ctx context.Context, v *view, f *found) error
}

// checks lists the checks in the order of execution. The later checks need the results of the first two.
var checks = []check{
	{"survey", "reads the numbers of every tensor of floats", nil, survey},
	{"causal", "finds the scores and the masks that have a name of their own", nil, causal},
	{"values", "the numbers of each tensor", []Kind{NonFinite, Zero, Constant, Magnitude, Overflow}, values},
	{"scores", "the scores of every head, for one that was not written", []Kind{Zero}, scores},
	{"dtypes", "the dtype of each tensor, compared with its neighbours and its numbers", []Kind{DTypeChange, NarrowValues}, dtypes},
	{"weights", "the dtype of matrices, compared with the dtype of the activations", []Kind{WeightDType}, weights},
	{
		"attention", "the probabilities, by row, by head, by layer and from pass to pass",
		[]Kind{ProbabilitySum, AttentionUniform, AttentionStuck, AttentionRepeated, ContextIgnored},
		attention,
	},
	{"rope", "queries and keys before and after their rotation", []Kind{RopeUnchanged}, rope},
	{"rotary", "the tables of cosines and sines, from position to position", []Kind{RotaryZero, RotaryFrozen}, rotary},
	{"cache", "cached keys and values, for positions that hold nothing", []Kind{CacheZero}, cache},
	{"hidden", "whether a layer changes the state", []Kind{HiddenStatic}, hidden},
	{"tokens", "states that are the same for every token", []Kind{TokensIdentical}, tokens},
	{"argmax", "the predicted tokens", []Kind{ArgmaxSame}, argmax},
	{"gradients", "the gradients of training steps", []Kind{GradientMissing, GradientZero, GradientNonFinite}, gradients},
	{"norms", "the norms of gradients, by layer or module", []Kind{GradientVanishing, GradientExploding}, norms},
	{"loss", "whether the losses of training steps go down", []Kind{LossRising, LossOscillating, LossPlateau}, loss},
}
