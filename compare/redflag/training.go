package redflag

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
)

// gradients looks at the gradients of training steps, which have names under grad/. A pass is a step.
func gradients(_ context.Context, v *view, f *found) error {
	steps, names := stepsOf(v)
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		f.look(GradientMissing, GradientZero, GradientNonFinite)
		var last *subject
		since := -1 // the first step of a run of zero gradients up to the last step
		for _, pass := range steps {
			s := v.find(pass, name)
			if s == nil {
				missing(v, f, pass, name)
				continue
			}
			last = s
			m := &s.seen.moments
			if m.N > 0 && m.Min == 0 && m.Max == 0 && !s.seen.bad() {
				if since < 0 {
					since = pass
				}
			} else {
				since = -1
			}
			badGradient(f, s)
		}
		if since >= 0 {
			f.raise(GradientZero, last, []Number{number("elements", float64(last.elements())), number("since_step", float64(since))},
				"all %d elements are 0, from step %d on", last.elements(), since)
		}
	}
	return nil
}

// stepsOf returns the passes of a training run, in order, and the names of the gradients that each step should have: the gradients in any
// pass, and the gradients that the trace lists. For an unfinished trace stepsOf omits the last step, since the run may have stopped there
// before the gradients.
func stepsOf(v *view) (steps []int, names []string) {
	trains := map[int]bool{}
	known := map[string]bool{}
	add := func(name string) {
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	for _, name := range v.t.Manifest().Entries {
		if strings.HasPrefix(name, capture.Gradient) {
			add(name)
		}
	}
	for i := range v.subjects {
		s := &v.subjects[i]
		if s.is(roleGradient) && s.DType.Float() {
			add(s.name)
		}
		if s.is(roleGradient | roleLoss) {
			trains[s.pass] = true
		}
	}
	for pass := range trains {
		steps = append(steps, pass)
	}
	slices.Sort(steps)
	if status := v.t.Status(); status != "" && status != capture.StatusComplete && len(steps) > 0 {
		steps = steps[:len(steps)-1]
	}
	return steps, names
}

// missing raises a flag about a missing gradient, under the name that the gradient would have.
func missing(v *view, f *found, pass int, name string) {
	why := "other steps have it"
	if slices.Contains(v.t.Manifest().Entries, name) {
		why = "the trace lists it"
	}
	absent := &subject{Record: capture.Record{Key: capture.Key(pass, name, 0)}, pass: pass, name: name}
	f.raise(GradientMissing, absent, []Number{number("step", float64(pass))}, "step %d has no gradient of %s; %s", pass, strings.TrimPrefix(name, capture.Gradient), why)
}

func badGradient(f *found, s *subject) {
	if m := &s.seen.moments; s.seen.bad() {
		f.raise(GradientNonFinite, s, []Number{
			number("nan", float64(m.NaN)), number("inf", float64(m.PosInf+m.NegInf)), number("elements", float64(s.elements())),
		}, "%d of %d elements are not finite (%d NaN, %d infinite), the first at %s", m.NaN+m.PosInf+m.NegInf, s.elements(), m.NaN, m.PosInf+m.NegInf, coordinates(s.Shape, s.seen.firstBad))
	}
}

// loss looks at whether the losses of the steps go down. A loss with several elements counts by its mean.
func loss(_ context.Context, v *view, f *found) error {
	var steps []*subject
	var losses []float64
	for i := range v.subjects {
		s := &v.subjects[i]
		if mean := s.seen.moments.Summary(1).Mean; s.is(roleLoss) && s.DType.Float() && math.Abs(mean) <= math.MaxFloat64 { // a loss without elements has a mean of NaN
			steps, losses = append(steps, s), append(losses, mean)
		}
	}
	if len(losses) < plateauLosses || !f.look(LossRising, LossOscillating, LossPlateau) {
		return nil
	}
	c, half := courseOf(losses, &v.limits.losses), len(losses)/2
	numbers := []Number{
		number("steps", float64(len(losses))), number("best_before", c.best[0]), number("best_after", c.best[1]),
		number("median_before", c.median[0]), number("median_after", c.median[1]), number("step", c.step),
	}
	halves := fmt.Sprintf("of the first %d steps is %%.6g, of the %d after them %%.6g", half, len(losses)-half)
	best := fmt.Sprintf("the best loss "+halves, c.best[0], c.best[1])
	middle := fmt.Sprintf("the median loss "+halves, c.median[0], c.median[1])
	last := len(losses) - 1
	switch {
	case c.spikes && !c.oscillates:
		f.raise(LossRising, steps[last], append(numbers, number("last", losses[last]), number("largest_before", c.largest)),
			"the last loss is %.6g, and the largest of the %d before it is %.6g: it is up by %.3g, and from one step to the next the loss moves by %.3g", losses[last], last-half, c.largest, losses[last]-c.largest, c.step)
	case c.rises:
		f.raise(LossRising, steps[half], numbers, "%s", middle)
	case c.oscillates:
		f.raise(LossOscillating, steps[half], numbers, "from one step to the next the loss moves by %.3g, its median is %.3g and it turns back at %d of %d steps; %s", c.step, c.middle, c.turns, len(losses)-2, best)
	case c.flat:
		f.raise(LossPlateau, steps[half], append(numbers, number("gain_wanted", v.limits.losses.plateau)), "%s", best)
	}
	return nil
}

// course describes a run of losses: best and median of each half, the median of all losses, the median step from a loss to the next, and the number
// of turning points.
type course struct {
	best, median            [2]float64
	middle, step            float64
	turns                   int
	rises, oscillates, flat bool
	largest                 float64 // of the second half, without the last loss
	spikes                  bool    // the last loss is far above largest
}

// courseOf tells noise from a trend by the median step between two losses. If losses only scatter around one number, the medians of the halves differ
// by less than two steps in all but a few percent of runs of 8 losses, and more rarely still in longer runs.
//
// The last loss spikes if it is above all other losses of the second half by ten median steps and by half of the median of the half. An earlier spike
// does not count: the loss came down again, which happens in healthy runs.
func courseOf(losses []float64, l *lossLimits) course {
	half := len(losses) / 2
	c := course{
		best:   [2]float64{slices.Min(losses[:half]), slices.Min(losses[half:])},
		median: [2]float64{median(losses[:half]), median(losses[half:])},
		middle: median(losses),
	}
	steps := make([]float64, len(losses)-1)
	for i := range steps {
		steps[i] = math.Abs(losses[i+1] - losses[i])
		if i > 0 && (losses[i+1]-losses[i])*(losses[i]-losses[i-1]) < 0 {
			c.turns++
		}
	}
	c.step = median(steps)
	rise := c.median[1] - c.median[0]
	shakes := c.step > 0 && c.step >= l.shaking*math.Abs(c.middle)
	c.flat = !(c.best[1] < c.best[0]-l.plateau*math.Abs(c.best[0]))
	c.rises = rise > l.rising*c.step && rise > l.plateau*math.Abs(c.median[0])
	turning := float64(c.turns) >= l.turning*float64(len(losses)-2) && math.Abs(rise) <= c.step
	last := len(losses) - 1
	c.largest = slices.Max(losses[len(losses)/2 : last])
	c.spikes = losses[last]-c.largest > max(l.spike*c.step, l.jump*math.Abs(c.median[1]))
	c.oscillates = shakes && (c.flat || turning)
	return c
}

// median is the middle number, or the mean of the two middle numbers of an even count.
func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return x[(n-1)/2]/2 + x[n/2]/2
}
