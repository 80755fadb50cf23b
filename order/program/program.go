package program

import (
	"fmt"
	"strings"
)

// Op is an operation: its constants are fields, its formula is Steps.
type Op interface {
	// Kind is the operation's name in listings and in JSON, such as "rms_norm".
	Kind() string
	// Steps adds the formula to a program. The last rounding is the entry's and not part of the formula.
	Steps(b *Builder, in, w []Var) Var
}

// Step is one primitive on views of earlier results: what all primitives have, and the payload of its own.
type Step struct {
	Name string // unique in its program; "square#2" where the formula takes the step again, for another stream or tensor
	Site string // what all copies of a step have in common, the name without the number
	Form string // what the operation whose step it is has in common with others that are rounded alike
	// Part is the number of the operation whose step it is, from 1, in a program of several operations; 0 where that is not known.
	Part  int
	Prim  Prim
	Args  []Var
	Shape []int
	Round Rounding // what the reference does with the result

	// Payload is what steps of its primitive have beside these: see [Payload].
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
	// Kernel is the number of the fused kernel in which it has its attentions, as in a [Rewrite]; 0 for none.
	Kernel int

	stages []stage
	whole  []bool  // by step: its result is read outside of its stage; nil for each
	floors []floor // by step: what its values are not below
}

// Own are the program's own choices: transformers'.
func (p *Program) Own() []Choice {
	own := make([]Choice, len(p.Steps))
	for i := range p.Steps {
		own[i].Round = p.Steps[i].Round
	}
	return own
}

// numberAt is the unrounded value of a number, of which an engine may take the reciprocal before it rounds: of the model's own
// numbers there is only what they are rounded to.
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

// Work is about what one evaluation computes: elements of its steps, and products of its sums.
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
