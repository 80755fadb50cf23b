package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// The tile of a product: rowTile rows of depth columns are widened once and then meet every token. 4 x 512 float64 are
// half of a first-level cache, which leaves room for the tokens' columns; more rows would spill accumulators.
const (
	rowTile = 4
	depth   = 512
)

// serialWork is the number of multiplications below which a product is not worth a second goroutine.
const serialWork = 1 << 16

// Mul computes dst[t,o] = R(Σ_k W[o,k]·x[t,k] + bias[o]) for x [tokens, Cols] and dst [tokens, Rows]; bias may be nil.
// The sum is exact to float64 rounding, becomes a float32 once, and is then rounded to the dtype. Weights are read once,
// however many tokens there are. The error is that of a file that the weights are read from.
func (m *Matrix) Mul(dst, x []float32, tokens int, bias []float32) error {
	from := 0 // the first row that is left for plain
	var failed firstError
	if v := m.vectors(); v != nil {
		from = m.Rows - m.Rows%v.count
		laid := widePool.get(groupsRoom(tokens, m.Cols))
		groups := v.groups(x, tokens, m.Cols, laid)
		to := output{dst: dst, rows: m.Rows, bias: bias, arith: m.arith}
		parallel(from/v.count, from*m.Cols*tokens, func(lo, hi int) {
			failed.set(v.multiply(to, m, groups, lo*v.count, hi*v.count))
		})
		widePool.put(laid)
	}
	if from < m.Rows {
		m.plain(dst, x, tokens, bias, from)
	}
	return failed.err
}

// firstError keeps one error of several goroutines.
type firstError struct {
	once sync.Once
	err  error
}

func (f *firstError) set(err error) {
	if err != nil {
		f.once.Do(func() { f.err = err })
	}
}

// plain is Mul of the rows from one on, without vectors.
func (m *Matrix) plain(dst, x []float32, tokens int, bias []float32, from int) {
	wide := widePool.get(tokens * m.Cols)
	for i, v := range x[:tokens*m.Cols] {
		wide[i] = float64(v)
	}
	rows := m.Rows - from
	parallel((rows+rowTile-1)/rowTile, rows*m.Cols*tokens, func(lo, hi int) {
		s := tilePool.get(rowTile*depth + tokens*rowTile)
		for tile := lo; tile < hi; tile++ {
			m.tile(dst, wide, tokens, from+tile*rowTile, bias, s)
		}
		tilePool.put(s)
	})
	widePool.put(wide)
}

// tile computes rowTile outputs from row on for every token. Past the last row it repeats the last one and drops the
// result.
func (m *Matrix) tile(dst []float32, x []float64, tokens, row int, bias []float32, scratch []float64) {
	acc := scratch[rowTile*depth : rowTile*depth+tokens*rowTile]
	clear(acc)
	for from := 0; from < m.Cols; from += depth {
		n := min(depth, m.Cols-from)
		var w [rowTile][]float64
		for r := range w {
			w[r] = scratch[r*depth : r*depth+n]
			m.widen(w[r], m.data, min(row+r, m.Rows-1), from)
		}
		t := 0
		for ; t+1 < tokens; t += 2 {
			dot2(acc[t*rowTile:], &w, x[t*m.Cols+from:][:n], x[(t+1)*m.Cols+from:][:n])
		}
		if t < tokens {
			dot1(acc[t*rowTile:], &w, x[t*m.Cols+from:][:n])
		}
	}
	for t := range tokens {
		for r := range min(rowTile, m.Rows-row) {
			sum := acc[t*rowTile+r]
			if bias != nil {
				sum += float64(bias[row+r])
			}
			dst[t*m.Rows+row+r] = m.arith.R(float32(sum))
		}
	}
}

// dot2 adds the products of four rows with two tokens to acc, eight independent sums.
func dot2(acc []float64, w *[rowTile][]float64, x0, x1 []float64) {
	n := len(x0)
	w0, w1, w2, w3, x1 := w[0][:n], w[1][:n], w[2][:n], w[3][:n], x1[:n]
	var a0, a1, a2, a3, b0, b1, b2, b3 float64
	for k, a := range x0 {
		b := x1[k]
		v := w0[k]
		a0 += v * a
		b0 += v * b
		v = w1[k]
		a1 += v * a
		b1 += v * b
		v = w2[k]
		a2 += v * a
		b2 += v * b
		v = w3[k]
		a3 += v * a
		b3 += v * b
	}
	acc = acc[:2*rowTile]
	acc[0] += a0
	acc[1] += a1
	acc[2] += a2
	acc[3] += a3
	acc[4] += b0
	acc[5] += b1
	acc[6] += b2
	acc[7] += b3
}

// dot1 is dot2 for one token, with sums in the same order: a token's result does not depend on the number of tokens in the call.
func dot1(acc []float64, w *[rowTile][]float64, x []float64) {
	n := len(x)
	w0, w1, w2, w3 := w[0][:n], w[1][:n], w[2][:n], w[3][:n]
	var a0, a1, a2, a3 float64
	for k, a := range x {
		a0 += w0[k] * a
		a1 += w1[k] * a
		a2 += w2[k] * a
		a3 += w3[k] * a
	}
	acc = acc[:rowTile]
	acc[0] += a0
	acc[1] += a1
	acc[2] += a2
	acc[3] += a3
}

// shares is the number of pieces of each core's work. A core that is busy elsewhere leaves its pieces to the others.
const shares = 8

// parallel splits [0, n) over the cores when work, a count of multiplications, is worth it. How the range is split
// changes no result: every output is computed by one call, in one order.
func parallel(n, work int, do func(lo, hi int)) {
	cores := min(runtime.GOMAXPROCS(0), n)
	if cores < 2 || work < serialWork {
		do(0, n)
		return
	}
	pieces := min(n, cores*shares)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range cores {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < pieces; i = int(next.Add(1)) - 1 {
				do(n*i/pieces, n*(i+1)/pieces)
			}
		})
	}
	wg.Wait()
}

// pool lends scratch slices, so repeated products allocate nothing. It grows to the largest number of slices lent at once.
type pool[T any] struct {
	mu   sync.Mutex
	free [][]T
}

var (
	widePool, tilePool pool[float64]
	bytePool           pool[byte]
)

// minScratch is the smallest allocation, so that a model's small products share slices.
const minScratch = 1 << 13

func (p *pool[T]) get(n int) []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		s := p.free[last]
		p.free = p.free[:last]
		if cap(s) >= n {
			return s[:n]
		}
	}
	return make([]T, n, max(n, minScratch))
}

func (p *pool[T]) put(s []T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
}
