package program

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// tileRows is how many rows of a weight a worker takes at once: as many as [four] multiplies.
const tileRows = 4

// right holds the right-hand sides of products with W: x itself, and what bounds need of it.
type right struct {
	operand
	squared []float64 // x², for Σ (w·x)²
	abs     []float64 // |x|, for Σ |w·x|
	bounded bool      // some element of x has a bound
}

func (a *Arith) right(x operand) right {
	r := right{operand: x, bounded: !zero(x.e)}
	switch {
	case !a.Bounds:
	case a.Rigorous:
		r.abs = absolute(slices.Clone(x.v))
	default:
		r.squared = square(slices.Clone(x.v))
	}
	return r
}

// affine multiplies. A row of W is widened once for all rows of x; rows are shared out over the cores a few at a time. Every
// element is one sum in the order of k, so results depend neither on how many cores there are nor on the other rows.
// Its bound is that of a sum of as many products as W has columns, and of one term more for the bias.
func (r *run) affine(i int, out operand) error {
	s := &r.p.Steps[i]
	w := r.c.W[r.p.Steps[s.Args[1].step].Index]
	rows, n := w.Size()
	c := r.choice(i)
	x := r.packed(s.Args[0])
	if _, rounds := w.(OperandRounder); rounds {
		x = operand{slices.Clone(x.v), slices.Clone(x.e)}
		RoundOperand(w, x.v, x.e)
	}
	t := tile{
		Arith: &r.a, f: r.at(i, c.Round), weights: w, all: rows, n: n,
		right: r.a.right(x),
	}
	t.way, t.after = s.ofSum(c.Way)
	t.tokens = len(t.right.v) / n
	if len(s.Args) == 3 {
		t.bias = r.packed(s.Args[2]).v
	}
	workers := min(runtime.GOMAXPROCS(0), (rows+tileRows-1)/tileRows)
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

// tile is some rows of W being multiplied with every row of x, and scratch for it.
type tile struct {
	*Arith
	f       finisher
	way     uint8 // how sums are taken
	after   uint8 // how the bias comes to them
	weights Rows
	all, n  int // rows and columns of W
	right   right
	tokens  int
	bias    []float64
	w       []float64 // the rows of the tile
	// Of each product: Σ w·x, and for its bound Σ (w·x)², Σ |w·x| and Σ |w|·E.
	sums, squares, sizes, spreads []float64
}

// multiply computes rows of the result, a tile at a time, until another worker has taken the last one.
func (t *tile) multiply(out operand, next *atomic.Int64) error {
	t.w = make([]float64, tileRows*t.n)
	size := tileRows * t.tokens
	t.sums, t.squares, t.sizes, t.spreads = make([]float64, size), make([]float64, size), make([]float64, size), make([]float64, size)
	for {
		from := int(next.Add(tileRows)) - tileRows
		if from >= t.all {
			return nil
		}
		count := min(tileRows, t.all-from)
		t.w = t.w[:count*t.n]
		for r := range count {
			if err := t.weights.Row(t.w[r*t.n:][:t.n], from+r); err != nil {
				return err
			}
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
	if t.Sum != nil || t.way != 0 {
		for i := range total {
			w, x := operand{v: t.w[i%count*t.n:][:t.n]}, t.right.slice(i/count*t.n, t.n)
			if t.Sum != nil {
				v, e := t.ordered(w.v, x, from+i%count)
				set(i, v, e)
				continue
			}
			if t.Bounds {
				w.e = make([]float64, t.n)
			}
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
	dots(t.sums, t.w, t.right.v, t.n)
	t.bounds()
	for i := range total {
		p := partial{sum: t.sums[i], squares: t.squares[i], abs: t.sizes[i], e: t.spreads[i]}
		if t.bias == nil {
			v, e := t.f.total(p, t.n)
			set(i, v, e)
			continue
		}
		v, e := t.biased(p, t.bias[from+i%count])
		set(i, v, e)
	}
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
	case math.Abs(y) < f.absorbed()*math.Abs(x):
		return f.narrowBound(x, xe)
	case math.Abs(x)+xe < f.absorbed()*math.Abs(y):
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
func (t *tile) bounds() {
	if !t.Bounds {
		return
	}
	if t.right.bounded {
		dots(t.spreads, absolute(t.w), t.right.e, t.n)
	}
	if t.Rigorous {
		dots(t.sizes, absolute(t.w), t.right.abs, t.n)
	} else {
		dots(t.squares, square(t.w), t.right.squared, t.n)
	}
}

// absolute replaces numbers by their absolute values.
func absolute(x []float64) []float64 {
	for i, v := range x {
		x[i] = math.Abs(v)
	}
	return x
}

// square replaces numbers by their squares.
func square(x []float64) []float64 {
	for i, v := range x {
		x[i] = v * v
	}
	return x
}

// dots computes the dot product of each row of x with each row of w, n numbers long each: first those of one row of x.
func dots(sums, w, x []float64, n int) {
	rows, tokens := len(w)/n, len(x)/n
	row := func(m []float64, i int) []float64 { return m[i*n:][:n] }
	t := 0
	for ; t+4 <= tokens; t += 4 {
		for r := range rows {
			s := four(row(w, r), row(x, t), row(x, t+1), row(x, t+2), row(x, t+3))
			sums[t*rows+r], sums[(t+1)*rows+r], sums[(t+2)*rows+r], sums[(t+3)*rows+r] = s[0], s[1], s[2], s[3]
		}
	}
	for ; t < tokens; t++ {
		if rows == tileRows {
			*(*[4]float64)(sums[t*rows:]) = four(row(x, t), row(w, 0), row(w, 1), row(w, 2), row(w, 3))
			continue
		}
		for r := range rows {
			sums[t*rows+r] = dot(row(w, r), row(x, t))
		}
	}
}
