package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// inPart tries the edits of steps and numbers in the tokens alone that have something left: others are as they should be.
func (s *search) inPart() error {
	for _, e := range s.entries {
		axis := s.tokenAxis(e)
		if axis < 0 {
			return nil
		}
		size := e.Program.Out.Shape()[axis]
		if n := len(s.leftTokens(e, axis)); n == 0 || n == size && size > 1 {
			return nil
		}
	}
	s.some = true
	defer func() { s.some = false }()
	for _, look := range []func() error{s.structure, s.constants} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// tokenAxis is the axis of the result that counts tokens; −1 where there is none.
func (s *search) tokenAxis(e *Entry) int {
	axes := s.m.List.Entries[e.Node.Entry].Axes
	if len(axes) != len(e.Program.Out.Shape()) {
		return -1
	}
	return strings.IndexByte(axes, order.AxisToken)
}

// leftTokens are those that have something left.
func (s *search) leftTokens(e *Entry, axis int) []int {
	shape := e.Program.Out.Shape()
	inner := product(shape[axis+1:])
	var all []int
	for _, i := range e.Left {
		if t := i / inner % shape[axis]; !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// inTokens has a hypothesis in the tokens alone that have something left.
func (s *search) inTokens(h hypothesis) hypothesis {
	whole, say := h.make, h.say
	for _, e := range s.entries {
		h.solved += len(s.leftTokens(e, s.tokenAxis(e)))
	}
	h.edit, h.at = nil, program.Place{}
	h.rank += 1000000
	h.make = func(e *Entry) *program.Edited {
		d := whole(e)
		if d == nil {
			return nil
		}
		axis := s.tokenAxis(e)
		own, ok := s.valueOf(e, nil)
		if !ok {
			return nil
		}
		other, ok := s.valueOf(e, d)
		if !ok {
			return nil
		}
		shape := e.Program.Out.Shape()
		inner, some := product(shape[axis+1:]), s.leftTokens(e, axis)
		for i := range own.Data {
			if slices.Contains(some, i/inner%shape[axis]) {
				own.Data[i], own.Bound[i] = other.Data[i], other.Bound[i]
			}
		}
		return given(e, own)
	}
	h.say = func(e *Entry) Name {
		n := say(e)
		n.What += ", for some tokens alone"
		return n
	}
	return h
}
