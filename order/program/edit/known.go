package edit

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/functions"
)

// SoftmaxOf is the operand of the softmax whose last step is a quotient: exp(x − max x) / Σ.
func SoftmaxOf(p *program.Program, step int) (x program.Var, ok bool) {
	s := &p.Steps[step]
	if s.Prim != program.Div {
		return x, false
	}
	exp, sum := s.Args[0].Step, s.Args[1].Step
	if p.Steps[exp].Prim != program.Exp || p.Steps[sum].Prim != program.Sum || p.Steps[sum].Args[0].Step != exp {
		return x, false
	}
	sub := p.Steps[exp].Args[0].Step
	if p.Steps[sub].Prim != program.Sub || p.Steps[p.Steps[sub].Args[1].Step].Prim != program.RowMax {
		return x, false
	}
	return p.Steps[sub].Args[0], true
}

// IsShare reports whether a step divides a value by its own sum, or by that and a small number.
func IsShare(p *program.Program, step, value int) bool {
	s := &p.Steps[step]
	if s.Prim != program.Div || origin(p, s.Args[0].Step) != origin(p, value) {
		return false
	}
	sum := origin(p, s.Args[1].Step)
	if add := &p.Steps[sum]; add.Prim == program.Add && p.Steps[add.Args[1].Step].Prim == program.Number {
		sum = origin(p, add.Args[0].Step)
	}
	return p.Steps[sum].Prim == program.Sum && origin(p, p.Steps[sum].Args[0].Step) == origin(p, value)
}

// origin is the step whose result a step hands on, laid out anew or rounded.
func origin(p *program.Program, step int) int {
	for s := &p.Steps[step]; s.Prim == program.Round || s.Prim == program.Cat && len(s.Args) == 1; s = &p.Steps[step] {
		step = s.Args[0].Step
	}
	return step
}

// Softmaxes are the last steps of softmaxes.
func Softmaxes(p *program.Program) []int {
	var all []int
	for i := range p.Steps {
		if _, ok := SoftmaxOf(p, i); ok {
			all = append(all, i)
		}
	}
	return all
}

// SoftmaxOfAll moves softmaxes before a choice: a softmax whose operand is a chosen part becomes the softmax of all
// elements, followed by the choice.
func SoftmaxOfAll(p *program.Program) *program.Edited {
	e, some := NewEditor(p), false
	for _, i := range Softmaxes(p) {
		x, _ := SoftmaxOf(p, i)
		g := &p.Steps[origin(p, x.Step)]
		if g.Prim != program.Gather || g.Axis() != len(g.Shape)-1 || !slices.Equal(x.Shape, g.Shape) {
			continue
		}
		e.Pass(i, e.Gather(g.Axis(), softmax(e.Builder, g.Args[0]), g.Args[1]))
		some = true
	}
	return e.ended(some)
}

// SoftmaxOfChosen moves softmaxes after a choice: a softmax from which elements are chosen becomes the softmax of the
// chosen elements only.
func SoftmaxOfChosen(p *program.Program) *program.Edited {
	e, some := NewEditor(p), false
	for i := range p.Steps {
		g := &p.Steps[i]
		if g.Prim != program.Gather || g.Axis() != len(g.Shape)-1 {
			continue
		}
		x, ok := SoftmaxOf(p, origin(p, g.Args[0].Step))
		if !ok || !slices.Equal(x.Shape, g.Args[0].Shape) {
			continue
		}
		e.Pass(i, softmax(e.Builder, e.Gather(g.Axis(), x, g.Args[1])))
		some = true
	}
	return e.ended(some)
}

// softmax is exp(x − max x) / Σ.
func softmax(b *program.Builder, x program.Var) program.Var {
	exp := b.Exp("", b.Sub("", x, b.RowMax(x)))
	return b.Div("", exp, b.Sum("", exp))
}

// SoftmaxBy takes a function of each score in the place of all softmaxes.
func SoftmaxBy(p *program.Program, function func(e *Editor, x program.Var) program.Var) *program.Edited {
	return each(p, Softmaxes(p), func(e *Editor, i int) bool {
		x, _ := SoftmaxOf(p, i)
		e.Pass(i, function(e, x))
		return true
	})
}

// Joined returns the tensors that are concatenated along the last axis into the operand of a softmax, for the first
// such softmax; nil if no softmax has a concatenated operand.
func Joined(p *program.Program) []program.Var {
	for _, i := range Softmaxes(p) {
		if cat := joinedFor(p, i); cat >= 0 {
			return p.Steps[cat].Args
		}
	}
	return nil
}

// joinedFor is the step that puts the operand of a softmax together, −1 where none does.
func joinedFor(p *program.Program, softmax int) int {
	x, _ := SoftmaxOf(p, softmax)
	step := origin(p, x.Step)
	for s := &p.Steps[step]; s.Prim == program.Sub && p.Steps[origin(p, s.Args[1].Step)].Prim != program.Number; s = &p.Steps[step] { // what is taken off all changes nothing
		step = origin(p, s.Args[0].Step)
	}
	if s := &p.Steps[step]; s.Prim != program.Cat || s.Axis() != len(s.Shape)-1 {
		return -1
	}
	return step
}

// SoftmaxWithout replaces one part of a softmax's concatenated operand by the score lowest, which has no weight in
// the softmax.
func SoftmaxWithout(p *program.Program, part int, lowest float64) *program.Edited {
	e, some := NewEditor(p), false
	for _, i := range Softmaxes(p) {
		cat := joinedFor(p, i)
		if cat < 0 || part >= len(p.Steps[cat].Args) {
			continue
		}
		args := slices.Clone(p.Steps[cat].Args)
		args[part] = e.Expand(e.Literal(lowest), args[part].Shape)
		e.Become(cat, program.Cat, args...)
		some = true
	}
	return e.ended(some)
}

// SoftmaxOver takes all softmaxes over an axis counted from the last, which is 0.
func SoftmaxOver(p *program.Program, fromLast int) *program.Edited {
	return each(p, Softmaxes(p), func(e *Editor, i int) bool {
		x, _ := SoftmaxOf(p, i)
		last := len(x.Shape) - 1
		if fromLast > last {
			return false
		}
		e.Pass(i, exchangedIn(softmax(e.Builder, exchangedIn(x, last, last-fromLast)), last, last-fromLast))
		return true
	})
}

// SoftmaxOfScaled takes all softmaxes of their scores times a number.
func SoftmaxOfScaled(p *program.Program, by float64) *program.Edited {
	return SoftmaxBy(p, func(e *Editor, x program.Var) program.Var { return softmax(e.Builder, e.Mul("", x, e.Scalar("", by))) })
}

// SoftmaxWith has n scores of 0 more in all softmaxes, whose probabilities are dropped.
func SoftmaxWith(p *program.Program, n float64) *program.Edited {
	return each(p, Softmaxes(p), func(e *Editor, i int) bool {
		exp, sum := p.Steps[i].Args[0].Step, p.Steps[i].Args[1].Step
		top := p.Steps[p.Steps[exp].Args[0].Step].Args[1].Step
		e.Read(i, 1, e.Add("", p.Result(sum), e.Mul("", e.Literal(n), e.Exp("", e.Neg(p.Result(top))))))
		return true
	})
}

// SoftmaxOfBlocks restricts every softmax to the whole blocks of n elements: the elements after the last whole block
// get probability 0. The result is nil for rows without a whole block.
func SoftmaxOfBlocks(p *program.Program, n int) *program.Edited {
	return each(p, Softmaxes(p), func(e *Editor, i int) bool {
		x, _ := SoftmaxOf(p, i)
		last, width := len(x.Shape)-1, x.Last()
		if n < 1 || width < n {
			return false
		}
		whole := width / n * n
		part := softmax(e.Builder, e.Slice(x, last, 0, whole))
		if whole < width {
			part = e.Cat(last, part, e.Mul("", e.Slice(x, last, whole, width), e.Literal(0)))
		}
		e.Pass(i, part)
		return true
	})
}

// SoftmaxOfMasked adds a mask to the operand of each softmax: 0, or a number that hides a score. mask returns the mask of an operand of a shape.
func SoftmaxOfMasked(p *program.Program, mask func(shape []int) program.Value) *program.Edited {
	return SoftmaxBy(p, func(e *Editor, x program.Var) program.Var {
		return softmax(e.Builder, e.Add("", x, e.Other(mask(x.Shape))))
	})
}

// Means are the operands whose squares are summed, where the mean is not taken off before.
func Means(p *program.Program) []int {
	return slices.DeleteFunc(squares(p), func(i int) bool { return p.Steps[p.Steps[i].Args[0].Step].Prim == program.Sub })
}

// squares are the squares that are summed.
func squares(p *program.Program) []int {
	var all []int
	for _, i := range StepsOf(p, program.Sum) {
		sq := p.Steps[i].Args[0].Step
		if s := &p.Steps[sq]; s.Prim == program.Mul && s.Args[0].Same(s.Args[1]) {
			all = append(all, sq)
		}
	}
	return all
}

// MeanOff subtracts the mean from a value that is squared and summed; all readers of the value read the difference.
func MeanOff(p *program.Program) *program.Edited {
	return each(p, Means(p), func(e *Editor, sq int) bool {
		x := p.Steps[sq].Args[0]
		y := e.Sub("", x, e.Mean("", x))
		for i := range p.Steps {
			for a, v := range p.Steps[i].Args {
				if v.Same(x) {
					e.Read(i, a, y)
				}
			}
		}
		return true
	})
}

// TakenOff returns the steps of means that are subtracted before squares are summed: the means of a LayerNorm.
func TakenOff(p *program.Program) []int {
	var all []int
	for _, sq := range squares(p) {
		d := &p.Steps[p.Steps[sq].Args[0].Step]
		if d.Prim != program.Sub {
			continue
		}
		mean := d.Args[1].Step
		if _, ok := Divisor(p, mean); ok && !slices.Contains(all, mean) {
			all = append(all, mean)
		}
	}
	return all
}

// MeanKept takes no mean off, for all steps that read it.
func MeanKept(p *program.Program) *program.Edited {
	return each(p, TakenOff(p), func(e *Editor, i int) bool {
		e.Pass(i, e.Mul("", e.Move(i), e.Literal(0)))
		return true
	})
}

// Gates are the steps that hand on what is above 0 of a difference.
func Gates(p *program.Program) []int {
	var all []int
	for _, i := range StepsOf(p, program.Max) {
		if s := &p.Steps[i]; len(s.Args) == 2 {
			zero, d := &p.Steps[s.Args[0].Step], &p.Steps[s.Args[1].Step]
			if zero.Prim == program.Number && zero.Number().Value == 0 && d.Prim == program.Sub {
				all = append(all, i)
			}
		}
	}
	return all
}

// Unshifted hands on what a difference was taken of, where the difference is above 0.
func Unshifted(p *program.Program) *program.Edited {
	return each(p, Gates(p), func(e *Editor, i int) bool {
		d := p.Steps[i].Args[1]
		e.Pass(i, e.Mul("", p.Steps[d.Step].Args[0], e.Gate(d)))
		return true
	})
}

// StepsOf a primitive are the steps of it.
func StepsOf(p *program.Program, prim program.Prim) []int {
	var all []int
	for i := range p.Steps {
		if p.Steps[i].Prim == prim {
			all = append(all, i)
		}
	}
	return all
}

// Windows gives all masks another window.
func Windows(p *program.Program, window float64) *program.Edited {
	return sights(p, func(s *program.Sight) { s.Window = window })
}

// sights changes what all masks let queries see.
func sights(p *program.Program, change func(*program.Sight)) *program.Edited {
	return each(p, StepsOf(p, program.Mask), func(e *Editor, i int) bool {
		s := e.Step(i)
		sight := s.Sight()
		change(&sight)
		s.Payload = sight
		return true
	})
}

// Ahead lets queries see some keys ahead in all masks.
func Ahead(p *program.Program, n int) *program.Edited {
	return sights(p, func(s *program.Sight) { s.Ahead = n })
}

// slackOfPowers is what a frequency may be off by, relatively: a power, a reciprocal, and the scaling, each to a unit of
// float32.
const slackOfPowers = (functions.PowerOfBase + 2) * 0x1p-24

// Frequencies gives all vectors of constants that cosines and sines are computed from other values, each to two units of float32.
func Frequencies(p *program.Program, change func([]float64) []float64) *program.Edited {
	return each(p, p.Turning(), func(e *Editor, i int) bool {
		v := change(slices.Clone(p.Steps[i].Vector()))
		if v == nil {
			return false
		}
		x := program.Value{Shape: p.Steps[i].Shape, Data: v, Bound: make([]float64, len(v))}
		for j := range v {
			x.Bound[j] = slackOfPowers * math.Abs(v[j])
		}
		w := e.Other(x)
		for k := range p.Steps {
			for a, old := range p.Steps[k].Args {
				if old.Step == i {
					e.Read(k, a, program.Var{Step: w.Step, Off: old.Off, Shape: old.Shape, Stride: old.Stride})
				}
			}
		}
		return true
	})
}

// Positions gives all angles other positions.
func Positions(p *program.Program, change func(e *Editor, positions program.Var) program.Var) *program.Edited {
	return each(p, StepsOf(p, program.Angle), func(e *Editor, i int) bool {
		e.Read(i, 1, change(e, p.Steps[i].Args[1]))
		return true
	})
}

// each edits all of some steps; nil for no step, and for a step that cannot be edited.
func each(p *program.Program, steps []int, edit func(e *Editor, step int) bool) *program.Edited {
	e := NewEditor(p)
	for _, i := range steps {
		if !edit(e, i) {
			return nil
		}
	}
	return e.ended(len(steps) > 0)
}

// ended is the program if there was something to edit; else nil.
func (e *Editor) ended(some bool) *program.Edited {
	if !some {
		return nil
	}
	d, err := e.End()
	if err != nil {
		return nil
	}
	return d
}
