package tensors

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/layout"
)

// Near is the relative L2 distance below which two tensors have the same values but for rounding. The next candidate has to be Clearly times
// as far away. Far is the distance of tensors that cannot be near.
const (
	Near    = 2e-2
	Clearly = 10
	Far     = 1e9
)

// Distance is the relative L2 distance ‖l − r‖/‖r‖ of the elements that are finite on both sides; +Inf where their numbers differ, where
// infinities and NaN stand in other places, and where only one side is zero.
func Distance(l, r []float64) float64 {
	if len(l) != len(r) {
		return math.Inf(1)
	}
	var d, n float64
	for i, x := range l {
		y := r[i]
		switch {
		case math.IsNaN(x) && math.IsNaN(y) || x == y:
		case math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(x) || math.IsNaN(y):
			return math.Inf(1)
		default:
			d += (x - y) * (x - y)
		}
		if !math.IsInf(y, 0) && !math.IsNaN(y) {
			n += y * y
		}
	}
	if d == 0 {
		return 0
	}
	return math.Sqrt(d / n)
}

// Arranged are the elements of a tensor of some shape in the order of the right side of a layout; nil where the shape does not fit the left side.
// An empty layout leaves them as they lie.
func Arranged(plain []float64, shape []int, text string) []float64 {
	if text == "" {
		return plain
	}
	l, err := layout.New(text, "")
	if err != nil {
		return nil
	}
	axes, err := l.Apart(shape, nil)
	if err != nil {
		return nil
	}
	order, _ := l.Together(axes)
	out := make([]float64, 0, len(plain))
	index := make([]int, len(order))
	for range plain {
		at := 0
		for i, a := range order {
			at += index[i] * a.Stride
		}
		out = append(out, plain[at])
		for i := len(order) - 1; i >= 0; i-- {
			if index[i]++; index[i] < order[i].Size {
				break
			}
			index[i] = 0
		}
	}
	return out
}

// Unrolled rotates a tensor along an axis, so that the element at first becomes the first element.
func Unrolled(values []float64, shape []int, axis, first int) []float64 {
	if len(values) != Elements(shape) {
		return nil
	}
	inner := Elements(shape[axis+1:])
	out := make([]float64, 0, len(values))
	for from := 0; from < len(values); from += shape[axis] * inner {
		for k := range shape[axis] {
			at := from + (first+k)%shape[axis]*inner
			out = append(out, values[at:at+inner]...)
		}
	}
	return out
}

// Comparison measures how far tensors of a dump are from those that are expected.
type Comparison struct{ Dump, Expected *Reader }

// NewComparison returns a comparison that has read nothing yet.
func NewComparison() Comparison { return Comparison{NewReader(), NewReader()} }

// Nearness is the distance of x, in a layout, from an expected tensor. Where no order of the elements is near, it is a lower bound of the distance.
// ok is false if the numbers are not known, or tell nothing.
func (c Comparison) Nearness(x, expected Tensor, layout string) (d float64, ok bool, err error) {
	left, err := c.Dump.summary(x)
	if left == nil || err != nil {
		return 0, false, err
	}
	right, err := c.Expected.summary(expected)
	if !right.tells() || err != nil {
		return 0, false, err
	}
	if left.apart(right) {
		return math.Inf(1), true, nil
	}
	l, r, err := c.both(x, expected)
	if err != nil {
		return 0, false, err
	}
	if d := Distance(l.Sorted, r.Sorted); d >= Near {
		return d, true, nil
	}
	values := Arranged(l.Plain, x.Shape, layout)
	return Distance(values, r.Plain), values != nil, nil
}

// Distance is the distance of x, in a layout, from an expected tensor; +Inf if the numbers are not known, or tell nothing.
func (c Comparison) Distance(x, expected Tensor, layout string) (float64, error) {
	l, r, err := c.both(x, expected)
	if l == nil || r == nil || err != nil {
		return math.Inf(1), err
	}
	if s, err := c.Expected.summary(expected); !s.tells() || err != nil {
		return math.Inf(1), err
	}
	return Distance(Arranged(l.Plain, x.Shape, layout), r.Plain), nil
}

// AsTheyLie is the distance of x from an expected tensor without a layout, [Far] where they cannot be near or the shapes differ. A number that
// hides a key, which is far larger than all others, counts as −Inf. ok is false if the numbers are not known.
func (c Comparison) AsTheyLie(x, expected Tensor) (d float64, ok bool, err error) {
	left, err := c.Dump.summary(x)
	if left == nil || err != nil {
		return 0, false, err
	}
	right, err := c.Expected.summary(expected)
	if right == nil || err != nil {
		return 0, false, err
	}
	if !slices.Equal(x.Shape, expected.Shape) || left.apart(right) {
		return Far, true, nil
	}
	l, r, err := c.both(x, expected)
	if err != nil {
		return 0, false, err
	}
	return Distance(visible(l.Plain), visible(r.Plain)), true, nil
}

// both are the numbers of both sides; nil where they are not known.
func (c Comparison) both(x, expected Tensor) (l, r *Numbers, err error) {
	if l, err = c.Dump.Numbers(x); l == nil || err != nil {
		return nil, nil, err
	}
	r, err = c.Expected.Numbers(expected)
	return l, r, err
}

// visible are numbers with −Inf for each that hides a key.
func visible(values []float64) []float64 {
	hides := func(v float64) bool { return v < -Far }
	if !slices.ContainsFunc(values, hides) {
		return values
	}
	values = slices.Clone(values)
	for i, v := range values {
		if hides(v) {
			values[i] = math.Inf(-1)
		}
	}
	return values
}

// Sorted is the distance of the sorted numbers of x, a tensor of the dump, from those of y, which a reader reads; +Inf where one of them has no
// numbers to be compared.
func (c Comparison) Sorted(x, y Tensor, by *Reader) (float64, error) {
	l, err := c.Dump.Numbers(x)
	if l == nil || err != nil {
		return math.Inf(1), err
	}
	r, err := by.Numbers(y)
	if r == nil || err != nil {
		return math.Inf(1), err
	}
	return Distance(l.Sorted, r.Sorted), nil
}

// leastRow is how many elements a row has at least whose root mean square says something.
const leastRow = 8

// UnitRows reports whether rows of a width have a root mean square of 1, but for what the epsilon of a norm changes.
func UnitRows(x []float64, width int) bool {
	if width < leastRow || len(x) < width {
		return false
	}
	for at := 0; at+width <= len(x); at += width {
		sum := 0.0
		for _, v := range x[at : at+width] {
			sum += v * v
		}
		if rms := math.Sqrt(sum / float64(width)); !(math.Abs(rms-1) < Near) {
			return false
		}
	}
	return true
}
