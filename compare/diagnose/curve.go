package diagnose

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// sample is a point that a curve goes through: within a distance of off from y at x.
type sample struct{ x, y, off float64 }

// polynomial is a sum of powers of (x−middle)/half, the constant first.
type polynomial struct {
	middle, half float64
	coefs        []float64
}

// at is the value at x.
func (p *polynomial) at(x float64) (y float64) {
	t := (x - p.middle) / p.half
	for _, c := range slices.Backward(p.coefs) {
		y = y*t + c
	}
	return y
}

// curve is a function of one number: a polynomial up to each break, and the last polynomial beyond the last break.
type curve struct {
	breaks []float64
	pieces []polynomial
}

// numbers counts the numbers of a curve that were fitted.
func (c *curve) numbers() int {
	n := len(c.breaks)
	for k := range c.pieces {
		n += len(c.pieces[k].coefs)
	}
	return n
}

// merged sorts points, and makes one of all points at one place. It is nil if no number is within the errors of all points at a place: then the points are
// on no curve.
func merged(points []sample) (all []sample) {
	slices.SortFunc(points, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y), cmp.Compare(a.off, b.off))
	})
	for k := 0; k < len(points); {
		p := points[k]
		low, high := p.y-p.off, p.y+p.off
		for k++; k < len(points) && points[k].x == p.x; k++ {
			low, high = max(low, points[k].y-points[k].off), min(high, points[k].y+points[k].off)
		}
		if low > high {
			return nil
		}
		if low < high {
			p.y, p.off = low/2+high/2, high/2-low/2
		}
		all = append(all, p)
	}
	return all
}

// mostSamples is how many points a curve is fitted to. More points are thinned out.
const mostSamples = 2048

// thinned leaves out points evenly, up to [mostSamples].
func thinned(points []sample) []sample {
	if len(points) <= mostSamples {
		return points
	}
	few := make([]sample, mostSamples)
	for k := range few {
		few[k] = points[k*(len(points)-1)/(mostSamples-1)]
	}
	return few
}

// fitCurve fits polynomials of a degree to sorted points, each to as many points as it can go through. It is nil if more polynomials are needed than most.
func fitCurve(points []sample, degree, most int) *curve {
	c := &curve{}
	for from := 0; from < len(points); {
		if len(c.pieces) == most {
			return nil
		}
		n, p := longest(points[from:], degree)
		if p == nil {
			return nil
		}
		if from > 0 {
			c.breaks = append(c.breaks, breakBetween(points[from-1].x, points[from].x))
		}
		c.pieces = append(c.pieces, *p)
		from += n
	}
	return c
}

// told reports whether each piece of a curve between two others goes through twice as many points as it has numbers. Through fewer points any piece goes: a
// saturated function has two constants, and between them few points.
func (c *curve) told(points []sample) bool {
	for k := 1; k < len(c.pieces)-1; k++ {
		n := 0
		for _, p := range points {
			if p.x > c.breaks[k-1] && p.x <= c.breaks[k] {
				n++
			}
		}
		if n < 2*len(c.pieces[k].coefs) {
			return false
		}
	}
	return true
}

// breakBetween is the shortest number from low on and below high.
func breakBetween(low, high float64) float64 {
	if x := shortest(low, high); x < high {
		return x
	}
	if x := shortest(low, low/2+high/2); x < high {
		return x
	}
	return low
}

// longest is the polynomial that goes through the most first points, and their number.
func longest(points []sample, degree int) (n int, p *polynomial) {
	for step := degree + 1; n < len(points); step *= 2 {
		next := min(n+step, len(points))
		q := through(points[:next], degree)
		if q == nil {
			break
		}
		n, p = next, q
	}
	high := min(2*n+degree+1, len(points))
	if more := sort.Search(high-n, func(k int) bool { return through(points[:n+k+1], degree) == nil }); more > 0 {
		n += more
		p = through(points[:n], degree)
	}
	return n, p
}

// through fits a polynomial of at most a degree to sorted points at different places. The result is nil if no polynomial is within the error of every
// point. The method is Remez' exchange: a polynomial misses each reference point by the same multiple of the point's error, with alternating signs. No
// other polynomial misses all reference points by less. A point that the polynomial misses by more replaces a reference point.
func through(points []sample, degree int) *polynomial {
	first, last := points[0].x, points[len(points)-1].x
	f := &exchange{points: points, middle: first/2 + last/2, half: cmp.Or(last/2-first/2, 1), powers: min(degree+1, len(points))}
	if len(points) <= degree+1 {
		for i := range points {
			f.at = append(f.at, i)
		}
		if _, ok := f.level(); !ok {
			return nil
		}
		return f.polynomial()
	}
	for k := range f.powers + 1 { // closer together at the ends, as the zeros of the error are
		i := int(float64(len(points)-1) * (1 - math.Cos(math.Pi*float64(k)/float64(f.powers))) / 2)
		if k > 0 {
			i = max(i, f.at[k-1]+1)
		}
		f.at = append(f.at, i)
	}
	for k := range f.at {
		f.at[k] = min(f.at[k], len(points)-len(f.at)+k)
	}
	for range mostExchanges {
		level, ok := f.level()
		if !ok || math.Abs(level) > 1 {
			return nil
		}
		worst, off := f.worst()
		if math.Abs(off) <= ofItsError || math.Abs(off) <= 1 && slices.Contains(f.at, worst) {
			return f.polynomial()
		}
		f.take(worst, off, level)
	}
	return nil
}

const (
	mostExchanges = 128  // of points, for one polynomial
	ofItsError    = 0.98 // how far a polynomial may miss a point: it is computed with roundings of its own
)

// exchange is a polynomial that is found by exchanges of points.
type exchange struct {
	points       []sample
	middle, half float64
	powers       int
	at           []int     // the reference points
	coefs        []float64 // of Chebyshev's polynomials
}

// chebyshev visits the values of Chebyshev's polynomials at a place from −1 to 1.
func chebyshev(t float64, n int, visit func(k int, y float64)) {
	y, next := 1.0, t
	for k := range n {
		visit(k, y)
		y, next = next, 2*t*next-y
	}
}

// level finds the polynomial that misses the reference points by the same multiple of their errors, and the multiple: 0 if there are only as many points
// as powers.
func (f *exchange) level() (by float64, ok bool) {
	n := len(f.at)
	rows, right := make([][]float64, n), make([]float64, n)
	for r, i := range f.at {
		p := f.points[i]
		rows[r], right[r] = make([]float64, n), p.y
		chebyshev((p.x-f.middle)/f.half, f.powers, func(k int, y float64) { rows[r][k] = y })
		if n > f.powers {
			rows[r][n-1] = p.off * float64(1-2*(r%2))
		}
	}
	if !pivoted(rows, right) {
		return 0, false
	}
	f.coefs = right[:f.powers]
	if n > f.powers {
		by = right[n-1]
	}
	return by, true
}

// worst is the point that the polynomial misses by the largest multiple of its error, and the multiple.
func (f *exchange) worst() (at int, by float64) {
	for i, p := range f.points {
		sum := 0.0
		t := (p.x - f.middle) / f.half
		y, next := 1.0, t
		for _, c := range f.coefs {
			sum += c * y
			y, next = next, 2*t*next-y
		}
		if off := (p.y - sum) / p.off; math.Abs(off) > math.Abs(by) {
			at, by = i, off
		}
	}
	return at, by
}

// take puts a point in the place of a reference point, so that the signs alternate. The first reference point is missed by level times its error.
func (f *exchange) take(i int, off, level float64) {
	n := len(f.at)
	k, has := slices.BinarySearch(f.at, i)
	if has {
		return
	}
	like := func(k int) bool { return (off > 0) == (level*float64(1-2*(k%2)) > 0) }
	switch {
	case k == 0 && !like(0):
		f.at = append([]int{i}, f.at[:n-1]...)
	case k == n && !like(n-1):
		f.at = append(f.at[1:], i)
	case k == n || k > 0 && like(k-1):
		f.at[k-1] = i
	default:
		f.at[k] = i
	}
}

// polynomial is the sum in powers.
func (f *exchange) polynomial() *polynomial {
	p := &polynomial{middle: f.middle, half: f.half, coefs: make([]float64, f.powers)}
	own, next := make([]float64, f.powers+1), make([]float64, f.powers+1)
	own[0], next[1] = 1, 1
	for _, c := range f.coefs {
		for j := range p.coefs {
			p.coefs[j] += c * own[j]
		}
		after := make([]float64, f.powers+1)
		for j := range after {
			if after[j] = -own[j]; j > 0 {
				after[j] += 2 * next[j-1]
			}
		}
		own, next = next, after
	}
	return p
}

// pivoted solves a system of equations in place, by elimination with pivots in the columns. It is not ok for a singular system.
func pivoted(rows [][]float64, right []float64) bool {
	for k := range rows {
		at := k
		for r := k; r < len(rows); r++ {
			if math.Abs(rows[r][k]) > math.Abs(rows[at][k]) {
				at = r
			}
		}
		if rows[k], rows[at], right[k], right[at] = rows[at], rows[k], right[at], right[k]; rows[k][k] == 0 {
			return false
		}
		for r := k + 1; r < len(rows); r++ {
			by := rows[r][k] / rows[k][k]
			for c := k; c < len(rows); c++ {
				rows[r][c] -= by * rows[k][c]
			}
			right[r] -= by * right[k]
		}
	}
	for k := len(rows) - 1; k >= 0; k-- {
		for c := k + 1; c < len(rows); c++ {
			right[k] -= rows[k][c] * right[c]
		}
		right[k] /= rows[k][k]
	}
	return true
}
