package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
)

// run is one evaluation.
type run struct {
	p      *Program
	c      *Call
	a      Arith
	values []operand   // whole results, by step: of leaves, and of what more than one stage reads
	leaves [][]float64 // the numbers and vectors of the program
	kept   []bool
	piece  []float64
}

// blockElements is how many elements of a step are computed at once: what fits the nearest cache with a few operands.
const blockElements = 1024

// Eval evaluates the program: all elements of its result before the last rounding. The result is the caller's. The error
// is that of an index out of range, of a weight that cannot be read, or of inputs that are none of the program's.
func (p *Program) Eval(c Call) (Value, error) {
	r := &run{p: p, c: &c, a: c.Arith, values: make([]operand, len(p.Steps))}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Prim.leaf() {
			if err := r.leaf(i, s); err != nil {
				return Value{}, err
			}
		}
	}
	for k := range p.stages {
		if err := r.stage(k); err != nil {
			return Value{}, err
		}
	}
	return r.result()
}

// result is the program's, which is the caller's.
func (r *run) result() (Value, error) {
	out := r.p.Out
	o := r.values[out.step]
	own := !r.p.Steps[out.step].Prim.leaf() && out.off == 0 && out.plain() && len(o.v) == size(out.shape)
	v := Value{Shape: out.shape}
	if own {
		v.Data, v.Bound = o.v, o.e
		return v, nil
	}
	rows := size(out.shape) / max(out.Last(), 1)
	v.Data = make([]float64, size(out.shape))
	gather(v.Data, o.v, out, 0, rows)
	if r.a.Bounds {
		v.Bound = make([]float64, len(v.Data))
		if o.e != nil {
			gather(v.Bound, o.e, out, 0, rows)
		}
	}
	return v, nil
}

// leaf fetches what a leaf holds. Bounds are nil where there are none.
func (r *run) leaf(i int, s *Step) error {
	switch s.Prim {
	case Input:
		if s.Index >= len(r.c.In) || len(r.c.In[s.Index].Data) != size(s.Shape) {
			return fmt.Errorf("input %d is not of shape %v", s.Index, s.Shape)
		}
		in := r.c.In[s.Index]
		r.values[i] = operand{in.Data, in.Bound}
		if !r.a.Bounds {
			r.values[i].e = nil
		}
	case Weight, Matrix:
		if s.Index >= len(r.c.W) {
			return fmt.Errorf("weight %d is not there", s.Index)
		}
		if rows, cols := r.c.W[s.Index].Size(); rows*cols != size(s.Shape) || cols != s.Shape[len(s.Shape)-1] {
			return fmt.Errorf("weight %d is %d by %d, not of shape %v", s.Index, rows, cols, s.Shape)
		}
		if s.Prim == Matrix {
			return nil
		}
		w := make([]float64, size(s.Shape))
		r.values[i].v = w
		return r.c.W[s.Index].Row(w, 0)
	case Number:
		r.values[i] = r.number(i)
	case Vector:
		r.values[i].v = s.Values
	}
	return nil
}

// number is a number as its site has it. In the hull it may be rounded to the model's dtype or not.
func (r *run) number(i int) operand {
	x, exact := r.p.Steps[i].Value, r.p.Steps[i].Value
	o := operand{v: []float64{x}}
	if !r.a.Emulated {
		return o
	}
	e := 0.0
	if r.a.Bounds {
		e = r.p.Steps[i].units * unit32 * math.Abs(x)
	}
	if c := r.choice(i); c.Round != None {
		x = float64(float32(x))
		if d, ok := r.a.finisher(c.Round).to(x); ok {
			x, e = roundTo(d, x, e)
		}
	}
	if e > 0 {
		o.e = []float64{e}
	}
	if o.v[0] = x; r.a.Hull && r.a.Bounds && !r.p.Steps[i].fixed {
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

// lowest is what the values of a step are not below.
func (r *run) lowest(step int) float64 {
	f := r.p.floors[step]
	switch {
	case !f.known:
		return math.Inf(-1)
	case f.number >= 0:
		return r.values[f.number].v[0]
	}
	return 0
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
	o := r.whole(v.step)
	if n := size(v.shape); v.plain() {
		return o.slice(v.off, n)
	}
	out := r.room(size(v.shape))
	rows := len(out.v) / max(v.Last(), 1)
	gather(out.v, o.v, v, 0, rows)
	if out.e != nil {
		gather(out.e, o.e, v, 0, rows)
	}
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

// stage computes one stage.
func (r *run) stage(k int) error {
	st := &r.p.stages[k]
	if st.rows > 0 {
		r.blocks(k)
		return nil
	}
	i := st.steps[0]
	s := &r.p.Steps[i]
	out := r.room(size(s.Shape))
	r.values[i] = out
	switch s.Prim {
	case Affine:
		return r.affine(i, out)
	case Dot:
		r.dots(i, out)
	case Cat:
		r.cat(s, out)
	case Lookup:
		return r.lookup(s, out)
	case Mask:
		r.mask(s, out)
	}
	return nil
}

// blocks computes a stage a block of rows at a time.
func (r *run) blocks(k int) {
	st := &r.p.stages[k]
	block := min(max(blockElements/max(st.width, 1), 1), st.rows)
	// A result that a later stage reads, or the caller, is kept whole; others live for a block.
	scratch := make([]operand, len(st.steps))
	whole := make([]bool, len(st.steps))
	for n, i := range st.steps {
		if r.p.Steps[i].whole {
			whole[n] = true
			r.values[i] = r.room(size(r.p.Steps[i].Shape))
		} else {
			scratch[n] = r.room(block * r.p.Steps[i].Shape[len(r.p.Steps[i].Shape)-1])
		}
	}
	loads := r.loads(st, block)
	for from := 0; from < st.rows; from += block {
		rows := min(block, st.rows-from)
		for n, i := range st.steps {
			s := &r.p.Steps[i]
			w := s.Shape[len(s.Shape)-1]
			out := scratch[n]
			if whole[n] {
				out = r.values[i].slice(from*w, rows*w)
			} else {
				out = out.slice(0, rows*w)
				scratch[n] = out
			}
			var x, y operand
			x = r.load(&loads[n][0], st, scratch, whole, from, rows)
			if len(s.Args) > 1 {
				y = r.load(&loads[n][1], st, scratch, whole, from, rows)
			}
			switch s.Prim {
			case Sum:
				r.sums(i, out, x)
			case RowMax:
				rowMax(out, x, r.rounds(s.Form))
			default:
				r.apply(i, out, x, y)
			}
		}
	}
}

// load says how an operand of a step comes to a block.
type load struct {
	view    Var
	from    int  // place in the stage of the step whose result it is; −1 for one that is whole
	repeat  bool // each element of a row of one is repeated
	plain   bool // of a whole result, that its rows are one after the other
	filled  bool // the block is the same for all rows, and is there
	scratch operand
}

func (r *run) loads(st *stage, block int) [][2]load {
	all := make([][2]load, len(st.steps))
	for n, i := range st.steps {
		for a, v := range r.p.Steps[i].Args {
			l := load{view: v, from: slices.Index(st.steps, v.step), plain: v.plain()}
			shape := r.p.Steps[v.step].Shape
			l.repeat = l.from >= 0 && shape[len(shape)-1] == 1 && v.Last() != 1
			constant := !slices.ContainsFunc(v.stride, func(s int) bool { return s != 0 })
			if l.from < 0 && !l.plain || l.repeat || constant {
				l.scratch = r.room(block * v.Last())
			}
			if l.from < 0 && constant {
				o := r.values[v.step]
				for k := range l.scratch.v {
					if l.scratch.v[k] = o.v[v.off]; l.scratch.e != nil && o.e != nil {
						l.scratch.e[k] = o.e[v.off]
					}
				}
				l.filled = true
			}
			all[n][a] = l
		}
	}
	return all
}

// load brings a block of rows of an operand.
func (r *run) load(l *load, st *stage, scratch []operand, whole []bool, from, rows int) operand {
	w := l.view.Last()
	switch {
	case l.filled:
		return l.scratch.slice(0, rows*w)
	case l.from < 0 && l.plain:
		return r.whole(l.view.step).slice(l.view.off+from*w, rows*w)
	case l.from < 0:
		o, out := r.values[l.view.step], l.scratch.slice(0, rows*w)
		gather(out.v, o.v, l.view, from, from+rows)
		if out.e != nil && o.e != nil {
			gather(out.e, o.e, l.view, from, from+rows)
		}
		return out
	}
	o := scratch[l.from]
	if whole[l.from] {
		n := w
		if l.repeat {
			n = 1
		}
		o = r.values[st.steps[l.from]].slice(from*n, rows*n)
	}
	if !l.repeat {
		return o
	}
	out := l.scratch.slice(0, rows*w)
	for k := range rows {
		fill(out.v[k*w:][:w], o.v[k])
		if out.e != nil {
			fill(out.e[k*w:][:w], o.e[k])
		}
	}
	return out
}

func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}

// rounds reports whether an engine rounds a step of an operation to less than float32 where the operation does not.
func (r *run) rounds(form string) bool {
	if r.a.Choices == nil {
		return false
	}
	for i := range r.p.Steps {
		if s := &r.p.Steps[i]; s.Form == form && s.Prim.Computes() && r.a.Choices[i].Round != s.Round && r.a.Choices[i].Round == Model {
			return true
		}
	}
	return false
}

// rowMax takes the largest of each row. It cancels in what follows, whichever element it is, unless a step there rounds: then it
// decides where.
func rowMax(out, x operand, matters bool) {
	n := len(x.v) / max(len(out.v), 1)
	for k := range out.v {
		top, e := math.Inf(-1), 0.0
		for i, v := range x.v[k*n:][:n] {
			top = math.Max(top, v)
			if matters && out.e != nil {
				e = max(e, x.e[k*n+i])
			}
		}
		if out.v[k] = top; out.e != nil {
			out.e[k] = e
		}
	}
}

// cat copies operands side by side.
func (r *run) cat(s *Step, out operand) {
	inner := size(s.Shape[s.Axis+1:])
	outer := size(s.Shape[:s.Axis])
	at := 0
	for _, v := range s.Args {
		x := r.packed(v)
		n := v.shape[s.Axis] * inner
		for k := range outer {
			copy(out.v[k*s.Shape[s.Axis]*inner+at:][:n], x.v[k*n:])
			if out.e != nil {
				copy(out.e[k*s.Shape[s.Axis]*inner+at:][:n], x.e[k*n:])
			}
		}
		at += n
	}
}

// lookup takes rows of a table, exactly: what it copies has no bound.
func (r *run) lookup(s *Step, out operand) error {
	ids, w := r.packed(s.Args[0]), r.c.W[r.p.Steps[s.Args[1].step].Index]
	_, width := w.Size()
	for t, id := range ids.v {
		row := int(id)
		if !(id >= 0 && id < float64(s.Rows)) || id != float64(row) {
			if !s.Fallback {
				return fmt.Errorf("looking up a token: index %v at %d is outside [0, %d)", id, t, s.Rows)
			}
			row = 0
		}
		if err := w.Row(out.v[t*width:][:width], row); err != nil {
			return err
		}
	}
	return nil
}

// mask compares positions, exactly.
func (r *run) mask(s *Step, out operand) {
	positions := r.packed(s.Args[0]).v
	keys := s.Shape[len(s.Shape)-1]
	if len(positions) == 0 {
		return
	}
	first := positions[len(positions)-1] + 1 - float64(keys)
	for i := range out.v {
		q, k := positions[i/keys], first+float64(i%keys)
		if !(k <= q && (s.Value == 0 || k > q-s.Value)) {
			out.v[i] = r.a.lowest()
		}
	}
}
