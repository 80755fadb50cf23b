package program

import (
	"errors"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// ErrIndex is the error of a lookup of what is no index of the table.
var ErrIndex = errors.New("an index is out of range")

// run is one evaluation. Each primitive, or a small group of primitives, has a method, and every method reads values
// and takes room from the run: hence the many methods.
type run struct {
	p      *Program
	c      *Call
	a      Arith
	values []operand // whole results, by step: of leaves, and of what more than one stage reads
	scratch
	terms map[int]*Terms // of the leaves that are sums

	need     needed
	slots    []*slots // of the rows that are needed
	few      neededColumns
	spare    spare
	columns  int // see [Value.Columns]
	followed int // elements that are the engine's own choice
}

// scratch is room that steps use again.
type scratch struct {
	kept  []bool
	piece []float64
}

// blockElements is how many elements of a step are computed at once: what fits the nearest cache with a few operands.
const blockElements = 1024

// Eval evaluates the program: all elements of its result, [Program.Out], before the last rounding. The result is the
// caller's. The error reports an index out of range, a weight that cannot be read, or inputs that do not fit the
// program.
func (p *Program) Eval(c Call) (Value, error) {
	r := &run{p: p, c: &c, a: c.Arith, values: make([]operand, len(p.Steps)), terms: map[int]*Terms{}}
	if c.Held != nil && c.Held.Alone && productOf(p) < 0 {
		r.a.Bounds = false
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Prim.IsLeaf() {
			if err := r.leaf(i, s); err != nil {
				return Value{}, err
			}
		}
	}
	if err := c.Some.in(p.Out.Shape); err != nil {
		return Value{}, err
	}
	r.need, r.few = p.need(c.Some, nil, p.stages), p.columns(c.Some)
	r.slots = p.slots(r.need)
	for k := range p.stages {
		if !r.needs(p.stages[k].steps[0]) {
			continue
		}
		if err := r.stage(k); err != nil {
			return Value{}, err
		}
	}
	return r.some()
}

// some is the result, or some of it.
func (r *run) some() (Value, error) {
	some, out := r.c.Some, r.p.Out
	if some == nil {
		return r.result()
	}
	v := Value{Shape: some.shape(out.Shape), Followed: r.followed, Columns: r.columns}
	all := r.room(Size(v.Shape))
	v.Data, v.Bound = all.v, all.e
	last := len(out.Shape) - 1
	rows := Size(out.Shape[some.Axis+1 : last])
	for o := range Size(out.Shape[:some.Axis]) {
		for n, k := range some.Keep {
			from := (o*out.Shape[some.Axis] + k) * rows
			to := all.slice((o*len(some.Keep)+n)*rows*v.Shape[last], rows*v.Shape[last])
			if some.Columns == nil {
				r.gather(to, out, from, from+rows)
				continue
			}
			for row := range rows {
				r.gatherColumns(to.slice(row*v.Shape[last], v.Shape[last]), out, from+row, some.Columns)
			}
		}
	}
	return v, nil
}

// result is the program's, which is the caller's.
func (r *run) result() (Value, error) {
	out := r.p.Out
	o := r.values[out.Step]
	own := !r.p.Steps[out.Step].Prim.IsLeaf() && out.Off == 0 && out.Plain() && len(o.v) == Size(out.Shape)
	v := Value{Shape: out.Shape, Followed: r.followed, Columns: r.columns}
	if own {
		v.Data, v.Bound = o.v, o.e
		return v, nil
	}
	rows := Size(out.Shape) / max(out.Last(), 1)
	v.Data = make([]float64, Size(out.Shape))
	if r.a.Bounds {
		v.Bound = make([]float64, len(v.Data))
	}
	r.gather(operand{v.Data, v.Bound}, out, 0, rows)
	return v, nil
}

// leaf fetches the values of a leaf. The bounds are nil for a leaf without bounds.
func (r *run) leaf(i int, s *Step) error {
	switch s.Prim {
	case Input:
		if s.Index() >= len(r.c.In) || len(r.c.In[s.Index()].Data) != Size(s.Shape) {
			return fmt.Errorf("input %d is not of shape %v", s.Index(), s.Shape)
		}
		in := r.c.In[s.Index()]
		r.values[i] = operand{in.Data, in.Bound}
		if r.a.Together && r.a.Bounds && in.Terms != nil {
			r.terms[i] = in.Terms
		}
		if !r.a.Bounds {
			r.values[i].e = nil
		}
	case Weight, Matrix, Dense:
		if s.Index() >= len(r.c.W) {
			return fmt.Errorf("weight %d is not there", s.Index())
		}
		if rows, cols := r.c.W[s.Index()].Size(); rows*cols != Size(s.Shape) || cols != s.Shape[len(s.Shape)-1] {
			return fmt.Errorf("weight %d is %d by %d, not of shape %v", s.Index(), rows, cols, s.Shape)
		}
		if s.Prim == Matrix {
			return nil
		}
		w := make([]float64, Size(s.Shape))
		r.values[i].v = w
		rows, _ := r.c.W[s.Index()].Size()
		return readRows(r.c.W[s.Index()], w, 0, rows)
	case Number:
		r.values[i] = r.number(i)
	case Vector:
		r.values[i].v = s.Vector()
	}
	return nil
}

// number returns the value of a number at its site. In the hull the number may be rounded to the model's dtype or
// not.
func (r *run) number(i int) operand {
	x, exact := r.p.Steps[i].Number().Value, r.p.Steps[i].Number().Value
	o := operand{v: []float64{x}}
	if !r.a.Emulated {
		return o
	}
	e := 0.0
	if r.a.Bounds && !math.IsInf(x, 0) {
		e = r.p.Steps[i].Number().Units * unit32 * math.Abs(x)
	}
	if c := r.choice(i); c.Round != None {
		x = float64(float32(x))
		if r.a.DType == hooks.F64 && r.a.Bounds { // whose engine may have all its digits, too
			e += math.Abs(x - exact)
		}
		if d, ok := r.a.finisher(c.Round).to(x); ok {
			x, e = roundTo(d, x, e)
		}
	}
	if e > 0 {
		o.e = []float64{e}
	}
	if o.v[0] = x; r.a.Hull && r.a.Bounds && !r.p.Steps[i].Number().Fixed {
		o.e = []float64{e + max(math.Abs(x-exact), math.Abs(floats.Round(r.a.DType, exact)-x))}
	}
	return o
}

// choice is what is done at a step.
func (r *run) choice(i int) Choice {
	if r.a.Choices == nil {
		return Choice{Round: r.p.Steps[i].Round}
	}
	return r.a.Choices[i]
}

// lowest returns a number such that no value of the step is smaller. Where the step may round its values, lowest may
// be rounded, too.
func (r *run) lowest(step int) float64 {
	f := r.p.floors[step]
	switch {
	case !f.known:
		return math.Inf(-1)
	case f.number < 0:
		return 0
	}
	least := r.values[f.number].v[0]
	to := r.a.finisher(r.choice(step).Round)
	rounded := to.narrow(least)
	if to.round < None {
		rounded = to.narrow(float64(float32(least)))
	}
	if r.a.Hull {
		rounded = min(rounded, floats.Round(r.a.DType, least))
	}
	return min(least, rounded)
}

func (r *run) flags(n int) []bool {
	if cap(r.kept) < n {
		r.kept = make([]bool, n)
	}
	r.kept = r.kept[:n]
	clear(r.kept)
	return r.kept
}

// whole is all of a step's result, with bounds where there are to be any.
func (r *run) whole(step int) operand {
	o := r.values[step]
	if r.a.Bounds && o.e == nil {
		o.e = r.zeros(len(o.v))
		r.values[step].e = o.e
	}
	return o
}

// packed are all elements of a view, row-major.
func (r *run) packed(v Var) operand {
	if n := Size(v.Shape); v.Plain() {
		return r.lines(v.Step, v.Off, n)
	}
	out := r.room(Size(v.Shape))
	r.gather(out, v, 0, len(out.v)/max(v.Last(), 1))
	return out
}

// room is for n numbers, and as many bounds where there are to be any: zeros.
func (r *run) room(n int) operand {
	o := operand{v: r.zeros(n)}
	if r.a.Bounds {
		o.e = r.zeros(n)
	}
	return o
}

// small is what is cut from one piece of memory, of pieceElements.
const small, pieceElements = 128, 512

func (r *run) zeros(n int) []float64 {
	if n > small {
		return make([]float64, n)
	}
	if len(r.piece) < n {
		r.piece = make([]float64, pieceElements)
	}
	z := r.piece[:n:n]
	r.piece = r.piece[n:]
	return z
}
