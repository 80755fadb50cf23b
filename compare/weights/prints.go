package weights

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// print is eight sums of the numbers of a row or a column, each number with a sign of its own in each. Of a row and of its codes they
// differ by little, of two rows by much.
type print [8]float32

// mostSum is the largest sum of a print.
const mostSum = 1e30

// signs are those of the eight sums, by a byte.
var signs = func() (all [256][8]float64) {
	for b := range all {
		for k := range 8 {
			all[b][k] = float64(b>>k&1)*2 - 1
		}
	}
	return all
}()

// signsOf are those of the number with an index.
func signsOf(i int) *[8]float64 { return &signs[mix(0, float64(i+1))>>56] }

// prints reads a tensor whole, for the prints of its rows or of its columns. Numbers that are not finite count as zero.
func (r *reader) prints(ctx context.Context, t *Tensor, byColumns bool) ([]print, error) {
	rows, columns := t.flat()
	n := rows
	if byColumns {
		n = columns
	}
	sums := make([][8]float64, n)
	err := r.whole(ctx, t, func(p part, values []float64) {
		for i, x := range values {
			at, other := p.r0+i/p.columns(), p.c0+i%p.columns()
			if byColumns {
				at, other = other, at
			}
			if x-x != 0 {
				continue
			}
			s, to := signsOf(other), &sums[at]
			for k := range to {
				to[k] += s[k] * x
			}
		}
	})
	if err != nil {
		return nil, err
	}
	list := make([]print, n)
	for i := range sums {
		for k, x := range sums[i] {
			list[i][k] = float32(min(max(x, -mostSum), mostSum)) // distances are finite
		}
	}
	return list, nil
}

// catalogue finds prints near others.
type catalogue struct {
	prints []print
	order  []int32 // by the first sum
}

func newCatalogue(list []print) *catalogue {
	c := &catalogue{prints: list, order: make([]int32, len(list))}
	for i := range c.order {
		c.order[i] = int32(i)
	}
	slices.SortFunc(c.order, func(a, b int32) int { return cmp.Compare(list[a][0], list[b][0]) })
	return c
}

// apart is the squared distance of two prints.
func (p *print) apart(o *print) float64 {
	sum := 0.0
	for k, x := range p {
		d := float64(x - o[k])
		sum += d * d
	}
	return sum
}

// near are the places of the prints that may be those of p: the nearest one, and what is less than twice as far, the nearest first.
func (c *catalogue) near(p *print) []int32 {
	const most = 8
	best := math.Inf(1)
	c.around(p, func() float64 { return best }, func(_ int32, d float64) bool {
		best = min(best, d)
		return best > 0
	})
	type place struct {
		at int32
		d  float64
	}
	var found []place
	c.around(p, func() float64 { return 4 * best }, func(at int32, d float64) bool {
		if d <= 4*best {
			found = append(found, place{at, d})
		}
		return len(found) < 4*most
	})
	slices.SortFunc(found, func(a, b place) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.at, b.at)) })
	var list []int32
	for _, f := range found[:min(most, len(found))] {
		list = append(list, f.at)
	}
	return list
}

// around visits prints from the one with the nearest first sum on, as long as that alone is not further than a limit of squared distances, and
// visit goes on.
func (c *catalogue) around(p *print, limit func() float64, visit func(at int32, d float64) bool) {
	mid, _ := slices.BinarySearchFunc(c.order, p[0], func(i int32, x float32) int { return cmp.Compare(c.prints[i][0], x) })
	for low, high := mid-1, mid; low >= 0 || high < len(c.order); {
		below, above := math.Inf(1), math.Inf(1)
		if low >= 0 {
			below = float64(p[0] - c.prints[c.order[low]][0])
		}
		if high < len(c.order) {
			above = float64(c.prints[c.order[high]][0] - p[0])
		}
		at := int32(0)
		if first := min(below, above); first*first > limit() {
			return
		}
		if below <= above {
			at = c.order[low]
			low--
		} else {
			at = c.order[high]
			high++
		}
		if !visit(at, p.apart(&c.prints[at])) {
			return
		}
	}
}
