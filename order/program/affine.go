package program

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/products"
)

// tileRows is the most rows of a weight that a worker takes at once: so many that many rows of x are not read again for each few of
// them, and no more than tileNumbers numbers, which fit the nearer caches.
const tileRows, tileNumbers = 4 * products.Tile, 1 << 16

// right holds the right-hand sides of products with W: x itself, and what bounds need of it.
type right struct {
	operand
	values  *products.Right
	squared *products.Right // x², for Σ (w·x)²
	abs     *products.Right // |x|, for Σ |w·x|
	bounds  *products.Right // of x; nil where all are zero
}

// right lays out x, whose rows are as long as those of W; whole sums are taken by loops over several rows at once.
func (a *Arith) right(x operand, n int, whole bool) right {
	r := right{operand: x}
	if !whole {
		return r
	}
	r.values = products.NewRight(x.v, n)
	if !zero(x.e) {
		r.bounds = products.NewRight(x.e, n)
	}
	switch {
	case !a.Bounds:
	case a.Rigorous:
		r.abs = products.NewRight(absolute(slices.Clone(x.v)), n)
	default:
		squared := slices.Clone(x.v)
		products.Square(squared)
		r.squared = products.NewRight(squared, n)
	}
	return r
}

// affine multiplies. A row of W is widened once for all rows of x; rows are shared out over the cores a few at a time. Every
// element is one sum in the order of k, so results depend neither on how many cores there are nor on the other rows.
// Its bound is that of a sum of as many products as W has columns, and of one term more for the bias.
func (r *run) affine(i int, out operand) error {
	held := r.c.Held
	if v := r.p.Out; v.Step != i || v.Off != 0 || !v.Plain() || r.c.Some != nil || held != nil && len(held.Data) != Size(v.Shape) {
		held = nil
	}
	x := r.factors(i)
	if r.few != nil && r.few[i] != nil && len(r.p.Steps[i].Args) == 2 {
		return r.multiplyColumns(i, x, out)
	}
	return r.multiply(i, x, out, held)
}

// factors are the rows that an Affine multiplies with its weight. If some rows of the result are needed, the factors are the rows for these.
func (r *run) factors(i int) operand {
	v, has := r.p.Steps[i].Args[0], r.slotsOf(i)
	if has == nil {
		return r.packed(v)
	}
	x := r.room(has.count * v.Last())
	for row, at := range has.at {
		if at >= 0 {
			r.gather(x.slice(at*v.Last(), v.Last()), v, row, row+1)
		}
	}
	return x
}

// multiplyColumns is multiply of the columns that are needed.
func (r *run) multiplyColumns(i int, x, out operand) error {
	s, few := r.p.Steps[i], *r
	columns, width, at := r.few[i], s.Shape[len(s.Shape)-1], r.p.Steps[s.Args[1].Step].Index()
	if len(columns) == 0 {
		return nil
	}
	c, p := *r.c, *r.p
	c.W, p.Steps = slices.Clone(c.W), slices.Clone(p.Steps)
	c.W[at] = pickedRows{c.W[at], columns}
	s.Shape = slices.Clone(s.Shape)
	s.Shape[len(s.Shape)-1] = len(columns)
	p.Steps[i] = s
	few.c, few.p, few.piece = &c, &p, nil
	some := r.room(r.rowsOf(i) * len(columns))
	if err := few.multiply(i, x, some, nil); err != nil {
		return err
	}
	for k := range r.rowsOf(i) {
		for n, column := range columns {
			out.v[k*width+column] = some.v[k*len(columns)+n]
			if out.e != nil {
				out.e[k*width+column] = some.e[k*len(columns)+n]
			}
		}
	}
	return nil
}

// multiply is affine of any number of rows of x, with what the engine holds of the program's result; nil where it is not known.
func (r *run) multiply(i int, x, out operand, held *Held) error {
	s := &r.p.Steps[i]
	w := r.c.W[r.p.Steps[s.Args[1].Step].Index()]
	c := r.choice(i)
	var own func(w, x, bound []float64) (v, e float64)
	if m, ok := w.(Multiplier); ok {
		p := m.Product(slices.Clone(x.v), slices.Clone(x.e))
		w, x, own = p.W, operand{p.X, p.Bound}, p.Sum
	}
	rows, n := w.Size()
	t := tile{
		own:   own,
		Arith: &r.a, f: r.at(i, c.Round), weights: w, all: rows, n: n,
		rows: min(max(tileNumbers/max(n, 1)/products.Tile, 1)*products.Tile, tileRows),
	}
	if d, ok := w.(interface{ Digits() int }); ok {
		t.digits = d.Digits()
	}
	t.way, t.after = s.ofSum(c.Way)
	t.factor = t.f.ofSum(n)
	t.right = r.a.right(x, n, t.whole())
	t.tokens = len(t.right.v) / max(n, 1)
	if len(s.Args) == 3 {
		t.bias = r.packed(s.Args[2]).v
	}
	if t.holds(held) {
		t.held, r.columns = held, rows
		t.single = held.DType == hooks.F32 && (t.f.round == Plain || t.f.round == Model && t.f.DType == hooks.F32)
		if !held.Alone || t.single {
			t.norms = norms(t.right.v, n)
		}
	}
	workers := min(runtime.GOMAXPROCS(0), (rows+t.rows-1)/t.rows)
	errs := make([]error, workers)
	var next atomic.Int64
	var wait sync.WaitGroup
	for k := range workers {
		mine := t
		wait.Go(func() { errs[k] = mine.multiply(out, &next) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
