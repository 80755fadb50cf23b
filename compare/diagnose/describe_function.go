package diagnose

import (
	"cmp"
	"math"
	"slices"
)

const (
	leastPoints = 48  // wrong elements that tell a function
	shownPoints = 7   // at which a function is listed
	mostRough   = 0.1 // of the difference that two neighbours may say wrongly of the element between them
	shareSmooth = 0.9 // of elements of which they do not
)

// point is an element: a value that it may be a function of, and what it would have to be and should be.
type point struct{ x, want, right float64 }

// ofOneValue describes a result that is another function of one value: the difference is smooth where elements are sorted by the value, which differs in all other ways.
func ofOneValue(x *difference) *Description {
	results := x.results
	for _, b := range x.bases()[1:] {
		points, n := pointsOf(results, b.values)
		if n < leastPoints || !smooth(points) {
			continue
		}
		d := &Description{Kind: "described.function", Of: theResult, Like: b.of, Explained: n, Elements: len(points)}
		for k := range shownPoints {
			p := points[(2*k+1)*len(points)/(2*shownPoints)]
			d.Cases = append(d.Cases, pointWords(p))
		}
		d.Wrong = len(d.Cases)
		return d
	}
	return nil
}

// pointsOf are the elements sorted by a value, and how many of them are wrong.
func pointsOf(results []observed, values [][]float64) (points []point, wrong int) {
	for r := range results {
		o := &results[r]
		for i, x := range values[r] {
			if silent(o, i) || x-x != 0 || o.want[i]-o.want[i] != 0 {
				continue
			}
			if points = append(points, point{x, o.want[i], o.value[i]}); wrongElement(o, i) {
				wrong++
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.want, b.want), cmp.Compare(a.right, b.right))
	})
	return points, wrong
}

// smooth reports whether the differences of sorted elements are what their neighbours say.
func smooth(points []point) bool {
	size, near, n := 0.0, 0, 0
	for _, p := range points {
		size += (p.want - p.right) * (p.want - p.right)
	}
	size = math.Sqrt(size / float64(len(points)))
	for k := 1; k+1 < len(points); k++ {
		a, p, b := points[k-1], points[k], points[k+1]
		if a.x == b.x {
			continue
		}
		t := (p.x - a.x) / (b.x - a.x)
		said := (a.want-a.right)*(1-t) + (b.want-b.right)*t
		if n++; math.Abs(p.want-p.right-said) <= mostRough*size {
			near++
		}
	}
	return n >= leastPoints && float64(near) >= shareSmooth*float64(n)
}
