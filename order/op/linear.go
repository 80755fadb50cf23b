package op

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Linear is R(Σ_k W[o,k]·x[k] + b[o]), accumulated in float32 and rounded once. Input: x. Weights: W [out, in] and, with
// Bias, b [out]. An output shape with more axes splits the last one, row-major.
type Linear struct {
	Bias bool `json:"bias,omitempty"`
}

// Kind is "linear".
func (Linear) Kind() string { return "linear" }

// Eval multiplies. A row of W is widened once for all tokens; rows are shared out over the cores a few at a time. Every
// element is one sum in the order of k, so results depend neither on how many cores there are nor on the other tokens.
// Bound: that of a sum of as many products as W has columns, and of one term more for the bias, see [Arith.total]. Engines that
// round elsewhere round the sum before they add the bias.
func (o Linear) Eval(c Call) (Value, error) {
	out := c.result()
	rows, _ := c.W[0].Size()
	var bias []float64
	if o.Bias {
		var err error
		if bias, err = c.vector(1); err != nil {
			return Value{}, err
		}
	}
	right := c.right()
	workers := min(runtime.GOMAXPROCS(0), (rows+tileRows-1)/tileRows)
	errs := make([]error, workers)
	var next atomic.Int64
	var wait sync.WaitGroup
	for k := range workers {
		wait.Go(func() { errs[k] = c.multiply(out, bias, right, &next) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return Value{}, err
		}
	}
	return out, nil
}

// tileRows is how many rows of a weight a worker takes at once: as many as [four] multiplies.
const tileRows = 4

// right holds the right-hand sides of products with W: x itself, and what bounds need of it.
type right struct {
	x       Value
	squared []float64 // x², for Σ (w·x)²
	abs     []float64 // |x|, for Σ |w·x|
}

func (c Call) right() right {
	r := right{x: c.In[0]}
	switch {
	case !c.Bounds:
	case c.Rigorous:
		r.abs = absolute(slices.Clone(r.x.Data))
	default:
		r.squared = square(slices.Clone(r.x.Data))
	}
	return r
}

// multiply computes rows of the result, a tile at a time, until another worker has taken the last one.
func (c Call) multiply(out Value, bias []float64, right right, next *atomic.Int64) error {
	rows, n := c.W[0].Size()
	t := tile{Call: c, right: right, tokens: len(right.x.Data) / n, w: make([]float64, tileRows*n)}
	for {
		from := int(next.Add(tileRows)) - tileRows
		if from >= rows {
			return nil
		}
		count := min(tileRows, rows-from)
		t.w = t.w[:count*n]
		for r := range count {
			if err := c.W[0].Row(t.w[r*n:][:n], from+r); err != nil {
				return err
			}
		}
		if t.bias = nil; bias != nil {
			t.bias = bias[from:][:count]
		}
		for i, y := range t.products(n) {
			out.set(i/count*rows+from+i%count, y)
		}
	}
}

// tile is some rows of W being multiplied with every row of x, and scratch for it.
type tile struct {
	Call
	right  right
	tokens int
	w      []float64
	bias   []float64 // of these rows; nil for none
	out    []Num
	// Of each product: Σ w·x, and for its bound Σ (w·x)², Σ |w·x| and Σ |w|·E.
	sums, squares, sizes, spreads []float64
}

// products are the sums of n products each: first those of one row of x with each row of W.
func (t *tile) products(n int) []Num {
	rows := len(t.w) / n
	size, x := rows*t.tokens, t.right.x
	if t.out == nil {
		t.out, t.sums = make([]Num, size), make([]float64, size)
		t.squares, t.sizes, t.spreads = make([]float64, size), make([]float64, size), make([]float64, size)
	}
	out := t.out[:size]
	if t.Sum != nil {
		for i := range out {
			out[i] = t.ordered(i%rows, x.slice(i/rows*n, n))
		}
		return out
	}
	dots(t.sums, t.w, x.Data, n)
	t.bounds(n)
	for i := range out {
		p := partial{sum: t.sums[i], squares: t.squares[i], abs: t.sizes[i], e: t.spreads[i]}
		switch {
		case t.bias == nil:
			out[i] = t.total(p, n)
		case t.Inner == Every, t.Inner == Free: // a step of its own, before which the sum may be rounded
			out[i] = t.add(t.total(p, n), Num{V: t.bias[i%rows]})
		default: // one more term: some engines add it last, others begin with it
			p.add(Num{V: t.bias[i%rows]}, t.Bounds)
			out[i] = t.total(p, n+1)
		}
	}
	return out
}

// ordered is the product of a row of W and x in the order of t.Sum. Engines add the bias last, or begin with it: the bound
// reaches from one to the other.
func (t *tile) ordered(r int, x Value) Num {
	n := len(x.Data)
	w := t.w[r*n:][:n]
	product := func(k int) (Num, Num) { return Num{V: w[k]}, x.at(k) }
	if t.bias == nil && x.Bound == nil {
		return t.step(t.Sum.dot(w, x.Data), 0)
	}
	y := t.replay(n, product)
	if t.bias == nil {
		return y
	}
	bias, at := Num{V: t.bias[r]}, 0
	if t.Sum.Reversed {
		at = n
	}
	y = t.add(y, bias)
	begun := t.replay(n+1, func(k int) (Num, Num) {
		switch {
		case k == at:
			return bias, Num{V: 1}
		case k > at:
			k--
		}
		return product(k)
	})
	y.E = max(y.E, math.Abs(begun.V-y.V)+begun.E)
	return y
}

// bounds sums up what the bounds of the products need, by the same loops. It uses w up.
func (t *tile) bounds(n int) {
	if !t.Bounds {
		return
	}
	if bound := t.right.x.Bound; bound != nil {
		dots(t.spreads, absolute(t.w), bound, n)
	}
	if t.Rigorous {
		dots(t.sizes, absolute(t.w), t.right.abs, n)
	} else {
		dots(t.squares, square(t.w), t.right.squared, n)
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
			s := four(row(w, r), x[t*n:])
			sums[t*rows+r], sums[(t+1)*rows+r], sums[(t+2)*rows+r], sums[(t+3)*rows+r] = s[0], s[1], s[2], s[3]
		}
	}
	for ; t < tokens; t++ {
		if rows == tileRows {
			*(*[4]float64)(sums[t*rows:]) = four(row(x, t), w)
			continue
		}
		for r := range rows {
			sums[t*rows+r] = dot(row(w, r), row(x, t))
		}
	}
}

// four computes the dot products of v with the four rows that m begins with. One sum has to wait for its last addition;
// four at a time keep a processor busy. A product is converted so that no compiler fuses it with the addition: results
// are the same on every processor.
func four(v, m []float64) [4]float64 {
	n := len(v)
	a, b, c, d := m[:n], m[n:][:n], m[2*n:][:n], m[3*n:][:n]
	var sa, sb, sc, sd float64
	for k, v := range v {
		sa += float64(v * a[k])
		sb += float64(v * b[k])
		sc += float64(v * c[k])
		sd += float64(v * d[k])
	}
	return [4]float64{sa, sb, sc, sd}
}

// dot is one of them alone.
func dot(v, a []float64) float64 {
	a = a[:len(v)]
	var s float64
	for k, v := range v {
		s += float64(v * a[k])
	}
	return s
}
