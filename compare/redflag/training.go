package redflag

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
)

// gradients looks at what training steps left under grad/: a pass is a step.
func (v *view) gradients() error {
	steps, names := v.steps()
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		v.look(GradientMissing, GradientZero, GradientNonFinite)
		var last *subject
		since := -1 // the step from which on it is zero
		for _, pass := range steps {
			s := v.find(pass, name)
			if s == nil {
				v.missing(pass, name)
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
			v.badGradient(s)
		}
		if since >= 0 {
			v.raise(GradientZero, last, []Number{number("elements", float64(last.elements())), number("since_step", float64(since))},
				"all %d elements are 0, from step %d on", last.elements(), since)
		}
	}
	return nil
}

// steps are the passes that belong to a training run, and the gradients that they are to have: those that any of them has,
// and those that the trace lists. The last step of a run that was stopped is not judged: it may have come to nothing more.
func (v *view) steps() (steps []int, names []string) {
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
		if s.role.gradient && s.role.number {
			add(s.name)
		}
		if s.role.gradient || s.role.loss {
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

// missing raises a flag about a gradient that is not there, by the name that it would have.
func (v *view) missing(pass int, name string) {
	why := "other steps have it"
	if slices.Contains(v.t.Manifest().Entries, name) {
		why = "the trace lists it"
	}
	absent := &subject{Record: capture.Record{Key: capture.Key(pass, name, 0)}, pass: pass, name: name}
	v.raise(GradientMissing, absent, []Number{number("step", float64(pass))}, "step %d has no gradient of %s; %s", pass, strings.TrimPrefix(name, capture.Gradient), why)
}

func (v *view) badGradient(s *subject) {
	if m := &s.seen.moments; s.seen.bad() {
		v.raise(GradientNonFinite, s, []Number{
			number("nan", float64(m.NaN)), number("inf", float64(m.PosInf+m.NegInf)), number("elements", float64(s.elements())),
		}, "%d of %d elements are not finite (%d NaN, %d infinite), the first at %s", m.NaN+m.PosInf+m.NegInf, s.elements(), m.NaN, m.PosInf+m.NegInf, coordinates(s.Shape, s.seen.firstBad))
	}
}

// loss looks at whether the losses of the steps go down. Of a loss with several elements the mean counts.
func (v *view) loss() error {
	var steps []*subject
	var losses []float64
	for i := range v.subjects {
		s := &v.subjects[i]
		if mean := s.seen.moments.Summary(1).Mean; s.role.loss && s.role.number && math.Abs(mean) <= math.MaxFloat64 { // NaN of no number
			steps, losses = append(steps, s), append(losses, mean)
		}
	}
	if len(losses) < plateauLosses || !v.look(LossPlateau) {
		return nil
	}
	half := len(losses) / 2
	before, after := slices.Min(losses[:half]), slices.Min(losses[half:])
	if after < before-v.limits.plateau*math.Abs(before) {
		return nil
	}
	said := fmt.Sprintf("the best loss of the first %d steps is %.6g, of the %d after them %.6g", half, before, len(losses)-half, after)
	v.raise(LossPlateau, steps[half], []Number{
		number("steps", float64(len(losses))), number("best_before", before), number("best_after", after), number("gain_wanted", v.limits.plateau),
	}, "%s", said)
	return nil
}
