package program

import "slices"

// Kept is one evaluation of a program whose values are kept: of a program that is edited only what is computed from the edit is
// computed again. Not for several goroutines.
type Kept struct {
	p      *Program
	c      Call
	choose func(*Program) []Choice
	values []operand
	spare  spare

	Work int // elements and products that edited programs took
	Time int // about how long these and the program itself took, as [Program.Time] has it; each step takes [StepTime] more
}

// StepTime is the fixed cost of a step, in units of [Program.Time].
const StepTime = 1 << 8

// Keep evaluates a program. Choose gives a program its choices; nil for its own.
func (p *Program) Keep(c Call, choose func(*Program) []Choice) (*Kept, error) {
	k := &Kept{p: p, c: c, choose: choose, values: make([]operand, len(p.Steps)), spare: spare{}}
	e, err := p.Edit().End()
	if err != nil {
		return nil, err
	}
	from := e.from
	e.from = make([]int, len(from))
	for i := range e.from {
		e.from[i] = -1
	}
	r, err := k.run(e, nil)
	if err != nil {
		return nil, err
	}
	for i, f := range from {
		k.values[f] = r.values[i]
	}
	k.Work = 0
	return k, nil
}

// Eval evaluates an edited program: its result before the last rounding, which is not to be written to.
func (k *Kept) Eval(e *Edited) (Value, error) { return k.EvalSome(e, nil) }

// EvalSome is Eval of some of the result; nil for all of it.
func (k *Kept) EvalSome(e *Edited, some *Some) (Value, error) {
	r, err := k.run(e, some)
	if err != nil {
		return Value{}, err
	}
	v, err := r.some()
	if some != nil { // the value is a copy
		for i, from := range e.from {
			if from < 0 {
				r.free(i, r.values[i])
			}
		}
	}
	return v, err
}

// Numbers is how many numbers are kept, bounds counted as well.
func (k *Kept) Numbers() int {
	n := 0
	for _, o := range k.values {
		n += len(o.v) + len(o.e)
	}
	for _, all := range k.spare {
		for _, o := range all {
			n += len(o.v) + len(o.e)
		}
	}
	return n
}

// Own is the result of the program itself.
func (k *Kept) Own() (Value, error) {
	r := run{p: k.p, c: &k.c, a: k.c.Arith, values: slices.Clone(k.values)}
	return r.result()
}

func (k *Kept) run(e *Edited, some *Some) (*run, error) {
	c := e.call(k.c)
	c.Some = some
	p := &Program{Steps: e.Steps, Out: e.Out, floors: e.floors, stages: make([]stage, len(e.Steps))}
	if len(e.in)+len(e.w) > 0 {
		p.Steps = slices.Clone(p.Steps)
		e.indexes(p, len(c.In), len(c.W))
	}
	if k.choose != nil {
		c.Choices = k.choose(p)
	}
	r := &run{p: p, c: &c, a: c.Arith, values: make([]operand, len(p.Steps))}
	if some != nil {
		r.spare = k.spare
	}
	r.need, r.few = p.need(some, func(step int) bool { return e.from[step] >= 0 }, nil), p.columns(some)
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case e.from[i] >= 0:
			r.values[i] = k.values[e.from[i]]
			continue
		case s.Prim.leaf():
			if err := r.leaf(i, s); err != nil {
				return nil, err
			}
			continue
		}
		p.stages[i] = p.alone(i)
		rows := max(rowCount(s.Shape), 1)
		work, time := p.work(i)/rows*r.need.count(i, rows), p.time(i)/rows*r.need.count(i, rows)
		if s.Prim == Affine && r.few != nil && r.few[i] != nil {
			width := max(s.Shape[len(s.Shape)-1], 1)
			work, time = work/width*len(r.few[i]), time/width*len(r.few[i])
		}
		k.Work += work
		k.Time += StepTime + time
		if err := r.stage(i); err != nil {
			return nil, err
		}
	}
	return r, nil
}
