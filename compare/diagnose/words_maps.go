package diagnose

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// axesOf are the letters of the axes of what a step reads, where it is computed by element from an input.
func (s *search) axesOf(e *Entry, v program.Var) string {
	for _, i := range e.Program.Ancestors(e.Program.Source(v)) {
		if st := &e.Program.Steps[i]; st.Prim == program.Input && st.Index >= 0 && st.Index < len(e.Inputs) {
			own := s.m.List.Entries[e.Node.Entry].Axes
			if len(own) == len(v.Shape()) {
				return own
			}
		}
	}
	return ""
}

// indexed says which part of a tensor is read.
func (s *search) indexed(e *Entry, t *program.Parts, d program.Edit) (text string) {
	if at := d.At[0]; at.Arg == 1 {
		step := t.Copies(at)[0]
		own, _ := t.Gathered(step)
		return fmt.Sprintf("takes part %g of %s, not part %g", d.Value, s.value(e, t.Steps[step].Args[0]), own)
	}
	v := t.Part(d)
	what, axis := s.value(e, v), "index"
	if steps := t.Copies(d.From); d.From.Step != 0 && len(steps) > 0 {
		defer func() { text = s.step(e, steps[0]) + " " + text }()
	}
	if in := &t.Steps[t.Source(v)]; in.Prim == program.Input {
		if axes := s.m.List.Entries[e.Inputs[in.Index].Entry].Axes; len(axes) == len(in.Shape) {
			axis = strings.TrimSuffix(axisWords(axes[d.Map.Axis]), "s")
		}
	}
	if size := d.Map.Other; size > 1 && d.Map.By < d.Map.N && strings.HasSuffix(what, " of the pass before") {
		return fmt.Sprintf("keeps %s %d to %d of %s, not %d to %d: the cache keeps the oldest, not the newest", plural(axis), d.Map.By, d.Map.By+size-1, what, d.Map.N, d.Map.N+size-1)
	} else if size > 1 {
		return fmt.Sprintf("reads %s %d to %d of %s, not %d to %d", plural(axis), d.Map.By, d.Map.By+size-1, what, d.Map.N, d.Map.N+size-1)
	}
	return fmt.Sprintf("reads %s %d of %s, not %d", axis, d.Map.By, what, d.Map.N)
}

// plural is the word for several indexes of an axis.
func plural(axis string) string {
	if axis == "index" {
		return "indexes"
	}
	return strings.TrimSuffix(axis, "s") + "s"
}

// mapped says in which order elements are.
func (s *search) mapped(e *Entry, t *program.Parts, d program.Edit) string {
	at := d.At[0]
	step := t.Copies(at)[0]
	what, axes := "the result", s.m.List.Entries[e.Node.Entry].Axes
	v := t.Result(step)
	if at.Arg >= 0 {
		v = t.Steps[step].Args[at.Arg]
	}
	if at.Arg == program.Returned {
		v = t.Out
	} else if in := &t.Steps[t.Source(v)]; in.Prim == program.Input {
		what, axes = s.value(e, v), s.m.List.Entries[e.Inputs[in.Index].Entry].Axes
	} else {
		what, axes = s.value(e, v), ""
	}
	axis := func(a int) string {
		if len(axes) == len(v.Shape()) {
			return "its " + axisWords(axes[a])
		}
		return fmt.Sprintf("axis %d", a)
	}
	m := d.Map
	how := ""
	switch m.Kind {
	case program.Roll:
		how = fmt.Sprintf("is moved by %d along %s", m.By, axis(m.Axis))
		if m.Axis < len(v.Shape()) && 2*m.By == v.Shape()[m.Axis] && m.By > 2 {
			how = fmt.Sprintf("has the halves of %s exchanged", axis(m.Axis))
		}
		if d.Back {
			how += ", and so is the result"
		}
	case program.Blocks:
		n := 0
		if m.Axis < len(v.Shape()) {
			n = v.Shape()[m.Axis] / max(m.By*m.N, 1)
		}
		how = fmt.Sprintf("has %s in another order: its blocks of %d, such as those of heads, are read as [%d, %d] with its axes exchanged", axis(m.Axis), m.By, n, m.N)
		if d.Back {
			how += ", and so is the result"
		}
	case program.Reverse:
		how = fmt.Sprintf("is reversed along %s", axis(m.Axis))
		if m.By > 0 {
			how = fmt.Sprintf("has %s in another order: its blocks of %d, such as those of heads, are in reverse", axis(m.Axis), m.By)
		}
		if d.Back {
			how += ", and so is the result"
		}
	case program.Unread:
		how = fmt.Sprintf("is read with %s and %s exchanged", axis(m.Axis), axis(m.Other))
	case program.Reread:
		if m.By > 0 {
			how = fmt.Sprintf("is not transposed back: parts of %d of %s come before %s in memory", m.By, axis(m.Other), axis(m.Axis))
			break
		}
		how = fmt.Sprintf("has %s and %s in the wrong order in memory", axis(m.Axis), axis(m.Other))
		if st := &t.Steps[step]; st.Prim == program.Dot && at.Arg >= 0 {
			return fmt.Sprintf("the heads of %s are tiled, not repeated: query head h reads head h mod n, not h / n", what)
		}
	case program.Flip:
		how = fmt.Sprintf("has %s in another order: each block of %d is in reverse", axis(m.Axis), m.By)
		if m.By == 2 {
			how = fmt.Sprintf("has %s in another order: neighbours are exchanged", axis(m.Axis))
		}
	case program.Turn:
		parts := "halves"
		if m.N > 2 {
			parts = fmt.Sprintf("%d parts", m.N)
		}
		if m.By == 1 {
			return fmt.Sprintf("%s is read as %s, not by turns", what, parts)
		}
		return fmt.Sprintf("%s is read by turns, not as %s", what, parts)
	case program.Cross:
		if m.N == 2 {
			return fmt.Sprintf("the halves of %s are each read in the other's place: an exchange of halves is left out, or is one too many", what)
		}
		return fmt.Sprintf("the %d parts of %s, where they are read apart, are each another: by %d", m.N, what, m.By)
	case program.First:
		if at.Arg < 0 && axis(m.Axis) != "its heads" {
			return fmt.Sprintf("%s is read at index %d of %s for all of them", what, m.By, axis(m.Axis))
		}
		return fmt.Sprintf("every query head reads head %d of %s", m.By, what)
	case program.Weave:
		switch {
		case d.Back && axis(m.Axis) == "its heads":
			return fmt.Sprintf("the heads of %s are tiled, not repeated: query head h goes with key head h mod n, not h / n", what)
		case d.Back && m.N == 2:
			return "neighbours are paired, not halves: element 2j goes with 2j+1"
		case d.Back:
			how = fmt.Sprintf("is read in the order of %d interleaved parts along %s, and so is the result", m.N, axis(m.Axis))
		case m.By > 0 && (m.N == m.By/2 || m.N == 2):
			how = fmt.Sprintf("has %s in another order: in each block of %d, halves are interleaved or neighbours set apart", axis(m.Axis), m.By)
		default:
			n := m.By
			if n == 0 && m.Axis < len(v.Shape()) {
				n = v.Shape()[m.Axis]
			}
			how = fmt.Sprintf("has %s in another order: %s read as %d parts, by turns: [%d, %d] with its axes exchanged", axis(m.Axis), blockWords(m), m.N, m.N, n/max(m.N, 1))
		}
	}
	return what + " " + how
}

// shifted says of what a step is taken.
func (s *search) shifted(e *Entry, t *program.Parts, d program.Edit) string {
	step := t.Copies(d.At[0])[0]
	of, own := s.value(e, t.At(d.From)), s.value(e, t.Steps[step].Args[d.At[0].Arg])
	when := "earlier"
	if d.Map.By == 1 {
		when = "later"
	}
	return fmt.Sprintf("%s is taken %s: of %s, not of %s", s.step(e, step), when, of, own)
}

func blockWords(m program.Map) string {
	if m.By == 0 {
		return "all"
	}
	return fmt.Sprintf("each block of %d", m.By)
}
