package diagnose

import (
	"cmp"
	"math"
	"slices"
)

const (
	leastPoints = 48         // wrong elements that a function needs
	shownPoints = mostValues // points of a function that are listed
	mostRough   = 0.1        // of the root mean square: how far an element may be from the line between its two neighbours
	shareSmooth = 0.9        // of the elements, within this distance
)

// point is an element: the argument of a function, the wanted value and the right value.
type point struct{ x, want, right float64 }

// ofOneValue describes a result that is a different function of one value, or has a function of one value added. If the elements are sorted by the value,
// the difference is a smooth curve.
func ofOneValue(x *difference) *Description {
	results := x.results
	for _, b := range x.bases()[1:] {
		points, n := pointsOf(results, b.values)
		if n < leastPoints || !smooth(points, func(p point) float64 { return p.want - p.right }) {
			continue
		}
		d := &Description{Kind: "described.function", Of: theResult, Like: b.of, Explained: n, Elements: len(points)}
		whole := smooth(points, func(p point) float64 { return p.want })
		if !whole {
			d.Kind = "described.function-added"
		}
		for k := range shownPoints {
			d.Cases = append(d.Cases, pointWords(points[(2*k+1)*len(points)/(2*shownPoints)], whole))
		}
		d.Cases = d.Cases[:mostValues]
		return d
	}
	return nil
}

// pointsOf sorts the elements by a value, and counts the wrong elements.
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

// smooth reports whether the numbers of sorted elements follow from the numbers of their neighbours.
func smooth(points []point, of func(p point) float64) bool {
	size, near, n := 0.0, 0, 0
	for _, p := range points {
		size += of(p) * of(p)
	}
	size = math.Sqrt(size / float64(len(points)))
	for k := 1; k+1 < len(points); k++ {
		a, p, b := points[k-1], points[k], points[k+1]
		if a.x == b.x {
			continue
		}
		t := (p.x - a.x) / (b.x - a.x)
		said := of(a)*(1-t) + of(b)*t
		if n++; math.Abs(of(p)-said) <= mostRough*size {
			near++
		}
	}
	return n >= leastPoints && float64(near) >= shareSmooth*float64(n)
}
