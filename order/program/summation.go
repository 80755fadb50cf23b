package program

import (
	"fmt"
	"math"
)

// Summation is an order in which an engine may add n products in float32. A sum that no bound explains is replayed in the
// orders that engines use: on structured rows, constant or few-valued, errors add up in one direction, and the usual
// random-walk bound is broken by arithmetic that is right.
type Summation struct {
	Lanes    int  // partial sums, term k going to lane k mod Lanes, which are then added in pairs; 1 is one after the other
	Pairwise bool // halves, recursively: Lanes is not used
	Reversed bool // from the last term to the first
	Fused    bool // the product is not rounded before it is added
}

// String names the order, such as "16 lanes, fused".
func (s Summation) String() string {
	name := fmt.Sprintf("%d lanes", s.Lanes)
	switch {
	case s.Pairwise:
		name = "pairwise"
	case s.Lanes == 1 && s.Reversed:
		name = "reversed"
	case s.Lanes == 1:
		name = "sequential"
	}
	if s.Fused {
		name += ", fused"
	}
	return name
}

// Summations are the orders that are tried, the plainest first.
func Summations() []Summation {
	var all []Summation
	for _, fused := range []bool{false, true} {
		all = append(all, Summation{Lanes: 1, Fused: fused}, Summation{Lanes: 1, Reversed: true, Fused: fused}, Summation{Pairwise: true, Fused: fused})
		for lanes := 4; lanes <= 64; lanes *= 2 {
			all = append(all, Summation{Lanes: lanes, Fused: fused})
		}
	}
	return all
}

// replay adds products in the order of a.Sum, in float32: each is of a number and its bound, and another. What the terms' own
// bounds make is all the bound there is: the order's rounding is in the value.
func (a *Arith) replay(n int, product func(i int) (x, xe, y, ye float64)) (v, e float64) {
	v = a.Sum.add(n, func(i int) (float64, float64) {
		x, xe, y, ye := product(i)
		e += spread(x, xe, y, ye)
		return x, y
	})
	return v, e
}

// add is the sum of n products, each read once.
func (s *Summation) add(n int, product func(i int) (x, y float64)) float64 {
	if s.Pairwise {
		return s.halves(0, n, product)
	}
	lanes := make([]float64, s.Lanes)
	for k := range n {
		i := k
		if s.Reversed {
			i = n - 1 - k
		}
		lanes[k%s.Lanes] = s.step(lanes[k%s.Lanes], i, product)
	}
	return joined(lanes)
}

// dot is the sum of the products of x and y: add without a call for each, since a replay takes all products of a tensor
// again in every order.
func (s *Summation) dot(x, y []float64) float64 {
	n := len(x)
	if s.Pairwise || s.Reversed {
		return s.add(n, func(i int) (float64, float64) { return x[i], y[i] })
	}
	lanes := make([]float64, s.Lanes)
	y = y[:n]
	for from := 0; from < n; from += s.Lanes {
		for i := range min(s.Lanes, n-from) {
			a, b := x[from+i], y[from+i]
			if s.Fused {
				lanes[i] = f32(math.FMA(a, b, lanes[i]))
			} else {
				lanes[i] = f32(lanes[i] + f32(a*b))
			}
		}
	}
	return joined(lanes)
}

// four are the sums of the products of x with four rows, each as [Summation.dot] takes it. An addition waits for the one before it in its
// lane; those of other rows do not.
func (s *Summation) four(x []float64, y [4][]float64) (sums [4]float64) {
	n := len(x)
	if n == 0 || s.Pairwise { // halves are many sums that wait for none
		for i := range y {
			sums[i] = s.dot(x, y[i])
		}
		return sums
	}
	a, b, c, d := y[0][:n], y[1][:n], y[2][:n], y[3][:n]
	lanes := make([][4]float64, s.Lanes)
	for from := 0; from < n; from += s.Lanes {
		for lane := range min(s.Lanes, n-from) {
			i, l := from+lane, &lanes[lane]
			if s.Reversed {
				i = n - 1 - i
			}
			v := x[i]
			l[0], l[1], l[2], l[3] = s.plus(l[0], v, a[i]), s.plus(l[1], v, b[i]), s.plus(l[2], v, c[i]), s.plus(l[3], v, d[i])
		}
	}
	for width := s.Lanes; width > 1; width /= 2 {
		for i := range width / 2 {
			for k := range sums {
				lanes[i][k] = f32(lanes[i][k] + lanes[i+width/2][k])
			}
		}
	}
	return lanes[0]
}

// plus adds a product to a partial sum; see [Summation.step].
func (s *Summation) plus(sum, x, y float64) float64 {
	if s.Fused { // the product is exact in float64; rounding the sum to float64 on its way is seen in one case of 2^29
		return f32(math.FMA(x, y, sum))
	}
	return f32(sum + f32(x*y))
}

// joined adds partial sums in pairs.
func joined(lanes []float64) float64 {
	for width := len(lanes); width > 1; width /= 2 {
		for i := range width / 2 {
			lanes[i] = f32(lanes[i] + lanes[i+width/2])
		}
	}
	return lanes[0]
}

// step adds term i to a partial sum: rounded to float32 once if fused, else the product first.
func (s *Summation) step(sum float64, i int, product func(i int) (x, y float64)) float64 {
	x, y := product(i)
	return s.plus(sum, x, y)
}

func (s *Summation) halves(from, n int, product func(i int) (x, y float64)) float64 {
	if n <= 1 {
		return s.step(0, from, product)
	}
	return f32(s.halves(from, n/2, product) + s.halves(from+n/2, n-n/2, product))
}

// f32 rounds to float32.
func f32(x float64) float64 { return float64(float32(x)) }
