package edit

import (
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// Returned is the operand that stands for the result of the program.
const Returned = -2

// Place is an operand of a step, or its result: Arg −1. The step is named by its signature, which is the same in programs of
// the same structure, whatever their sizes, and for all copies of a step in one program.
type Place struct {
	Step uint64
	Arg  int
}

// StepIndex are the steps of a program by signature.
type StepIndex struct {
	*program.Program
	sig  []uint64
	at   map[uint64][]int
	leaf map[int]string // by the number of the input
}

// joined returns the signature of a step for its readers. A cache has the signature of the input that is written to
// it: the signature is the same in the first pass, which has no cache. A tensor that is only laid out anew keeps its
// signature: several tokens may need the new layout, and one token does not.
func (t *StepIndex) joined(step int) uint64 {
	if leaf, ok := t.Moved(step); ok {
		return t.sig[leaf]
	}
	return t.sig[origin(t.Program, step)]
}

// Moved returns the input that a step hands on: only this input, or this input after the earlier passes' input of the
// same name.
func (t *StepIndex) Moved(step int) (leaf int, ok bool) {
	switch s := &t.Steps[step]; {
	case s.Prim == program.Input:
		return step, true
	case s.Prim == program.Round || s.Prim == program.Cat && len(s.Args) == 1:
		return t.Moved(s.Args[0].Step)
	case s.Prim == program.Cat && len(s.Args) == 2:
		before, known := t.Moved(s.Args[0].Step)
		leaf, ok = t.Moved(s.Args[1].Step)
		a, b := t.leaf[t.Steps[before].Index()], t.leaf[t.Steps[leaf].Index()]
		return leaf, ok && known && strings.HasSuffix(a, Before) && (a == b || a == b+Before)
	}
	return 0, false
}

// Before is what the name of an input ends with that is of a pass before.
const Before = " before"

// NewStepIndex signs the steps of a program: a signature covers a step's operation, and all steps before on which the
// result depends. leaf names an input or a weight, without the number of its layer.
func NewStepIndex(p *program.Program, leaf func(prim program.Prim, index int) string) *StepIndex {
	t := &StepIndex{Program: p, sig: make([]uint64, len(p.Steps)), at: map[uint64][]int{}, leaf: map[int]string{}}
	counts := map[int]bool{}
	for i := range p.Steps {
		if n, ok := Divisor(p, i); ok {
			counts[n] = true
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		h := fnv.New64a()
		write := func(texts ...string) {
			for _, x := range texts {
				io.WriteString(h, x)
				h.Write([]byte{0})
			}
		}
		if write(s.Prim.String()); !s.Prim.IsLeaf() || s.Prim == program.Number {
			write(s.Form, s.Site)
		}
		switch s.Prim {
		case program.Input, program.Weight, program.Matrix, program.Dense:
			name := leaf(s.Prim, s.Index())
			if write(name); s.Prim == program.Input {
				t.leaf[s.Index()] = name
			}
		case program.Number:
			if s.Number().Fixed && !counts[i] {
				write(strconv.FormatFloat(s.Number().Value, 'g', -1, 64))
			}
		case program.Cat, program.Gather, program.Scatter, program.Collect:
			write(strconv.Itoa(s.Axis()))
		}
		for _, a := range s.Args {
			write(strconv.FormatUint(t.joined(a.Step), 36), strconv.Itoa(len(a.Shape)))
		}
		t.sig[i] = h.Sum64()
		t.at[t.sig[i]] = append(t.at[t.sig[i]], i)
	}
	return t
}

// Divisor is the number that a step divides a sum by.
func Divisor(p *program.Program, i int) (number int, ok bool) {
	s := &p.Steps[i]
	if s.Prim != program.Div || p.Steps[s.Args[0].Step].Prim != program.Sum {
		return 0, false
	}
	n := s.Args[1].Step
	return n, p.Steps[n].Prim == program.Number && p.Steps[n].Number().Fixed
}

// PlaceOf is the place of a step's result.
func (t *StepIndex) PlaceOf(step int) Place { return Place{t.sig[step], -1} }

// Copies are the steps of a place.
func (t *StepIndex) Copies(at Place) []int { return t.at[at.Step] }

// Firsts are the first steps of each signature, in their order.
func (t *StepIndex) Firsts() []int {
	var all []int
	for i := range t.Steps {
		if t.at[t.sig[i]][0] == i {
			all = append(all, i)
		}
	}
	return all
}

// variable is the value of a place, of one copy of its step.
func (t *StepIndex) variable(step, arg int) program.Var {
	if arg < 0 {
		return t.Result(step)
	}
	return t.Steps[step].Args[arg]
}

// of is the step of a place that belongs to copy k of n.
func (t *StepIndex) of(at Place, k, n int) (step int, ok bool) {
	all := t.at[at.Step]
	switch {
	case len(all) == 1:
		return all[0], true
	case len(all) == n:
		return all[k], true
	}
	return 0, false
}

// Ancestors are the steps that a step is computed from, itself included, the nearest last.
func Ancestors(p *program.Program, step int) []int {
	var all []int
	for i, is := range Leading(p, step) {
		if is {
			all = append(all, i)
		}
	}
	return all
}

// Leading reports for each step of the program whether a step is computed from it, or is it.
func Leading(p *program.Program, step int) []bool {
	of := make([]bool, len(p.Steps))
	of[step] = true
	for i := step; i >= 0; i-- {
		if of[i] {
			for _, a := range p.Steps[i].Args {
				of[a.Step] = true
			}
		}
	}
	return of
}

// ownShape is a view without the axes along which it is repeated.
func ownShape(v program.Var) []int {
	shape := slices.Clone(v.Shape)
	for a := range shape {
		if v.Stride[a] == 0 {
			shape[a] = 1
		}
	}
	for len(shape) > 1 && shape[0] == 1 {
		shape = shape[1:]
	}
	return shape
}

// As returns a value in a shape with the same number of elements: unchanged, with its axes in another order, or row
// by row. ok is false for other sizes, and for a value that no such view can show.
func As(v program.Var, shape []int) (program.Var, bool) {
	if v.Repeats() || program.Size(v.Shape) != program.Size(shape) {
		return v, false
	}
	if slices.Equal(v.Shape, shape) {
		return v, true
	}
	if w, ok := permuted(v, shape); ok {
		return w, true
	}
	if v.Plain() {
		return program.Var{Step: v.Step, Off: v.Off, Shape: shape, Stride: program.Contiguous(shape)}, true
	}
	return v, false
}

// permuted puts the axes of a view in the order in which they have a shape: of axes of one size the first comes first.
func permuted(v program.Var, shape []int) (program.Var, bool) {
	if len(v.Shape) != len(shape) {
		return v, false
	}
	out := program.Var{Step: v.Step, Off: v.Off, Shape: shape}
	used := make([]bool, len(shape))
	for _, n := range shape {
		a := 0
		for a < len(shape) && (used[a] || v.Shape[a] != n) {
			a++
		}
		if a == len(shape) {
			return v, false
		}
		used[a] = true
		out.Stride = append(out.Stride, v.Stride[a])
	}
	return out, true
}

// At is what a place shows, of the first copy of its step.
func (t *StepIndex) At(at Place) program.Var { return t.variable(t.at[at.Step][0], at.Arg) }

// Last reports whether a step is the last step of its operation: only other operations read the result.
func (t *StepIndex) Last(step int) bool {
	other := false
	for i := range t.Steps {
		for _, a := range t.Steps[i].Args {
			if a.Step != step {
				continue
			}
			if t.Steps[i].Form == t.Steps[step].Form {
				return false
			}
			other = true
		}
	}
	return other && t.at[t.sig[step]][0] == step
}
