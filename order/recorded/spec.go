package recorded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// try builds the program of an entry: what has no formula becomes unknown, and what does not go together is an error.
func (x *expander) try(e *Entry) error {
	why, ok := x.built[e.Op]
	if !ok {
		var in [][]int
		var w [][2]int
		for _, i := range e.Inputs {
			in = append(in, x.shapes[x.i-i.Back][i.Name])
		}
		for _, t := range e.Weights {
			w = append(w, t.Size())
		}
		p, err := program.Of(e.Op, program.Op.Kind, 0, e.Shape, in, w)
		switch {
		case errors.Is(err, ErrUnknown):
			why = strings.TrimPrefix(err.Error(), e.Op.Kind()+": ")
		case err != nil:
			return err
		default:
			for i := range p.Steps {
				if _, err := count(p.Steps[i].Shape); err != nil {
					return fmt.Errorf("%s: %w", e.Op.Kind(), err)
				}
			}
		}
		x.built[e.Op] = why
	}
	if why != "" {
		e.Op = Unknown{e.Op.Kind(), why}
	}
	return nil
}

// Size is a tensor as a matrix of its last axis.
func (t Tensor) Size() [2]int {
	n := elementsOf(t.Shape)
	last := 1
	if len(t.Shape) > 0 {
		last = t.Shape[len(t.Shape)-1]
	}
	return [2]int{n / max(last, 1), last}
}

// intern is the one spec of these contents.
func (x *expander) intern(s *spec) *spec {
	k := s.text()
	if x.specs[k] == nil {
		x.specs[k] = s
	}
	return x.specs[k]
}

// text tells specs apart.
func (s *spec) text() string {
	var b strings.Builder
	for _, o := range s.operands {
		data := ""
		if o.data != nil {
			data = o.data.SHA256 + o.data.DType
		}
		fmt.Fprintf(&b, "%d %d %v %v %v %s %v %v %v %d %v %v|", o.source, o.index, o.more, o.turned, o.number, data, o.axes, o.shape, o.stride, o.off, o.dtype, o.scalar)
		if o.entry != nil {
			fmt.Fprintf(&b, "%v %v", o.entry.shape, o.entry.stride)
		}
	}
	fmt.Fprintf(&b, "/%v %v %v %v", s.shape, s.dtype, s.model, s.order)
	if s.view != nil {
		fmt.Fprintf(&b, "%v %v", s.view.shape, s.view.stride)
	}
	for _, name := range slices.Sorted(maps.Keys(s.attr)) {
		fmt.Fprintf(&b, " %s=%#v", name, s.attr[name])
	}
	return b.String()
}
