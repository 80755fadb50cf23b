package op

import (
	"math"
	"runtime"
	"sync"
)

// Linear is R(Σ_k W[o,k]·x[k] + b[o]), accumulated in float32 and rounded once. Input: x. Weights: W [out, in] and, with
// Bias, b [out]. An output shape with more axes splits the last one, row-major.
type Linear struct {
	Bias bool `json:"bias,omitempty"`
}

// Kind is "linear".
func (Linear) Kind() string { return "linear" }

// Eval multiplies. A row of W is widened once for all tokens; blocks of rows are shared out over the cores, and since
// every element is one sum in one order, results do not depend on how many there are.
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
	workers := min(runtime.GOMAXPROCS(0), (rows+linearBlock-1)/linearBlock)
	errs := make([]error, workers)
	var next block
	var wait sync.WaitGroup
	for k := range workers {
		wait.Go(func() { errs[k] = c.multiply(out, bias, rows, &next) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return Value{}, err
		}
	}
	return out, nil
}

// linearBlock is how many rows of a weight a worker takes at once.
const linearBlock = 16

// block hands out blocks of rows.
type block struct {
	sync.Mutex
	row int
}

func (b *block) take(rows int) (from, to int) {
	b.Lock()
	defer b.Unlock()
	from = b.row
	b.row = min(from+linearBlock, rows)
	return from, b.row
}

// multiply computes blocks of rows until there are none left.
func (c Call) multiply(out Value, bias []float64, rows int, next *block) error {
	x := c.In[0]
	_, n := c.W[0].Size()
	tokens := len(x.Data) / n
	w, sums := make([]float64, n), make([]float64, tokens)
	for {
		from, to := next.take(rows)
		if from == to {
			return nil
		}
		for r := from; r < to; r++ {
			if err := c.W[0].Row(w, r); err != nil {
				return err
			}
			dots(sums, w, x.Data)
			for t, s := range sums {
				y := c.product(s, w, x.slice(t*n, n))
				if bias != nil {
					y = c.add(y, Num{V: bias[r]})
				}
				out.set(t*rows+r, y)
			}
		}
	}
}

// product finishes one sum of products w·x that is s.
func (c Call) product(s float64, w []float64, x Value) Num {
	switch {
	case c.Sum != nil:
		return c.replay(len(w), func(k int) (Num, Num) { return Num{V: w[k]}, x.at(k) })
	case !c.Bounds:
		return c.step(s, 0)
	}
	p := partial{sum: s}
	for k, v := range x.Data {
		t := math.Abs(float64(w[k] * v))
		p.squares += float64(t * t)
		p.abs += t
		if x.Bound != nil {
			p.e += float64(math.Abs(w[k]) * x.Bound[k])
		}
	}
	return c.total(p, len(w))
}

// dots computes the dot product of w with each row of x. Four rows at a time share one reading of w; a row that is left
// over is summed in four parts. Products are converted so that no compiler fuses them with the addition: results are
// the same on every processor.
func dots(sums, w, x []float64) {
	n := len(w)
	t := 0
	for ; t+4 <= len(sums); t += 4 {
		a, b, c, d := x[t*n:][:n], x[(t+1)*n:][:n], x[(t+2)*n:][:n], x[(t+3)*n:][:n]
		var sa, sb, sc, sd float64
		for k, v := range w {
			sa += float64(v * a[k])
			sb += float64(v * b[k])
			sc += float64(v * c[k])
			sd += float64(v * d[k])
		}
		sums[t], sums[t+1], sums[t+2], sums[t+3] = sa, sb, sc, sd
	}
	for ; t < len(sums); t++ {
		sums[t] = dot1(w, x[t*n:][:n])
	}
}

func dot1(w, x []float64) float64 {
	var s0, s1, s2, s3 float64
	x = x[:len(w)]
	k := 0
	for ; k+4 <= len(w); k += 4 {
		s0 += float64(w[k] * x[k])
		s1 += float64(w[k+1] * x[k+1])
		s2 += float64(w[k+2] * x[k+2])
		s3 += float64(w[k+3] * x[k+3])
	}
	for ; k < len(w); k++ {
		s0 += float64(w[k] * x[k])
	}
	return (s0 + s1) + (s2 + s3)
}
