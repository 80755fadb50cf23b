package order

import (
	"slices"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// known are operations of as many inputs and weights, with the numbers of the steps as their constants.
func (t *lifting) known() []op.Op {
	weights := len(t.f.Weights)
	switch groups := len(t.groups); {
	case groups == 0 && weights == 1:
		return t.rows()
	case groups == 1 && weights == 0:
		return t.ofOne()
	case groups == 1:
		return t.ofOneAndWeights()
	case groups == 2 && weights == 0:
		return t.ofTwo()
	case groups == 2 && weights == 1 && t.floats():
		return t.with(func(x float64) []op.Op {
			all := []op.Op{op.GatedNorm{Eps: x}, op.GatedNorm{Eps: x, Single: true}}
			for _, act := range gates {
				all = append(all, op.NormGated{Eps: x, Act: act}, op.NormGated{Eps: x, Act: act, Single: true})
			}
			return all
		})
	case t.convolves() && weights > 2:
		return t.deltaRules()
	case groups == 2 && weights > 0 && !t.floats():
		return t.expertRows()
	case groups == 3 && weights == 0:
		all := []op.Op{op.RoPE{}, op.AddTwice{}, op.SharedExpert{}, op.GatedContext{}}
		for _, v := range t.calls[0].In {
			all = append(all, op.GatedContext{From: last(v)})
		}
		return append(all, t.turned()...)
	case (groups == 3 || groups == 5) && weights == 4:
		return t.scans()
	case groups == 4 && weights == 0:
		return t.latent()
	case groups == 4 && weights > 1:
		var all []op.Op
		for _, n := range t.stacks() {
			all = append(all, op.Experts{Experts: n}, op.Experts{Experts: n, Rounded: true})
		}
		return all
	}
	return nil
}

// with are operations for each number of the steps.
func (t *lifting) with(made func(x float64) []op.Op) (all []op.Op) {
	var numbers []float64
	for i := range t.f.Steps {
		s, x := &t.f.Steps[i], 0.0
		switch {
		case s.Prim == program.Number:
			x = s.Number().Value
		case s.Prim == program.Vector && len(s.Vector()) == 1:
			x = s.Vector()[0]
		default:
			continue
		}
		if !slices.Contains(numbers, x) {
			numbers = append(numbers, x)
			all = append(all, made(x)...)
		}
	}
	return all
}

// floats reports whether all inputs are floating-point numbers.
func (t *lifting) floats() bool {
	return !slices.ContainsFunc(t.f.Inputs, func(in Node) bool { return !t.list.At(in).DTypeOf(t.model).Float() })
}

// last is the length of the last axis of the result.
func (t *lifting) last() int { return t.f.Out.Last() }

// ofOne are operations of one input.
func (t *lifting) ofOne() []op.Op {
	if !t.entry.DTypeOf(t.model).Float() {
		var all []op.Op
		for _, score := range []op.Score{"", op.OfAll, op.Sigmoid} {
			all = append(all, op.Choice{K: t.last(), Score: score})
		}
		return all
	}
	if !t.floats() {
		return t.tables()
	}
	all := []op.Op{
		op.Softmax{},
		op.SiLU{},
		op.GELU{},
		op.GELUTanh{},
		op.Tanh{},
		op.Identity{},
		op.Cast{},
		op.ReLUSquared{},
		op.GELUSteps{},
		op.Merge{},
		op.Cache{Transpose: true},
	}
	all = append(all, t.with(func(x float64) []op.Op {
		return []op.Op{
			op.RMSNorm{Eps: x, Gain: op.NoScale}, op.Softcap{Cap: x}, op.Scale{By: op.Const{Value: x}}, op.Scale{By: op.Const{Value: x, Cast: true}},
		}
	})...)
	if x := t.calls[0].In[0].Shape; len(x) == len(t.f.Out.Shape)+1 {
		for axis, n := range x {
			for k := range min(n, maxItems) {
				all = append(all, op.Select{Axis: axis, Index: k})
			}
		}
	}
	return append(all, t.parts()...)
}

// maxItems is how many indexes of an axis are tried.
const maxItems = 64

// ofOneAndWeights are operations of one entry, of one pass or several, and of weights.
func (t *lifting) ofOneAndWeights() []op.Op {
	n := len(t.f.Weights)
	if !t.entry.DTypeOf(t.model).Float() {
		return []op.Op{op.Choice{K: t.last(), Bias: true}, op.Choice{K: t.last(), Score: op.OfAll, Bias: true}, op.Choice{K: t.last(), Score: op.Sigmoid, Bias: true}}
	}
	all := t.mixers()
	if len(t.f.Inputs) > 1 {
		return all
	}
	switch n {
	case 1:
		all = append(all, op.Linear{}, op.Lookup{Rows: rowsOf(t.f.Weights[0].Shape)[0]}, op.SinkSoftmax{})
		all = append(all, t.with(func(x float64) []op.Op {
			return []op.Op{op.LayerNorm{Eps: x}, op.RMSNorm{Eps: x, Gain: op.Plain}, op.RMSNorm{Eps: x, Gain: op.After}, op.RMSNorm{Eps: x, Gain: op.OnePlus}}
		})...)
	case 2:
		all = append(all, op.Linear{Bias: true})
		all = append(all, t.with(func(x float64) []op.Op { return []op.Op{op.LayerNorm{Eps: x, Bias: true}} })...)
	case 3:
		for _, act := range gates {
			all = append(all, op.GatedMLP{Act: act})
		}
	}
	if n > 2 {
		return all
	}
	if n == 1 && len(t.f.Out.Shape) == 4 {
		all = append(all, t.with(func(x float64) []op.Op {
			return []op.Op{op.RMSNorm{Eps: x, Gain: op.Plain, Heads: true}, op.RMSNorm{Eps: x, Gain: op.After, Heads: true}, op.RMSNorm{Eps: x, Gain: op.OnePlus, Heads: true}}
		})...)
	}
	for _, heads := range []bool{false, true} {
		if !heads || len(t.f.Out.Shape) == 4 {
			all = append(all, op.Linear{Bias: n == 2, Heads: heads})
			for _, from := range t.offsets() {
				all = append(all, op.Linear{Bias: n == 2, Heads: heads, Turned: true, From: from})
			}
		}
	}
	return all
}

var gates = []op.Activation{op.OfSiLU, op.OfGELU, op.OfGELUTanh, op.OfSigmoid}

// offsets are where the outputs of a product may begin in the columns of its matrix: at a multiple of their number.
func (t *lifting) offsets() []int {
	in := t.calls[0].In[0].Shape
	rows := program.Size(in[:len(in)-1])
	if rows == 0 {
		return nil
	}
	n := program.Size(t.f.Out.Shape) / rows
	var all []int
	for _, w := range t.f.Weights {
		for from := 0; n > 0 && len(w.Shape) == 2 && from+n <= w.Shape[1] && from <= 8*n; from += n {
			all = append(all, from)
		}
	}
	return all
}

// ofTwo are operations of two entries.
func (t *lifting) ofTwo() []op.Op {
	if !t.floats() {
		return routings(t.numbers())
	}
	all := []op.Op{op.Add{}, op.Mul{}, op.Sub{}, op.Context{}, op.Scores{}, op.Scores{Merged: true}}
	all = append(all, t.with(func(x float64) []op.Op {
		return []op.Op{
			op.Scores{Scale: x},
			op.Scores{Scale: x, Merged: true},
			op.Scores{Scale: x, Divide: true},
			op.Scores{Scale: x, Merged: true, Divide: true},
			op.AddScale{By: op.Const{Value: x}},
			op.AddScale{By: op.Const{Value: x}, Divide: true},
		}
	})...)
	all = append(all, op.Gating{Half: 0}, op.Gating{Half: 1}, op.Cache{}, op.Cache{Transpose: true})
	for _, act := range gates {
		all = append(all, op.Gated{Act: act})
	}
	return append(all, t.cached()...)
}

// cached are caches to which a part of a product is appended: the result ends with it.
func (t *lifting) cached() (all []op.Op) {
	shape, want := t.f.Out.Shape, t.want[0]
	if len(shape) != 4 || len(want) == 0 {
		return nil
	}
	d := shape[3]
	end := want[len(want)-d:] // the last head of the last token
	for _, in := range t.calls[0].In {
		n := last(in)
		for _, heads := range []int{1, shape[1]} {
			if n%heads != 0 || len(in.Data) < n {
				continue
			}
			own := n / heads
			head := in.Data[len(in.Data)-own:]
			wide := shape[1] * d / heads
			for from := range max(own-wide+1, 0) {
				if slices.Equal(head[from+wide-d:from+wide], end) {
					all = append(all, op.CachePart{Heads: heads, From: from})
				}
			}
		}
	}
	return all
}

// numbers are those of the steps.
func (t *lifting) numbers() (all []float64) {
	t.with(func(x float64) []op.Op { all = append(all, x); return nil })
	return all
}

// parts are the parts of the input that begin with the numbers with which the result does.
func (t *lifting) parts() (all []op.Op) {
	x, want := t.calls[0].In[0], t.want[0]
	if len(x.Shape) < 2 || len(want) == 0 {
		return nil
	}
	last := x.Shape[len(x.Shape)-1]
	rows := program.Size(x.Shape[:len(x.Shape)-1])
	for _, heads := range append([]int{1}, t.f.Out.Shape...) {
		if heads < 1 || last%heads != 0 || rows == 0 || len(want)%(rows*heads) != 0 {
			continue
		}
		n := len(want) / (rows * heads)
		for from := range last/heads - n + 1 {
			if k := min(n, t.last()); slices.Equal(x.Data[from:from+k], want[:k]) {
				part := op.Part{Heads: heads, From: from}
				if all = append(all, part); len(t.f.Out.Shape) == 4 {
					part.Transpose = true
					all = append(all, part, op.CachePart{Heads: heads, From: from})
				}
			}
		}
	}
	return all
}

// rows are the rows of a table that the result begins with.
func (t *lifting) rows() (all []op.Op) {
	w, want := t.calls[0].W[0], t.want[0]
	rows, cols := w.Size()
	row := make([]float64, cols)
	if len(want) < cols || len(t.f.Out.Shape) < 2 {
		return nil
	}
	for i := range rows {
		if err := w.Row(row, i); err == nil && slices.Equal(row, want[:cols]) {
			all = append(all, op.Rows{First: i, By: 1}, op.Rows{First: i})
		}
	}
	return all
}

// tables are those of a rotary embedding whose frequencies are constants of the steps.
func (t *lifting) tables() (all []op.Op) {
	for i := range t.f.Steps {
		s := &t.f.Steps[i]
		if s.Prim != program.Vector {
			continue
		}
		for _, o := range op.TablesOf(s.Vector()) {
			for _, o.Sin = range []bool{false, true} {
				all = append(all, o)
			}
		}
	}
	return all
}

func last(v program.Value) int { return v.Shape[len(v.Shape)-1] }

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
