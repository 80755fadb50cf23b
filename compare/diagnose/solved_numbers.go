package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/hooks"
)

// A number that is solved from the elements is near the number of the port, and is not that number: elements are rounded. What it may stand for is tried.

// candidates lists the numbers that a solved number may stand for: numbers of the configuration, then decimals with more and more digits.
func (s *search) candidates(x, low, high float64) []number {
	var all []number
	if low <= 0 && high >= 0 {
		all = append(all, number{})
	}
	if low <= high {
		for _, n := range s.numbers {
			if n.value >= low && n.value <= high {
				all = append(all, n)
			}
		}
		for d := 1; d <= 8; d++ {
			v, err := strconv.ParseFloat(strconv.FormatFloat(low/2+high/2, 'e', d-1, 64), 64)
			if err == nil && v >= low && v <= high {
				all = append(all, number{value: v})
				break
			}
		}
	}
	for _, n := range s.numbers {
		if math.Abs(n.value/x-1) < 0.02 {
			all = append(all, n)
		}
	}
	digits, dtype := 4, s.first.Call.DType
	if dtype == hooks.F32 {
		digits = 8
	}
	add := func(v float64) {
		if !slices.ContainsFunc(all, func(n number) bool { return n.value == v }) {
			all = append(all, number{value: v})
		}
	}
	for d := 1; d <= digits; d++ {
		if v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', d-1, 64), 64); err == nil {
			add(v)
		}
	}
	return all
}

// overRoots returns 1/√n if a number between low and high, near the solved number x, is 1/√n for one whole number n, and if the right number is 1/√m for a different
// whole number m. Scales of attention are such numbers.
func overRoots(x, old, low, high float64) []number {
	n, right := math.Round(1/(x*x)), math.Round(1/(old*old))
	if !(n > 1 && n < mostUnderRoot && right > 1 && n != right) || math.Abs(right*old*old-1) > 1e-6 || x*old < 0 {
		return nil
	}
	root := math.Copysign(1/math.Sqrt(n), x)
	is := func(n float64) bool { r := math.Copysign(1/math.Sqrt(n), x); return r >= low && r <= high }
	if math.Abs(n*x*x-1) > 1e-5 && (!is(n) || is(n-1) || is(n+1)) {
		return nil
	}
	return []number{{value: root, words: fmt.Sprintf("1/√%g", n), own: true}}
}

// mostUnderRoot is the largest whole number that is looked for under a root. The roots of larger numbers are too near to each other.
const mostUnderRoot = 2048
