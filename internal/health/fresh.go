package health

import (
	"math"

	"github.com/tracediff/tracediff/internal/amount"
)

// A loader that does not find a weight often leaves what was there before: what a model is born with, or whatever the
// memory held. Nobody can prove from numbers that they were never trained. But the two ways in which torch and transformers
// fill a matrix leave marks that training wipes out together: the deviation is the configured one to a per cent, the
// fourth moment is that of the distribution, the mean is 0, and every part of the matrix is like every other. Trained
// rows and columns differ in size, and their tails are heavier. All four at once are worth a warning, and it says what is
// seen. A matrix that has been trained for a few steps still has them, too.

// drawn is a way in which a matrix may have been filled.
type drawn uint8

const (
	grown   drawn = iota // none of those that are known
	normal               // transformers: a normal distribution of deviation initializer_range
	uniform              // torch's own for a linear layer: evenly in ±1/√inputs
)

// leastDrawn is the number of elements below which the marks are too faint: a chance of one in a hundred for a small
// trained matrix is too much where there are hundreds of them.
const leastDrawn = 2048

// strict is how many standard errors a mark may be off. A few in a thousand matrices that were just drawn are missed.
const strict = 3.5

// wild is beyond any trained weight, by far: the largest that is known is a norm weight of some hundreds. Memory that
// nobody has written holds numbers of any size.
const wild = 1e6

// shape has what is needed to recognise a distribution, of the blocks that are not all zero: the row of a padding token is.
type shape struct {
	n      float64 // elements
	m2, m4 float64 // sums of squares and fourth powers
	even   float64 // over blocks, the square of the sum of squares by the number of elements
	parts  float64 // blocks
}

// add adds a block by its sums.
func (t *shape) add(n int, m2, m4 float64) {
	if m2 == 0 {
		return
	}
	t.n += float64(n)
	t.parts++
	t.m2 += m2
	t.m4 += m4
	t.even += m2 * m2 / float64(n)
}

// drawn tells how a matrix of so many inputs may have been filled, where spread is transformers' deviation.
func (t *stats) drawn(spread float64, inputs int) drawn {
	n := t.shape.n
	if n < leastDrawn || t.nan+t.inf > 0 {
		return grown
	}
	square := t.shape.m2 / n
	deviation, fourth := math.Sqrt(square), t.shape.m4/n/(square*square)
	off := func(got, want, err float64) bool { return !(math.Abs(got-want) <= strict*err) }
	// The sum over the blocks of n/2·(their square/the square − 1)², which is χ² of parts − 1 degrees for a normal
	// distribution and 0.4 times that for a uniform one.
	uneven := (t.shape.even/(square*square) - n) / 2
	freedom := t.shape.parts - 1
	if off(t.sum/n, 0, deviation/math.Sqrt(n)) || uneven > freedom+strict*math.Sqrt(2*freedom)+strict {
		return grown
	}
	largest, bound := max(t.max, -t.min), 1/math.Sqrt(float64(inputs))
	switch {
	case !off(deviation, spread, spread/math.Sqrt(2*n)) && !off(fourth, 3, math.Sqrt(24/n)):
		return normal
	// The standard errors are those of a uniform distribution, from its moments up to the eighth. The bound itself is the
	// strongest mark; rounding to bfloat16 may pass it by half a unit.
	case !off(deviation, bound/math.Sqrt(3), 0.447*bound/math.Sqrt(3*n)) && !off(fourth, 1.8, 1.15/math.Sqrt(n)) &&
		largest > 0.99*bound && largest < bound*(1+1.0/256):
		return uniform
	}
	return grown
}

// fresh warns of weights that look as they do before any training.
func fresh(s *Section, weights []Weight, found []stats, spread float64) {
	told := 0
	names := map[drawn][]string{}
	var idle, wildest []string
	norms := 0
	for i, w := range weights {
		t := &found[i]
		if largest := max(t.max, -t.min); largest > wild && !math.IsInf(largest, 0) {
			wildest = append(wildest, w.Name)
		}
		switch {
		case w.Role == Matrix && t.shape.n >= leastDrawn && len(w.Shape) > 1:
			told++
			how := t.drawn(spread, w.Shape[len(w.Shape)-1])
			names[how] = append(names[how], w.Name)
		case (w.Role == Gain || w.Role == OneGain) && t.seen > 0:
			norms++
			if initial := initialGain[w.Role]; t.min == initial && t.max == initial {
				idle = append(idle, w.Name)
			}
		}
	}
	const hint = "transformers says at loading which weights are newly initialized, and save_pretrained then writes them: compare the names and values with the original's"
	if len(wildest) > 0 {
		s.Warn("memory that was never written looks like this: compare it with the original's", "%s beyond ±%g: %s", amount.Of(len(wildest), "weight"), wild, few(wildest))
	}
	seen := map[drawn]string{normal: "transformers', normal with mean 0 and deviation initializer_range", uniform: "torch's, uniform in ±1/√inputs"}
	for _, how := range []drawn{normal, uniform} {
		switch n := len(names[how]); {
		case n == 0:
		case n == told:
			s.Warn("is it an untrained model?", "every matrix that is large enough to tell looks untrained (%s): %d", seen[how], n)
		default:
			s.Warn(hint, "%s of %d with untrained values (%s): %s", amount.Of(n, "weight"), told, seen[how], few(names[how]))
		}
	}
	if len(idle) > 0 && len(idle) < norms { // all of them are said elsewhere
		s.Warn(hint, "%s of %d at the initial value in every element: %s", amount.Of(len(idle), "norm weight"), norms, few(idle))
	}
}

// initialGain is what norm weights are before training.
var initialGain = map[Role]float64{Gain: 1, OneGain: 0}
