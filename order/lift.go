package order

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// maxLifted bounds the work of finding out what an entry of a recorded program is.
const maxLifted = 1 << 24

// Lift is a named entry of a recorded program as one known operation on the nearest entries with names: a norm with its epsilon and its
// gain in place of the steps that it was recorded as. The constants are numbers of the steps. An operation is the entry's if it has
// every element of the steps on drawn inputs and weights of the entry's sizes: to the bit in the arithmetic of the model, so that one
// which rounds elsewhere is another, and in float64. The steps are what is judged by; the operation is for people. ok is false where
// none is known.
func (l *List) Lift(n Node) (e *Entry, ok bool) {
	if l.passes == nil || !l.In(n) || l.unnamed(n.Entry) {
		return nil, false
	}
	cut, err := l.Cut(func(m Node) bool { return !l.unnamed(m.Entry) }, n)
	if err != nil {
		return nil, false
	}
	model, err := hooks.ParseDType(l.Config.DType)
	if err != nil {
		return nil, false
	}
	f, err := cut.formula(make([]Pass, len(l.passes)), model, 0, nil)
	if err != nil || f.Work() > maxLifted || len(f.Inputs) == 0 || len(f.Inputs) > 3 || len(f.Weights) > 2 {
		return nil, false
	}
	t := &lifting{list: l, f: f, entry: l.At(n), model: model}
	if !t.entry.DTypeOf(model).Float() || !t.draw() {
		return nil, false
	}
	for _, o := range t.known() {
		for _, in := range orders(len(f.Inputs)) {
			for _, w := range orders(len(f.Weights)) {
				if t.is(o, in, w) {
					return t.as(n, o, in, w), true
				}
			}
		}
	}
	return nil, false
}

// as is the entry with another operation, on inputs and weights in an order.
func (t *lifting) as(n Node, o op.Op, inputs, weights []int) *Entry {
	e := *t.entry
	e.Op, e.Inputs, e.Weights = o, nil, nil
	for _, k := range weights {
		e.Weights = append(e.Weights, t.f.Weights[k])
	}
	for _, k := range inputs {
		in := t.f.Inputs[k]
		back := n.Pass - in.Pass
		e.Inputs = append(e.Inputs, Ref{Name: t.list.At(in).Name, Prev: back > 0, Back: max(back-1, 0)})
	}
	return &e
}

// lifting is one entry that is looked at.
type lifting struct {
	list  *List
	f     *Formula
	entry *Entry
	model hooks.DType
	calls []program.Call // on drawn numbers
	want  [][]float64    // of the steps
}

// draw evaluates the steps on drawn numbers.
func (t *lifting) draw() bool {
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 17))
		c := program.Call{Shape: t.f.Out.Shape()}
		for _, in := range t.f.Inputs {
			e := t.list.At(in)
			d := e.DTypeOf(t.model)
			v := program.Value{Shape: t.list.Size(in, make([]Pass, len(t.list.passes)))}
			if n := size(v.Shape); d == hooks.Bool || n > maxLifted || n == 0 {
				return false
			}
			indexes := 0
			if !d.Float() {
				if indexes = t.indexes(); indexes == 0 {
					return false
				}
			}
			for range size(v.Shape) {
				if indexes > 0 {
					v.Data = append(v.Data, float64(r.IntN(indexes)))
				} else {
					v.Data = append(v.Data, floats.Round(d, r.NormFloat64()))
				}
			}
			c.In = append(c.In, v)
		}
		for _, w := range t.f.Weights {
			n := rowsOf(w.Shape)
			if n[0]*n[1] > maxLifted {
				return false
			}
			m := drawnRows{n: n}
			for range n[0] * n[1] {
				m.data = append(m.data, floats.Round(t.model, r.NormFloat64()))
			}
			c.W = append(c.W, m)
		}
		for _, emulated := range []bool{false, true} {
			c.Arith = program.Arith{DType: t.model, Emulated: emulated}
			v, err := t.f.Eval(c)
			if err != nil {
				return false
			}
			c.Arith.Round(v, t.entry.DTypeOf(t.model))
			t.calls, t.want = append(t.calls, c), append(t.want, v.Data)
		}
	}
	return true
}

// indexes is how many elements an input of whole numbers may be the indexes of: the rows of the first weight, or the last axis of the first
// input of floating-point numbers; 0 where there is neither.
func (t *lifting) indexes() int {
	if len(t.f.Weights) > 0 {
		return rowsOf(t.f.Weights[0].Shape)[0]
	}
	for _, in := range t.f.Inputs {
		if shape := t.list.Size(in, make([]Pass, len(t.list.passes))); t.list.At(in).DTypeOf(t.model).Float() && len(shape) > 0 {
			return shape[len(shape)-1]
		}
	}
	return 0
}

// is reports whether an operation has every element of the steps, its inputs and weights being those of the steps in an
// order.
func (t *lifting) is(o op.Op, inputs, weights []int) bool {
	var in [][]int
	var w [][2]int
	for _, k := range inputs {
		in = append(in, t.calls[0].In[k].Shape)
	}
	for _, k := range weights {
		w = append(w, rowsOf(t.f.Weights[k].Shape))
	}
	p, err := program.Of(o, program.Op.Kind, 0, t.calls[0].Shape, in, w)
	if err != nil {
		return false
	}
	for i, c := range t.calls {
		all, rows := c.In, c.W
		c.In, c.W = nil, nil
		for _, k := range inputs {
			c.In = append(c.In, all[k])
		}
		for _, k := range weights {
			c.W = append(c.W, rows[k])
		}
		v, err := p.Eval(c)
		if err != nil || len(v.Data) != len(t.want[i]) {
			return false
		}
		c.Arith.Round(v, t.entry.DTypeOf(t.model))
		if !slices.EqualFunc(v.Data, t.want[i], func(x, y float64) bool { return c.Arith.Emulated && x == y || !c.Arith.Emulated && near(x, y) }) {
			return false
		}
	}
	return true
}

// near reports whether two results of float64 are those of one formula: sums of it may be taken in other blocks.
func near(x, y float64) bool { return x == y || math.Abs(x-y) <= 1e-11*(math.Abs(x)+math.Abs(y)+1e-3) }

// known are operations of as many inputs and weights, with the numbers of the steps as their constants.
func (t *lifting) known() []op.Op {
	var numbers []float64
	for i := range t.f.Steps {
		if s := &t.f.Steps[i]; s.Prim == program.Number && !slices.Contains(numbers, s.Value) {
			numbers = append(numbers, s.Value)
		}
	}
	var all []op.Op
	with := func(make func(x float64) op.Op) {
		for _, x := range numbers {
			all = append(all, make(x))
		}
	}
	switch [2]int{len(t.f.Inputs), len(t.f.Weights)} {
	case [2]int{1, 0}:
		all = append(all, op.Softmax{}, op.SiLU{}, op.GELU{}, op.GELUTanh{}, op.Tanh{}, op.Identity{})
		with(func(x float64) op.Op { return op.RMSNorm{Eps: x, Gain: op.NoScale} })
		with(func(x float64) op.Op { return op.Softcap{Cap: x} })
		with(func(x float64) op.Op { return op.Scale{By: op.Const{Value: x}} })
		all = append(all, op.Cache{Transpose: true})
	case [2]int{1, 1}:
		all = append(all, op.Linear{}, op.Lookup{Rows: rowsOf(t.f.Weights[0].Shape)[0]})
		with(func(x float64) op.Op { return op.LayerNorm{Eps: x} })
		for _, gain := range []op.Gain{op.Plain, op.After, op.OnePlus} {
			with(func(x float64) op.Op { return op.RMSNorm{Eps: x, Gain: gain} })
		}
	case [2]int{1, 2}:
		all = append(all, op.Linear{Bias: true})
		with(func(x float64) op.Op { return op.LayerNorm{Eps: x, Bias: true} })
	case [2]int{2, 0}:
		all = append(all, op.Add{}, op.Mul{}, op.Sub{}, op.Context{})
		with(func(x float64) op.Op { return op.Scores{Scale: x} })
		all = append(all, op.Gating{Half: 0}, op.Gating{Half: 1}, op.Cache{}, op.Cache{Transpose: true})
		if slices.ContainsFunc(t.f.Inputs, func(in Node) bool { return !t.list.At(in).DTypeOf(t.model).Float() }) {
			all = append(all, routings(numbers)...)
		}
	case [2]int{2, 1}:
		with(func(x float64) op.Op { return op.GatedNorm{Eps: x} })
	case [2]int{3, 0}:
		all = append(all, op.RoPE{})
	}
	return all
}

// routings are the weights of experts, with these numbers as constants.
func routings(numbers []float64) (all []op.Op) {
	for _, score := range []op.Score{op.OfAll, op.OfChosen, op.Sigmoid} {
		for _, scale := range append([]float64{0}, numbers...) {
			all = append(all, op.Routing{Score: score, Scale: scale})
			for _, eps := range append(slices.Clone(numbers), 0) { // a small one changes no drawn element: the steps have it
				all = append(all, op.Routing{Score: score, Normalised: true, Eps: eps, Scale: scale})
			}
		}
	}
	return all
}

// orders are the orders of a few things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, o := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(o), at, n-1))
		}
	}
	return all
}

// drawnRows is a weight of drawn numbers.
type drawnRows struct {
	n    [2]int
	data []float64
}

func (m drawnRows) Size() (rows, cols int) { return m.n[0], m.n[1] }

func (m drawnRows) Row(dst []float64, i int) error {
	copy(dst, m.data[i*m.n[1]:])
	return nil
}

// size is the number of elements of a shape.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
