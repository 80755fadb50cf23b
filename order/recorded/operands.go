package recorded

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// found is an operand, the name of its source for [Op.Of], and the reason if nothing is known of the operand.
type found struct {
	operand
	of, lost string
}

// ref finds an operand, and adds what it reads to the entry's inputs and weights.
func (x *expander) ref(e *Entry, r Ref) found {
	f := found{operand: operand{layout: layout{atLeastOne(r.Shape), atLeastOne(r.Stride), r.Off}, scalar: len(r.Shape) == 0}}
	switch r.Kind {
	case ToNumber:
		f.source, f.number, f.of = fromNumber, r.Number, "number"
	case ToValue:
		x.fromValue(&f, e, r)
	case ToWeight:
		x.fromWeight(&f, e, x.p.Weights[r.Weight])
	case ToConstant:
		x.fromConstant(&f, e, r)
	default:
		f.source, f.of = fromNone, "nothing"
	}
	return f
}

// reads is the number of an input of an entry.
func (e *Entry) reads(in Input) int {
	if i := slices.Index(e.Inputs, in); i >= 0 {
		return i
	}
	e.Inputs = append(e.Inputs, in)
	return len(e.Inputs) - 1
}

// weight is the number of a checkpoint tensor of an entry.
func (e *Entry) weight(t Tensor) int {
	if i := slices.IndexFunc(e.Weights, func(o Tensor) bool { return o.Name == t.Name }); i >= 0 {
		return i
	}
	e.Weights = append(e.Weights, t)
	return len(e.Weights) - 1
}

func (x *expander) fromValue(f *found, e *Entry, r Ref) {
	rep := x.reps[r.Index]
	f.source, f.of = fromInput, rep.of
	f.dtype, _ = hooks.ParseDType(x.valueOf(r.Index).DType)
	if name, ok := rep.parts[key(r)]; ok && rep.pass == x.i { // just what another entry shows
		f.index, f.of = e.reads(Input{Name: name}), "input"
		f.layout = layout{f.shape, RowMajor(f.shape), 0}
		return
	}
	f.index = e.reads(Input{rep.name, x.i - rep.pass})
	f.axes, f.entry = rep.axes, rep.view
}

func (x *expander) fromWeight(f *found, e *Entry, w *Weight) {
	f.source, f.of = fromWeight, "weight"
	d, err := hooks.ParseDType(w.DType)
	f.dtype = d
	switch {
	case w.Data != nil:
		f.source, f.data, f.of = fromConst, w.Data, "constant"
		return
	case err != nil || !d.Float():
		f.lost = fmt.Sprintf("%s is of dtype %s", w.Name, w.DType)
		return
	case w.Lost:
		f.lost = w.Name + " is not a tensor of the checkpoint"
		return
	}
	tensor := Tensor{Name: w.File, Shape: w.Shape, DType: x.dtype(w.DType)}
	if w.Turned {
		if len(w.Shape) != 2 {
			f.lost = w.Name + " has no transpose"
			return
		}
		f.turned, tensor.Shape = true, []int{w.Shape[1], w.Shape[0]}
	}
	for k, t := range w.Rows {
		t.DType = tensor.DType
		if i := e.weight(t); k == 0 {
			f.index = i
		} else {
			f.more = append(f.more, i)
		}
	}
	if len(w.Rows) == 0 {
		f.index = e.weight(tensor)
	}
}

// given is the entry that represents a constant in a pass: it shows the whole constant.
type given struct {
	name string
	view *layout
	axes []int
}

func (x *expander) fromConstant(f *found, e *Entry, r Ref) {
	c := x.p.Constants[r.Index]
	f.dtype, _ = hooks.ParseDType(c.DType)
	if g, ok := x.consts[r.Index]; ok {
		f.source, f.of, f.index = fromInput, "input", e.reads(Input{Name: g.name})
		f.axes, f.entry = g.axes, g.view
		return
	}
	if g := x.same(c); g != "" {
		f.source, f.of, f.index = fromInput, "input", e.reads(Input{Name: g})
		return
	}
	if c.Numbers == nil && program.Size(c.Shape) > 0 {
		f.lost = "the token ids of the pass have no name"
		return
	}
	f.source, f.of, f.data = fromConst, "constant", c
}

// same is the argument of the pass whose numbers a constant has, in whatever dtype and shape: its token ids or positions.
func (x *expander) same(c *Constant) string {
	for name, own := range x.arguments {
		if program.Size(own.Shape) != program.Size(c.Shape) {
			continue
		}
		if own.Is == InputIDs && c.Is == InputIDs || own.Is != InputIDs && name == positionIDs && slices.Equal(own.Numbers, c.Numbers) {
			return name
		}
	}
	return ""
}

// atLeastOne returns a shape with at least one axis: [1] for a tensor without axes in torch.
func atLeastOne(shape []int) []int {
	if len(shape) == 0 {
		return []int{1}
	}
	return shape
}
