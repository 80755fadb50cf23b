package program

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// stage computes one stage.
func (r *run) stage(k int) error {
	st := &r.p.stages[k]
	if st.rows > 0 {
		r.blocks(k)
		return nil
	}
	i := st.steps[0]
	s := &r.p.Steps[i]
	out := r.roomOf(i)
	r.values[i] = out
	switch s.Prim {
	case Affine:
		return r.affine(i, out)
	case Dot:
		r.dots(i, out)
	case Cat:
		r.cat(i, out)
	case Lookup:
		return r.lookup(s, out)
	case Mask:
		r.mask(i, out)
	case Choose:
		r.choose(s, out)
	case Gather:
		return r.pick(s, out)
	case Rank:
		r.rank(i, out)
	case Scatter, Collect:
		return r.scatter(i, out)
	case Solve:
		r.solve(i, out)
	}
	return nil
}

// choose copies elements of one operand or the other. Where a bound allows either operand, the result's bound covers
// both.
func (r *run) choose(s *Step, out operand) {
	c, x, y := r.packed(s.Args[0]), r.packed(s.Args[1]), r.packed(s.Args[2])
	for i := range out.v {
		from := y
		if c.v[i] != 0 {
			from = x
		}
		if out.v[i] = from.v[i]; out.e == nil {
			continue
		}
		if out.e[i] = from.e[i]; c.e[i] > 0 && math.Abs(c.v[i]) <= c.e[i] {
			out.e[i] = max(either(out.v[i], from.e[i], x.v[i], x.e[i]), either(out.v[i], from.e[i], y.v[i], y.e[i]))
		}
	}
}

// pick copies elements. Where an index has a bound, another element may be the right one: see [alternatives].
func (r *run) pick(s *Step, out operand) error {
	x, index := r.packed(s.Args[0]), r.packed(s.Args[1])
	inner := Size(s.Shape[s.Axis()+1:])
	n, own := s.Args[0].Shape[s.Axis()], s.Shape[s.Axis()]
	var others *alternatives
	for i, at := range index.v {
		k := int(at)
		if !(at >= 0 && at < float64(n)) || at != float64(k) {
			return fmt.Errorf("gathering: %w: %v at %d is outside [0, %d)", ErrIndex, at, i, n)
		}
		from := (i/(own*inner)*n+k)*inner + i%inner
		if out.v[i] = x.v[from]; out.e == nil {
			continue
		}
		if out.e[i] = x.e[from]; index.e[i] == 0 {
			continue
		}
		if others == nil {
			others = r.alternatives(s.Args[1], n)
		}
		for _, k := range others.of(i) {
			other := (i/(own*inner)*n+k)*inner + i%inner
			out.e[i] = max(out.e[i], either(out.v[i], x.e[from], x.v[other], x.e[other]))
		}
	}
	return nil
}

// manyElements is how many elements a stage has at least whose rows are shared out over the cores, and manyProducts how many products a Dot has.
const manyElements, manyProducts = 1 << 16, 1 << 20

// blocks computes a stage a block of rows at a time. Rows have nothing to do with each other: those of many are shared out over the cores.
func (r *run) blocks(k int) {
	st := &r.p.stages[k]
	block := min(max(blockElements/max(st.width, 1), 1), st.rows)
	for _, i := range st.steps { // a result that a later stage reads, or the caller, is kept whole
		if r.p.isWhole(i) {
			r.values[i] = r.roomOf(i)
		}
	}
	for _, i := range st.steps { // all workers read the bounds of these operands, see [run.load]
		for _, v := range r.p.Steps[i].Args {
			if v.Plain() && !slices.Contains(st.steps, v.Step) {
				r.whole(v.Step)
			}
		}
	}
	workers := 1
	if st.rows*st.width >= manyElements {
		workers = min(runtime.GOMAXPROCS(0), (st.rows+block-1)/block)
	}
	var next atomic.Int64
	share(workers, func() {
		mine := *r
		mine.piece = nil
		w := mine.working(st, block)
		for from := int(next.Add(int64(block))) - block; from < st.rows; from = int(next.Add(int64(block))) - block {
			w.needed(from, min(from+block, st.rows))
		}
	})
}

// share calls do once for each of some workers, on as many cores, and waits for all.
func share(workers int, do func()) {
	if workers <= 1 {
		do()
		return
	}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(do)
	}
	wait.Wait()
}

// working is a worker on a stage, with room for the results that live for a block.
type working struct {
	*run
	stage   *stage
	scratch []operand // by step; empty of one that is kept whole
	whole   []bool
	loads   [][2]load
}

func (r *run) working(st *stage, block int) *working {
	w := &working{run: r, stage: st, scratch: make([]operand, len(st.steps)), whole: make([]bool, len(st.steps))}
	for n, i := range st.steps {
		if w.whole[n] = r.p.isWhole(i); !w.whole[n] {
			w.scratch[n] = r.room(block * r.p.Steps[i].Shape[len(r.p.Steps[i].Shape)-1])
		}
	}
	w.loads = r.loads(st, block)
	return w
}

// needed computes those rows from one to another that are needed.
func (w *working) needed(from, to int) {
	step := w.stage.steps[len(w.stage.steps)-1]
	for from < to {
		end := from
		for end < to && w.need.of(step, end) {
			end++
		}
		if end > from {
			w.rows(from, end-from)
		}
		from = end + 1
	}
}

// rows computes some rows of all steps.
func (w *working) rows(from, rows int) {
	r, st := w.run, w.stage
	for n, i := range st.steps {
		s := &r.p.Steps[i]
		width := s.Shape[len(s.Shape)-1]
		out := w.scratch[n]
		if w.whole[n] {
			out = r.lines(i, from*width, rows*width)
		} else {
			out = out.slice(0, rows*width)
			w.scratch[n] = out
		}
		var x, y operand
		x = r.load(&w.loads[n][0], st, w.scratch, w.whole, from, rows)
		if len(s.Args) > 1 {
			y = r.load(&w.loads[n][1], st, w.scratch, w.whole, from, rows)
		}
		if few := r.fewOf(i); few != nil {
			r.applyTo(few, i, width, out, x, y)
			continue
		}
		switch s.Prim {
		case Add:
			x = r.together(s, x, y, from*width)
			r.apply(i, out, x, y)
		case Sum:
			r.sums(i, out, x)
		case RowMax:
			rowMax(out, x, r.rounds(s.Form), s.Is(Relative))
		case Angle:
			r.angles(i, out, x, y, from, rows)
		default:
			r.apply(i, out, x, y)
		}
	}
}

// load says how an operand of a step comes to a block.
type load struct {
	view    Var
	from    int  // place in the stage of the step that is read; −1 for a whole result
	repeat  bool // each element of a row of one is repeated
	plain   bool // of a whole result, that its rows are one after the other
	filled  bool // the block is the same for all rows, and is there
	scratch operand
}

func (r *run) loads(st *stage, block int) [][2]load {
	all := make([][2]load, len(st.steps))
	for n, i := range st.steps {
		for a, v := range r.p.Steps[i].Args {
			l := load{view: v, from: slices.Index(st.steps, v.Step), plain: v.Plain()}
			shape := r.p.Steps[v.Step].Shape
			l.repeat = l.from >= 0 && shape[len(shape)-1] == 1 && v.Last() != 1
			constant := !slices.ContainsFunc(v.Stride, func(s int) bool { return s != 0 })
			if l.from < 0 && !l.plain || l.repeat || constant {
				l.scratch = r.room(block * v.Last())
			}
			if l.from < 0 && constant {
				o := r.values[v.Step]
				at := r.slotsOf(v.Step).place(v.Off)
				for k := range l.scratch.v {
					if l.scratch.v[k] = o.v[at]; l.scratch.e != nil && o.e != nil {
						l.scratch.e[k] = o.e[at]
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
		return r.lines(l.view.Step, l.view.Off+from*w, rows*w)
	case l.from < 0:
		out := l.scratch.slice(0, rows*w)
		r.gather(out, l.view, from, from+rows)
		return out
	}
	o := scratch[l.from]
	if whole[l.from] {
		n := w
		if l.repeat {
			n = 1
		}
		o = r.lines(st.steps[l.from], from*n, rows*n)
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

// rowMax takes the largest element of each row. The maximum cancels in the steps that follow, whichever element it is, unless one of these steps
// rounds. If relative, the bound covers every element that may be the largest.
func rowMax(out, x operand, matters, relative bool) {
	n := len(x.v) / max(len(out.v), 1)
	for k := range out.v {
		if relative && out.e != nil {
			out.v[k], out.e[k] = largestOf(x.slice(k*n, n))
			continue
		}
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

// largestOf is the largest of some numbers, and how far from it the largest may be.
func largestOf(x operand) (v, e float64) {
	low := math.Inf(-1)
	v, high := low, low
	for i, w := range x.v {
		v, high, low = math.Max(v, w), math.Max(high, w+x.e[i]), math.Max(low, w-x.e[i])
	}
	return v, known(max(high-v, v-low, 0))
}

// lookup copies rows of a table exactly, without a bound. A row whose index has a bound may hold any value.
func (r *run) lookup(s *Step, out operand) error {
	ids, w := r.packed(s.Args[0]), r.c.W[r.p.Steps[s.Args[1].Step].Index()]
	_, width := w.Size()
	for t, id := range ids.v {
		row := int(id)
		if !(id >= 0 && id < float64(s.Entries().Rows)) || id != float64(row) {
			if !s.Entries().Fallback {
				return fmt.Errorf("looking up a token: %w: %v at %d is outside [0, %d)", ErrIndex, id, t, s.Entries().Rows)
			}
			row = 0
		}
		if err := w.Row(out.v[t*width:][:width], row); err != nil {
			return err
		}
		if out.e != nil && ids.e[t] != 0 {
			fill(out.e[t*width:][:width], math.Inf(1))
		}
	}
	return nil
}

// mask compares positions, exactly.
func (r *run) mask(i int, out operand) {
	s := &r.p.Steps[i]
	positions, keys := r.packed(s.Args[0]).v, s.width()
	if len(positions) == 0 {
		return
	}
	first := positions[len(positions)-1] + 1 - float64(keys)
	window, ahead := s.Sight().Window, float64(s.Sight().Ahead)
	for row, q := range positions {
		if window < 0 || !r.need.of(i, row) {
			continue
		}
		line := out.v[r.slotsOf(i).place(row*keys):][:keys]
		for at := range line {
			if k := first + float64(at); !(k <= q+ahead && (window == 0 || k > q-window)) {
				line[at] = r.a.Lowest()
			}
		}
	}
}
