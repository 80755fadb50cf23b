package arithmetic

// Thresholds are the numbers on which the verdicts of this package rest, without the limits of work and memory. Rates of the bug bench are in
// docs/results/certificate.md#thresholds-where-a-mistake-is-planted. Bounds are at 95 %, and the trials are different mistakes.
type Thresholds struct {
	Proof    ProofThresholds
	Majority MajorityThresholds
	Nearer   NearerThresholds
	Wider    WiderThresholds
	Codes    CodeThresholds
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

// MajorityThresholds say when an arithmetic that explains only some entries of a form decides the form: the explained entries are right, and the other
// entries are suspects. The explained entries have to prove the arithmetic as well, see [ProofThresholds].
type MajorityThresholds struct {
	// Held is the number of entries that the arithmetic has to explain if there are suspects.
	// Null hypothesis: a mistake in all entries of the form, and one entry that shows little of it.
	// Statistic: the number of entries that the arithmetic explains.
	// Rate: a wrong entry is among the explained entries in 0 of 31 forms of the bug bench that an arithmetic other than transformers' decides: below 10 %. With
	// Held 1 it is 0 of 9 forms. Held stays 2, since a single entry shows nothing about the other entries.
	Held int
	// Share is the share of the entries that has to be exceeded. At exactly Share the form is decided only if one mistake explains all other entries.
	// Null hypothesis: the explained entries are the exception, such as layers of another kind, and the suspects are as the engine computes.
	// Statistic: explained entries / entries of the form; of an entry with many tokens, explained tokens / tokens; of a trace that may have been
	// been computed in more digits, explained entries / unexplained entries of a place in a layer, and explained places / places.
	// Rate: 0 for a mistake in fewer than half of the entries; a mistake in most entries is not decided by a majority. In the
	// bug bench a right entry is a suspect for 0 of the 336 mistakes with a form that a majority decides: below 0.9 %. With Share 0.4 it is 0 of 134, with 0.25
	// 0 of 135; but the bench has one arithmetic in a form.
	Share float64
}

// mostOf reports whether n things are more than the share that decides.
func mostOf(n, of int) bool { return float64(n) > thresholds.Majority.Share*float64(of) }

// halfOf reports whether n things are exactly the share that decides nothing.
func halfOf(n, of int) bool { return float64(n) == thresholds.Majority.Share*float64(of) }

// decides reports whether an arithmetic that explains some entries of a form decides the whole form.
func decides(held, of int) bool {
	return mostOf(held, of) && (held == of || held >= thresholds.Majority.Held)
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
	// Rate: the rate of two such mistakes in one port. In the bug bench 0 of 1,098 mistakes in float32 and 0 of 988 in bfloat16: below 0.31 %.
	Places int
	// Rounded: a trace was rounded on writing if inputs within half a unit give this many entries for each entry they fail.
	// Null hypothesis: mistakes, some of them smaller than half a unit.
	// Statistic: entries that inputs within half a unit give, for each entry that they do not give.
	// Rate: in the bug bench 0 of 988 mistakes in bfloat16: below 0.31 %. With Rounded 1 it is 0 too, so the bench does not show what Rounded keeps out.
	Rounded int
}

// CodeThresholds say when the products of a trace look like products with quantised weights. No MATCH depends on the answer
// yes: the entries stay wrong, the report states the likely cause, and a trace does not count as rounded on writing. The null hypothesis of the group is
// that the port has the original's weights, and mistakes make the products wrong.
type CodeThresholds struct {
	Trace   CodedTrace
	Product CodedProduct
	Tokens  CodedTokens
	Slope   Slope
}

// CodedTrace says how many products have to look coded.
type CodedTrace struct {
	// Weights is the smallest number of weights with a coded product.
	// Null hypothesis: each such product has a mistake of its own.
	// Statistic: the number of different weights among the coded products.
	// Rate: the rate of Weights mistakes in one port. In the bug bench 38 of 1,208 mistakes change as many weights or more; none of these
	// looks quantised: below 8 % of such mistakes.
	Weights int
	// Share is the smallest share of the products with a coded result.
	// Null hypothesis: one mistake changes the products of some roles or of some layers.
	// Statistic: coded products / examined products.
	// Rate: 0 for a mistake in a smaller share of the products. A mistake in every product of 169 traces looks quantised in none of them if it is a factor,
	// another order of channels, of inputs or of tokens, or a limit on results, and in one if it is a bias. It looks quantised in 117 to 137 of them if it changes
	// the product in all directions by as much as codes do: an input that is left out, inputs with factors of their own, an adapter of rank 1.
	Share float64
	// Above is the smallest ratio of a role's error to the error of every other role at which the role has more than codes.
	// Null hypothesis: a file with several formats. Codes with one bit less double the error.
	// Statistic: the largest error of the role / the largest error of the other roles.
	// Rate: a file with formats two bits apart is mistaken for a fault; then the report does not say that the weights are quantised.
	Above float64
}

// CodedProduct says when the difference of one product looks like codes.
type CodedProduct struct {
	// Elements is the smallest share of elements outside the bounds of rounding; Coarse is the same for bfloat16, with a spacing as large as the
	// errors of codes of 8 bits.
	// Null hypothesis: the weight is the original's, and a mistake changes some rows or columns of the product.
	// Statistic: elements outside the bounds / elements.
	// Rate: 0 for a right product, since the bounds hold every rounding.
	Elements, Coarse float64
	// Least and Most limit the error. Codes of 8 bits in blocks of 32 have 5e-3, codes of 2 bits have 0.3; rounding to bfloat16 has at most 1.6e-3.
	// Null hypothesis: below Least the weights in another dtype, above Most another tensor.
	// Statistic: the relative L2 error of the product.
	// Rate: for Least, weights rounded to bfloat16: 109 of 6,133 products look coded, and 0 of 83 traces look quantised. For Most, the channels or the inputs
	// of a neighbour in every product: 130 of 24,782 products, and 0 of 338 traces. Without Least and Most all of these traces look quantised.
	Least, Most float64
	// Parts is a number of equal parts of the channels, and Apart a limit on the ratio of their errors. Codes are as good in every part of a weight.
	// Null hypothesis: one part is wrong by more than codes, such as a KV head with a factor.
	// Statistic: the largest error of a part / the median of the parts; a product with fewer than Parts channels in a part is not tested.
	// Rate: the error of a part with n elements varies by 1/√(2n), 25 % for the 8 elements of the smallest tested part, and Apart is far beyond.
	Parts int
	Apart float64
}

// CodedTokens says when differences of tokens are no more alike than the inputs of the tokens; see asInputs.
type CodedTokens struct {
	// Alike limits the excess of the cosines.
	// Null hypothesis: something is added to the product, such as a bias, the same for every token.
	// Statistic: the mean over all pairs of the cosine of two differences less the cosine of the two inputs.
	// Rate: a bias in every product makes 1 of 169 traces look quantised, and 161 without Alike. A product of one token is not tested.
	// Codes in columns of equal size are taken for a bias with a chance of 3·10⁻⁵, by [Slope].Deviations; of 24,765 products with codes of 8 and 4 bits, in columns
	// as unequal as those of 11 tiny models, none is.
	Alike float64
}

// Slope limits how far the product may be too large or too small on average, in parts of the product's error.
//
// Null hypothesis: the port multiplies the product by a factor, which makes a slope of 1.
// Statistic: |slope| / error. Codes err in both directions, so that n independent elements have a slope of about 1/√n of the error.
// Rate: a product with codes is off by Deviations standard deviations with a chance of 6·10⁻⁵. Least and Most keep the limit between the slope of small
// samples and the slope of a factor.
type Slope struct{ Most, Least, Deviations float64 }

// thresholds are those that are used.
var thresholds = Thresholds{
	Proof:    ProofThresholds{Elements: 8, Rows: 2, Change: 18},
	Majority: MajorityThresholds{Held: 2, Share: 0.5},
	Nearer:   NearerThresholds{Deviations: 4, Alike: 1.25},
	Wider:    WiderThresholds{Places: 2, Rounded: 2},
	Codes: CodeThresholds{
		Trace:   CodedTrace{Weights: 3, Share: 0.75, Above: 3},
		Product: CodedProduct{Elements: 0.9, Coarse: 0.25, Least: 3e-3, Most: 0.35, Parts: 8, Apart: 5},
		Tokens:  CodedTokens{Alike: 0.2},
		Slope:   Slope{Most: 0.9, Least: 0.2, Deviations: 4},
	},
}

// DefaultThresholds are the thresholds of every search.
func DefaultThresholds() Thresholds { return thresholds }
