package order

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

// maxLifted bounds the work of evaluating an entry of a recorded program once, to identify its operation. maxTried
// bounds the work of all tried operations together.
const (
	maxLifted = 1 << 24
	maxTried  = 1 << 27
)

// Lift describes a named entry of a recorded program as one known operation on the nearest named entries: for
// example, a norm with its epsilon and its gain in place of the recorded steps. The operation's constants are numbers
// of the steps.
//
// The operation must reproduce the result of the steps, in every element, for random inputs and weights of the
// entry's sizes: bit by bit in the model's arithmetic, so that another place of rounding counts as another operation,
// and in float64. An operation that adds in another order, see [op.OtherOrder], is compared only in float64.
//
// Verdicts use the steps; the operation is for readers. ok is false if no known operation fits.
func (l *List) Lift(n Node) (e *Entry, ok bool) {
	if l.passes == nil || !l.In(n) || l.Entries[n.Entry].unnamed() {
		return nil, false
	}
	if e, ok := l.liftMask(n); ok {
		return e, true
	}
	cut, err := l.Cut(func(m Node) bool { return !l.Entries[m.Entry].unnamed() }, n)
	if err != nil {
		return nil, false
	}
	model, err := hooks.ParseDType(l.Config.DType)
	if err != nil {
		return nil, false
	}
	f, err := cut.formula(make([]Pass, len(l.passes)), model, 0, nil)
	if err != nil || f.Work() > maxLifted || len(f.Inputs)+len(f.Weights) == 0 {
		return nil, false
	}
	t := &lifting{list: l, f: f, entry: l.At(n), model: model, groups: groupsOf(f.Inputs), left: maxTried}
	if len(t.groups) > maxGroups || t.entry.DTypeOf(model) == hooks.Bool || !t.draw() {
		return nil, false
	}
	weights := orders(len(f.Weights))
	for _, o := range t.known() {
		if _, convolves := o.(op.DeltaRule); convolves { // first, and what it is followed by
			weights = orders(-len(f.Weights))
		}
		for _, g := range orders(len(t.groups)) {
			var in []int
			for _, k := range g {
				in = append(in, t.groups[k]...)
			}
			for _, w := range weights {
				if t.is(o, in, w) {
					return t.as(n, o, in, w), true
				}
			}
		}
	}
	return nil, false
}

// maxGroups is of how many entries an operation is looked for.
const maxGroups = 5

// groupsOf are inputs by their entry, those of several passes together, the earliest first.
func groupsOf(inputs []Node) [][]int {
	var all [][]int
	at := map[int]int{}
	for k, in := range inputs {
		g, ok := at[in.Entry]
		if !ok {
			g, all = len(all), append(all, nil)
			at[in.Entry] = g
		}
		all[g] = append(all[g], k)
	}
	for _, g := range all {
		slices.SortFunc(g, func(a, b int) int { return inputs[a].Pass - inputs[b].Pass })
	}
	return all
}

// liftMask returns, for a constant mask, the operation that makes the mask from the positions of the pass.
func (l *List) liftMask(n Node) (e *Entry, ok bool) {
	c, ok := l.At(n).Op.(recorded.Constants)
	positions := Node{l.Index("position_ids"), n.Pass}
	if !ok || positions.Entry < 0 || !l.In(positions) {
		return nil, false
	}
	window, ok := c.Mask()
	if !ok || program.Size(l.Size(n, make([]Pass, len(l.passes)))) == 0 {
		return nil, false
	}
	known := *l.At(n)
	known.Op, known.Inputs = op.Mask{Window: window}, []Ref{{Name: "position_ids"}}
	return &known, true
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
	list   *List
	f      *Formula
	entry  *Entry
	model  hooks.DType
	groups [][]int        // the inputs by their entry
	left   int            // how much work may be done yet
	calls  []program.Call // on drawn numbers
	want   [][]float64    // of the steps
}

// draw evaluates the steps on drawn numbers.
func (t *lifting) draw() bool {
	draws := uint64(2)
	if !t.entry.DTypeOf(t.model).Float() {
		draws = 64 // of a few whole numbers many are alike
	}
	for seed := range draws {
		r := rand.New(rand.NewPCG(seed, 17))
		c := program.Call{Shape: t.f.Out.Shape}
		for _, in := range t.f.Inputs {
			e := t.list.At(in)
			d := e.DTypeOf(t.model)
			v := program.Value{Shape: t.list.Size(in, make([]Pass, len(t.list.passes)))}
			if n := program.Size(v.Shape); d == hooks.Bool || n > maxLifted || n == 0 {
				return false
			}
			indexes := 0
			if !d.Float() {
				indexes = t.indexes()
			}
			for range program.Size(v.Shape) {
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

// indexes returns the number of elements that an input of whole numbers can index: the length of the shortest axis
// from which a step takes elements by index. The number is 64 if no step does, for example for positions.
func (t *lifting) indexes() int {
	n := 0
	for i := range t.f.Steps {
		s, of := &t.f.Steps[i], 0
		switch s.Prim {
		case program.Gather, program.Scatter, program.Collect:
			of = s.Args[0].Shape[s.Axis()]
		case program.Lookup:
			of = s.Entries().Rows
		}
		if of > 0 && (n == 0 || of < n) {
			n = of
		}
	}
	return cmp.Or(n, 64)
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
	if err != nil || t.left < p.Work() {
		return false
	}
	t.left -= p.Work()
	_, otherOrder := o.(op.OtherOrder)
	_, table := o.(op.Rotary) // its angles are float32 in every arithmetic
	for i, c := range t.calls {
		if c.Arith.Emulated && otherOrder || !c.Arith.Emulated && table {
			continue
		}
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

// near reports whether two float64 results may come from one formula whose sums are taken in different blocks.
func near(x, y float64) bool { return x == y || math.Abs(x-y) <= 1e-11*(math.Abs(x)+math.Abs(y)+1e-3) }

// maxOrders is the number of things up to which all orders are tried: more things keep their order.
const maxOrders = 5

// orders returns all orders of n things. For n above maxOrders, and for −n things with a negative n, it returns only
// the given order.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	if n > maxOrders || n < 0 {
		all := make([]int, max(n, -n))
		for k := range all {
			all[k] = k
		}
		return [][]int{all}
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
