package op

// The interfaces below are facts about an operation apart from its formula. Every interface is optional, and its comment says what holds
// without it. testdata/traits.txt lists the facts of all operations: a new operation fails a test until somebody has looked at its line.

// Given is an argument of the model: ids or positions, integers that nothing computes. An operation without it computes its
// result, which is no index.
type Given interface {
	Given()
}

// Exact is an operation that rounds nowhere but, at most, in the last R of its formula: every engine gets the same
// elements. An operation without it has steps that engines round each in its way.
type Exact interface {
	Exact()
}

// Cancelling is an operation whose result can be far smaller than what it is computed from, because terms cancel or an
// input is cut off. Its error is relative to its operands. The error of an operation without it is relative to its result.
type Cancelling interface {
	// OperandScale returns which fraction of the norm of its operands, of those inputs that have the shape of the result,
	// is the least scale of an error, and what this scale is in words. The fraction is in the result's units.
	OperandScale() (fraction float64, words string)
}

// cutOff is the fraction for operations that cut off a part of their input. A scale of errors may hide what is smaller than
// the tolerance times itself, so it stays below what is usual: of a Gaussian input, GELU keeps 0.65 of the norm and a shifted
// ReLU with 95 % sparsity 0.125.
const cutOff = 0.125

// The words of the scales.
const (
	ofTerms    = "norm of what is added"
	ofTermsBy  = "norm of what is added, scaled"
	ofCutInput = "1/8 of the input's norm"
)

// Keyed is an operation that hands keys of attention on: to a layer's cache, or from one layer to another. The result of an
// operation without it is no cache of keys.
type Keyed interface {
	Keys() Keys
}

// Keys is what an operation does with keys.
type Keys string

// What is done with keys.
const (
	NoKeys     Keys = ""        // its result has none, or is computed from them
	AppendKeys Keys = "append"  // to those of the passes before, in their order
	HandOnKeys Keys = "hand on" // as they are: where its input is a cache, its result is the same cache
)

// KeysOf returns what an operation does with keys.
func KeysOf(o Op) Keys {
	if o, ok := o.(Keyed); ok {
		return o.Keys()
	}
	return NoKeys
}

// OtherOrder is an operation over many tokens whose sums the reference takes in another order, such as in chunks: its formula is the
// reference's, and where that rounds it does not say. An operation without it rounds where the reference does.
type OtherOrder interface {
	OtherOrder()
}
