package program

import (
	"errors"
	"slices"
)

// Edited is a program after an edit. From lists the results that the edit does not change; an evaluation computes only changed results.
type Edited struct {
	*Program
	From []int   // for each step, the step of the program before the edit with the same result; −1 for a step that has to be computed
	In   []Value // inputs of the edit itself, see NewEdited
	W    []Rows  // weights of the edit itself
}

var errCycle = errors.New("a step would be computed from its own result")

// NewEdited makes an edited program of the steps from which the result out is computed. The first len(changed) steps
// are the steps of the program before the edit; changed marks the steps that the edit changed. in and w are inputs
// and weights that a call does not have, at the indexes −1, −2 and so on. The error reports a step that reads its own
// result.
func NewEdited(steps []Step, changed []bool, out Var, in []Value, w []Rows) (*Edited, error) {
	d := &Edited{Program: &Program{Steps: make([]Step, 0, len(steps))}, From: make([]int, 0, len(steps)), In: in, W: w}
	at := make([]int, len(steps)) // for each step, 1 + its index in the new program; 0 before the visit, −1 during the visit
	operands := 0
	for i := range steps {
		operands += len(steps[i].Args)
	}
	room := make([]Var, operands) // of the operands of all steps
	var visit func(i int) error
	visit = func(i int) error {
		switch at[i] {
		case 0:
		case -1:
			return errCycle
		default:
			return nil
		}
		at[i] = -1
		s := steps[i]
		clean := i < len(changed) && !changed[i]
		args := room[:len(s.Args):len(s.Args)]
		room = room[len(s.Args):]
		for k, a := range s.Args {
			if err := visit(a.Step); err != nil {
				return err
			}
			args[k] = a
			args[k].Step = at[a.Step] - 1
			clean = clean && d.From[args[k].Step] >= 0
		}
		s.Args, s.readers, s.final = args, 0, false
		from := -1
		if clean {
			from = i
		}
		d.Steps, d.From = append(d.Steps, s), append(d.From, from)
		at[i] = len(d.Steps)
		return nil
	}
	if err := visit(out.Step); err != nil {
		return nil, err
	}
	d.Out = out
	d.Out.Step = at[out.Step] - 1
	for i := range d.Steps {
		for _, a := range d.Steps[i].Args {
			d.Steps[a.Step].readers++
		}
		if s := &d.Steps[i]; (s.Prim == Input || s.Prim.IsWeight()) && s.Index() < 0 {
			d.From[i] = -1
		}
	}
	d.bounds()
	return d, nil
}

// Whole returns the program and a call that also has the edit's own inputs and weights, for one evaluation of the
// whole program.
func (d *Edited) Whole(c Call) (*Program, Call) {
	p := &Program{Steps: slices.Clone(d.Steps), Out: d.Out, floors: d.floors}
	c = d.call(c)
	d.indexes(p, len(c.In), len(c.W))
	p.schedule()
	return p, c
}

// call appends the edit's own inputs and weights to a call, in reverse order: the input or weight with index −1 comes last.
func (d *Edited) call(c Call) Call {
	c.In, c.W = slices.Clone(c.In), slices.Clone(c.W)
	for k := len(d.In) - 1; k >= 0; k-- {
		c.In = append(c.In, d.In[k])
	}
	for k := len(d.W) - 1; k >= 0; k-- {
		c.W = append(c.W, d.W[k])
	}
	return c
}

// indexes replaces the negative indexes of the edit's own inputs and weights by their indexes in the extended call. The
// extended call has so many inputs and weights in all.
func (d *Edited) indexes(p *Program, inputs, weights int) {
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case s.Index() >= 0:
		case s.Prim == Input:
			s.Payload = Leaf(s.Index() + inputs)
		case s.Prim.IsWeight():
			s.Payload = Leaf(s.Index() + weights)
		}
	}
}

// unedited makes an edited program without a change, for code that evaluates edited programs.
func (p *Program) unedited() (*Edited, error) {
	return NewEdited(p.Steps, make([]bool, len(p.Steps)), p.Out, nil, nil)
}
