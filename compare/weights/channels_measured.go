package weights

import (
	"context"
	"math"
)

// The factors of a norm are known: the original's weight over the port's. Those of columns and rows of codes are measured, as the slope of the
// port's numbers over the original's, with the standard error that the codes leave it. The null hypothesis is that both are the same
// factors; the statistic is the mean of the squared differences in standard errors.
const (
	sameFactors  = 3.0  // that mean, at most: 1 is what chance makes where errors are independent
	someFactors  = 6.0  // so many standard deviations of chance the factors have to be nearer than none would be
	mostLevel    = 0.02 // from 1: what all factors together may be off by; half a per cent was the most in files of quantisers
	leastFactors = 0.02 // how far factors have to be from their mean, as a root mean square, where no norm shows them
	wideFactor   = 6.0  // standard errors, and
	nearFactor   = 0.03
)

// slopes are, for each column or row, the sums of which its factor is made: Σ l·x, Σ x², Σ l² over n elements. An element with the lowest or
// the highest code of its group is none of them: it stands for what a writer may have cut off, and its neighbours do not move with it.
type slopes struct {
	both, whole, own, n []float64
}

func newSlopes(size int) *slopes {
	return &slopes{make([]float64, size), make([]float64, size), make([]float64, size), make([]float64, size)}
}

// of is a factor and its squared standard error; false where the numbers are too few or zero.
func (s *slopes) of(i int) (factor, variance float64, ok bool) {
	if !(s.whole[i] > 0) || s.n[i] < 8 {
		return 0, 0, false
	}
	factor = s.both[i] / s.whole[i]
	rest := max(s.own[i]-factor*s.both[i], 0)
	return factor, rest / s.whole[i] / (s.n[i] - 1), factor-factor == 0
}

// measure reads a tensor and the original for the factors of its columns and rows.
func (c *comparison) measure(ctx context.Context, r *reader, local *Tensor, v view) (columns, rows *slopes, err error) {
	n, m := local.flat()
	columns, rows = newSlopes(m), newSlopes(n)
	for p := range v.parts {
		b, err := r.read(ctx, local, v, p)
		if err != nil {
			return nil, nil, err
		}
		for i, l := range b.local {
			x := b.original[i]
			if b.coding != nil && b.Last(i, l) {
				continue
			}
			for _, to := range []struct {
				s  *slopes
				at int
			}{{columns, p.c0 + i%p.columns()}, {rows, p.r0 + i/p.columns()}} {
				to.s.both[to.at] += l * x
				to.s.whole[to.at] += x * x
				to.s.own[to.at] += l * l
				to.s.n[to.at]++
			}
		}
	}
	return columns, rows, nil
}

// measured are factors with their squared standard errors.
type measured struct{ factor, variance []float64 }

// rowScales are the scales by which the rows of a tensor are divided, whose columns have factors.
func (c *comparison) rowScales(ctx context.Context, r *reader, j *job, columns []float64) (*measured, error) {
	_, of, err := c.measure(ctx, r, j.local, view{t: (&factors{columns: columns}).of(j.original)})
	if err != nil {
		return nil, err
	}
	n := len(of.both)
	m := &measured{make([]float64, n), make([]float64, n)}
	for i := range n {
		f, v, ok := of.of(i)
		if !ok || !(f > 0) {
			return nil, nil
		}
		m.factor[i], m.variance[i] = 1/f, v/(f*f*f*f)
	}
	return m, nil
}

// cancel reports the scales of columns of some tensors where they are those that are given, but for one factor that is nearly 1; nil where they are not, or where the columns do not tell them from none. Scales that are measured on both sides are their mean.
func (c *comparison) cancel(ctx context.Context, r *reader, given *measured, into []*job, found map[*job]*factors) (*measured, error) {
	if given == nil {
		return nil, nil
	}
	n := len(given.factor)
	sum, weight := make([]float64, n), make([]float64, n) // of the columns, weighted with the inverse of their variance
	for _, j := range into {
		var rows []float64
		if f := found[j]; f != nil {
			rows = f.rows
		}
		of, _, err := c.measure(ctx, r, j.local, view{t: (&factors{rows: rows}).of(j.original)})
		if err != nil {
			return nil, err
		}
		for i := range n {
			if f, v, ok := of.of(i); ok && v > 0 {
				sum[i], weight[i] = sum[i]+f/v, weight[i]+1/v
			}
		}
	}
	var both, whole float64
	for i, s := range given.factor {
		if weight[i] > 0 {
			w := 1 / (1/weight[i] + given.variance[i])
			both, whole = both+w*s*sum[i]/weight[i], whole+w*s*s
		}
	}
	level := both / whole
	if !(math.Abs(level-1) <= mostLevel) {
		return nil, nil
	}
	var apart, none float64
	out := &measured{make([]float64, n), make([]float64, n)}
	count := 0
	for i, s := range given.factor {
		out.factor[i], out.variance[i] = s, given.variance[i]
		if !(weight[i] > 0) {
			continue
		}
		count++
		f, v := sum[i]/weight[i], 1/weight[i]+given.variance[i]
		d := f - level*s
		apart += d * d / v
		none += (f - level) * (f - level) / v
		if math.Abs(d) > wideFactor*math.Sqrt(v)+nearFactor*s {
			return nil, nil
		}
		if u := given.variance[i]; u > 0 {
			out.factor[i] = (s/u + sum[i]/level) / (1/u + weight[i])
		}
	}
	if n := float64(count); count == 0 || !(apart <= max(sameFactors*n, none/10)) || !(none-apart >= someFactors*math.Sqrt(2*n)) {
		return nil, nil
	}
	return out, nil
}

// quotients are the original's vector over the port's, both with so much more; nil where they are none.
func (c *comparison) quotients(ctx context.Context, r *reader, j *job, more float64) ([]float64, error) {
	n := j.local.elements()
	if len(j.local.Shape) != 1 || j.local.Coding != nil {
		return nil, nil
	}
	b, err := r.read(ctx, j.local, view{t: j.original}, part{0, 1, 0, n})
	if err != nil {
		return nil, err
	}
	list := make([]float64, n)
	for i, l := range b.local {
		if list[i] = (b.original[i] + more) / (l + more); !(list[i] > 0) || math.IsInf(list[i], 0) {
			return nil, nil
		}
	}
	return list, nil
}
