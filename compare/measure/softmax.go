package measure

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// MaxVocabulary is the longest row of logits that is looked at. The largest vocabulary has a quarter of that.
const MaxVocabulary = 1 << 20

// Softmaxes measures how far the distributions are apart that two rows of logits stand for. It keeps its buffers from row
// to row.
type Softmaxes struct{ p, q []float64 }

// Divergence is the Kullback-Leibler divergence KL(P‖Q) = Σ p·ln(p/q) in nats, p = exp(r)/Σexp(r) the softmax of the
// reference's row and q that of the local one: how many nats a token that the reference draws costs the local side on
// average beyond what it costs the reference.
//
// Since Σp = Σq = 1, it is summed as Σ p·(x − 1 + e^−x) with x = ln(p/q), in which no term is negative: small divergences
// are as exact as large ones, where the plain sum would cancel to nothing below 1e-16. All of it is float64.
//
// A logit of −Inf, or so low that its exponential is zero, is a token that cannot be drawn: it adds nothing where the
// reference has it. Where only the local side has −Inf the divergence is +Inf, however unlikely the reference thought the
// token. A NaN, +Inf, or a row that is all −Inf, on either side, has no softmax: the divergence is NaN. Adding a constant
// to a row changes nothing.
func (s *Softmaxes) Divergence(l, r []float64) float64 {
	if slices.Equal(l, r) && Finite(slices.Max(r)) { // no NaN is equal to itself
		return 0
	}
	if len(s.p) < len(r) {
		s.p, s.q = make([]float64, len(r)), make([]float64, len(r))
	}
	topP, sumP := exponentials(s.p, r)
	topQ, sumQ := exponentials(s.q, l)
	shift := topP - topQ + math.Log(sumP) - math.Log(sumQ) // of the logits, so that r − l − shift = ln(p/q)
	if !Finite(shift) {
		return math.NaN()
	}
	var kl float64
	for i, b := range r {
		p, q := s.p[i]/sumP, s.q[i]/sumQ
		switch {
		case l[i] == math.Inf(-1) && b != l[i]:
			return math.Inf(1)
		case p == 0: // also −Inf on both sides
			kl += q
		default:
			kl += relativeEntropy(p, q, b-l[i]-shift)
		}
	}
	return kl
}

// exponentials sets dst to exp(x − top) of a row, top its largest, and returns top and the sum.
func exponentials(dst, row []float64) (top, sum float64) {
	top = math.Inf(-1)
	for _, x := range row {
		top = max(top, x) // NaN if one is
	}
	for i, x := range row {
		dst[i] = floats.Exp(x - top)
		sum += dst[i]
	}
	return top, sum
}

// relativeEntropy is p·(x − 1 + e^−x) where q = p·e^−x. Below 0.01 the first five terms of its series in x are good to
// 1e-13 of it, where the difference would lose more and more.
func relativeEntropy(p, q, x float64) float64 {
	if math.Abs(x) < 0.01 {
		series := 1.0 / 720
		for _, c := range [...]float64{-1.0 / 120, 1.0 / 24, -1.0 / 6, 1.0 / 2} {
			series = c + float64(x*series)
		}
		return float64(p * x * x * series)
	}
	return float64(p*x) - p + q
}

// spreads is what the rows of a pair of logits have of divergence.
type spreads struct {
	Rows      int
	Worst     float64 // NaN when it is undefined in every row
	At        int     // the first row with it
	Undefined int64
}

// memoryOfRows bounds the memory of the rows measured at a time, in bytes; one row of maximal length takes all of it.
const memoryOfRows = 32 * MaxVocabulary

// Divergences measures every row of a pair, several at a time. Each row is measured separately and the first worst row is kept, so the number
// of workers does not matter.
func Divergences(ctx context.Context, lv, rv View) (spreads, error) {
	size := rv.Shape[len(rv.Shape)-1]
	all := spreads{Rows: Elements(rv.Shape) / size, Worst: math.NaN()}
	batch := max(1, lanes.Block/size) // rows read at a time
	workers := min(runtime.GOMAXPROCS(0), max(1, memoryOfRows/(32*size*batch)), (all.Rows+batch-1)/batch)
	var next atomic.Int64
	var wait sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range workers {
		wait.Go(func() {
			var s Softmaxes
			l, r := make([]float64, batch*size), make([]float64, batch*size)
			for {
				first := int(next.Add(1)-1) * batch
				if first >= all.Rows {
					return
				}
				n := min(batch, all.Rows-first)
				err := errors.Join(ctx.Err(), lv.Values(l[:n*size], first*size), rv.Values(r[:n*size], first*size))
				if err != nil {
					next.Store(int64(all.Rows)) // for all workers
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
				for k := range n {
					kl := s.Divergence(l[k*size:(k+1)*size], r[k*size:(k+1)*size])
					mu.Lock()
					all.add(first+k, kl)
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return all, failed
}

// add takes in the divergence of one row.
func (s *spreads) add(row int, kl float64) {
	switch {
	case kl != kl:
		s.Undefined++
	case s.Worst != s.Worst, kl > s.Worst, kl == s.Worst && row < s.At:
		s.Worst, s.At = kl, row
	}
}
