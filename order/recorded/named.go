package recorded

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// behind reports whether earlier passes list the name n after the name other of the same value. Which of the two
// names is computed, and which is a view, is the same in all passes.
func (x *expander) behind(n, other *Name) bool {
	if other == nil {
		return false
	}
	a, ok := x.ranks[n.Name]
	b, also := x.ranks[other.Name]
	return ok && also && a > b
}

// ranked remembers the order of names that no pass before had.
func (x *expander) ranked(lines []Line) {
	for i := range lines {
		if n := lines[i].Name; n != nil {
			if _, ok := x.ranks[n.Name]; !ok {
				x.ranks[n.Name] = len(x.ranks)
			}
		}
	}
}

// named adds the entry of a name that no step has made.
func (x *expander) named(l *Line) error {
	n := l.Name
	if n.Of.Kind == ToValue && x.first[n.Of.Index] == n {
		return nil // the step's
	}
	e := Entry{Name: n.Name, Layer: l.Layer, Level: n.Level, Shape: atLeastOne(n.Of.Shape)}
	s := &spec{shape: e.Shape, order: ascending(len(e.Shape))}
	o := x.ref(&e, n.Of)
	if s.operands = []operand{o.operand}; o.lost != "" {
		e.Op = Unknown{"view", o.lost}
	}
	switch n.Of.Kind {
	case ToConstant:
		c := x.p.Constants[n.Of.Index]
		e.DType = x.dtype(c.DType)
		if n.Name == InputIDs || n.Name == positionIDs {
			e.Op, e.Inputs, x.arguments[n.Name] = nil, nil, c // an argument of the model
			break
		}
		if len(e.Inputs) > 0 { // an argument, or another name of the same numbers
			e.Op = Seen{Of: "input", spec: x.intern(s)}
			break
		}
		if o.lost != "" {
			break
		}
		e.Op = Constants{Sum: cmp.Or(c.Like, c.SHA256), spec: x.intern(s)}
	case ToWeight:
		e.DType = x.dtype(x.p.Weights[n.Of.Weight].DType)
		if o.lost == "" {
			e.Op = Seen{Of: "weight", spec: x.intern(s)}
		}
	default:
		e.DType = x.dtype(x.valueOf(n.Of.Index).DType)
		e.Op = Seen{Of: x.reps[n.Of.Index].of, spec: x.intern(s)}
	}
	if _, lost := e.Op.(Unknown); e.Op != nil && !lost {
		if err := x.try(&e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	x.add(e)
	x.told(n, &e)
	return nil
}

// told makes later steps read the entry of a name.
func (x *expander) told(n *Name, e *Entry) {
	switch {
	case n.Of.Kind == ToConstant && n.Of.covers():
		if _, ok := x.consts[n.Of.Index]; !ok {
			r := &rep{}
			r.see(&layout{atLeastOne(n.Of.Shape), atLeastOne(n.Of.Stride), 0})
			x.consts[n.Of.Index] = given{e.Name, r.view, r.axes}
		}
	case n.Of.Kind == ToValue:
		r := x.reps[n.Of.Index]
		if n.Of.covers() && program.Size(n.Of.Shape) == program.Size(x.valueOf(n.Of.Index).Shape) {
			r.name, r.pass, r.of = e.Name, x.i, "input"
			r.see(&layout{atLeastOne(n.Of.Shape), atLeastOne(n.Of.Stride), 0})
			return
		}
		if r.pass == x.i {
			r.parts[key(n.Of)] = e.Name
		}
	}
}

// key tells views of one value apart, but for axes of one element.
func key(r Ref) string {
	var b strings.Builder
	fmt.Fprint(&b, r.Off)
	for a, n := range r.Shape {
		if n != 1 {
			fmt.Fprintf(&b, " %d:%d", n, r.Stride[a])
		}
	}
	return b.String()
}

// unnamed is a name for a step that has none.
func (x *expander) unnamed(next, op string) string {
	base := next + ":" + op
	name := base
	for x.names[name] {
		x.counts[base] = max(x.counts[base], 1) + 1
		name = fmt.Sprintf("%s.%d", base, x.counts[base])
	}
	x.names[name] = true
	return name
}
