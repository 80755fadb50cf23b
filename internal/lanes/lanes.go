// Package lanes adds numbers: statistics of a tensor, and the sums for the metrics of two tensors.
//
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
//   - An element that does not count adds +0, which changes no sum; it keeps its place.
//
// All of it is float64 without contraction: a product is rounded before it is added, which float64(a*b) makes certain.
package lanes

import (
	"math"
	"slices"
)

const (
	// Block is in elements: 128 to 512 KiB of a file, enough to read at full speed, and few enough to give several cores work on a tensor of a
	// few MiB.
	Block = 1 << 16
	// Strip is in elements: both sides as float64 stay in a core's first-level cache, or nearly.
	Strip = 1 << 11
	// Count is the number of lanes.
	Count = 16
)

// widest is the bits of the widest registers that are used.
var widest = 512

type lanes [Count]float64

// fold adds the lanes up. It overwrites them.
func (l *lanes) fold() float64 {
	for half := Count / 2; half > 0; half /= 2 {
		for i := range half {
			l[i] += l[i+half]
		}
	}
	return l[0]
}

// Squares is what a run, a block or a tensor adds up: of its differences, of the two sides, and of their products.
type Squares struct {
	Diff, Ref    float64 // Σ(l−r)², Σr²
	Local, Cross float64 // Σl², Σl·r
}

// Add takes in what comes next.
func (s *Squares) Add(t Squares) {
	s.Diff += t.Diff
	s.Ref += t.Ref
	s.Local += t.Local
	s.Cross += t.Cross
}

// Cosine is ⟨l,r⟩ / (‖l‖·‖r‖), within ±1, and exactly 1 for a tensor and itself; NaN where either is zero.
func (s *Squares) Cosine() float64 {
	if s.Local == s.Ref {
		return max(-1, min(1, s.Cross/s.Ref)) // of the same length, as equal tensors are: no root is rounded
	}
	return max(-1, min(1, s.Cross/(math.Sqrt(s.Local)*math.Sqrt(s.Ref))))
}

// Products adds up a run of both sides, which are equally long.
func Products(l, r []float64) Squares {
	if len(l) == 1 { // as every run of a tensor whose last axis is 1: of the sixteen lanes fifteen are zero
		x, y := l[0], r[0]
		d := x - y
		return Squares{float64(d * d), float64(y * y), float64(x * x), float64(x * y)}
	}
	var sum [4]lanes
	whole := len(l) - len(l)%Count
	if whole > 0 {
		productLanes(&sum, l[:whole], r[:whole])
	}
	for j, x := range l[whole:] {
		y := r[whole+j]
		d := x - y
		sum[0][j] += float64(d * d)
		sum[1][j] += float64(y * y)
		sum[2][j] += float64(x * x)
		sum[3][j] += float64(x * y)
	}
	return Squares{sum[0].fold(), sum[1].fold(), sum[2].fold(), sum[3].fold()}
}

func productLanesGo(out *[4]lanes, l, r []float64) {
	for len(l) >= Count && len(r) >= Count {
		a, b := (*lanes)(l), (*lanes)(r)
		for j := range Count {
			x, y := a[j], b[j]
			d := x - y
			out[0][j] += float64(d * d)
			out[1][j] += float64(y * y)
			out[2][j] += float64(x * x)
			out[3][j] += float64(x * y)
		}
		l, r = l[Count:], r[Count:]
	}
}

// deviations adds up a strip's distances from a number, and their squares.
func deviations(x []float64, from float64) (sum, squares float64) {
	var both [2]lanes
	whole := len(x) - len(x)%Count
	if whole > 0 {
		deviationLanes(&both, x[:whole], from)
	}
	for j, v := range x[whole:] {
		d := v - from
		both[0][j] += d
		both[1][j] += float64(d * d)
	}
	return both[0].fold(), both[1].fold()
}

// deviationLanesGo keeps some lanes at a time in registers, which is faster than all lanes in memory.
func deviationLanesGo(out *[2]lanes, x []float64, from float64) {
	for quarter := 0; quarter < Count; quarter += 4 {
		var s0, s1, s2, s3, q0, q1, q2, q3 float64
		for y := x; len(y) >= Count; y = y[Count:] {
			a := (*[4]float64)(y[quarter:])
			d0, d1, d2, d3 := a[0]-from, a[1]-from, a[2]-from, a[3]-from
			s0, s1, s2, s3 = s0+d0, s1+d1, s2+d2, s3+d3
			q0, q1, q2, q3 = q0+float64(d0*d0), q1+float64(d1*d1), q2+float64(d2*d2), q3+float64(d3*d3)
		}
		*(*[4]float64)(out[0][quarter:]) = [4]float64{s0, s1, s2, s3}
		*(*[4]float64)(out[1][quarter:]) = [4]float64{q0, q1, q2, q3}
	}
}

// Survey is the least and the largest of some numbers, and their total.
type Survey struct{ Least, Most, Total float64 }

// Nothing is the survey of no number.
var Nothing = Survey{Least: math.Inf(1), Most: math.Inf(-1)}

// Add takes in a number, but not into the total: see [Total].
func (v *Survey) Add(x float64) { v.Least, v.Most = min(v.Least, x), max(v.Most, x) }

// Within reports whether all numbers are smaller than huge. A total that is NaN tells of a NaN; of finite numbers whose sum
// overflows too, which only costs time.
func (v Survey) Within(huge float64) bool {
	return v.Total == v.Total && -huge < v.Least && v.Most < huge
}

// surveyed is a survey by lanes. The least is any of four, and so is the largest.
type surveyed struct {
	total       lanes
	least, most [4]float64
}

// SurveyOf surveys a strip that is not empty. Where it has a NaN the total is one, and the rest says nothing.
func SurveyOf(x []float64) Survey {
	v := Nothing
	var by surveyed
	whole := len(x) - len(x)%Count
	if whole > 0 {
		surveyLanes(&by, x[:whole])
		v.Least, v.Most = slices.Min(by.least[:]), slices.Max(by.most[:])
	}
	for j, y := range x[whole:] {
		by.total[j] += y
		v.Add(y)
	}
	v.Total = by.total.fold()
	return v
}

func surveyLanesGo(out *surveyed, x []float64) {
	least, most := x[0], x[0]
	for _, y := range x {
		if y < least {
			least = y
		} else if y > most {
			most = y
		}
	}
	for i := range out.least {
		out.least[i], out.most[i] = least, most
	}
	for half := 0; half < Count; half += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float64
		for y := x; len(y) >= Count; y = y[Count:] {
			a := (*[8]float64)(y[half:])
			s0, s1, s2, s3 = s0+a[0], s1+a[1], s2+a[2], s3+a[3]
			s4, s5, s6, s7 = s4+a[4], s5+a[5], s6+a[6], s7+a[7]
		}
		*(*[8]float64)(out.total[half:]) = [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

// Total adds up a strip, which may be empty.
func Total(x []float64) float64 { return SurveyOf(x).Total }

func addColumnsGo(diff, ref, l, r []float64) {
	diff, ref, l = diff[:len(r)], ref[:len(r)], l[:len(r)]
	for i, y := range r {
		d := l[i] - y
		diff[i] += float64(d * d)
		ref[i] += float64(y * y)
	}
}

func largestGo(l, r []float64) (most float64) {
	r = r[:len(l)]
	for i, x := range l {
		if d := math.Abs(x - r[i]); d > most {
			most = d
		}
	}
	return most
}

// SetVectors turns the processor's vectors off, or on if it has vectors, and returns a function to undo it. It is for tests that compare the
// two.
func SetVectors(on bool) (undo func()) {
	old := vectors
	vectors = on && old
	return func() { vectors = old }
}
