package program

import (
	"fmt"
	"math"
	"slices"
)

// Edit is a program that computes something else: a mistake that a port may have.
type Edit struct {
	Words string
	*Program
}

// powers are those of ten by which a constant may be off.
const powers = 6

// Edits are the program with another number in one place, for all copies of the step: a constant that is a power of ten times
// as large, or missing, and a count that is one off.
func (p *Program) Edits() []Edit {
	var all []Edit
	done := map[Site]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		at := Site{s.Form, s.Site}
		number := i
		if s.Prim == Div {
			number = s.Args[1].step
		}
		count := s.Prim == Div && p.Steps[number].Prim == Number && p.Steps[s.Args[0].step].Prim == Sum
		if done[at] || !count && (s.Prim != Number || s.fixed) {
			continue
		}
		done[at] = true
		old := p.Steps[number].Value
		if count {
			all = append(all, Edit{fmt.Sprintf("divides the %s by %g, not by %g", p.Steps[s.Args[0].step].Site, old-1, old), p.with(at, old-1)},
				Edit{fmt.Sprintf("divides the %s by %g, not by %g", p.Steps[s.Args[0].step].Site, old+1, old), p.with(at, old+1)})
			continue
		}
		values := []float64{0}
		for k := 1; k <= powers; k++ {
			values = append(values, old*math.Pow10(k), old*math.Pow10(-k))
		}
		for _, v := range values {
			all = append(all, Edit{fmt.Sprintf("has %.6g for %s, not %.6g", v, s.Site, old), p.with(at, v)})
		}
	}
	return all
}

// with is the program with another number at a site, or another divisor of a sum there.
func (p *Program) with(at Site, v float64) *Program {
	q := *p
	q.Steps = slices.Clone(p.Steps)
	for k := range q.Steps {
		s := &q.Steps[k]
		switch {
		case s.Form != at.Form || s.Site != at.Name:
		case s.Prim == Number:
			s.Value = v
		case s.Prim == Div:
			q.Steps[s.Args[1].step].Value = v
		}
	}
	q.bounds()
	return &q
}
