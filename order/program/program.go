// Package program has the primitives from which every operation is built, and their only evaluator.
//
// A [Program] is a list of named steps. Each step is one primitive on strided views of the results of earlier steps.
// A step that computes is a site: a place where an engine may round its result. The rounding and the way at a site
// are data, a [Choice]; the program itself has the choices of transformers. The evaluator computes, for any choices,
// the value of a program and how far a correct computation may be from the value, and the hull of all choices.
package program

import (
	"fmt"
	"slices"
	"strings"
)

// Op is an operation: its constants are fields, its formula is Steps.
type Op interface {
	// Kind is the operation's name in listings and in JSON, such as "rms_norm".
	Kind() string
	// Steps adds the formula to a program. The last rounding is the entry's and not part of the formula.
	Steps(b *Builder, in, w []Var) Var
}

// Step is one primitive on views of earlier results: fields of every primitive, and the payload of this primitive.
type Step struct {
	Name string // unique in its program; "square#2" where the formula takes the step again, for another stream or tensor
	Site string // what all copies of a step have in common, the name without the number
	Form string // name of the operation's form: operations of one form are rounded alike
	// Part is the number of the operation whose step it is, from 1, in a program of several operations; 0 where that is not known.
	Part  int
	Prim  Prim
	Args  []Var
	Shape []int
	Round Rounding // what the reference does with the result

	// Payload holds the data that only steps of this primitive have: see [Payload].
	Payload Payload

	readers int  // how many steps read the result
	final   bool // nothing is computed from it: it is the program's result, or moved there
}

// Program is a formula for inputs of known shapes. It is immutable; several goroutines may evaluate it.
type Program struct {
	Steps []Step
	Out   Var

	// Reordered says which additions are in another order than the reference's.
	Reordered []string
	// Kernel is the number of the program's fused attention kernel, as in a [Rewrite]; 0 without a fused kernel.
	Kernel int

	stages []stage
	whole  []bool  // by step: its result is read outside of its stage; nil for each
	floors []floor // by step: what its values are not below
}

// ReadersOf lists the steps that read the result of a step.
func ReadersOf(p *Program, step int) []int {
	var all []int
	for i := range p.Steps {
		if slices.ContainsFunc(p.Steps[i].Args, func(v Var) bool { return v.Step == step }) {
			all = append(all, i)
		}
	}
	return all
}

// Own are the program's own choices: transformers'.
func (p *Program) Own() []Choice {
	own := make([]Choice, len(p.Steps))
	for i := range p.Steps {
		own[i].Round = p.Steps[i].Round
	}
	return own
}

// numberAt returns the unrounded value of a number, for an engine that takes the reciprocal before rounding. ok is
// false for a number of the model itself, which exists only rounded.
func numberAt(p *Program, v Var) (x float64, ok bool) {
	s := &p.Steps[v.Step]
	return s.Number().Value, s.Prim == Number && (!s.Number().Fixed || s.Round == None)
}

// Site is a place where an engine may round, or may take another way: the same step of all copies of an operation in a program.
type Site struct {
	Form string // of the operation
	Name string // of the step in its formula
}

// Sites lists the sites of a program in the order of their first steps, and the steps of each.
func (p *Program) Sites() (sites []Site, steps map[Site][]int) {
	steps = map[Site][]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.Prim.Computes() && s.Prim != Round && s.Prim != Copy && (s.Prim != Number || s.Number().Fixed) && (s.Prim != Angle || s.Ways() == 1) {
			continue
		}
		at := Site{s.Form, s.Site}
		if steps[at] == nil {
			sites = append(sites, at)
		}
		steps[at] = append(steps[at], i)
	}
	return sites, steps
}

// Squares reports whether a step is the square in a cube: the product of a value with itself, read by one product with the
// same value.
func (p *Program) Squares(s *Step) bool {
	if s.Prim != Mul || !s.Args[0].Same(s.Args[1]) || s.readers != 1 {
		return false
	}
	for i := range p.Steps {
		t := &p.Steps[i]
		if t.Prim == Mul && &p.Steps[t.Args[0].Step] == s && t.Args[1].Same(s.Args[0]) {
			return true
		}
	}
	return false
}

// Text is the same for programs of the same steps.
func (p *Program) Text() string {
	var b strings.Builder
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "%s %s %s %d", s.Form, s.Name, s.Prim, s.Round)
		for _, a := range s.Args {
			fmt.Fprintf(&b, " %d", a.Step)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Work estimates the cost of one evaluation: the number of computed elements plus the number of products in sums.
func (p *Program) Work() int {
	work := 0
	for i := range p.Steps {
		work += p.work(i)
	}
	return work
}

// Time is about how long one evaluation takes, where an element of a step takes 1: as long as productsAtOnce products of a sum.
func (p *Program) Time() int {
	time := 0
	for i := range p.Steps {
		time += p.time(i)
	}
	return time
}

func (p *Program) time(i int) int {
	n := p.work(i)
	if n == 0 {
		return 0
	}
	return max(n/productsAtOnce, Size(p.Steps[i].Shape))
}

const productsAtOnce = 8

func (p *Program) work(i int) int {
	s := &p.Steps[i]
	switch {
	case s.Prim.IsLeaf():
		return 0
	case s.Prim == Sum || s.Prim == Dot || s.Prim == Affine:
		return Size(s.Shape) * max(s.Args[0].Last(), 1)
	case s.Prim == Solve: // half of the products are of what is above the diagonal
		return Size(s.Shape) * (s.Shape[1] + 1) / 2
	}
	return Size(s.Shape)
}

// Payload holds the data that only steps of one primitive have. A payload is an immutable value: a step with changed
// data gets a new payload, and copies of a step share the payload. Steps of other primitives, and steps that an edit
// turned into another primitive, count as steps without the payload: every accessor answers for every step.
type Payload interface{ payload() }

// Leaf is the number of the input or weight of an [Input], a [Weight], a [Matrix] or a [Dense]. A negative number is
// an input or weight of an edit: the call does not have it.
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

// Axis is the axis along which a step joins, reads or writes; 0 for any other step.
func (s *Step) Axis() int { return int(own[Axis](s)) }

// Entries are the table of a [Lookup].
func (s *Step) Entries() Entries { return own[Entries](s) }

// Sight is what a query sees, of a [Mask].
func (s *Step) Sight() Sight { return own[Sight](s) }

// quotient is what is known of a [Div].
func (s *Step) quotient() Quotient { return own[Quotient](s) }

// turns is how the frequencies of an [Angle] may have been made; nil where that is not known, and of another step.
func (s *Step) turns() *Frequencies { return own[*Frequencies](s) }

// Is reports whether a step has a mark.
func (s *Step) Is(m Mark) bool { return own[Mark](s) == m }
