package op

// What is known of an operation beside its formula stands with it, as methods of the interfaces below. Every one is
// optional, and says what it means that an operation has none. testdata/traits.txt lists them for all operations: a new
// operation fails a test until somebody has looked at its line.

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

// Saturating is an operation with ranges of arguments in which rounding inside it shows nowhere in its result, or in one
// direction only. In an operation without it, rounding shows for all arguments, as often up as down.
type Saturating interface {
	// Unsaturated reports whether the argument that gives y is far from these ranges. It is the same for no y of an
	// operation that subtracts, whose roundings are a shift and no scale.
	Unsaturated(y float64) bool
}

// Sharing is an operation of which it is known what the elements of a row share. Without it they share nothing that the
// operation computes, and rows of one entry may be rounded alike; see [Shares].
type Sharing interface {
	Shares() (s Shared, entry bool)
}

// Shared is the number that an operation computes once for all elements of a row. How an engine rounds it decides over all
// of them.
type Shared string

// What rows share.
const (
	SharedNothing    Shared = ""            // but inputs and weights
	SharedElement    Shared = "element"     // nothing at all: every element is a function of its own arguments
	SharedMeanSquare Shared = "mean square" // of the input's row
	SharedSum        Shared = "sum"         // of the row's exponentials: the reciprocal of the largest element of the result
	SharedValue      Shared = "value"       // the row has one element, or one up to its sign
	SharedFactor     Shared = "factor"      // that the result does not show
)

// Factor reports whether all elements of a row are multiplied by what they share.
func (s Shared) Factor() bool { return s != SharedNothing && s != SharedElement }

// Shares returns what an operation computes once for a row. Entry says that the rows of an entry are not rounded independently:
// they have a rounded weight in common, or nobody has shown that they have not.
func Shares(o Op) (s Shared, entry bool) {
	if o, ok := o.(Sharing); ok {
		return o.Shares()
	}
	return SharedNothing, true
}

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

// Varying is an operation that engines are known to round at another step than transformers. One without it has no such
// rounding that is known.
type Varying interface {
	Otherwise() []Rounding
}

// Mistakable is an operation in place of which ports are known to have one so near that only rounding tells them apart. One
// without it has none that is known.
type Mistakable interface {
	Mistakes() []Rounding
}
