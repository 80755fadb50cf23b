package stepdiff

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/recorded"
)

// side is a program with what is looked up in it.
type side struct {
	p     *recorded.Program
	steps []*made                     // by value, the step that wrote it
	names []map[string]*recorded.Name // by pass
	// Of has, by value, the names that show it, in the order of the program; constants has the same of constants.
	of, constants map[int][]*named
}

// made is a value: the step that wrote it, and the number of the result.
type made struct {
	step *recorded.Step
	out  int
	pass int
}

// named is a name of a value, or of a part of it.
type named struct {
	*recorded.Name
	pass  int
	place int // the number of the line, over all passes
}

func index(p *recorded.Program) *side {
	s := &side{p: p, of: map[int][]*named{}, constants: map[int][]*named{}}
	line := 0
	for pass := range p.Passes {
		own := map[string]*recorded.Name{}
		for i := range p.Passes[pass].Lines {
			l := &p.Passes[pass].Lines[i]
			line++
			if l.Step != nil {
				for out := range l.Step.Out {
					s.steps = append(s.steps, &made{l.Step, out, pass})
				}
				continue
			}
			own[l.Name.Name] = l.Name
			switch at := l.Name.Of.Index; l.Name.Of.Kind {
			case recorded.ToValue:
				s.of[at] = append(s.of[at], &named{l.Name, pass, line})
			case recorded.ToConstant:
				s.constants[at] = append(s.constants[at], &named{l.Name, pass, line})
			}
		}
		s.names = append(s.names, own)
	}
	return s
}

// sequence are the names of a pass, in order.
func (s *side) sequence(pass int) []string {
	var all []string
	if pass < len(s.names) {
		for i := range s.p.Passes[pass].Lines {
			if n := s.p.Passes[pass].Lines[i].Name; n != nil {
				all = append(all, n.Name)
			}
		}
	}
	return all
}

func (s *side) place(name string, pass int) (*recorded.Name, bool) {
	if pass >= len(s.names) {
		return nil, false
	}
	n, ok := s.names[pass][name]
	return n, ok
}

// input reports whether a name is that of an argument of the model.
func (s *side) input(name string, pass int) bool {
	n, ok := s.place(name, pass)
	return ok && n.Of.Kind == recorded.ToConstant && s.p.Constants[n.Of.Index].Is != ""
}

// source is the line of source that computed what a name shows.
func (s *side) source(n *recorded.Name) string {
	if n.Of.Kind != recorded.ToValue {
		return ""
	}
	if at := s.steps[n.Of.Index].step.Source; at >= 0 {
		return s.p.Sources[at].Line
	}
	return ""
}

// node is a part of a slice: a step, or an end: a named tensor, a weight, a constant, a number.
type node struct {
	text     string // of an end, or of a step: its operation and settings
	id       string // what tells it from all others: a digest for a step
	operands []operand
	result   string // of a step: the dtype and the shape of its result
	step     bool
	op       string
	shape    []int
}

// operand is what a step reads of a node.
type operand struct {
	*node
	view string // which elements, in which shape; empty for all, as they are
	sees string // the view for people
}

// root is a named tensor as a view of its node.
type root struct{ operand }

func (r root) key() string { return r.id + "|" + r.view }

// slicer expands one slice.
type slicer struct {
	*side
	pass   int
	before int // the line of the name that is expanded: no later name ends the slice
	end    func(name string, pass int) bool
	done   map[int]*node // by value
}

// slice is how a named tensor of a pass comes from the ends before it.
func (s *side) slice(n *recorded.Name, pass int, end func(string, int) bool) root {
	x := &slicer{side: s, pass: pass, end: end, done: map[int]*node{}, before: 1 << 60}
	for _, other := range slices.Concat(s.of[n.Of.Index], s.constants[n.Of.Index]) {
		if other.Name == n {
			x.before = other.place
		}
	}
	return root{x.operand(n.Of)}
}

// operand expands what a step reads.
func (x *slicer) operand(r recorded.Ref) operand {
	switch r.Kind {
	case recorded.ToNumber:
		text := number(r.Number)
		return operand{node: &node{text: text, id: "number " + text}}
	case recorded.ToWeight:
		w := x.p.Weights[r.Weight]
		n := weightEnd(w)
		return x.see(n, r, w.Shape, recorded.RowMajor(w.Shape))
	case recorded.ToConstant:
		c := x.p.Constants[r.Index]
		whole := recorded.Value{Shape: c.Shape, Stride: recorded.RowMajor(c.Shape)}
		if o, ok := x.ended(x.constants[r.Index], r, whole, true); ok {
			return o
		}
		return x.see(constantEnd(c), r, c.Shape, whole.Stride)
	case recorded.ToValue:
		return x.value(r)
	}
	return operand{node: &node{text: "nothing", id: "nothing"}}
}

// value expands a step's result: to the named tensor that shows the elements, or else to the step.
func (x *slicer) value(r recorded.Ref) operand {
	m := x.steps[r.Index]
	own := m.step.Out[m.out]
	if o, ok := x.ended(x.of[r.Index], r, own, false); ok {
		return o
	}
	return x.see(x.stepOf(r.Index), r, own.Shape, own.Stride)
}

// ended returns a reference's view of the first named tensor that shows the reference and ends the slice. here asks for names of this pass.
func (x *slicer) ended(names []*named, r recorded.Ref, whole recorded.Value, here bool) (operand, bool) {
	for _, n := range names {
		if n.place >= x.before || here && n.pass != x.pass || !x.end(n.Name.Name, n.pass) {
			continue
		}
		text := n.Name.Name
		if back := x.pass - n.pass; back > 0 {
			text = fmt.Sprintf("%s of %d passes before", text, back)
		}
		end := &node{text: text, id: "tensor " + text}
		if sameView(n.Of, r) {
			return operand{node: end}, true
		}
		if covers(n.Of, whole) {
			return x.see(end, r, n.Of.Shape, n.Of.Stride), true
		}
	}
	return operand{}, false
}

// see is the view of a node whose elements lie in memory by a shape and strides.
func (x *slicer) see(n *node, r recorded.Ref, shape, stride []int) operand {
	if squeezed(r.Shape, r.Stride) == squeezed(shape, stride) && r.Off == 0 {
		return operand{node: n}
	}
	return operand{node: n, view: elements(r, shape, stride), sees: seen(r, shape, stride)}
}

// stepOf is the node of a value's step.
func (x *slicer) stepOf(value int) *node {
	if n := x.done[value]; n != nil {
		return n
	}
	m := x.steps[value]
	n := &node{step: true, op: m.step.Op}
	x.done[value] = n
	for _, in := range m.step.In {
		n.operands = append(n.operands, x.operand(in))
	}
	v := m.step.Out[m.out]
	n.shape = without1(v.Shape)
	n.result = fmt.Sprintf("%s%v", v.DType, n.shape)
	n.text = settings(m.step, v.Shape)
	if len(m.step.Out) > 1 {
		n.text += fmt.Sprintf(" result %d", m.out)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s|%s|%s", m.step.Op, n.text, n.result)
	for _, o := range n.operands {
		fmt.Fprintf(h, "\n%s|%s", o.id, o.view)
	}
	n.id = hex.EncodeToString(h.Sum(nil))
	return n
}

// all are the steps of a slice: each after its operands, the first operand's steps first. The order of execution does not matter.
func (r root) all() []*node {
	seen := map[*node]bool{}
	var steps []*node
	var visit func(*node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if !n.step {
			return
		}
		for _, o := range n.operands {
			visit(o.node)
		}
		steps = append(steps, n)
	}
	visit(r.node)
	return steps
}

// weightEnd is a weight by its tensors in the checkpoint, or by its numbers.
func weightEnd(w *recorded.Weight) *node {
	var what []string
	switch {
	case w.Data != nil:
		return &node{text: w.Name[strings.LastIndexByte(w.Name, '.')+1:], id: "buffer " + w.Data.DType + w.Data.SHA256}
	case w.Lost:
		what = []string{"weight", w.Name}
	case len(w.Rows) > 0:
		what = []string{"weights"}
		for _, t := range w.Rows {
			what = append(what, t.Name)
		}
	default:
		what = []string{"weight", w.File}
		if w.Turned {
			what = append(what, "transposed")
		}
	}
	text := strings.Join(what[1:], " ")
	return &node{text: text, id: strings.Join(what, " ") + " " + w.DType}
}

// constantEnd is a constant by its numbers, or by its part of the input.
func constantEnd(c *recorded.Constant) *node {
	if c.Is != "" {
		return &node{text: c.Is, id: "input " + c.Is + " " + c.DType}
	}
	text := "constant " + c.SHA256[:min(8, len(c.SHA256))]
	if n := c.Numbers; len(n) > 0 && !slices.ContainsFunc(n, func(x float64) bool { return x != n[0] }) {
		text = number(n[0])
	}
	return &node{text: text, id: "constant " + c.DType + " " + c.SHA256}
}

// settings are a step's settings, sorted; axes are counted from the last axis with more than one element.
func settings(s *recorded.Step, out []int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Attr)) {
		v := s.Attr[name]
		switch name {
		case "keepdim": // an axis of one element says nothing
			continue
		case "dim", "dim0", "dim1", "start_dim", "end_dim":
			shape := out
			if len(s.In) > 0 && s.Op != "stack" {
				shape = s.In[0].Shape
			}
			v = axes(v, shape)
		}
		fmt.Fprintf(&b, " %s=%v", name, v)
	}
	return b.String()
}
