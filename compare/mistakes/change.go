package mistakes

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// spot is one entry of a cut, whose steps are edited.
type spot struct {
	*program.Editor
	*order.Part
	m     *Model
	p     *program.Program
	call  program.Call
	entry *order.Entry
	last  bool
}

// change edits the steps of an entry; it reports whether there is something to edit.
type change func(s *spot) bool

// shape is that of the entry's result.
func (s *spot) shape() []int { return s.Out.Shape() }

// put makes the result another one, of as many elements.
func (s *spot) put(v program.Var) bool {
	if product(v.Shape()) != product(s.shape()) {
		return false
	}
	if s.last {
		s.Return(s.Reshape(s.Held(v), s.shape()...))
		return true
	}
	step := s.p.Source(s.Out)
	s.Pass(step, s.Reshape(s.Held(v), s.p.Steps[step].Shape...))
	return true
}

// own is the result as it was, for a result that is computed from it: not to be used after [spot.put].
func (s *spot) own() program.Var {
	if s.last {
		return s.Out
	}
	return s.Reshape(s.Move(s.p.Source(s.Out)), s.shape()...)
}

// given is the value of an input that is captured.
func (s *spot) given(k int) (program.Value, bool) {
	if k >= len(s.In) {
		return program.Value{}, false
	}
	st := &s.p.Steps[s.p.Source(s.In[k])]
	if st.Prim != program.Input {
		return program.Value{}, false
	}
	return s.call.In[st.Index], true
}

// reads makes the steps read something in place of an input.
func (s *spot) reads(k int, v program.Var) bool {
	if k >= len(s.In) || !slices.Equal(v.Shape(), s.In[k].Shape()) {
		return false
	}
	return s.Redirect(s.From, s.To, s.In[k], s.Held(v))
}

// captured is another captured tensor of the entry's layer and pass, or of a pass before.
func (s *spot) captured(name string, back int) (program.Var, bool) {
	if s.entry.Layer >= 0 {
		name = layer(s.entry.Name) + name
	}
	n := order.Node{Entry: s.m.List.Index(name), Pass: s.Node.Pass - back}
	if n.Entry < 0 || n.Pass < 0 {
		return program.Var{}, false
	}
	v, ok := s.m.Read(n)
	if !ok {
		return program.Var{}, false
	}
	return s.Other(v), true
}

// pass is that of the entry.
func (s *spot) pass() order.Pass { return s.m.Passes[s.Node.Pass] }

// layer is the beginning of a name in a layer.
func layer(name string) string {
	parts := strings.SplitN(name, ".", 3)
	return parts[0] + "." + parts[1] + "."
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// steps lists the entry's steps of a name.
func (s *spot) steps(site string) []int {
	var all []int
	for i := s.From; i < s.To; i++ {
		if s.p.Steps[i].Site == site {
			all = append(all, i)
		}
	}
	return all
}

// The changes, which are the same for all operations.

// number makes a number of a step another one.
func number(site string, to func(s *spot, old float64) float64) change {
	return func(s *spot) bool {
		some := false
		for _, i := range s.steps(site) {
			if s.p.Steps[i].Prim == program.Number {
				s.SetNumber(i, to(s, s.p.Steps[i].Value))
				some = true
			}
		}
		return some
	}
}

// is is another number, whatever it was.
func is(x float64) func(*spot, float64) float64 { return func(*spot, float64) float64 { return x } }

// as makes a step another primitive of the same operands.
func as(site string, prim program.Prim) change {
	return func(s *spot) bool {
		all := s.steps(site)
		for _, i := range all {
			s.Become(i, prim, s.p.Steps[i].Args...)
		}
		return len(all) > 0
	}
}

// skipped makes a step hand an operand on.
func skipped(site string, arg int) change {
	return func(s *spot) bool {
		all := s.steps(site)
		for _, i := range all {
			s.Editor.Pass(i, s.p.Steps[i].Args[arg])
		}
		return len(all) > 0
	}
}

// leftOut makes the result an input.
func leftOut(k int) change {
	return func(s *spot) bool { return k < len(s.In) && s.put(s.In[k]) }
}

// result makes the result a function of itself; it is not rounded before.
func result(f func(s *spot, v program.Var) (program.Var, bool)) change {
	return func(s *spot) bool {
		v, ok := f(s, s.own())
		return ok && s.put(v)
	}
}

// times multiplies the rounded result.
func times(c func(s *spot) float64) change {
	return result(func(s *spot, v program.Var) (program.Var, bool) {
		return s.Mul("", s.Rounded(v), s.Literal(c(s))), true
	})
}

// twice takes the operation of its own rounded result.
func twice(s *spot) bool {
	if len(s.In) == 0 || product(s.In[0].Shape()) != product(s.shape()) {
		return false
	}
	once := s.Held(s.Reshape(s.Held(s.Rounded(s.own())), s.In[0].Shape()...))
	v, ok := s.Again(s.From, s.To, s.In[0], once, s.Out)
	return ok && s.put(v)
}

// input makes the steps read a function of an input.
func input(k int, f func(s *spot, v program.Var) (program.Var, bool)) change {
	return func(s *spot) bool {
		if k >= len(s.In) {
			return false
		}
		v, ok := f(s, s.In[k])
		return ok && s.reads(k, v)
	}
}

// inputIs makes the steps read another captured tensor of the layer in place of an input.
func inputIs(k int, name string) change {
	return func(s *spot) bool {
		v, ok := s.captured(name, 0)
		return ok && k < len(s.In) && product(v.Shape()) == product(s.In[k].Shape()) && s.reads(k, s.Reshape(v, s.In[k].Shape()...))
	}
}

// mapped puts the elements of an input in another order, and those of the result back.
func mapped(k int, m func(s *spot) program.Map, back func(s *spot) program.Map) change {
	return func(s *spot) bool {
		if k >= len(s.In) {
			return false
		}
		v, ok := s.Mapped(s.In[k], m(s))
		if !ok || !s.reads(k, s.Reshape(v, s.In[k].Shape()...)) {
			return false
		}
		if back == nil {
			return true
		}
		own := s.own()
		w, ok := s.Mapped(own, back(s).Inverse(own.Shape()))
		return ok && s.put(w)
	}
}

// operation makes the entry another operation of the same inputs, which needs no weight.
func operation(o func(s *spot) op.Op) change {
	return func(s *spot) bool {
		other := o(s)
		if other == nil {
			return false
		}
		s.Shape = s.shape()
		return s.put(s.Insert(other, s.In...))
	}
}

// SomeRows is a weight of which some rows are computed with alone: a change is one of the whole weight.
type SomeRows interface {
	All() program.Rows
	Of(all program.Rows) program.Rows
}

// weight changes a weight.
func weight(k int, f func(s *spot, w program.Rows) program.Rows) change {
	return func(s *spot) bool {
		if k >= len(s.W) {
			return false
		}
		step := s.p.Source(s.W[k])
		own := s.call.W[s.p.Steps[step].Index]
		some, ok := own.(SomeRows)
		if ok {
			own = some.All()
		}
		w := f(s, own)
		if w == nil {
			return false
		}
		if ok {
			w = some.Of(w)
		}
		s.OtherWeight(step, w)
		return true
	}
}

// weightOf takes the weight of another name, of the same shape; the name is made of the entry's layer.
func weightOf(name func(s *spot, own string) string) change {
	return weight(0, func(s *spot, own program.Rows) program.Rows {
		w := s.entry.Weights[0]
		other := name(s, w.Name)
		if other == w.Name || !slices.ContainsFunc(s.m.List.Weights(), func(o order.Weight) bool { return o.Name == other && slices.Equal(o.Shape, w.Shape) }) {
			return nil
		}
		rows, err := s.m.Weights(order.Weight{Name: other, Shape: w.Shape})
		if err != nil {
			return nil
		}
		return rows
	})
}

// beside is a weight of the entry's layer.
func beside(module string) func(*spot, string) string {
	return func(s *spot, _ string) string { return layer(s.entry.Name) + module + ".weight" }
}

// nextLayer is the same weight of the next layer, and of the last the first.
func nextLayer(s *spot, own string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(own, "layers."), ".")
	return "layers." + strconv.Itoa((s.entry.Layer+1)%s.m.List.Config.NumLayers) + "." + rest
}

// decoding does something in the passes after the first alone.
func decoding(c change) change {
	return func(s *spot) bool { return s.Node.Pass > 0 && c(s) }
}

// row is a weight whose rows are changed as they are read.
type row struct {
	program.Rows
	change func(i int, x []float64)
}

func (w row) Row(dst []float64, i int) error {
	err := w.Rows.Row(dst, i)
	w.change(i, dst)
	return err
}

// each changes the elements of a weight, which is stored in the model's dtype if stored.
func each(stored bool, f func(s *spot, x float64) float64) change {
	return weight(0, func(s *spot, w program.Rows) program.Rows {
		d := hooks.F32
		if stored {
			d = s.m.DType
		}
		return row{w, func(_ int, x []float64) {
			for k := range x {
				x[k] = floats.Round(d, f(s, x[k]))
			}
		}}
	})
}

// reordered is a weight with its rows in another order.
type reordered struct {
	program.Rows
	at func(i int) int
}

func (w reordered) Row(dst []float64, i int) error { return w.Rows.Row(dst, w.at(i)) }

func rowsAt(at func(s *spot, i, n int) int) change {
	return weight(0, func(s *spot, w program.Rows) program.Rows {
		n, _ := w.Size()
		return reordered{w, func(i int) int { return at(s, i, n) }}
	})
}

// transposed is a square weight, column by column.
type transposed struct{ program.Rows }

func (w transposed) Row(dst []float64, i int) error {
	all := make([]float64, len(dst))
	for k := range dst {
		if err := w.Rows.Row(all, k); err != nil {
			return err
		}
		dst[k] = all[i]
	}
	return nil
}

// quantised rounds each group of a row to whole numbers up to most times a step of its own; 0 is the whole row.
func quantised(s *spot, w program.Rows, group int, most float64) program.Rows {
	_, n := w.Size()
	if group == 0 || n%group != 0 {
		group = n
	}
	return row{w, func(_ int, x []float64) {
		for at := 0; at < n; at += group {
			narrow(s.m.DType, x[at:at+group], most)
		}
	}}
}

// narrow rounds numbers to whole multiples of a step, up to most of them.
func narrow(d hooks.DType, x []float64, most float64) {
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	if step := top / most; step > 0 {
		for i, v := range x {
			x[i] = floats.Round(d, math.RoundToEven(v/step)*step)
		}
	}
}
