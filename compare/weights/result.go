package weights

import (
	"fmt"
	"strconv"

	"github.com/tracediff/tracediff/hooks"
)

// Class is what is said of a tensor.
type Class string

// The classes. The first three are right.
const (
	Equal        Class = "EQUAL"        // every element is the same number
	Cast         Class = "CAST"         // every element is the original's, rounded to nearest even
	Quantised    Class = "QUANTISED"    // every code is the nearest to the original's number, or one step away
	Rescaled     Class = "RESCALED"     // divided by factors that another tensor is multiplied by
	Mistake      Class = "MISTAKE"      // wrong, and one relation explains every element
	Different    Class = "DIFFERENT"    // wrong, and no relation explains every element
	Unidentified Class = "UNIDENTIFIED" // codes of a format that moves errors, whose errors are larger than its bounds: right or wrong, nothing tells
	Missing      Class = "MISSING"      // the port has no such tensor
	Extra        Class = "EXTRA"        // the original has no such tensor
)

// Right reports whether a tensor of the class is as it has to be.
func (c Class) Right() bool { return c == Equal || c == Cast || c == Quantised || c == Rescaled }

// Kind is the name of what is wrong.
type Kind string

// The kinds of what is wrong.
const (
	Transposed   Kind = "transposed"
	RowOrder     Kind = "row-order"     // the rows stand in another order
	ColumnOrder  Kind = "column-order"  // the columns do
	Interleaved  Kind = "interleaved"   // rows of a head that turn together are neighbours, and are halves apart in the original
	Halves       Kind = "halves"        // the other way round
	HeadOrder    Kind = "head-order"    // whole heads stand in another order
	FusedOrder   Kind = "fused-order"   // the parts of a fused tensor do
	ShiftedRows  Kind = "shifted-rows"  // rows have those some places on
	Shifted      Kind = "shifted"       // all elements have those some places on
	Folded       Kind = "folded"        // 1+w where w is meant
	FoldedTwice  Kind = "folded-twice"  // 2+w where 1+w is meant
	Unfolded     Kind = "unfolded"      // w where 1+w is meant
	Scaled       Kind = "scaled"        // one factor
	ScaledRows   Kind = "scaled-rows"   // a factor for each row
	ScaledBlock  Kind = "scaled-block"  // a factor for one rectangle
	ScaledColumn Kind = "scaled-column" // a factor for each column
	ScaledStep   Kind = "scaled-step"   // a factor for the steps of codes, and not for what code 0 stands for
	ScaledOffset Kind = "scaled-offset" // the other way round
	Negated      Kind = "negated"
	OtherTensor  Kind = "other-tensor" // another tensor of the original
	OtherLayer   Kind = "other-layer"  // the same tensor of another layer
	Untied       Kind = "untied"       // a head that is not the embedding, where the original has one tensor for both
	Tied         Kind = "tied"         // a head that is the embedding, where the original has two
	Zero         Kind = "zero"
	ZeroRows     Kind = "zero-rows"
	ZeroBlock    Kind = "zero-block"
	Constant     Kind = "constant"
	NotFinite    Kind = "not-finite"
	OtherBlock   Kind = "other-block"  // one rectangle is a different rectangle of the original
	WrongBlock   Kind = "block"        // one rectangle is wrong, and nothing explains it
	WrongRows    Kind = "rows"         // some rows are
	Values       Kind = "values"       // nothing explains the values
	LargeErrors  Kind = "large-errors" // of a format that moves errors
	Several      Kind = "several"      // rows are explained, not all by one thing
	Unrelated    Kind = "unrelated"    // the values have nothing to do with the original's
	CutOff       Kind = "cut-off"      // rounded toward zero, or codes to one side
	Rounded      Kind = "rounded"      // every number is one step from the nearest at most, and not all are the nearest
	ZeroPoint    Kind = "zero-point"   // zero points of codes that are off by one number
	Coarse       Kind = "coarse"       // codes with larger errors than rounding
	Overflow     Kind = "overflow"
	Misread      Kind = "misread" // bits of one format read as another
	Shape        Kind = "shape"
	Truncated    Kind = "truncated" // only the first rows of the original
	Padded       Kind = "padded"    // the original's rows, then others that are not zero
	Unread       Kind = "unread"
	Absent       Kind = "missing"
	Unknown      Kind = "extra"
)

// Row is the outcome for one tensor.
type Row struct {
	Name     string   `json:"name"`               // as the original has it; of an extra one as the port has it
	Class    Class    `json:"class"`              //
	Kind     Kind     `json:"kind,omitempty"`     // what is wrong; empty: nothing is
	What     string   `json:"what,omitempty"`     // the same in a sentence
	Rounding string   `json:"rounding,omitempty"` // of CAST: to what; of QUANTISED: the format
	Local    *Stored  `json:"local,omitempty"`    // in the port; absent: it is missing
	Original *Stored  `json:"original,omitempty"` // in the original; absent: it has none
	At       *Element `json:"at,omitempty"`       // the first element that is wrong
	Unequal  int      `json:"unequal,omitempty"`  // so many are
	Elements int      `json:"elements"`           // of so many
	Relative float64  `json:"relative_l2"`        // relative L2 distance of the port from the original
	Added    float64  `json:"added_l2,omitempty"` // of QUANTISED: so much of it would not be there with the scales of the format's usual writer
	Other    string   `json:"other,omitempty"`    // the tensor of the original that it is
	Notes    []string `json:"notes,omitempty"`    // what is no mistake, a sentence each

	said phrase // What, whose words are made last
}

// Stored is a tensor as its file has it.
type Stored struct {
	Key    string `json:"key"` // its name there
	Shape  []int  `json:"shape"`
	Format string `json:"format"` // its dtype, or the format of its codes
}

// Element is a place in a tensor of the original, and the two values there.
type Element struct {
	Row      int    `json:"row"`
	Column   int    `json:"column"`
	Local    string `json:"local"` // a number, NaN or an infinity, with all digits that its dtype tells apart
	Original string `json:"original"`
	Folded   bool   `json:"folded,omitempty"` // the port's file is to have 1+w, where the original has w
	File     *Spot  `json:"file,omitempty"`   // where the port's file has it; absent: in the row and the column of the original
}

// Spot is an element of a tensor of a file. A vector is one row; the columns are those of the last axis.
type Spot struct {
	Key    string `json:"key"` // the tensor's name there
	Row    int    `json:"row"`
	Column int    `json:"column"`
}

// newElement is an element of two tensors of the original's shape, with the numbers of both.
func newElement(local, original *Tensor, row, column int, mine, theirs float64) *Element {
	e := &Element{Row: row, Column: column, Local: shortest(mine, local.DType), Original: shortest(theirs, original.DType), Folded: local.Add == 1}
	_, columns := original.flat()
	if at := local.spot(row*columns + column); at != (Spot{local.key(), row, column}) {
		e.File = &at
	}
	return e
}

func newRow(local, original *Tensor) Row {
	var row Row
	if original != nil {
		row.Name, row.Original, row.Elements = original.key(), stored(original), original.elements()
	}
	if local != nil {
		row.Local = stored(local)
		if original == nil {
			row.Name, row.Elements = local.key(), local.elements()
		}
		if local.How != "" {
			row.note("%s: %s", local.key(), local.How)
		}
	}
	return row
}

func stored(t *Tensor) *Stored {
	return &Stored{t.key(), append([]int{}, t.Shape...), t.format()}
}

// note adds a sentence that is no mistake.
func (r *Row) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// wrong says what is wrong.
func (r *Row) wrong(class Class, kind Kind, words string, args ...any) {
	r.is(class, say(kind, words, args...))
}

// is says it with a phrase.
func (r *Row) is(class Class, what phrase) { r.Class, r.Kind, r.said = class, what.kind, what }

// at says where a tally's first bad element is.
func (r *Row) at(t *tally, local, original *Tensor) {
	r.Relative, r.Unequal = finite(t.relative()), t.bad
	if t.bad > 0 {
		r.At = newElement(local, original, t.first.row, t.first.column, t.first.local, t.first.original)
	}
}

// shortest writes a number with the fewest digits that identify the number in its dtype. Dtypes narrower than float32 count as float32.
func shortest(x float64, d hooks.DType) string {
	bits := 32
	if d == hooks.F64 || !d.Float() {
		bits = 64
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}
