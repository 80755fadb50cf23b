package awq

import "math"

// The null hypothesis is that both sides have the same factors; the statistic is the mean of the squared differences in standard errors.
const (
	sameFactors  = 3.0  // that mean, at most: 1 is what chance makes where errors are independent
	someFactors  = 6.0  // so many standard deviations of chance the factors have to be nearer than none would be
	mostLevel    = 0.02 // from 1: what all factors together may be off by; half a per cent was the most in files of quantisers
	leastFactors = 0.02 // how far factors have to be from their mean, as a root mean square, where no norm shows them
	leastColumns = 16   // so many factors have a mean
	wideFactor   = 6.0  // standard errors, and
	nearFactor   = 0.03
)

// Factors of a tensor: an element is the original's times the factor of its column, over the factor of its row. nil: no factors.
type Factors struct{ Columns, Rows []float64 }

// Any reports whether there are factors.
func (f *Factors) Any() bool { return f.Columns != nil || f.Rows != nil }

// Slopes has, for each column or row, the sums that determine its factor.
type Slopes struct {
	both, whole, own, n []float64 // Σ l·x, Σ x² and Σ l² over n elements
}

// NewSlopes are those of so many columns or rows.
func NewSlopes(size int) *Slopes {
	return &Slopes{make([]float64, size), make([]float64, size), make([]float64, size), make([]float64, size)}
}

// Add counts an element of column or row i: l in the port, x in the original. An element with the lowest or the highest code of its group is
// not counted: it stands for what a writer may have cut off, and its neighbours do not move with it.
func (s *Slopes) Add(i int, l, x float64) {
	s.both[i] += l * x
	s.whole[i] += x * x
	s.own[i] += l * l
	s.n[i]++
}

// of is a factor and its squared standard error; false where the numbers are too few or zero.
func (s *Slopes) of(i int) (factor, variance float64, ok bool) {
	if !(s.whole[i] > 0) || s.n[i] < 8 {
		return 0, 0, false
	}
	factor = s.both[i] / s.whole[i]
	rest := max(s.own[i]-factor*s.both[i], 0)
	return factor, rest / s.whole[i] / (s.n[i] - 1), factor-factor == 0
}

// measured are factors with their squared standard errors.
type measured struct{ factor, variance []float64 }

// known are factors without an error.
func known(factor []float64) *measured { return &measured{factor, make([]float64, len(factor))} }

// inverse are one over the factors of rows; nil where one is not known.
func (s *Slopes) inverse() *measured {
	m := known(make([]float64, len(s.n)))
	for i := range m.factor {
		f, v, ok := s.of(i)
		if !ok || !(f > 0) {
			return nil
		}
		m.factor[i], m.variance[i] = 1/f, v/(f*f*f*f)
	}
	return m
}

// pool is the factors of the columns of several tensors together, weighted with the inverse of their variance.
type pool struct{ sum, weight []float64 }

func newPool(n int) *pool { return &pool{make([]float64, n), make([]float64, n)} }

func (p *pool) add(s *Slopes) {
	for i := range min(len(p.sum), len(s.n)) {
		if f, v, ok := s.of(i); ok && v > 0 {
			p.sum[i], p.weight[i] = p.sum[i]+f/v, p.weight[i]+1/v
		}
	}
}

// apart is the mean squared difference of factors from their mean, in standard errors. It is 0 of too few, and where they are nearly alike:
// in a large matrix the errors that GPTQ moves may show, too.
func (p *pool) apart() float64 {
	var all, whole float64
	for i := range p.sum {
		all, whole = all+p.sum[i], whole+p.weight[i]
	}
	mean, apart, n := all/whole, 0.0, 0
	for i := range p.sum {
		if p.weight[i] > 0 {
			d := p.sum[i]/p.weight[i] - mean
			apart, n = apart+d*d*p.weight[i], n+1
		}
	}
	if n < leastColumns || !(apart-float64(n) > leastFactors*leastFactors*whole) {
		return 0
	}
	return apart / float64(n)
}

// level is the one factor between the columns' factors and the given ones, by least squares.
func (p *pool) level(given *measured) float64 {
	var both, whole float64
	for i, s := range given.factor {
		if p.weight[i] > 0 {
			w := 1 / (1/p.weight[i] + given.variance[i])
			both, whole = both+w*s*p.sum[i]/p.weight[i], whole+w*s*s
		}
	}
	return both / whole
}

// cancel returns the columns' factors where they are the given ones up to one factor near 1, else nil: also where the columns do not tell the
// given ones from none. Factors that are measured on both sides are their mean.
func (p *pool) cancel(given *measured) *measured {
	level := p.level(given)
	if !(math.Abs(level-1) <= mostLevel) {
		return nil
	}
	var apart, none float64
	out := known(make([]float64, len(given.factor)))
	count := 0
	for i, s := range given.factor {
		out.factor[i], out.variance[i] = s, given.variance[i]
		if !(p.weight[i] > 0) {
			continue
		}
		count++
		f, v := p.sum[i]/p.weight[i], 1/p.weight[i]+given.variance[i]
		d := f - level*s
		apart += d * d / v
		none += (f - level) * (f - level) / v
		if math.Abs(d) > wideFactor*math.Sqrt(v)+nearFactor*s {
			return nil
		}
		if u := given.variance[i]; u > 0 {
			out.factor[i] = (s/u + p.sum[i]/level) / (1/u + p.weight[i])
		}
	}
	if n := float64(count); count == 0 || !(apart <= max(sameFactors*n, none/10)) || !(none-apart >= someFactors*math.Sqrt(2*n)) {
		return nil
	}
	return out
}

// quotients are the numbers of the original over those of the port, both with so much more; nil where one is not positive or not finite.
func quotients(local, original []float64, more float64) []float64 {
	list := make([]float64, len(local))
	for i, l := range local {
		if list[i] = (original[i] + more) / (l + more); !(list[i] > 0) || math.IsInf(list[i], 0) {
			return nil
		}
	}
	return list
}
