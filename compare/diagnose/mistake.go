package diagnose

import (
	"encoding/json"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// A Mistake is one difference between your port and the model, as data. Two mistakes are the same if they are equal. The row of the kind in the
// catalogue gives the meaning of the fields and makes the sentence. A field that the row does not use has its zero value.
type Mistake struct {
	Kind Kind `json:"kind,omitempty"`
	// Place is the wrong step, by its operation and its name in the formula ("rms_norm.eps"), or the role of the tensor or weight that the step
	// reads.
	Place string `json:"place,omitempty"`
	// Of is the wrong tensor, weight, step or number. By is what the port has or does instead, and For is the right tensor, weight, step or number.
	Of  Term `json:"of,omitzero"`
	By  Term `json:"by,omitzero"`
	For Term `json:"instead_of,omitzero"`
	// X is the port's number, and Right is the model's number.
	X     Number `json:"x,omitzero"`
	Right Number `json:"right_x,omitzero"`
	// Times is the port's number divided by the right number.
	Times Number `json:"times,omitzero"`
	// N, M and K are sizes and indexes.
	N int `json:"n,omitempty"`
	M int `json:"m,omitempty"`
	K int `json:"k,omitempty"`
	// Axis is the wrong axis, by what the axis counts ("tokens"), and Other is the right axis. Numbers may differ along several axes, with a comma
	// between them ("channels, layers"). For a value that is a function, Other is the function and the sign between two values: "tanh *".
	Axis  string `json:"axis,omitempty"`
	Other string `json:"other_axis,omitempty"`
	// DType is a type in which the port computes or stores; the zero value for no type.
	DType hooks.DType `json:"dtype,omitzero"`
	// Coding is the way in which numbers are kept in few bits.
	Coding Coding `json:"coding,omitzero"`
	// Called lists the fields of the configuration, or functions of fields, whose value is X: "1/√head_dim".
	Called string `json:"called,omitempty"`
	// Runs are the wrong rows, channels or slots, each run with its content.
	Runs Runs `json:"runs,omitempty"`
	// First is the first of two mistakes of the operation. This mistake is the second, and is made in the program with the first.
	First Earlier `json:"first,omitzero"`
	// Tokens are the tokens with the mistake, if other tokens are right.
	Tokens Tokens `json:"tokens,omitzero"`
	// Only are the heads, streams or channels of the result with the mistake, or tokens by their positions, if the others are right: "heads=2-3".
	Only Spots `json:"only,omitempty"`
	// Numbers has the number of each index of Axis, or of each block of a matrix, in order. With several axes, the last axis varies fastest, and an
	// axis of layers has all layers of the model. A curve has how many polynomials it is made of, the numbers from which on the next polynomial holds, and
	// for each polynomial the middle and half the length of its part, how many powers of (x-middle)/half it has, and their factors, the constant first.
	Numbers Numbers `json:"numbers,omitempty"`
	// RightNumbers are the model's numbers in the order of Numbers.
	RightNumbers Numbers `json:"right_numbers,omitempty"`
	// Others are further values that X may have.
	Others OtherValues `json:"others,omitzero"`
	// Picked counts the elements that the port chose by chance: dropout has set these elements to 0.
	Picked int `json:"picked,omitempty"`
	// Source is the tensor or weight that the port reads in place of the right one, by its name in some layer. In another layer the port reads the
	// tensor or weight with the same name in that layer.
	Source string `json:"source,omitempty"`
	// Edit is the change of the program's steps, written by [edit.Edit.Text], or the place of a change.
	Edit string `json:"edit,omitempty"`
	// Rounding is how the port rounds the wrong value, if several ways are possible; empty for the way of the formula.
	Rounding Rounding `json:"rounding,omitempty"`
	// Code is Place in the source of a recorded model, and is no part of [Mistake.Key].
	Code Code `json:"code,omitzero"`
}

// Rounding is a way to round.
type Rounding string

// The ways to round.
const (
	Unstored Rounding = "unstored"  // the result is not stored in the model's dtype
	EachStep Rounding = "each-step" // each step rounds its result
	EachCall Rounding = "each-call" // each step that is a call of its own rounds its result
	Divided  Rounding = "divided"   // the port divides by the reciprocal of a factor, and multiplies by the reciprocal of a divisor

	// RoundedRoot rounds a root before its reciprocal, as torch does on a CPU for few elements of bfloat16.
	RoundedRoot Rounding = "rounded-root"

	// Ways to round numbers that are kept in few bits.
	NewestToo       Rounding = "newest-too"            // the newest token is also rounded before it is read
	InFloat32       Rounding = "in-float32"            // intermediate values are not rounded to the model's dtype
	NewestInFloat32 Rounding = "newest-too-in-float32" // newest-too and in-float32
	// TowardZero cuts bits off. HalfUp and HalfDown round away from 0, or toward 0, where two numbers are equally near.
	TowardZero Rounding = "toward-zero"
	HalfUp     Rounding = "half-up"
	HalfDown   Rounding = "half-down"

	// Ways to round a weight with another scale: RatioFirst multiplies by the quotient of the scales, ScaleFirst multiplies before it divides, and InSteps
	// takes a scale for the step of 127 codes.
	RatioFirst Rounding = "ratio-first"
	ScaleFirst Rounding = "scale-first"
	InSteps    Rounding = "in-steps"
)

// OtherValues are further values of a number with which the port would give the same elements. The zero value has no further values.
type OtherValues struct {
	Less   bool   `json:"or_less,omitempty"` // every smaller value, down to 0
	Values string `json:"or,omitempty"`      // some values, with commas between them
}

// Number is an optional number. The zero value has no number.
type Number struct {
	Value float64
	Has   bool
}

// some is a number that a mistake has.
func some(x float64) Number { return Number{x, true} }

// pointer is the number for a document; nil for none.
func (n Number) pointer() *float64 {
	if !n.Has {
		return nil
	}
	return &n.Value
}

// MarshalJSON writes the number.
func (n Number) MarshalJSON() ([]byte, error) { return json.Marshal(n.pointer()) }

// UnmarshalJSON reads a number, or null for none.
func (n *Number) UnmarshalJSON(data []byte) error {
	var x *float64
	if err := json.Unmarshal(data, &x); err != nil {
		return err
	}
	if *n = (Number{}); x != nil {
		*n = some(*x)
	}
	return nil
}

// Tokens says which tokens have a mistake. The zero value is all tokens.
type Tokens struct {
	Some   bool   `json:"some,omitempty"`
	From   Number `json:"from_id,omitzero"` // the tokens have ids from From on, and all other tokens have smaller ids
	Called string `json:"called,omitempty"` // a field of the configuration with the value of From
}

// A Term is something with a name: a tensor, a weight, a step, or what a step does. The zero value is no term.
type Term struct {
	Kind TermKind `json:"kind"`
	// Name is the role of a tensor ("layers.*.mlp.gate_proj") or weight, the operation and name of a step ("rms_norm.eps"), or the name of
	// a function ("gelu_tanh").
	Name string  `json:"name,omitempty"`
	X    float64 `json:"x,omitempty"`     // of a number, a factor, a divisor
	Item Number  `json:"stream,omitzero"` // the stream of the tensor, if one stream is meant
	// Before is set for the tensor of the pass before.
	Before bool `json:"before,omitempty"`
	// Sum is set for the sum with the term.
	Sum bool `json:"sum,omitempty"`
	// Code is a step, or a number of a step, in the source of a recorded model, and is no part of a key.
	Code Code `json:"code,omitzero"`
}

// TermKind is the kind of thing that a term names.
type TermKind string

// The kinds of terms.
const (
	Tensor     TermKind = "tensor"
	Weight     TermKind = "weight"
	Step       TermKind = "step"
	Literal    TermKind = "number"
	Function   TermKind = "function"
	Primitive  TermKind = "primitive" // a function of a program by its name: "add"
	AName      TermKind = "name"      // a number that has a name in the formula
	TheMask    TermKind = "the-mask"
	TheResult  TermKind = "the-result"
	TheFactor  TermKind = "factor"         // the product with a number
	TheWeight  TermKind = "product-weight" // the product with a weight
	TheDivisor TermKind = "divisor"        // the division by a number
	TheAddend  TermKind = "addend"         // the sum with a number
	TheNamed   TermKind = "named-addend"   // the sum with a number that has a name in the formula
	TheRoot    TermKind = "root"
	// Numbers of a formula, by their use in the formula.
	Epsilon   TermKind = "epsilon"
	Floor     TermKind = "floor"
	SoftCap   TermKind = "soft-cap"
	AFactor   TermKind = "a-factor"
	ADivisor  TermKind = "a-divisor"
	SomeValue TermKind = "a-number"
	Window    TermKind = "window"
	Theta     TermKind = "theta"
	Scaling   TermKind = "scaling"
	// RowStatistic is a number that is computed from each row of a tensor.
	RowStatistic TermKind = "row-statistic"
	// OfItself, in [Row.Field], stands for the kind of the mistake's term Of.
	OfItself TermKind = "of"
	// Numbers and weights that are functions of a number or weight.
	Constant      TermKind = "constant" // a number of a formula, by its name and value
	ItsSquare     TermKind = "square"   // a number that is the square of a second number; the kinds below are read in the same way
	ItsRoot       TermKind = "root-of"
	ItsReciprocal TermKind = "reciprocal"
	TwiceIt       TermKind = "twice"
	HalfOfIt      TermKind = "half"
	ItsNegative   TermKind = "negative"
	OnePlus       TermKind = "one-plus" // the sum of 1 and a weight
	TheMinus      TermKind = "minus"
)

// The kinds of terms for caches, rows and what is read.
const (
	TheCache    TermKind = "the-cache"
	TheCached   TermKind = "cached"           // the content of a cache for a role
	TheKept     TermKind = "of-passes-before" // the content of a cache for a role that the pass does not write
	Operation   TermKind = "operation"        // of the order, by its kind
	ALayer      TermKind = "layer"
	RowsOf      TermKind = "rows-of"
	OtherRowsOf TermKind = "other-rows-of"
	OwnRows     TermKind = "own-rows"
	Zeros       TermKind = "zeros"
	// Lists of names, with a comma between two.
	Modules    TermKind = "modules"
	Operations TermKind = "operations"
	Others     TermKind = "others" // "a=b": the port reads the tensor or weight b in place of a
	// Scales of rounded numbers, by what has a scale of its own.
	ScalesOfTokensAndHeads TermKind = "scales-of-tokens-and-heads"
	ScalesOfTokens         TermKind = "scales-of-tokens"
	ScalesOfHeads          TermKind = "scales-of-heads"
	ScalesOfChannels       TermKind = "scales-of-channels"
	OneScale               TermKind = "one-scale"
)

// listTerm is the term of a list of names.
func listTerm(kind TermKind, names []string) Term {
	return Term{Kind: kind, Name: strings.Join(names, ",")}
}

// operationTerm is the term of the operation of an entry of the order.
func operationTerm(e *order.Entry) Term { return Term{Kind: Operation, Name: e.Op.Kind()} }

// stepTerm is the term of a step by its operation and name.
func stepTerm(site string) Term { return Term{Kind: Step, Name: site} }

// tensorTerm is the term of a tensor by its name.
func tensorTerm(name string) Term { return Term{Kind: Tensor, Name: order.NameOf(name).Role()} }

// weightTerm is the term of a weight by its name.
func weightTerm(name string) Term { return Term{Kind: Weight, Name: order.NameOf(name).Role()} }

// dtypeTerm is the term of a type.
func dtypeTerm(d hooks.DType) Term { return Term{Kind: AName, Name: d.String()} }

// theResult is the term of an entry's result.
var theResult = Term{Kind: TheResult}

// name returns the mistake as a finding has it, in words.
func (m Mistake) name() Name {
	return Name{Mistake: m, What: m.String(), Site: m.Place, Value: m.X.pointer(), Right: m.Right.pointer()}
}
