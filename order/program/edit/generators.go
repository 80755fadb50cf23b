package edit

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Edits generates the possible edits of a program: each method returns the edits of one kind, in the order of trial.
type Edits struct{ *StepIndex }

// Edits are the edits of the program.
func (t *StepIndex) Edits() Edits { return Edits{t} }

// value is a place with what it shows.
type value struct {
	at Place
	program.Var
}

// values are what some steps compute and read, each once: the results of steps, and operands that are views of them.
func (t Edits) values(steps []int) []value {
	var all []value
	add := func(at Place, v program.Var) {
		if t.Steps[v.Step].Prim == program.Matrix || slices.ContainsFunc(all, func(o value) bool { return o.Var.Same(v) }) {
			return
		}
		all = append(all, value{at, v})
	}
	for _, i := range steps {
		add(t.PlaceOf(i), t.Result(i))
		for a, v := range t.Steps[i].Args {
			add(Place{t.sig[i], a}, v)
		}
	}
	return all
}

// LeftOut are the edits that leave steps out: each hands on one of the values that it was computed from, the nearest first. A bias
// is not added.
func (t Edits) LeftOut() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		at := t.PlaceOf(i)
		if s.Prim == program.Affine && len(s.Args) == 3 {
			all = append(all, Edit{Class: LeftOut, At: []Place{{at.Step, 2}}})
		}
		if s.Prim.IsLeaf() || s.Prim == program.Round || s.Prim == program.Copy || s.Prim == program.Mask || s.Prim == program.Lookup || s.Prim == program.RowMax || s.Prim == program.Rank {
			continue
		}
		steps := Ancestors(t.Program, i)
		slices.Reverse(steps)
		for _, v := range t.values(steps) {
			if v.Step == i {
				continue
			}
			if _, ok := As(v.Var, s.Shape); ok {
				all = append(all, Edit{Class: LeftOut, At: []Place{at}, From: v.at})
			}
		}
	}
	return all
}

// functionsOfOne take the place of each other.
var functionsOfOne = []program.Prim{program.Sqrt, program.Rsqrt, program.Exp, program.Tanh, program.Erf, program.Cos, program.Sin, program.Neg}

// exchangeable are the primitives that take the place of another.
var exchangeable = map[program.Prim][]program.Prim{program.Add: {program.Sub}, program.Sub: {program.Add}, program.Mul: {program.Div}, program.Div: {program.Mul}}

// Exchanged are the edits that make a step another primitive.
func (t Edits) Exchanged() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		own := t.Steps[i].Prim
		others := exchangeable[own]
		if slices.Contains(functionsOfOne, own) {
			others = functionsOfOne
		}
		if own == program.Rsqrt {
			all = append(all, Edit{Class: Exchanged, At: []Place{t.PlaceOf(i)}, Prim: program.Div})
		}
		for _, other := range others {
			if other != own {
				all = append(all, Edit{Class: Exchanged, At: []Place{t.PlaceOf(i)}, Prim: other})
			}
		}
	}
	return all
}

// Swapped are the edits that exchange the operands of a difference or a quotient.
func (t Edits) Swapped() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if p := t.Steps[i].Prim; p == program.Sub || p == program.Div {
			all = append(all, Edit{Class: Swapped, At: []Place{t.PlaceOf(i)}})
		}
	}
	return all
}

// Twice are the edits that take a step of its own result.
func (t Edits) Twice() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		if _, mean := Divisor(t.Program, i); mean || !s.Prim.Computes() || !s.Prim.ByElement() {
			continue // the division of a sum by its count is a part of a mean, and no call of its own
		}
		for a, v := range s.Args {
			if slices.Equal(v.Shape, s.Shape) && !v.Repeats() && t.Steps[v.Step].Prim != program.Number && (a == 0 || !v.Same(s.Args[0])) {
				all = append(all, Edit{Class: Twice, At: []Place{{t.sig[i], a}}})
			}
		}
	}
	return all
}

// Counts are the edits that divide a sum by one more or one less, or by the next power of two.
func (t Edits) Counts() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if n, ok := Divisor(t.Program, i); ok {
			all = append(all, Edit{Class: Count, At: []Place{t.PlaceOf(i)}, Value: -1}, Edit{Class: Count, At: []Place{t.PlaceOf(i)}, Value: 1})
			terms := t.Steps[n].Number().Value
			if by := math.Exp2(math.Ceil(math.Log2(terms))) - terms; by > 1 && terms > 1 { // a width that is padded
				all = append(all, Edit{Class: Count, At: []Place{t.PlaceOf(i)}, Value: by})
			}
		}
	}
	return all
}

// Operands returns edits that make a step read another value of the program, in the shape of the present operand.
func (t Edits) Operands() []Edit {
	steps := make([]int, len(t.Steps))
	for i := range steps {
		steps[i] = i
	}
	values := t.values(steps)
	var all []Edit
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		if s.Prim == program.Lookup || s.Prim == program.Mask || s.Prim == program.Angle {
			continue
		}
		for a, old := range s.Args {
			if p := t.Steps[old.Step].Prim; p == program.Number || p == program.Matrix || p == program.Vector {
				continue
			}
			for _, v := range values {
				if v.Step == i || v.Var.Same(old) || t.Steps[v.Step].Prim == program.Number || !slices.Equal(ownShape(v.Var), ownShape(old)) {
					continue
				}
				all = append(all, Edit{Class: Operand, At: []Place{{t.sig[i], a}}, From: v.at})
			}
		}
	}
	return all
}

// Axes are the edits that exchange two axes of one size of an operand.
func (t Edits) Axes() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		for a, v := range t.Steps[i].Args {
			if t.Steps[v.Step].Prim == program.Matrix {
				continue
			}
			for x := range v.Shape {
				for y := x + 1; y < len(v.Shape); y++ {
					if v.Shape[x] == v.Shape[y] && v.Shape[x] > 1 && (v.Stride[x] != 0 || v.Stride[y] != 0) {
						all = append(all, Edit{Class: Axis, At: []Place{{t.sig[i], a}}, Map: Map{Kind: Swap, Axis: x, Other: y}})
					}
				}
			}
		}
	}
	return all
}

// Wholes returns edits that apply an operation on a part of a tensor to the whole tensor, or to the other part.
func (t Edits) Wholes() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if s := &t.Steps[i]; s.Prim == program.Cat && len(s.Args) == 2 {
			for _, only := range []float64{0, secondWay} {
				all = append(all, Edit{Class: Whole, At: []Place{t.PlaceOf(i)}, Value: only})
			}
		}
	}
	return all
}

// Numbers are the places of the numbers that a configuration or a formula gives.
func (t *StepIndex) Numbers() []int {
	var all []int
	for _, i := range t.Firsts() {
		if s := &t.Steps[i]; s.Prim == program.Number && (!s.Number().Fixed || s.Round == program.Model) {
			all = append(all, i)
		}
	}
	return all
}

// maps are those of a shape: rolls by one and two places, reversed axes, axes read in another order, and blocks of some sizes
// woven by some numbers.
func maps(shape, blocks []int) []Map {
	var all []Map
	for a, n := range shape {
		if n < 2 {
			continue
		}
		for _, by := range []int{1, -1, 2, -2} {
			if by%n != 0 {
				all = append(all, Map{Kind: Roll, Axis: a, By: by})
			}
		}
		all = append(all, Map{Kind: Reverse, Axis: a})
		for _, by := range []int{2, 4, 8} {
			if n%by == 0 && n > by && a == len(shape)-1 {
				all = append(all, Map{Kind: Flip, Axis: a, By: by})
			}
		}
		for _, by := range blocks {
			if n%by == 0 && n > by {
				all = append(all, Map{Kind: Reverse, Axis: a, By: by})
			}
			if n%by == 0 && n > 2*by {
				all = append(all, Map{Kind: Roll, Axis: a, By: by}, Map{Kind: Roll, Axis: a, By: -by})
			}
			for _, rows := range append([]int{2}, blocks...) { // such as the heads of groups
				for _, k := range []int{rows, n / max(by*rows, 1)} {
					m := Map{Kind: Blocks, Axis: a, By: by, N: k}
					if a == len(shape)-1 && k > 1 && n%(by*k) == 0 && n > by*k && !slices.Contains(all, m) {
						all = append(all, m)
					}
				}
			}
		}
		if half := n / 2; n%2 == 0 && half > 2 {
			all = append(all, Map{Kind: Roll, Axis: a, By: half})
		}
		all = append(all, reread(shape, a, blocks)...)
		all = append(all, woven(n, a, blocks)...)
	}
	return all
}

// reread are the maps by which an axis and a later one are read in the sizes of each other.
func reread(shape []int, a int, blocks []int) []Map {
	var all []Map
	for b := a + 1; b < len(shape); b++ {
		if shape[b] > 1 {
			all = append(all, Map{Kind: Reread, Axis: a, Other: b}, Map{Kind: Unread, Axis: a, Other: b})
			for _, by := range blocks {
				if shape[b]%by == 0 && shape[b] > by {
					all = append(all, Map{Kind: Reread, Axis: a, Other: b, By: by})
				}
			}
		}
	}
	return all
}

// woven are the maps by which an axis of n elements, or each block of it, is woven by some numbers.
func woven(n, a int, blocks []int) []Map {
	var all []Map
	for _, block := range append([]int{n}, blocks...) {
		if block > n || n%block != 0 {
			continue
		}
		for _, by := range append([]int{2, block / 2}, blocks...) {
			if by >= 2 && by < block && block%by == 0 {
				m := Map{Kind: Weave, Axis: a, By: block, N: by}
				if block == n {
					m.By = 0
				}
				if !slices.Contains(all, m) {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// byTurns are the edits by which the indexes of an axis that an operand is repeated along read it by turns.
func (t Edits) byTurns(step, arg int, v program.Var) []Edit {
	var all []Edit
	v = t.along(step, v)
	for a := 0; a+1 < len(v.Shape); a++ {
		if v.Shape[a] > 1 && v.Shape[a+1] > 1 && v.Stride[a] != 0 && v.Stride[a+1] == 0 {
			at := []Place{{t.sig[step], arg}}
			all = append(all, Edit{Class: Mapped, At: at, Map: Map{Kind: Reread, Axis: a, Other: a + 1}},
				Edit{Class: Mapped, At: at, Map: Map{Kind: First, Axis: a}},
				Edit{Class: Mapped, At: at, Map: Map{Kind: First, Axis: a, By: v.Shape[a] - 1}})
		}
	}
	return all
}

// along is an operand of a sum of products with the axes along which it is repeated at their sizes.
func (t *StepIndex) along(step int, v program.Var) program.Var {
	s := &t.Steps[step]
	if s.Prim != program.Dot {
		return v
	}
	v.Shape = slices.Clone(v.Shape)
	for a, n := range s.Shape {
		if v.Shape[a] == 1 {
			v.Shape[a] = n
		}
	}
	return v
}

// Maps are the edits that put the elements of an operand, of a result, or of an operand and back in the result, in another order.
// Blocks are sizes in which axes may be read, such as that of a head.
func (t Edits) Maps(blocks []int) []Edit {
	var all []Edit
	for _, m := range maps(t.Out.Shape, blocks) {
		if m.Kind == Roll && m.By > 2 && 2*m.By == t.Out.Shape[m.Axis] { // channel by channel that is told in words that say more
			continue
		}
		all = append(all, Edit{Class: Mapped, At: []Place{{t.sig[t.Out.Step], Returned}}, Map: m})
	}
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		if s.Prim == program.Lookup || s.Prim == program.Mask || s.Prim >= program.Choose && s.Prim <= program.Scatter || s.Prim == program.Collect {
			continue
		}
		for a, v := range s.Args {
			p := t.Steps[v.Step].Prim
			if p == program.Matrix || p == program.Number {
				continue
			}
			if s.Prim == program.Dot { // a head that several others read, by turns
				all = append(all, t.byTurns(i, a, v)...)
			}
			if v.Repeats() {
				continue
			}
			for _, m := range maps(v.Shape, blocks) {
				all = append(all, Edit{Class: Mapped, At: []Place{{t.sig[i], a}}, Map: m})
			}
		}
		if s.Prim != program.Input {
			continue
		}
		for _, m := range maps(s.Shape, blocks) { // for all that read it
			all = append(all, Edit{Class: Mapped, At: []Place{t.PlaceOf(i)}, Map: m}, Edit{Class: Mapped, At: []Place{t.PlaceOf(i)}, Map: m, Back: true})
		}
	}
	return all
}
