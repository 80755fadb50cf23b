package lanes

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Moments are the statistics of numbers: of the finite ones count, extremes, mean and standard deviation, and how many are
// NaN or infinite. They are made strip by strip, around a number near the strip's mean, and merged by the formula of Chan,
// Golub and LeVeque (1979): no difference of large sums is taken, so the standard deviation of numbers far from zero keeps
// its digits. For the same reason the mean is not one number, which far from zero has few digits left for the distance to
// another mean. The zero value has seen nothing.
type Moments struct {
	N                   int64   // finite ones
	Min, Max            float64 // of the finite elements; there has to be at least one
	NaN, PosInf, NegInf int64

	pivot, offset float64 // the mean is their sum
	squares       float64 // Σ(x − mean)²
}

// Merge takes in the moments of the elements that come next.
func (m *Moments) Merge(o *Moments) {
	m.NaN += o.NaN
	m.PosInf += o.PosInf
	m.NegInf += o.NegInf
	switch {
	case o.N == 0:
	case m.N == 0:
		m.N, m.pivot, m.offset, m.squares, m.Min, m.Max = o.N, o.pivot, o.offset, o.squares, o.Min, o.Max
	default:
		share := float64(o.N) / float64(m.N+o.N)
		d := (o.pivot - m.pivot) + (o.offset - m.offset)
		m.offset += float64(d * share)
		m.squares += o.squares + float64(float64(d*d)*float64(float64(m.N)*share))
		m.Min, m.Max = min(m.Min, o.Min), max(m.Max, o.Max)
		m.N += o.N
	}
}

// MomentsOf returns the moments of strip x without its holes, and overwrites the holes with 0. v is the survey of the elements that count.
func MomentsOf(x []float64, holes []int, v Survey) Moments {
	count := len(x) - len(holes)
	if count == 0 {
		return Moments{}
	}
	n := float64(count)
	m := Moments{N: int64(count), pivot: v.Total / n, Min: v.Least, Max: v.Most}
	for _, i := range holes {
		x[i] = m.pivot // at no distance
	}
	m.deviate(deviations(x, m.pivot))
	return m
}

// deviate takes in the distances of the elements from the pivot, and their squares.
func (m *Moments) deviate(sum, squares float64) {
	m.offset = sum / float64(m.N)
	m.squares = max(squares-float64(sum*m.offset), 0)
}

// Special counts x if it is NaN or infinite.
func (m *Moments) Special(x float64) {
	switch {
	case x != x:
		m.NaN++
	case math.IsInf(x, 1):
		m.PosInf++
	case math.IsInf(x, -1):
		m.NegInf++
	}
}

// Summary is what moments say, in the unit of the numbers. Of no finite number all four are NaN. A zero is +0 whatever its
// sign, since that of an extreme depends on which of several zeros came first.
type Summary struct{ Min, Max, Mean, Std float64 }

// Summary returns the extremes, the mean Σx / n, and the standard deviation √(Σ(x − mean)² / n), the population's, of the
// finite numbers. Mean and standard deviation are of numbers that had been multiplied by scale, 1 if they were not.
func (m *Moments) Summary(scale float64) Summary {
	switch {
	case m.N == 0:
		nan := math.NaN()
		return Summary{nan, nan, nan, nan}
	case m.Min == m.Max: // the sum of equal numbers may be rounded and hide that they are equal
		return Summary{m.Min + 0, m.Max + 0, m.Min + 0, 0}
	}
	return Summary{m.Min + 0, m.Max + 0, (m.pivot + m.offset) / scale, math.Sqrt(m.squares/float64(m.N)) / scale}
}

// Add adds the next elements, at most a [Strip]. It overwrites elements that are not finite.
func (m *Moments) Add(x []float64) {
	if len(x) == 0 {
		return
	}
	v := SurveyOf(x)
	if !v.Within(math.Inf(1)) {
		m.addHoled(x)
		return
	}
	o := MomentsOf(x, nil, v)
	m.Merge(&o)
}

// addHoled adds elements with a value or a sum that is not finite.
func (m *Moments) addHoled(x []float64) {
	var at [Strip]int
	holes, v := at[:0], Nothing
	for i, y := range x {
		if math.Abs(y) <= math.MaxFloat64 {
			v.Add(y)
			continue
		}
		m.Special(y)
		holes = append(holes, i)
		x[i] = 0
	}
	v.Total = Total(x)
	o := MomentsOf(x, holes, v)
	m.Merge(&o)
}

// Tensor takes in the elements of a tensor in the canonical order. The error is that of a tensor that is not well-formed;
// nothing is taken in then.
func (m *Moments) Tensor(t hooks.Tensor) error {
	if err := t.Check(); err != nil {
		return err
	}
	var strip [Strip]float64
	size := t.DType.Size()
	for data := t.Data; len(data) > 0; {
		var block Moments
		rest := data[:min(len(data), Block*size)]
		data = data[len(rest):]
		for len(rest) > 0 {
			x := strip[:min(Strip, len(rest)/size)]
			if err := floats.Decode(x, t.DType, rest); err != nil {
				return err
			}
			block.Add(x)
			rest = rest[len(x)*size:]
		}
		m.Merge(&block)
	}
	return nil
}
