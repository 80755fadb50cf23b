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
	f, ok := x.built[e.Op]
	if !ok {
		var err error
		if f, err = x.build(e); err != nil {
			return err
		}
		x.built[e.Op] = f
	}
	if f.unknown == "" && f.most > maxFree && f.most/maxGrowth > x.source(e) {
		f.unknown = fmt.Sprintf("%d elements, made of fewer than %d", f.most, max(f.most/maxGrowth, 1))
	}
	if f.unknown != "" {
		e.Op = Unknown{e.Op.Kind(), f.unknown}
	}
	return nil
}

// formula is what is known of an operation's.
type formula struct {
	unknown string // why it has none; empty where it has
	most    int    // elements of its largest step
}

func (x *expander) build(e *Entry) (f formula, err error) {
	if x.steps > maxFormulas || x.numbers > maxFormed {
		return formula{unknown: "its formula is not built: the formulas before it have too many steps and numbers"}, nil
	}
	var in [][]int
	var w [][2]int
	for _, i := range e.Inputs {
		in = append(in, x.sized[x.i-i.Back][i.Name].shape)
	}
	for _, t := range e.Weights {
		w = append(w, t.Size())
	}
	p, err := program.Of(e.Op, program.Op.Kind, 0, e.Shape, in, w)
	switch {
	case errors.Is(err, ErrUnknown):
		return formula{unknown: strings.TrimPrefix(err.Error(), e.Op.Kind()+": ")}, nil
	case err != nil:
		return f, err
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		n, err := Elements(s.Shape)
		if err != nil {
			return f, fmt.Errorf("%s: %w", e.Op.Kind(), err)
		}
		if len(s.Args) > 0 {
			f.most = max(f.most, n)
		}
		if own := s.Vector(); len(own) > 0 && !x.shared[&own[0]] {
			x.numbers += len(own)
		}
	}
	f.most = max(f.most, program.Size(e.Shape))
	x.steps += len(p.Steps)
	return f, nil
}

// sized is an entry's shape, and the elements of the largest argument, constant or weight that it was computed from.
type sized struct {
	shape  []int
	source int
}

// source returns the number of elements of the largest argument, constant or weight from which an entry is computed.
func (x *expander) source(e *Entry) int {
	n := 1
	for _, i := range e.Inputs {
		n = max(n, x.sized[x.i-i.Back][i.Name].source)
	}
	for _, t := range e.Weights {
		n = max(n, program.Size(t.Shape))
	}
	var own *spec
	switch o := e.Op.(type) {
	case nil: // an argument
		n = max(n, program.Size(e.Shape))
	case Op:
		own = o.spec
	case Seen:
		own = o.spec
	case Constants:
		own = o.spec
	}
	if own != nil {
		for i := range own.operands {
			if c := own.operands[i].data; c != nil {
				n = max(n, len(c.Numbers))
			}
		}
	}
	return n
}

// Size is a tensor as a matrix of its last axis.
func (t Tensor) Size() [2]int {
	n := program.Size(t.Shape)
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
