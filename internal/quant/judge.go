package quant

import "math"

// lost is the part of a run's energy beyond which its codes are not a rounding of the original. Codes of four bits lose a hundredth by
// rounding, codes of two bits a tenth.
const lost = 0.2

// The bounds of a run of a group, in steps. The step that a run needs is twice its largest magnitude over the number of its steps: with it
// rounding errs by 1/√12 of a step, root mean square, and by half a step at most.
const (
	worstRun  = 1.0 // root mean square error, in steps that the run needs: 3.5 times the error of rounding
	worstMean = 0.5 // of the errors of a format that moves errors, in its own steps: a zero point off by one makes 1
	MinMean   = 16  // so many elements have a mean
	minBeside = 8   // of so many elements half have to be the nearest codes
)

// The same of a format that moves errors. Inputs that go together make its errors larger: up to 0.65 of a group's sum of squares, 1.7 steps and
// 2.4 times the rounding of a tensor by GPTQ with inputs of 16 factors, and a mean factor of 0.9 to 1.1. A group of other numbers has 2 of its
// sum of squares and 4 steps, and a factor near 0; a scale that is off by an exponent is the factor.
const (
	movedLost   = 0.8
	movedRun    = 2.5
	movedFactor = 0.4 // from 1
	movedTensor = 3.0
)

// The bounds of a whole tensor.
const (
	worstTensor = 2.0 // the root mean square error over the error of rounding with the steps that the groups need
	worstBeside = 8   // one code in so many is not the nearest
	tensorMean  = 0.2 // of the errors of a format that moves them, in steps
	minTensor   = 256 // elements that a tensor needs for these
)

// Run is a run of elements of one row with one step.
type Run struct {
	Values, Numbers []float64 // what the tensor stands for, and the original
	Bounds
	Row, Column int // of the first
}

// slack is how far the number of element i may be from its code, besides half a step.
func (r *Run) slack(i int) float64 { return r.Slack[i] + taken(r.Numbers[i]) }

// Sums are the errors of codes, held against those of rounding to the nearest code with the step that the numbers need.
type Sums struct {
	N, Beside     int     // elements, and those whose code is not the nearest
	Signed, Above float64 // the sum of the errors in steps, and the part of the codes other than the nearest
	Furthest      float64 // code from its number, in steps
	Row, Column   int     // of that code

	sum     float64 // of the squared errors, less the slack of the grid
	outward float64 // the sum of the errors in steps, counted away from zero
	largest float64 // magnitude of the numbers
	codes   float64 // steps from the lowest code to the highest
}

// Sums are the errors of all elements.
func (r *Run) Sums() (e Sums) {
	for i := range r.Values {
		e.add(r, i, r.slack(i))
	}
	return e
}

// add counts element i of a run.
func (e *Sums) add(r *Run, i int, slack float64) {
	e.N++
	v, x, step := r.Values[i], r.Numbers[i], r.Step[i]
	if d := math.Abs(x-v) - slack; d > 0 {
		e.sum += d * d
	}
	if a := math.Abs(x); a > e.largest {
		e.largest = a
	}
	if !(step > 0) {
		return
	}
	if n := math.Round((r.High[i] - r.Low[i]) / step); n > e.codes {
		e.codes = n
	}
	d := v - r.Within(i, x)
	if s := math.Abs(d) / step; s > e.Furthest {
		e.Furthest, e.Row, e.Column = s, r.Row, r.Column+i
	}
	e.Signed += d / step
	e.outward += math.Copysign(d, d*x) / step
	if math.Abs(d) > 0.5*step*(1+0x1p-12)+slack {
		e.Beside++
		e.Above += d / step
	}
}

// Add adds the errors of other elements.
func (e *Sums) Add(o *Sums) {
	e.N, e.Beside = e.N+o.N, e.Beside+o.Beside
	e.sum, e.Signed, e.Above, e.outward = e.sum+o.sum, e.Signed+o.Signed, e.Above+o.Above, e.outward+o.outward
	if o.Furthest > e.Furthest {
		e.Furthest, e.Row, e.Column = o.Furthest, o.Row, o.Column
	}
	e.largest, e.codes = max(e.largest, o.largest), max(e.codes, o.codes)
}

// Rounding is the sum of squared errors of rounding with one step.
func (e *Sums) Rounding() float64 {
	if e.codes == 0 {
		return 0
	}
	step := 2 * e.largest / e.codes
	return float64(e.N) * step * step / 12
}

// times is the ratio of the root mean square error to the error of rounding. It is 0 if no element has a step: errors are then errors of
// the slack, and the slack has a check of its own.
func (e *Sums) times() float64 {
	switch {
	case e.sum == 0 || e.codes == 0:
		return 0
	case e.largest == 0:
		return math.Inf(1)
	}
	return math.Sqrt(e.sum / e.Rounding())
}

// Mean is that of the errors, in steps.
func (e *Sums) Mean() float64 { return e.Signed / float64(max(e.N, 1)) }

// Often reports that more codes are not the nearest than a writer of the nearest codes makes.
func (e *Sums) Often() bool { return e.Beside*worstBeside > e.N }

// Centred reports that the errors of a tensor are neither too large nor too small on average, nor nearer to zero: cutting off makes half a step,
// and a zero point that is off makes one.
func (e *Sums) Centred() bool {
	most := tensorMean * float64(e.N)
	return e.N >= minTensor && math.Abs(e.Signed) <= most && math.Abs(e.outward) <= most
}

// Sums returns the sums of the errors of a run of n elements. right reports whether these errors show that the run is right.
func (e *Errors) Sums(n, lo, hi int) (s Sums, right bool) {
	s = Sums{N: n, sum: e.Error2, largest: max(-e.Least, e.Most), codes: float64(hi - lo)}
	if !e.Nearest || !(e.Beyond2 <= lost*e.X2) && e.Error2 > 0 {
		return s, false
	}
	small := s.sum < 11*worstRun*worstRun*s.Rounding() // the bound is 12 times: no root is needed
	return s, small || s.times() <= worstRun*math.Sqrt(12)
}

// Judgement is what is said of a whole tensor.
type Judgement int

// The judgements.
const (
	Right       Judgement = iota
	RightInSize           // the size and the mean of the errors are right, and no single code was judged
	Coarse                // the errors are larger than rounding makes
	Large                 // the errors are larger than the usual errors of a writer that moves them
	Beside                // too many codes are not the nearest
	Aside                 // the errors have a mean
)

// whole is what is said of the mean of errors of the right size, and large of others.
func (g *Grid) whole(e *Sums, rounded, most float64, large, mean Judgement) (is Judgement, times, worst float64) {
	times, worst = e.times(), most
	if e.N < minTensor {
		worst = worstRun * math.Sqrt(12)
	}
	if !g.shared && e.sum > 0 && rounded > 0 {
		times = math.Sqrt(e.sum / rounded)
	}
	if !(times <= worst) {
		return large, times, worst
	}
	return mean, times, worst
}

// Data is the grid.
func (g *Grid) Data() *Grid { return g }

// Moving is the coding of a writer that moves errors.
func (g *Grid) Moving() Coding { return movedCodes{g} }

// nearestCodes is the coding of a writer that takes the nearest codes.
type nearestCodes struct{ *Grid }

func (c nearestCodes) Moves() bool       { return false }
func (c nearestCodes) MayMove() bool     { return c.mixed }
func (c nearestCodes) at(g *Grid) Coding { return nearestCodes{g} }

func (c nearestCodes) Nearest() *Tensor {
	if c.shared {
		return nil
	}
	return c.Codes
}

// Judge: a code is right within one and a half steps of its number, plus the slack of the grid; for a number beyond the last code, within the
// same distance of the last code. In each run the squared errors beyond the last codes are at most the lost part of the numbers' sum of
// squares, the error is at most worstRun, and at least half of the codes are the nearest.
func (c nearestCodes) Judge(r *Run, bad []bool) bool {
	var beyond, whole float64
	var e Sums
	for i, v := range r.Values {
		x, slack := r.Numbers[i], r.slack(i)
		if bad[i] = v-v != 0 || !r.Allows(i, v, x, slack); bad[i] { // the remaining elements are judged without the wrong element
			continue
		}
		if d := math.Abs(x-r.Within(i, x)) - slack; d > 0 {
			beyond += d * d
		}
		whole += x * x
		e.add(r, i, slack)
	}
	if !(beyond <= lost*whole) || c.shared { // of one step a run need not fill the codes: the tensor is judged as a whole
		return beyond <= lost*whole
	}
	return (e.N < minBeside || 2*e.Beside <= e.N) && e.times() <= worstRun*math.Sqrt(12)
}

func (c nearestCodes) Whole(e *Sums, rounded float64) (is Judgement, times, worst float64) {
	if e.N >= minBeside && e.Often() {
		is = Beside
	}
	return c.whole(e, rounded, worstTensor, Coarse, is)
}

// movedCodes is the coding of a writer that moves the error of a code to other codes, or weighs it by activations.
type movedCodes struct{ *Grid }

func (c movedCodes) Nearest() *Tensor  { return nil }
func (c movedCodes) Moves() bool       { return true }
func (c movedCodes) MayMove() bool     { return true }
func (c movedCodes) at(g *Grid) Coding { return movedCodes{g} }

// Judge limits the size and the mean of all errors: a single finite code is not wrong.
func (c movedCodes) Judge(r *Run, bad []bool) bool {
	var off, whole, both, mean float64
	var e Sums
	inside := 0
	for i, v := range r.Values {
		x, slack := r.Numbers[i], r.slack(i)
		if x == r.Within(i, x) && r.Step[i] > 0 {
			mean += (x - v) / r.Step[i]
			inside++
		}
		if bad[i] = v-v != 0; bad[i] {
			continue
		}
		if d := math.Abs(x-v) - slack; d > 0 {
			off += d * d
		}
		whole, both = whole+x*x, both+v*x
		e.add(r, i, slack)
	}
	return off <= movedLost*whole && (inside < MinMean || math.Abs(mean) <= worstMean*float64(inside) && math.Abs(both-whole) <= movedFactor*whole) &&
		(c.shared || e.times() <= movedRun*math.Sqrt(12))
}

func (c movedCodes) Whole(e *Sums, rounded float64) (is Judgement, times, worst float64) {
	if is = RightInSize; e.N >= minTensor && !(math.Abs(e.Mean()) <= tensorMean) {
		is = Aside
	}
	return c.whole(e, rounded, movedTensor, Large, is)
}

// apartCodes is a moving coding whose groups are not consecutive: a group is the elements of a row with the same step and the same lowest number.
// GPTQ makes such groups if it orders inputs by their activations.
type apartCodes struct{ movedCodes }

func (c apartCodes) Moving() Coding    { return c }
func (c apartCodes) at(g *Grid) Coding { return apartCodes{movedCodes{g}} }

func (c apartCodes) Judge(r *Run, bad []bool) bool {
	type group struct{ step, low float64 }
	places := map[group][]int{}
	for i, step := range r.Step {
		g := group{step, r.Low[i]}
		places[g] = append(places[g], i)
	}
	for _, list := range places {
		var one Run
		for _, i := range list {
			one.Values, one.Numbers = append(one.Values, r.Values[i]), append(one.Numbers, r.Numbers[i])
			one.Bounds.Add(&r.Bounds, i)
		}
		wrong := make([]bool, len(list))
		right := c.movedCodes.Judge(&one, wrong)
		for k, i := range list {
			bad[i] = wrong[k] || !right
		}
	}
	return true
}
