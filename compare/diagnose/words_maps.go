package diagnose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// axesOf returns the letters of the entry's axes, if a variable is computed from an input and has as many axes as the entry; empty otherwise.
func axesOf(s *subject, e *Entry, v program.Var) string {
	for _, i := range edit.Ancestors(e.Program, v.Step) {
		if st := &e.Program.Steps[i]; st.Prim == program.Input && st.Index() >= 0 && st.Index() < len(e.Inputs) {
			own := s.m.List.Entries[e.Node.Entry].Axes
			if len(own) == len(v.Shape) {
				return own
			}
		}
	}
	return ""
}

// indexedPart is the mistake of an edit that reads the wrong part of a tensor.
func indexedPart(s *subject, e *Entry, t *edit.StepIndex, d edit.Edit) Mistake {
	if at := d.At[0]; at.Arg == 1 {
		step := t.Copies(at)[0]
		own, _ := t.Gathered(step)
		return Mistake{Kind: "index.part", Of: s.value(e, t.Steps[step].Args[0]), N: int(d.Value), M: int(own)}
	}
	v := t.Part(d)
	m := Mistake{Kind: "index.one", Of: s.value(e, v), N: d.Map.By, M: d.Map.N, K: d.Map.Other}
	axis := "index"
	if steps := t.Copies(d.From); d.From.Step != 0 && len(steps) > 0 {
		m.By = s.step(e, steps[0])
	}
	if in := &t.Steps[v.Step]; in.Prim == program.Input {
		if axes := s.m.List.Entries[e.Inputs[in.Index()].Entry].Axes; len(axes) == len(in.Shape) {
			axis = strings.TrimSuffix(axisWords(axes[d.Map.Axis]), "s")
		}
	}
	switch {
	case m.K <= 1:
		m.Axis = axis
		return m
	case m.N < m.M && m.Of.Before:
		m.Kind = "index.oldest"
	default:
		m.Kind = "index.run"
	}
	m.Axis = plural(axis)
	return m
}

// plural is the word for several indexes of an axis.
func plural(axis string) string {
	if axis == "index" {
		return "indexes"
	}
	return strings.TrimSuffix(axis, "s") + "s"
}

// mappedElements is the mistake of an edit that puts elements into another order.
func mappedElements(s *subject, e *Entry, t *edit.StepIndex, d edit.Edit) Mistake {
	at := d.At[0]
	step := t.Copies(at)[0]
	what, axes := theResult, s.m.List.Entries[e.Node.Entry].Axes
	v := t.Result(step)
	if at.Arg >= 0 {
		v = t.Steps[step].Args[at.Arg]
	}
	if at.Arg == edit.Returned {
		v = t.Out
	} else if in := &t.Steps[v.Step]; in.Prim == program.Input {
		what, axes = s.value(e, v), s.m.List.Entries[e.Inputs[in.Index()].Entry].Axes
	} else {
		what, axes = s.value(e, v), ""
	}
	heads := func(a int) bool { return len(axes) == len(v.Shape) && axisWords(axes[a]) == headsAxis }
	axis := func(a int) string {
		if len(axes) == len(v.Shape) {
			return axisWords(axes[a])
		}
		return strconv.Itoa(a)
	}
	size := func(a int) int { // of an axis, 0 for one that the value does not have
		if a >= len(v.Shape) {
			return 0
		}
		return v.Shape[a]
	}
	m := Mistake{Of: what}
	back := func(kind Kind) Mistake { // the same order is put back in the result
		if m.Kind = kind; d.Back {
			m.Kind += "-and-back"
		}
		return m
	}
	switch o := d.Map; o.Kind {
	case edit.Roll:
		m.N, m.Axis = o.By, axis(o.Axis)
		if 2*o.By == size(o.Axis) && o.By > 2 {
			return back("elements.halves-exchanged")
		}
		return back("elements.rolled")
	case edit.Blocks:
		m.N, m.M, m.K, m.Axis = o.By, o.N, size(o.Axis)/max(o.By*o.N, 1), axis(o.Axis)
		return back("elements.blocks")
	case edit.Reverse:
		m.N, m.Axis = o.By, axis(o.Axis)
		if o.By > 0 {
			return back("elements.blocks-reversed")
		}
		return back("elements.reversed")
	case edit.Unread:
		m.Kind, m.Axis, m.Other = "elements.axes-exchanged", axis(o.Axis), axis(o.Other)
	case edit.Reread:
		m.N, m.Axis, m.Other = o.By, axis(o.Axis), axis(o.Other)
		m.Kind = "memory.axes-exchanged"
		if o.By > 0 {
			m.Kind = "memory.parts-first"
		} else if t.Steps[step].Prim == program.Dot && at.Arg >= 0 {
			return Mistake{Kind: "heads.tiled-operand", Of: what}
		}
	case edit.Flip:
		m.N, m.Axis = o.By, axis(o.Axis)
		if o.By == 2 {
			return back("elements.neighbours-exchanged")
		}
		return back("elements.each-block-reversed")
	case edit.Turn:
		m.N = o.N
		m.Kind = turnKinds[o.By == 1][o.N > 2]
	case edit.Cross:
		m.N, m.M = o.N, o.By
		if m.Kind = "elements.parts-crossed"; o.N == 2 {
			m.Kind = "elements.halves-crossed"
		}
	case edit.First:
		m.Kind, m.N = "heads.one", o.By
		if at.Arg < 0 && !heads(o.Axis) {
			m.Kind, m.Axis = "elements.one-index", axis(o.Axis)
		}
	case edit.Weave:
		return interleaved(t, m, d, heads(o.Axis), axis(o.Axis), size(o.Axis))
	}
	return m
}

// turnsHalves reports whether a program joins a half of a tensor with the negative of the other half, as a rotation does.
func turnsHalves(p *program.Program) bool {
	negative := func(v program.Var) bool {
		return p.Steps[beforeRounding(p, v.Step)].Prim == program.Neg
	}
	return slices.ContainsFunc(p.Steps, func(st program.Step) bool { return st.Prim == program.Cat && slices.ContainsFunc(st.Args, negative) })
}

// turnKinds are the kinds of interleaved parts: by whether the port takes interleaved parts for parts in a row (true) or the reverse, and by whether
// there are more than two parts.
var turnKinds = map[bool]map[bool]Kind{
	true:  {false: "elements.as-halves", true: "elements.as-parts"},
	false: {false: "elements.by-turns-not-halves", true: "elements.by-turns-not-parts"},
}

// interleaved is the mistake of interleaved parts along an axis. axis and size are the name and the size of the axis, and heads says whether the axis
// counts heads.
func interleaved(t *edit.StepIndex, m Mistake, d edit.Edit, heads bool, axis string, size int) Mistake {
	o := d.Map
	switch {
	case d.Back && heads:
		return Mistake{Kind: "heads.tiled-keys", Of: m.Of}
	case d.Back && o.N == 2 && turnsHalves(t.Program):
		return Mistake{Kind: "rope.interleaved"}
	case d.Back:
		m.Kind, m.N, m.Axis = "elements.interleaved-and-back", o.N, axis
	case o.By > 0 && (o.N == o.By/2 || o.N == 2):
		m.Kind, m.N, m.Axis = "elements.blocks-interleaved", o.By, axis
	default:
		if m.Kind = "elements.blocks-by-turns"; o.By == 0 {
			m.Kind = "elements.by-turns"
		}
		m.N, m.M, m.K, m.Axis = o.N, cmp.Or(o.By, size)/max(o.N, 1), o.By, axis
	}
	return m
}

// shiftedStep is the mistake of a step that is applied to another value, earlier or later.
func shiftedStep(s *subject, e *Entry, t *edit.StepIndex, d edit.Edit) Mistake {
	step := t.Copies(d.At[0])[0]
	m := Mistake{Kind: "order.earlier", Of: s.step(e, step), By: s.value(e, t.At(d.From)), For: s.value(e, t.Steps[step].Args[d.At[0].Arg])}
	if d.Map.By == 1 {
		m.Kind = "order.later"
	}
	return m
}

// axisWords says what an axis counts, in the plural.
func axisWords(a byte) string {
	switch a {
	case 't':
		return "tokens"
	case 'h':
		return "heads"
	case 's':
		return "keys"
	case 'b':
		return "batch"
	case 'a':
		return "streams"
	case 'l':
		return "layers"
	case 'v':
		return "vocabulary"
	}
	return "channels"
}

// headsAxis is what an axis of heads counts.
const headsAxis = "heads"
