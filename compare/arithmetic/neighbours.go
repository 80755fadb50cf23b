package arithmetic

import (
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// neighbours are an arithmetic with another choice at one site, for each site and choice.
func (s *search) neighbours(a *isolate.Arithmetic) ([]*isolate.Arithmetic, error) {
	p, err := s.of(a.Rewrites)
	if err != nil {
		return nil, err
	}
	var all []*isolate.Arithmetic
	sites, steps := p.Sites()
	for _, at := range sites {
		st := &p.Steps[steps[at][0]]
		own := program.Choice{Round: st.Round}
		now, ok := a.At[at]
		if !ok {
			now = own
		}
		for _, c := range alternatives(st, s.dtype) {
			if c != now {
				all = append(all, a.Flip(at, c, own))
			}
		}
	}
	return all, nil
}

// alternatives are the choices at a site.
func alternatives(s *program.Step, d hooks.DType) []program.Choice {
	if s.Prim == program.Copy {
		return []program.Choice{{Round: program.Plain}, {Round: program.Half}, {Round: program.Table}}
	}
	rounds := []program.Rounding{program.Plain, program.Model}
	if d == hooks.F32 || s.Prim == program.Number {
		rounds = []program.Rounding{program.Plain, program.None}
		if d != hooks.F32 {
			rounds = append(rounds, program.Model)
		}
	}
	if !slices.Contains(rounds, s.Round) {
		rounds = append(rounds, s.Round)
	}
	if s.Prim == program.Angle { // its ways are those of all tables at once: see presets
		return nil
	}
	ways := s.Ways()
	if s.Prim == program.Sum { // an engine that takes statistics in parts takes all sums in parts: see presets
		ways = 1
	}
	var all []program.Choice
	for way := range ways {
		for _, r := range rounds {
			all = append(all, program.Choice{Way: uint8(way), Round: r})
		}
	}
	return all
}
