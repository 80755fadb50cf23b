package compare

import "math"

// The order in which numbers are added is laid down here, once for every machine. A floating-point sum depends on it, and
// a result that changes with the number of cores, or with the vectors that a processor has, cannot be compared with
// yesterday's. So there is one canonical order, and every implementation, however wide, computes it to the bit:
//
//   - A tensor, or the part of it that is in scope, is its elements in row-major order, in blocks of 65536. Blocks are
//     measured by themselves, on any core, and merged in the order of their numbers.
//   - A block is strips of 2048. In a strip, each row of the tensor (the elements along the last axis) has a run: the part
//     of the row that lies in the strip.
//   - A run, or a strip where the rows do not matter, is added in 16 lanes: element i of it goes to lane i mod 16, in
//     ascending order, starting at +0. The lanes are folded in halves: lane i + lane i+8, then i+4, i+2, i+1.
//   - The sums of runs are added in ascending order: to their row, a row's part of a block to the index that the row has
//     on every axis, the runs of a block to the block. A column, an index of the last axis, has its elements of one block
//     added in ascending order of their rows.
//   - An element that does not count (see [Metrics]) adds +0, which changes no sum; it keeps its place.
//
// All of it is float64 without contraction: a product is rounded before it is added, which float64(a*b) makes certain.
const (
	// blockSize is in elements: 128 to 512 KiB of file, which is as much as it takes to read at full speed, and few
	// enough that one tensor of a few MiB is work for several cores.
	blockSize = 1 << 16
	// stripSize is in elements: both sides as float64 stay in a core's first-level cache, or nearly.
	stripSize = 1 << 11
	laneCount = 16
)

type lanes [laneCount]float64

// fold adds the lanes up. It overwrites them.
func (l *lanes) fold() float64 {
	for half := laneCount / 2; half > 0; half /= 2 {
		for i := range half {
			l[i] += l[i+half]
		}
	}
	return l[0]
}

// squares is what a run, a block or a tensor adds up: of its differences, of the two sides, and of their products.
type squares struct {
	diff, ref    float64 // Σ(l−r)², Σr²
	local, cross float64 // Σl², Σl·r
}

func (s *squares) add(t squares) {
	s.diff += t.diff
	s.ref += t.ref
	s.local += t.local
	s.cross += t.cross
}

// cosine is ⟨l,r⟩ / (‖l‖·‖r‖), within ±1, and exactly 1 for a tensor and itself; NaN where either is zero.
func (s *squares) cosine() float64 {
	if s.local == s.ref {
		return max(-1, min(1, s.cross/s.ref)) // of the same length, as equal tensors are: no root is rounded
	}
	return max(-1, min(1, s.cross/(math.Sqrt(s.local)*math.Sqrt(s.ref))))
}

// products adds up a run of both sides, which are equally long.
func products(l, r []float64) squares {
	if len(l) < laneCount {
		return shortProducts(l, r)
	}
	var diff, ref, local, cross lanes
	r = r[:len(l)]
	for len(l) >= laneCount {
		a, b := (*lanes)(l), (*lanes)(r)
		for j := range laneCount {
			x, y := a[j], b[j]
			d := x - y
			diff[j] += float64(d * d)
			ref[j] += float64(y * y)
			local[j] += float64(x * x)
			cross[j] += float64(x * y)
		}
		l, r = l[laneCount:], r[laneCount:]
	}
	for j, x := range l {
		y := r[j]
		d := x - y
		diff[j] += float64(d * d)
		ref[j] += float64(y * y)
		local[j] += float64(x * x)
		cross[j] += float64(x * y)
	}
	return squares{diff.fold(), ref.fold(), local.fold(), cross.fold()}
}

// shortProducts is products of less elements than there are lanes. A run of one, of which a tensor whose last axis is 1
// consists, needs no lanes at all: the fifteen others are zero.
func shortProducts(l, r []float64) squares {
	if len(l) == 1 {
		x, y := l[0], r[0]
		d := x - y
		return squares{float64(d * d), float64(y * y), float64(x * x), float64(x * y)}
	}
	var diff, ref, local, cross lanes
	for j, x := range l {
		y := r[j]
		d := x - y
		diff[j], ref[j], local[j], cross[j] = float64(d*d), float64(y*y), float64(x*x), float64(x*y)
	}
	return squares{diff.fold(), ref.fold(), local.fold(), cross.fold()}
}

// sameProducts is products(x, x).
func sameProducts(x []float64) squares {
	var sum lanes
	for len(x) >= laneCount {
		a := (*lanes)(x)
		for j := range laneCount {
			sum[j] += float64(a[j] * a[j])
		}
		x = x[laneCount:]
	}
	for j, v := range x {
		sum[j] += float64(v * v)
	}
	s := sum.fold()
	return squares{0, s, s, s}
}

// total adds up a strip. Half of the lanes at a time stay in registers, which is twice as fast as all of them in memory.
func total(x []float64) float64 {
	var sum lanes
	for half := 0; half < laneCount; half += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float64
		for y := x; len(y) >= laneCount; y = y[laneCount:] {
			a := (*[8]float64)(y[half:])
			s0, s1, s2, s3 = s0+a[0], s1+a[1], s2+a[2], s3+a[3]
			s4, s5, s6, s7 = s4+a[4], s5+a[5], s6+a[6], s7+a[7]
		}
		*(*[8]float64)(sum[half:]) = [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
	}
	for j, v := range x[len(x)-len(x)%laneCount:] {
		sum[j] += v
	}
	return sum.fold()
}

// deviations adds up a strip's distances from a number, and their squares.
func deviations(x []float64, from float64) (sum, squares float64) {
	var first, second lanes
	for quarter := 0; quarter < laneCount; quarter += 4 {
		var s0, s1, s2, s3, q0, q1, q2, q3 float64
		for y := x; len(y) >= laneCount; y = y[laneCount:] {
			a := (*[4]float64)(y[quarter:])
			d0, d1, d2, d3 := a[0]-from, a[1]-from, a[2]-from, a[3]-from
			s0, s1, s2, s3 = s0+d0, s1+d1, s2+d2, s3+d3
			q0, q1, q2, q3 = q0+float64(d0*d0), q1+float64(d1*d1), q2+float64(d2*d2), q3+float64(d3*d3)
		}
		*(*[4]float64)(first[quarter:]) = [4]float64{s0, s1, s2, s3}
		*(*[4]float64)(second[quarter:]) = [4]float64{q0, q1, q2, q3}
	}
	for j, v := range x[len(x)-len(x)%laneCount:] {
		d := v - from
		first[j] += d
		second[j] += float64(d * d)
	}
	return first.fold(), second.fold()
}

// largestDifference returns max |l − r| of a strip and where it is first reached.
func largestDifference(l, r []float64) (most float64, at int) {
	r = r[:len(l)]
	for i, x := range l {
		if d := math.Abs(x - r[i]); d > most {
			most, at = d, i
		}
	}
	return most, at
}
