package program

// Payload is what steps of one primitive have that others do not have. It is a value: a step that is to have another gets another one, and copies of steps
// share theirs. Steps of other primitives, and steps that an edit made another primitive, are as those without: each question about it has an answer of any step.
type Payload interface{ payload() }

// Leaf is which input or weight it is, of an [Input], a [Weight], a [Matrix] and a [Dense]. Below 0 it is one beside those of a call.
type Leaf int

// Constant is the number of a [Number].
type Constant struct {
	Value   float64
	Units   float64 // what it may be off by, in units of float32
	Fixed   bool    // no site
	Inverse bool    // by whose inverse some engines divide
}

// Values are the numbers of a [Vector].
type Values []float64

// Axis is that of a [Cat], a [Gather], a [Scatter] and a [Collect].
type Axis int

// Entries are the table of a [Lookup].
type Entries struct {
	Rows     int
	Fallback bool // row 0 stands for an index outside the table
}

// Sight is what a query sees, of a [Mask].
type Sight struct {
	Window float64 // 0 for none, below 0 for a query that sees every key
	Ahead  int     // how many keys ahead it sees
}

// Quotient is what is known of a [Div].
type Quotient struct {
	Units float64 // what the divisor's reciprocal may be off by, in units of float32
	Least float64 // what the divisor is not below; 0 where nothing is known
}

// Mark is something that is true of a step.
type Mark uint8

// The marks.
const (
	ByNumber     Mark = iota + 1 // of a Mul: by a Number by whose inverse some engines divide
	Sorted                       // of a Rank: the order of what is chosen is held to bounds, too
	UnitDiagonal                 // of a Solve: the diagonal is 1
	Relative                     // of a RowMax in a fused attention: probabilities are rounded relative to the maximum
	Fused                        // of an Exp: that of a fused attention
	Definite                     // of an Add in another order than the reference's: it is rounded to the nearest
)

func (Leaf) payload()         {}
func (Constant) payload()     {}
func (Values) payload()       {}
func (Axis) payload()         {}
func (Entries) payload()      {}
func (Sight) payload()        {}
func (Quotient) payload()     {}
func (Mark) payload()         {}
func (*Frequencies) payload() {}

// own is the payload of a kind, or its zero.
func own[T Payload](s *Step) T {
	p, _ := s.Payload.(T)
	return p
}

// marked is a mark where it holds.
func marked(holds bool, m Mark) Payload {
	if holds {
		return m
	}
	return nil
}

// Index is which input or weight a leaf is; 0 of another step.
func (s *Step) Index() int { return int(own[Leaf](s)) }

// Number is the constant of a [Number].
func (s *Step) Number() Constant { return own[Constant](s) }

// Vector are the numbers of a [Vector], not to be written to; nil of another step.
func (s *Step) Vector() []float64 { return own[Values](s) }

// Axis is that along which a step joins, reads or writes; 0 of another step.
func (s *Step) Axis() int { return int(own[Axis](s)) }

// Entries are the table of a [Lookup].
func (s *Step) Entries() Entries { return own[Entries](s) }

// Sight is what a query sees, of a [Mask].
func (s *Step) Sight() Sight { return own[Sight](s) }

// Quotient is what is known of a [Div].
func (s *Step) Quotient() Quotient { return own[Quotient](s) }

// Turns is how the frequencies of an [Angle] may have been made; nil where that is not known, and of another step.
func (s *Step) Turns() *Frequencies { return own[*Frequencies](s) }

// Is reports whether a step has a mark.
func (s *Step) Is(m Mark) bool { return own[Mark](s) == m }
