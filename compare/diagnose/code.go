package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/recorded"
)

// Code is a place in the source of a recorded model. The zero value is no place: the operation was not recorded.
type Code struct {
	// Operation is torch's name for what the place calls: "softmax".
	Operation string `json:"operation,omitempty"`
	// Line is the line of source, and Expression is the code there: "hidden_states * scale". Each is empty if not known.
	Line       string `json:"line,omitempty"`
	Expression string `json:"expression,omitempty"`
	// Within is the step within the operation, in words: "the division". It is empty for the result of the operation.
	Within string `json:"within,omitempty"`
}

// sourced has the places in the source of a recorded model for the steps of an entry's program.
type sourced struct {
	ops   []Code // of the operations of the cut, in their order
	inner []bool // by step: another step of the same operation reads it
}

// codeOf is the place of a step of an entry's program in the source of a recorded model.
func codeOf(s *subject, e *Entry, step int) Code {
	if e.sourced == nil {
		e.sourced = newSourced(s.m, e)
	}
	st, at := &e.Program.Steps[step], e.Program.Steps[step].Part
	if len(e.sourced.ops) == 1 {
		at = 1
	}
	switch st.Prim {
	case program.Input, program.Weight, program.Matrix, program.Dense:
		return Code{}
	}
	if at < 1 || at > len(e.sourced.ops) {
		return Code{}
	}
	c := e.sourced.ops[at-1]
	if e.sourced.inner[step] || st.Prim == program.Number || st.Prim == program.Vector {
		c.Within = innerWords(st)
	}
	return c
}

// newSourced lists the operations of an entry's cut. The list is empty if the model was not recorded.
func newSourced(m *Model, e *Entry) *sourced {
	c := &sourced{}
	cut, err := m.List.Cut(func(n order.Node) bool { return slices.Contains(e.Inputs, n) }, e.Node)
	if err != nil { // the entry was not made of this list
		return c
	}
	for _, n := range cut.Steps {
		at := m.List.At(n)
		code := Code{Line: at.Line, Expression: at.Expression}
		switch o := at.Op.(type) {
		case recorded.Op:
			code.Operation = o.Name
		case recorded.Seen, recorded.Constants:
			code.Operation = o.Kind()
		default:
			return &sourced{}
		}
		c.ops = append(c.ops, code)
	}
	p := e.Program
	c.inner = make([]bool, len(p.Steps))
	for i, st := range slices.Backward(p.Steps) {
		hands := (st.Prim == program.Round || st.Prim == program.Copy) && !c.inner[i]
		for _, a := range st.Args {
			if k := a.Step; !hands && (len(c.ops) == 1 || p.Steps[k].Part == st.Part) {
				c.inner[k] = true
			}
		}
	}
	return c
}

// withCode adds the place in the source of a recorded model to a mistake whose place is a step. If several steps have the name and the edit does not tell
// which step is meant, only the operation is added.
func withCode(s *subject, e *Entry, m Mistake) Mistake {
	if !strings.Contains(m.Place, ".") {
		return m
	}
	at := func(i int) bool { return s.site(e, i) == m.Place }
	var steps []int
	if d, err := edit.ParseEdit(m.Edit); err == nil && m.Edit != "" {
		for _, place := range d.At {
			steps = append(steps, e.signed(s.m).Copies(place)...)
		}
	}
	if steps = slices.DeleteFunc(steps, func(i int) bool { return !at(i) }); len(steps) == 0 {
		for i := range e.Program.Steps {
			if at(i) {
				steps = append(steps, i)
			}
		}
	}
	for k, i := range steps {
		c := codeOf(s, e, i)
		if k > 0 && c != m.Code { // several steps are possible: only the operation is known
			c = Code{Operation: c.Operation}
		}
		m.Code = c
	}
	if of, ok := strings.CutPrefix(m.Place, m.Code.Operation+"."); ok && m.Of.Kind == AName && m.Of.Name == of {
		m.Of.Code = m.Code
	}
	return m
}

// isUnnamed reports whether a tensor is a step of a recorded program for which the model has no name.
func isUnnamed(s *subject, name string) bool {
	at := s.m.List.Index(name)
	return at >= 0 && s.m.List.Entries[at].Level == recorded.Unnamed
}

// same reports whether two terms are equal, apart from their places in the source.
func (t Term) same(other Term) bool {
	t.Code, other.Code = Code{}, Code{}
	return t == other
}
