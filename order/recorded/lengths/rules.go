package lengths

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

// errNoRule says that a constant cannot be made for another length.
var errNoRule = errors.New("reads numbers that follow no rule of positions and lengths")

// constant returns the index of a constant in the made program: token ids, numbers that are equal in every sample, or
// the numbers of the rules that fit all samples, for length x. Rules that disagree at length x are an error.
func (s *stretcher) constant(all []recorded.Ref, x int) (int, error) {
	var key strings.Builder
	cs := make([]*recorded.Constant, len(all))
	for k, r := range all {
		fmt.Fprint(&key, r.Index, " ")
		cs[k] = s.from.Constants[r.Index]
	}
	if i, ok := s.constants[key.String()]; ok {
		return i, nil
	}
	c, err := s.made(cs, x)
	if err != nil {
		return 0, err
	}
	s.to.Constants = append(s.to.Constants, c)
	s.constants[key.String()] = len(s.to.Constants) - 1
	return len(s.to.Constants) - 1, nil
}

func (s *stretcher) made(cs []*recorded.Constant, x int) (*recorded.Constant, error) {
	first := cs[0]
	same, ids, is := true, true, true
	shapes := make([][]int, len(cs))
	for k, c := range cs {
		if c.DType != first.DType {
			return nil, errOther
		}
		same = same && c.SHA256 == first.SHA256 && slices.Equal(c.Shape, first.Shape)
		shapes[k], ids, is = c.Shape, ids && c.Is == recorded.InputIDs, is && c.Is == first.Is
	}
	if same && !ids {
		return first, nil
	}
	shape, err := s.sizes(shapes, x)
	if err != nil {
		return nil, err
	}
	n, err := recorded.Elements(shape)
	if err != nil {
		return nil, err
	}
	if s.numbers += n; s.numbers > recorded.MaxNumbers {
		return nil, fmt.Errorf("reads more than %d numbers in constants", recorded.MaxNumbers)
	}
	out := &recorded.Constant{DType: first.DType, Shape: shape, Depends: first.Depends}
	if ids {
		if n != s.pass.Tokens {
			return nil, errSizes
		}
		out.Is = recorded.InputIDs
		return out, nil
	}
	if is {
		out.Is = first.Is
	}
	r := &ruler{s, cs, shape, x}
	if out.Numbers, err = r.numbers(); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(s.samples, func(o sample) bool { return o.run[0].First == 0 })
	out.Like = cs[max(at, 0)].SHA256
	d, err := hooks.ParseDType(out.DType)
	if err != nil {
		return nil, err
	}
	var ok bool
	if out.SHA256, ok = recorded.Digest(out.Numbers, d); !ok || slices.ContainsFunc(out.Numbers, func(x float64) bool { return d.Float() && !equal(floats.Round(d, x), x) }) {
		return nil, errNoRule
	}
	return out, nil
}

// equal reports whether two numbers are one; NaN is itself.
func equal(a, b float64) bool { return a == b || a != a && b != b }

// ruler finds the rule of a constant. Each rule is nil where it does not make the numbers of every sample.
type ruler struct {
	*stretcher
	cs    []*recorded.Constant
	shape []int // that is wanted
	x     int
}

// numbers returns the numbers of the rules that fit every sample. Rules that disagree are an error.
func (r *ruler) numbers() (all []float64, err error) {
	for _, rule := range []func() []float64{r.fill, r.linear, r.part} {
		numbers := rule()
		switch {
		case numbers == nil:
		case all == nil:
			all = numbers
		case !slices.EqualFunc(numbers, all, equal):
			return nil, errors.New("reads numbers that follow two rules, which differ here")
		}
	}
	if all == nil {
		return nil, errNoRule
	}
	return all, nil
}

// integer is a number of each sample, at the length that is wanted.
func (r *ruler) integer(of []float64) (y float64, ok bool) {
	if !slices.ContainsFunc(of, func(x float64) bool { return !equal(x, of[0]) }) {
		return of[0], true
	}
	whole := make([]int, len(of))
	for k, x := range of {
		if whole[k] = int(x); x != math.Trunc(x) || math.Abs(x) > 1<<40 {
			return 0, false
		}
	}
	n, err := sizeAt(r.samples, whole, r.x)
	return float64(n), err == nil
}

// fill is one number everywhere.
func (r *ruler) fill() []float64 {
	of := make([]float64, len(r.cs))
	for k, c := range r.cs {
		if len(c.Numbers) == 0 || slices.ContainsFunc(c.Numbers, func(x float64) bool { return !equal(x, c.Numbers[0]) }) {
			return nil
		}
		of[k] = c.Numbers[0]
	}
	x, ok := r.integer(of)
	if !ok {
		return nil
	}
	return slices.Repeat([]float64{x}, program.Size(r.shape))
}

// linear are numbers that grow by as much from each place of an axis to the next: positions, counts, distances.
func (r *ruler) linear() []float64 {
	bases := make([]float64, len(r.cs))
	steps := make([][]float64, len(r.shape))
	for k, c := range r.cs {
		if len(c.Numbers) == 0 || len(c.Shape) != len(r.shape) {
			return nil
		}
		bases[k] = c.Numbers[0]
		by := make([]float64, len(c.Shape))
		stride := recorded.RowMajor(c.Shape)
		for a, n := range c.Shape {
			if n > 1 {
				by[a] = c.Numbers[stride[a]] - bases[k]
			} else if r.shape[a] != 1 {
				return nil
			}
			steps[a] = append(steps[a], by[a])
		}
		if !slices.EqualFunc(c.Numbers, lineOf(c.Shape, bases[k], by), equal) {
			return nil
		}
	}
	base, ok := r.integer(bases)
	by := make([]float64, len(r.shape))
	for a := range by {
		var also bool
		by[a], also = r.integer(steps[a])
		ok = ok && also
	}
	if !ok {
		return nil
	}
	return lineOf(r.shape, base, by)
}

// lineOf are numbers of a shape that begin with one and grow along each axis.
func lineOf(shape []int, base float64, by []float64) []float64 {
	all := []float64{base}
	for a, n := range shape {
		next := make([]float64, 0, len(all)*n)
		for _, x := range all {
			for i := range n {
				next = append(next, x+float64(by[a]*float64(i)))
			}
		}
		all = next
	}
	return all
}

// part returns a part of the longest sample's numbers: the beginning or the end of each axis, if every sample has the
// same part. The rule covers a mask by the positions of tokens and keys, a table of positions, and a list that
// assigns rows to tokens. nil if no part fits, or if two parts fit and differ.
func (r *ruler) part() []float64 {
	last := r.cs[len(r.cs)-1]
	var out []float64
	for ends := range 1 << min(len(r.shape), maxAxes) {
		part := partOf(last, r.shape, ends)
		for _, c := range r.cs {
			if part != nil && !slices.EqualFunc(partOf(last, c.Shape, ends), c.Numbers, equal) {
				part = nil
			}
		}
		if out != nil && part != nil && !slices.EqualFunc(part, out, equal) {
			return nil
		}
		if part != nil {
			out = part
		}
	}
	return out
}

// maxAxes bounds the ends of axes that are tried.
const maxAxes = 6

// partOf returns a part of a constant: from the end of the axes whose bits are set in ends, and from the beginning of
// the other axes. nil if the constant is smaller than shape.
func partOf(c *recorded.Constant, shape []int, ends int) []float64 {
	if len(shape) != len(c.Shape) || len(c.Numbers) != program.Size(c.Shape) {
		return nil
	}
	places := []int{0}
	for a, stride := range recorded.RowMajor(c.Shape) {
		if shape[a] > c.Shape[a] {
			return nil
		}
		first := 0
		if ends>>a&1 == 1 {
			first = c.Shape[a] - shape[a]
		}
		next := make([]int, 0, len(places)*shape[a])
		for _, at := range places {
			for i := range shape[a] {
				next = append(next, at+(first+i)*stride)
			}
		}
		places = next
	}
	out := make([]float64, len(places))
	for i, at := range places {
		out[i] = c.Numbers[at]
	}
	return out
}
