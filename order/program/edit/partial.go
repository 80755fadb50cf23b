package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// partCounts are into how many parts a sum is split.
var partCounts = []int{2, 4}

// Apart returns edits that split a sum along the last axis into separate sums of n parts, for example ranks that do
// not gather the sum.
func (t Edits) Apart() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		if s.Prim != program.Sum {
			continue
		}
		for _, n := range partCounts {
			if w := s.Args[0].Last(); w%n == 0 && w > n && t.Out.Last() == w {
				all = append(all, Edit{Class: Axis, At: []Place{t.PlaceOf(i)}, Map: Map{Kind: Apart, Axis: len(s.Shape) - 1, N: n}})
			}
		}
	}
	return all
}

// apart takes a sum over each of some parts of the last axis: the result is put together of what each of the parts gives.
func (d Edit) apart(e *Editor, t *StepIndex, step int) bool {
	s := &t.Steps[step]
	if s.Prim != program.Sum || len(t.Copies(d.At[0])) != 1 {
		return false
	}
	last, n, x := len(s.Args[0].Shape)-1, d.Map.N, s.Args[0]
	to := len(t.Out.Shape) - 1
	width := x.Last()
	if width%n != 0 || t.Out.Last() != width {
		return false
	}
	part := width / n
	var all []program.Var
	for k := range n {
		// A mean keeps its divisor, so the sum of a part is multiplied by the number of parts.
		sum := e.Mul("", e.Sum("", e.Slice(x, last, k*part, (k+1)*part)), e.Literal(float64(n)))
		if e.Err() != nil || !slices.Equal(sum.Shape, s.Shape) {
			return false
		}
		out, ok := again(e, step+1, len(t.Steps), t.Result(step), sum, t.Out)
		if !ok {
			return false
		}
		all = append(all, e.Slice(out, to, k*part, (k+1)*part))
	}
	e.Return(e.Cat(to, all...))
	return e.Err() == nil
}

// Alone returns edits that move a factor or a divisor of a sum to only one term of the sum.
func (t Edits) Alone() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if sum, _, ok := t.ofSum(i); ok {
			for k := range t.Steps[sum].Args {
				all = append(all, Edit{Class: Order, At: []Place{t.PlaceOf(i)}, Prim: t.Steps[i].Prim, Value: float64(k)})
			}
		}
	}
	return all
}

// ofSum is the sum of two tensors that a step multiplies, or divides, by a number, and which operand the number is.
func (t *StepIndex) ofSum(step int) (sum, number int, ok bool) {
	s := &t.Steps[step]
	if s.Prim != program.Mul && s.Prim != program.Div || len(s.Args) != 2 {
		return 0, 0, false
	}
	for k, a := range s.Args {
		if t.Steps[a.Step].Prim != program.Number || s.Prim == program.Div && k == 0 {
			continue
		}
		from := t.rounded(s.Args[1-k])
		f := &t.Steps[from]
		if f.Prim != program.Add && f.Prim != program.Sub || !slices.Equal(f.Shape, s.Shape) || slices.ContainsFunc(f.Args, func(v program.Var) bool { return t.Steps[v.Step].Prim == program.Number }) {
			return 0, 0, false
		}
		return from, k, true
	}
	return 0, 0, false
}

// alone multiplies one term of a sum by the number that multiplies the whole sum in the program.
func (d Edit) alone(e *Editor, t *StepIndex, step int) bool {
	sum, number, ok := t.ofSum(step)
	if !ok {
		return false
	}
	k := int(d.Value)
	s, f := &t.Steps[step], &t.Steps[sum]
	args := slices.Clone(s.Args)
	args[1-number] = f.Args[k].Expanded(s.Shape)
	terms := slices.Clone(f.Args)
	terms[k] = e.R(e.MoveWith(step, args...))
	e.Become(step, f.Prim, terms...)
	return e.Err() == nil
}

// Term returns the operands of the sum: first the term that the edit multiplies, then the other term.
func (t *StepIndex) Term(d Edit) (alone, other program.Var) {
	sum, _, _ := t.ofSum(t.Copies(d.At[0])[0])
	k := int(d.Value)
	return t.Steps[sum].Args[k], t.Steps[sum].Args[1-k]
}

// AllWider returns, for a program with several sums, the edit that takes all sums over the last two axes.
func (t Edits) AllWider() []Edit {
	var at []Place
	for _, i := range t.Firsts() {
		if s := &t.Steps[i]; s.Prim == program.Sum && len(s.Shape) > 1 {
			at = append(at, t.PlaceOf(i))
		}
	}
	if len(at) < 2 {
		return nil
	}
	return []Edit{{Class: Axis, At: at}}
}

// Repeated returns edits that read the first or the last index of an axis of an input, such as the token axis, at
// every index.
func (t Edits) Repeated() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if s := &t.Steps[i]; s.Prim == program.Input {
			for a, n := range s.Shape[:len(s.Shape)-1] {
				for _, by := range []int{0, n - 1} {
					if n > 1 {
						all = append(all, Edit{Class: Mapped, At: []Place{t.PlaceOf(i)}, Map: Map{Kind: First, Axis: a, By: by}})
					}
				}
			}
		}
	}
	return all
}

// Fewer are the edits that leave the last term, or the first, out of a mean.
func (t Edits) Fewer() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		n, ok := Divisor(t.Program, i)
		if !ok {
			continue
		}
		if terms := t.Steps[t.Steps[i].Args[0].Step].Args[0].Last(); terms > 2 && t.Steps[n].Number().Value == float64(terms) {
			all = append(all, Edit{Class: Count, At: []Place{t.PlaceOf(i)}, Map: Map{N: 1, By: 1}}, Edit{Class: Count, At: []Place{t.PlaceOf(i)}, Map: Map{N: 1}})
		}
	}
	return all
}

// fewer leaves a term out of a mean: the last, or the first.
func (d Edit) fewer(e *Editor, t *StepIndex, step int) bool {
	at := t.Steps[step].Args[0]
	sum := &t.Steps[at.Step]
	x := sum.Args[0]
	n, last := x.Last(), len(x.Shape)-1
	if sum.Prim != program.Sum || n < 3 {
		return false
	}
	less := e.Sum("", e.Slice(x, last, 1-d.Map.By, n-d.Map.By))
	if e.Err() != nil || !slices.Equal(less.Shape, sum.Shape) {
		return false
	}
	at.Step = less.Step
	e.Read(step, 0, at)
	e.Read(step, 1, e.Literal(float64(n-1)))
	return e.Err() == nil
}

// Item is the index of the first axis that a view of a stack shows; ok is false where it shows more, or less, than one.
func (t *StepIndex) Item(v program.Var) (index int, ok bool) {
	shape := t.Steps[v.Step].Shape
	if len(shape) < 2 || shape[0] < 2 || program.Size(v.Shape) != program.Size(shape[1:]) {
		return 0, false
	}
	start, n := t.part(v, 0)
	return start, n == 1
}
