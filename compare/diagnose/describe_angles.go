package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// mostAngleOff is the largest relative error of an angle: the cosine of a small angle does not tell the angle exactly.
const mostAngleOff = 0.01

// leastPositions is how many positions after the first an angle needs.
const leastPositions = 3

// angledOtherwise describes tables of cosines and sines by the angle per position that each channel would need. It is nil if one angle per position does
// not give a channel.
func angledOtherwise(x *difference) *Description {
	s, results := x.search, x.results
	t := s.first.Program
	isSin := slices.ContainsFunc(t.Steps, func(st program.Step) bool { return st.Prim == program.Sin })
	if isSin == slices.ContainsFunc(t.Steps, func(st program.Step) bool { return st.Prim == program.Cos }) || !slices.ContainsFunc(t.Steps, func(st program.Step) bool { return st.Prim == program.Angle }) {
		return nil
	}
	of, back := math.Cos, math.Acos
	if isSin {
		of, back = math.Sin, math.Asin
	}
	d := &Description{Kind: "described.angles", Of: theResult}
	var short, middle []float64 // of each channel: the angle divided by the right angle, of the angle in few digits and of the angle itself
	for c := range results[0].shape[len(results[0].shape)-1] {
		right, may, ok := angleOf(s, results, c, of, back, func(o *observed, i int) float64 { return o.value[i] })
		now, e, has := angleOf(s, results, c, of, back, func(o *observed, i int) float64 { return o.want[i] })
		if !ok || !has {
			return nil
		}
		short, middle = append(short, 1), append(middle, 1)
		if d.Elements++; math.Abs(now-right) <= 4*(e+may) || e > mostAngleOff*now || may > mostAngleOff*right {
			continue
		}
		short[c], middle[c] = shortest(now-e, now+e)/right, now/right
		if d.Wrong++; len(d.Cases) <= mostValues {
			d.Cases = append(d.Cases, angleWords(c, now, right))
		}
	}
	d.Explained = d.Wrong
	if d.Wrong == 0 {
		return nil
	}
	for _, times := range [][]float64{short, middle} {
		n := len(times) / 2
		if slices.EqualFunc(times[:n], times[n:], func(a, b float64) bool { return math.Abs(a-b) <= mostAngleOff*a }) { // halves turn together
			m := Mistake{Kind: "rope.frequencies-factors", Place: frequencySite, Axis: pairAxis, Numbers: makeNumbers(times[:n])}
			x.draft(d).proposes = append(x.draft(d).proposes, m)
		}
	}
	return d
}

// pairAxis is what the numbers of rotary frequencies count.
const pairAxis = "pairs"

// angleOf is the angle per position of a channel, below π, and the largest error of the angle. The channel is the function of the angle at all positions.
func angleOf(s *search, results []observed, c int, of, back func(x float64) float64, y func(o *observed, i int) float64) (angle, slack float64, ok bool) {
	type element struct{ at, y, e float64 }
	var all []element
	for n := range results {
		o := &results[n]
		width := o.shape[len(o.shape)-1]
		tokens := slices.Index([]byte(o.axes), order.AxisToken)
		if tokens < 0 || c >= width {
			return 0, 0, false
		}
		for i := c; i < len(o.want); i += width {
			at := float64(firstIndex(s, o, order.AxisToken) + i/program.Size(o.shape[tokens+1:])%o.shape[tokens])
			all = append(all, element{at, y(o, i), off(o, i) + 0x1p-22*(1+at)})
		}
	}
	slices.SortStableFunc(all, func(a, b element) int { return int(a.at - b.at) })
	if len(all) < leastPositions+1 || all[0].at > 1 || all[len(all)-1].at < leastPositions {
		return 0, 0, false
	}
	begin := slices.IndexFunc(all, func(x element) bool { return x.at == 1 })
	if begin < 0 || !(math.Abs(all[begin].y) <= 1+all[begin].e) {
		return 0, 0, false
	}
	principal := back(max(-1, min(1, all[begin].y)))
	for _, may := range []float64{principal, math.Pi - principal} { // the sine does not tell the two apart
		angle := may
		good := true
		for _, x := range all[begin:] {
			// Each position makes the angle more exact.
			turned := math.Round((angle*x.at-back(max(-1, min(1, x.y))))/(2*math.Pi))*2*math.Pi + back(max(-1, min(1, x.y)))
			for _, other := range []float64{-back(max(-1, min(1, x.y))), math.Pi - back(max(-1, min(1, x.y)))} {
				if next := math.Round((angle*x.at-other)/(2*math.Pi))*2*math.Pi + other; math.Abs(of(next)-x.y) <= x.e && math.Abs(next-angle*x.at) < math.Abs(turned-angle*x.at) {
					turned = next
				}
			}
			if !(math.Abs(of(angle*x.at)-x.y) <= 4*x.e+0.01) {
				good = false
				break
			}
			if math.Abs(math.Abs(x.y)-1) > 0.01 || of(0) == 0 && math.Abs(x.y) < 0.9 {
				angle = turned / x.at
			}
		}
		for _, x := range all {
			good = good && math.Abs(of(angle*x.at)-x.y) <= x.e+0x1p-18*(1+x.at*angle)
		}
		if good {
			e := math.Inf(1)
			for _, x := range all[begin:] {
				if steep := math.Sqrt(max(0, 1-x.y*x.y)); steep > 0 {
					e = min(e, x.e/(steep*x.at))
				}
			}
			return angle, e, true
		}
	}
	return 0, 0, false
}
