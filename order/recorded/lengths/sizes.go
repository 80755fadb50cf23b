package lengths

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tracediff/tracediff/order/recorded"
)

// errSizes says that numbers of passes follow no such polynomial.
var errSizes = errors.New("follows no rule in the length of the prompt")

// maxDegree is that of a matrix of scores seen as one axis.
const maxDegree = 2

// sample is a recorded pass.
type sample struct {
	run []recorded.Pass // that it is of
	at  int             // which of them
	x   int             // length: the tokens of a first pass, or the tokens before a further pass
}

func (s *sample) pass() *recorded.Pass { return &s.run[s.at] }

// sorted puts samples in the order of their lengths.
func sorted(samples []sample) []sample {
	out := slices.Clone(samples)
	slices.SortStableFunc(out, func(a, b sample) int { return cmp.Compare(a.x, b.x) })
	return out
}

// lengthsOf are the lengths of sorted samples, each once.
func lengthsOf(samples []sample) []int {
	var xs []int
	for _, s := range samples {
		if len(xs) == 0 || s.x != xs[len(xs)-1] {
			xs = append(xs, s.x)
		}
	}
	return xs
}

// sizeAt is a size of a pass of another length, from those of sorted samples.
func sizeAt(samples []sample, sizes []int, x int) (int, error) {
	if !slices.ContainsFunc(sizes, func(n int) bool { return n != sizes[0] }) {
		return sizes[0], nil
	}
	xs, ys := []int{samples[0].x}, []int{sizes[0]}
	for i := range samples[1:] {
		switch last := len(xs) - 1; {
		case samples[i+1].x != xs[last]:
			xs, ys = append(xs, samples[i+1].x), append(ys, sizes[i+1])
		case sizes[i+1] != ys[last]:
			return 0, errSizes
		}
	}
	for degree := 1; degree <= maxDegree && degree+2 <= len(xs); degree++ {
		c, ok := coefficients(xs[:degree+1], ys[:degree+1])
		if !ok {
			continue
		}
		right := true
		for i := degree + 1; i < len(xs) && right; i++ {
			right = newton(xs, c, xs[i]) == ys[i]
		}
		if right {
			return newton(xs, c, x), nil
		}
	}
	return 0, errSizes
}

// coefficients are Newton's divided differences of y at x; ok is false where one is not whole.
func coefficients(xs, ys []int) (c []int, ok bool) {
	c = slices.Clone(ys)
	for k := 1; k < len(c); k++ {
		for i := len(c) - 1; i >= k; i-- {
			over, by := c[i]-c[i-1], xs[i]-xs[i-k]
			if over%by != 0 {
				return nil, false
			}
			c[i] = over / by
		}
	}
	return c, true
}

// newton is the polynomial of divided differences at x.
func newton(xs, c []int, x int) int {
	y := 0
	for k := len(c) - 1; k >= 0; k-- {
		y = y*(x-xs[k]) + c[k]
	}
	return y
}

// windows returns the runs of sorted samples whose lengths reach from below x to above x, or equal x, the longest run
// first. Several runs are needed: a size that an attention window or a chunk limits follows one rule only up to the
// limit. The number of runs is bounded.
func windows(samples []sample, x int) [][]sample {
	var found [][]sample
	xs := lengthsOf(samples)
	for lo := range xs {
		for hi := lo; hi < len(xs) && xs[lo] <= x; hi++ {
			if xs[hi] < x || hi == lo+1 {
				continue
			}
			from, to := 0, len(samples)
			for from < to && samples[from].x < xs[lo] {
				from++
			}
			for to > from && samples[to-1].x > xs[hi] {
				to--
			}
			found = append(found, samples[from:to])
		}
	}
	slices.SortStableFunc(found, func(a, b []sample) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(wide(b), wide(a))) })
	return found[:min(len(found), maxWindows)]
}

func wide(samples []sample) int { return samples[len(samples)-1].x - samples[0].x }

// maxWindows is how many parts of what was recorded are tried.
const maxWindows = 24
