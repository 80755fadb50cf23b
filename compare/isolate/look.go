package isolate

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/cores"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// An entry can have a hundred million elements, and a certificate says sums, minima and counts of all elements. So each element is looked at once, a
// segment of elements after the other, on all cores. The sums of segments are added in the order of the segments. A segment ends with
// the rows of a token, so that the sums have the same bits however many tokens are certified at a time.

const (
	// segmentElements is how many elements a segment has, unless the rows of a token end before.
	segmentElements = 1 << 12
	// fewElements is how many elements a segment has at most that has little room.
	fewElements = 1 << 7
	// serialElements is how many elements an entry has at most for one core to look at all.
	serialElements = 1 << 14
)

// within takes from a bound more than the rounding of a difference in float64 can be.
const within = 1 - 0x1p-50

// Looked has the sums over elements for a certificate; parts are added one after the other.
type Looked struct {
	measured
	weighed
	guessed bool  // an element is not R(x) and has no bound, so that any number is consistent
	outside []int // the elements that are not consistent, by their place in their part
}

// Look looks at all elements.
func Look(j *Judgement) *Looked {
	l := &Looked{weighed: newWeighed()}
	l.add(j)
	return l
}

// Certificate is the certificate before anything is said of its outcome.
func (l *Looked) Certificate() *Certificate {
	c, _ := l.certificate()
	return c
}

// add looks at the elements of one more part.
func (l *Looked) add(j *Judgement) {
	l.sampled = j.X.Columns > 0
	l.Elements += int64(len(j.Y.Data))
	each(j, func() *Looked { return &Looked{weighed: newWeighed()} }, j.segment, l.join)
}

// join adds what the next segment says.
func (l *Looked) join(s *Looked) {
	l.Unequal, l.Unbounded, l.Sampled = l.Unequal+s.Unequal, l.Unbounded+s.Unbounded, l.Sampled+s.Sampled
	l.dd, l.rr, l.ee = l.dd+s.dd, l.rr+s.rr, l.ee+s.ee
	l.sampledR, l.sampledE = l.sampledR+s.sampledR, l.sampledE+s.sampledE
	l.up, l.down = min(l.up, s.up), min(l.down, s.down)
	l.weight, l.moves = l.weight+s.weight, l.moves+s.moves
	l.qq, l.mm, l.mq = l.qq+s.qq, l.mm+s.mm, l.mq+s.mq
	l.guessed = l.guessed || s.guessed
	l.outside = extended(l.outside, s.outside)
}

// extended is append for lists of millions of indexes: if there is no room, twice as much is made.
func extended(all, more []int) []int {
	if len(all)+len(more) > cap(all) {
		all = slices.Grow(all, len(all)+len(more))
	}
	return append(all, more...)
}

// each calls do with the segments of an entry, on all cores if the entry is large, and join with the results in the order of the segments.
func each[T any](j *Judgement, made func() T, do func(s T, from, to int), join func(T)) {
	const atOnce = 1 << 10 // segments whose results are in memory at one time
	all, run := len(j.Y.Data), max(j.run, 1)
	end := func(from int) int { return min(from+segmentElements, from/run*run+run, all) }
	if all <= serialElements {
		for from := 0; from < all; from = end(from) {
			s := made()
			do(s, from, end(from))
			join(s)
		}
		return
	}
	var starts []int
	var said []T
	for from := 0; from < all; {
		starts = starts[:0]
		for ; from < all && len(starts) < atOnce; from = end(from) {
			starts = append(starts, from)
		}
		said = slices.Grow(said[:0], len(starts))[:len(starts)]
		cores.Each(len(starts), func(n int) {
			said[n] = made()
			do(said[n], starts[n], end(starts[n]))
		})
		for _, s := range said {
			join(s)
		}
	}
}

// segment looks at the elements from one to another.
func (j *Judgement) segment(s *Looked, from, to int) {
	if to-from <= fewElements {
		var room [fewElements]float64
		j.segmentIn(s, from, to, room[:])
		return
	}
	var room [segmentElements]float64
	j.segmentIn(s, from, to, room[:])
}

// segmentIn is segment with room for the rounded values.
func (j *Judgement) segmentIn(s *Looked, from, to int, room []float64) {
	xs, ys, es, wants := j.X.Data[from:to], j.Y.Data[from:to], j.X.Bound[from:to], room[:to-from]
	copy(wants, xs)
	floats.RoundAll(j.DType, wants)
	huge, plain := measure.HalfLargest(j.DType), j.Rule == order.All
	column, columns := 0, j.X.Columns
	if columns > 0 {
		column = from % columns
	}
	for k, want := range wants {
		x, y, e := xs[k], ys[k], es[k]
		in := columns == 0 || program.SampledColumn(column)
		if column++; column == columns {
			column = 0
		}
		if y != want || !(e >= 0) {
			j.differs(s, from+k, want)
		}
		if math.IsInf(e, 0) {
			s.Unbounded++
		}
		if math.Abs(y) < huge && math.Abs(want) < huge {
			s.dd += float64((y - want) * (y - want))
			s.rr += float64(want * want)
			s.ee += float64(e * e)
			if columns > 0 && in {
				s.Sampled++
				s.sampledR += float64(want * want)
				s.sampledE += float64(e * e)
			}
		}
		if plain && in {
			s.power.see(j.DType, math.Abs(x), e)
			s.fitting.see(j.DType, want, y, e)
		}
	}
}

// differs looks at an element that is not want, the rounded value R(x), or that has no bound.
func (j *Judgement) differs(s *Looked, i int, want float64) {
	y, e := j.Y.Data[i], j.X.Bound[i]
	if j.masked(i) {
		return
	}
	if y != want && (y == y || want == want) {
		s.Unequal++
		s.guessed = s.guessed || math.IsInf(e, 1)
	}
	if j.saved != 0 {
		want = floats.Round(j.saved, want)
	}
	if !j.holds(i, want) {
		s.outside = append(s.outside, i)
	}
}

// Outside lists the elements that are not consistent.
func (j *Judgement) Outside() []int {
	var all []int
	each(j, func() *[]int { return new([]int) }, func(at *[]int, from, to int) {
		for i := from; i < to; i++ {
			if !j.Consistent(i) {
				*at = append(*at, i)
			}
		}
	}, func(at *[]int) { all = extended(all, *at) })
	return all
}

// OutsideOf lists elements that are guessed or not consistent among some, nil for all, up to a limit.
func (j *Judgement) OutsideOf(some []int, limit int) []int {
	var at []int
	n := len(some)
	if some == nil {
		n = len(j.Y.Data)
	}
	for k := 0; k < n && len(at) < limit; k++ {
		i := k
		if some != nil {
			i = some[k]
		}
		if !j.Consistent(i) || j.guessed(i) {
			at = append(at, i)
		}
	}
	return at
}
