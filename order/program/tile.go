package program

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/products"
)

// tile is some rows of W being multiplied with every row of x, and scratch for it.
type tile struct {
	*Arith
	streamed
	holding
	totals
	f      finisher
	own    func(w, x, bound []float64) (v, e float64) // how the engine takes them, see [Product]; nil: as the way says
	way    uint8                                      // how sums are taken
	after  uint8                                      // how the bias comes to them
	right  right
	tokens int
	bias   []float64
	w      []float64 // the rows of the tile
}

// streamed is W, which is read some rows at a time.
type streamed struct {
	weights Rows
	all, n  int // rows and columns
	digits  int // of its numbers, at most; 0 where that is not known
	rows    int // at once
}

// holding is what [tile.against] needs.
type holding struct {
	held   *Held     // nil: every element has its bound
	norms  []float64 // of the rows of x
	factor float64   // of the rounding of a sum, see [finisher.ofSum]
	single bool      // the result is float32, of every engine
	open   []int     // elements of a block that have their bounds
}

// totals are those of each product of a tile: Σ w·x, and for its bound Σ (w·x)², Σ |w·x| and Σ |w|·E.
type totals struct{ sums, squares, sizes, spreads []float64 }

// whole reports whether sums are taken in float64, each as one.
func (t *tile) whole() bool { return t.Sum == nil && t.way == 0 && t.own == nil }

// multiply computes rows of the result, a tile at a time, until another worker has taken the last one.
func (t *tile) multiply(out operand, next *atomic.Int64) error {
	t.w = make([]float64, t.rows*t.n)
	size := t.rows * t.tokens
	t.sums, t.squares, t.sizes, t.spreads = make([]float64, size), make([]float64, size), make([]float64, size), make([]float64, size)
	for {
		from := int(next.Add(int64(t.rows))) - t.rows
		if from >= t.all {
			return nil
		}
		count := min(t.rows, t.all-from)
		if err := readRows(t.weights, t.w, from, count); err != nil {
			return err
		}
		t.products(out, from, count)
	}
}

// products finishes the sums of a tile.
func (t *tile) products(out operand, from, count int) {
	set := func(i int, v, e float64) {
		at := i/count*t.all + from + i%count
		if out.v[at] = v; out.e != nil {
			out.e[at] = e
		}
	}
	total := count * t.tokens
	if t.Sum != nil && t.own == nil && t.bias == nil && zero(t.right.e) {
		t.inFours(set, count)
		return
	}
	if !t.whole() {
		var exact []float64 // the rows of W have no bound
		if t.Bounds {
			exact = make([]float64, t.n)
		}
		for i := range total {
			w, x := operand{v: t.w[i%count*t.n:][:t.n]}, t.right.slice(i/count*t.n, t.n)
			if t.own != nil {
				v, e := t.inOwn(w.v, x, from+i%count)
				set(i, v, e)
				continue
			}
			if t.Sum != nil {
				v, e := t.ordered(w.v, x, from+i%count)
				set(i, v, e)
				continue
			}
			w.e = exact
			of := t.f
			if t.bias != nil {
				of = t.product()
			}
			v, e := of.split(t.way, t.n, func(from, to int) partial { return t.Arith.products(x, w, from, to) })
			if t.bias != nil {
				v, e = t.f.plus(v, e, t.bias[from+i%count])
			}
			set(i, v, e)
		}
		return
	}
	t.right.values.Dots(t.sums, t.w, count, t.digits)
	if t.held != nil {
		t.against(out, from, count)
		return
	}
	t.bounds(count)
	for i := range total {
		p := partial{sum: t.sums[i], squares: t.squares[i], abs: t.sizes[i], e: t.spreads[i]}
		if t.bias == nil {
			v, e := t.f.totalOf(p, t.n, t.factor)
			set(i, v, e)
			continue
		}
		v, e := t.biased(p, t.bias[from+i%count])
		set(i, v, e)
	}
}

// inFours finishes sums in the order of t.Sum, those of four rows of W at a time.
func (t *tile) inFours(set func(i int, v, e float64), count int) {
	row := func(k int) []float64 { return t.w[k*t.n:][:t.n] }
	for token := range t.tokens {
		x, k := t.right.v[token*t.n:][:t.n], 0
		for ; k+4 <= count; k += 4 {
			for at, v := range t.Sum.four(x, [4][]float64{row(k), row(k + 1), row(k + 2), row(k + 3)}) {
				v, e := t.f.one(v, 0)
				set(token*count+k+at, v, e)
			}
		}
		for ; k < count; k++ {
			v, e := t.f.one(t.Sum.dot(row(k), x), 0)
			set(token*count+k, v, e)
		}
	}
}

// inOwn is the product of a row of W and x as the engine takes it, the bias after it. No number of float32 is rounded once more.
func (t *tile) inOwn(w []float64, x operand, row int) (float64, float64) {
	if zero(x.e) {
		x.e = nil
	}
	v, e := t.own(w, x.v, x.e)
	if t.bias == nil {
		return t.f.narrowBound(v, e)
	}
	return t.f.plus(v, e, t.bias[row])
}

// biased finishes a sum with a bias.
func (t *tile) biased(p partial, bias float64) (float64, float64) {
	if t.after == WayOneSum && !t.Hull { // one more term: some engines add it last, others begin with it
		p.sum += bias
		if t.Bounds {
			p.squares += float64(bias * bias)
			p.abs += math.Abs(bias)
		}
		return t.f.total(p, t.n+1)
	}
	v, e := t.product().total(p, t.n)
	return t.f.plus(v, e, bias)
}

// product finishes a sum to which the bias is added.
func (t *tile) product() finisher {
	of := t.f
	of.last = false
	if of.round = Plain; t.after == WayBiasAfterRounding {
		of.round = Model
	}
	return of
}

// plus adds an exact number to one with a bound; see [run.sum] for what is absorbed.
func (f finisher) plus(x, xe, y float64) (float64, float64) {
	switch {
	case f.round >= None || !f.Bounds:
	case math.Abs(y) < f.absorbed()*math.Abs(x) && math.Abs(x) >= normal32:
		return f.narrowBound(x, xe)
	case math.Abs(x)+xe < f.absorbed()*math.Abs(y) && math.Abs(y) >= normal32:
		return f.narrowBound(y, 0)
	}
	return f.one(x+y, xe)
}

// ordered is the product of a row of W and x in the order of t.Sum. Engines add the bias last, or begin with it: the bound
// reaches from one to the other.
func (t *tile) ordered(w []float64, x operand, row int) (float64, float64) {
	product := func(k int) (float64, float64, float64, float64) { return w[k], 0, x.v[k], x.bound(k) }
	sum := func() (float64, float64) { return t.replay(t.n, product) }
	if zero(x.e) {
		sum = func() (float64, float64) { return t.Sum.dot(w, x.v), 0 }
	}
	if t.bias == nil {
		return t.f.one(sum())
	}
	of := t.f
	of.round = Plain
	bias, at := t.bias[row], 0
	if t.Sum.Reversed {
		at = t.n
	}
	v, e := of.one(sum())
	v, e = t.f.plus(v, e, bias)
	bv, be := t.f.one(t.replay(t.n+1, func(k int) (float64, float64, float64, float64) {
		switch {
		case k == at:
			return bias, 0, 1, 0
		case k > at:
			k--
		}
		return product(k)
	}))
	return v, max(e, math.Abs(bv-v)+be)
}

// bounds sums up what the bounds of the products need, by the same loops. It uses w up.
func (t *tile) bounds(count int) {
	if !t.Bounds {
		return
	}
	w := t.w[:count*t.n]
	if t.right.bounds != nil {
		absolute(w)
		t.right.bounds.Dots(t.spreads, t.w, count, t.digits)
	}
	if t.Rigorous {
		absolute(w)
		t.right.abs.Dots(t.sizes, t.w, count, t.digits)
	} else {
		products.Square(w)
		t.right.squared.Dots(t.squares, t.w, count, 2*t.digits)
	}
}

// absolute replaces numbers by their absolute values.
func absolute(x []float64) []float64 {
	for i, v := range x {
		x[i] = math.Abs(v)
	}
	return x
}

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

// right lays out x, whose rows have n elements like the rows of W. whole: loops over several rows at once take the
// sums.
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
	c.W[at] = SomeRows{c.W[at], columns}
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
		Arith: &r.a, f: r.at(i, c.Round),
		streamed: streamed{weights: w, all: rows, n: n, rows: min(max(tileNumbers/max(n, 1)/products.Tile, 1)*products.Tile, tileRows)},
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
