package arithmetic

// Thresholds are the numbers on which the verdicts of this package rest, without the limits of work and memory.
type Thresholds struct {
	Proof  ProofThresholds
	Nearer NearerThresholds
	Wider  WiderThresholds
	Codes  CodeThresholds
}

// ProofThresholds say when entries prove an arithmetic, or a change to the operation.
type ProofThresholds struct {
	// An arithmetic other than transformers' has to give Elements elements in Rows rows that transformers' does not give.
	// Null hypothesis: a mistake, with an arithmetic among the candidates that happens to give these elements.
	// Statistic: the number of elements, or of rows if the arithmetic acts on a row by one number.
	// Rate: an element off by a unit has two neighbours, so an arithmetic different from the engine's gives all eight
	// with a chance of about 2⁻⁸ for each candidate that changes these elements and no others: docs/results/certificate.md has
	// the measured rate. A single row may be off by a common factor.
	Elements, Rows int
	// Change is the number of elements a change to the operation has to explain.
	// Null hypothesis: roundings; a wrong change then gives each element with a chance of a half.
	// Statistic: the number of elements left by transformers' arithmetic and given by the change.
	// Rate: 2⁻¹⁸ for a change. For an arithmetic Elements are enough; but a thousand changes are tried, and each doubling
	// of the tries asks for one more element.
	Change int
}

// NearerThresholds say when one of two arithmetics is nearer to a trace.
type NearerThresholds struct {
	// Deviations is how many standard deviations of a count the rows have to be apart in which either gives more elements to the bit.
	// Null hypothesis: both are as near, and each row is won by either with a chance of a half.
	// Statistic: (rows of one − rows of the other) / √(rows of both).
	// Rate: 3·10⁻⁵.
	Deviations float64
	// Alike is a multiple of the nearest distance: the report also names ways of making tables within this multiple, since other roundings
	// add to every distance. No verdict depends on Alike, and no null hypothesis or rate applies.
	Alike float64
}

// WiderThresholds say when a trace was computed in more digits than it was stored in.
type WiderThresholds struct {
	// Places is the number of places in a layer with evidence for rounding on writing.
	// Null hypothesis: a mistake of a unit in one place, in one layer or in all.
	// Statistic: the places of entries given by inputs within half a unit, and not by the captured inputs.
	// Rate: the rate of two such mistakes in one port.
	Places int
	// Rounded: a trace was rounded on writing if inputs within half a unit give this many entries for each entry they fail.
	// Null hypothesis: mistakes, some of them smaller than half a unit.
	// Statistic: entries that inputs within half a unit give, for each entry that they do not give.
	// Rate: none was measured for Rounded; Places has to hold too.
	Rounded int
}

// CodeThresholds say when the products of a trace look like products with quantised weights. Null hypothesis: the weights are the original's, and products
// are off by mistakes. No verdict rests on it: the entries stay wrong, and no rate was measured.
type CodeThresholds struct {
	Weights     int     // so many products of different weights have to show it at least
	Share       float64 // so many of the products have to show it
	Elements    float64 // so many elements of each have to differ
	Coarse      float64 // the same for bfloat16, with a spacing as coarse as codes of 8 bits
	Least, Most float64 // relative L2 error: codes of 8 bits in blocks of 32 have 5e-3, bfloat16 has 1.6e-3 at most, codes of 2 bits have 0.3
	Above       float64 // a role with so many times the error of every other role has more than codes: a file has several formats
	Parts       int     // codes are as good in every part of a weight: the channels of a result in so many parts
	Apart       float64 // a part with an error this many times the median of the parts is wrong by more than codes, such as a head with a factor
	Tokens      int     // tokens that are compared in pairs
	Alike       float64 // how much more alike the differences of tokens may be than their inputs
	Slope       Slope
}

// Slope is how far the products may be too large or too small on average, in parts of their error: codes err in both directions, so that of n elements
// the slope is off by 1/√n of the error. A factor makes all of it.
type Slope struct{ Most, Least, Deviations float64 }

// thresholds are those that are used.
var thresholds = Thresholds{
	Proof:  ProofThresholds{Elements: 8, Rows: 2, Change: 18},
	Nearer: NearerThresholds{Deviations: 4, Alike: 1.25},
	Wider:  WiderThresholds{Places: 2, Rounded: 2},
	Codes: CodeThresholds{
		Weights: 3, Share: 0.75, Elements: 0.9, Coarse: 0.25, Least: 3e-3, Most: 0.35, Above: 3, Parts: 8, Apart: 5, Tokens: 16, Alike: 0.2,
		Slope: Slope{Most: 0.9, Least: 0.2, Deviations: 4},
	},
}

// DefaultThresholds are the thresholds of every search.
func DefaultThresholds() Thresholds { return thresholds }
