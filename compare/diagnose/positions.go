package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// mostOffset is by how much positions may be off, and the last that all may have.
const mostOffset = 64

// otherPositions tries angles in a narrower type, positions that are rounded down, that stand still, and that are off by more than a few.
func (s *search) otherPositions() error {
	try := func(solved int, m Mistake, change func(frequency, position float64) float64) error {
		m.Place = positionsSite
		return s.try(hypothesis{
			class: program.Known, solved: solved, make: func(e *Entry) *program.Edited { return s.angles(e, change) },
			say: func(*Entry) Name { return m.name() },
		})
	}
	product := func(frequency, position float64) float64 {
		return float64(float32(frequency * float64(float32(position))))
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		if err := try(0, Mistake{Kind: "rope.angles-rounded", DType: d}, func(f, p float64) float64 {
			return floats.Round(d, product(f, p))
		}); err != nil {
			return err
		}
		if err := try(0, Mistake{Kind: "position.rounded", DType: d}, func(f, p float64) float64 { return product(f, floats.Round(d, p)) }); err != nil {
			return err
		}
	}
	by := []float64{2, 4, 8, 16, 32}
	for _, n := range s.numbers {
		if n.plain && field(n.field) == "factor" && !slices.Contains(by, n.value) {
			by = append(by, n.value)
		}
	}
	for _, n := range by {
		if err := try(0, Mistake{Kind: "position.multiples", By: literal(n)}, func(f, p float64) float64 { return product(f, math.Floor(p/n)*n) }); err != nil {
			return err
		}
	}
	tokens := 0
	for _, e := range s.entries {
		tokens = max(tokens, s.m.Passes[e.Node.Pass].Past+s.m.Passes[e.Node.Pass].Tokens)
	}
	for n := 2.0; n < float64(min(tokens, mostOffset)); n++ {
		if err := try(1, Mistake{Kind: "position.chunks", N: int(n)}, func(f, p float64) float64 { return product(f, math.Mod(p, n)) }); err != nil {
			return err
		}
	}
	if _, only := s.onlyPlace(); only { // what one position is taken for is no rule for all: [search.otherPlace]
		return nil
	}
	for k := 1.0; k <= mostOffset; k++ {
		if err := try(1, Mistake{Kind: "position.still", N: int(k)}, func(f, _ float64) float64 { return product(f, k) }); err != nil {
			return err
		}
	}
	for k := 3.0; k <= mostOffset; k++ {
		for _, d := range []float64{k, -k} {
			if err := try(1, Mistake{Kind: "position.offset", N: int(d)}, func(f, p float64) float64 { return product(f, p+d) }); err != nil {
				return err
			}
		}
	}
	return s.bentPositions(tokens, try, product)
}

// bentPositions tries positions that end at one, as those of a table that is too short, that begin later, as behind padding, that are off
// from one on, and that count down.
func (s *search) bentPositions(tokens int, try func(solved int, m Mistake, change func(frequency, position float64) float64) error, product func(frequency, position float64) float64) error {
	last := float64(min(tokens, mostOffset)) - 1
	for n := last - 1; n > 0; n-- {
		if err := try(1, Mistake{Kind: "position.last", N: int(n)}, func(f, p float64) float64 { return product(f, min(p, n)) }); err != nil {
			return err
		}
	}
	for n := 1.0; n < last; n++ {
		if err := try(1, Mistake{Kind: "position.padding", N: int(n)}, func(f, p float64) float64 { return product(f, max(p-n, 0)) }); err != nil {
			return err
		}
	}
	for n := 1.0; n <= last; n++ {
		for _, by := range []float64{1, -1} {
			if err := try(2, Mistake{Kind: "position.offset-from", N: int(by), M: int(n)}, func(f, p float64) float64 {
				if p >= n {
					p += by
				}
				return product(f, p)
			}); err != nil {
				return err
			}
		}
	}
	return try(1, Mistake{Kind: "position.reversed"}, func(f, p float64) float64 {
		return product(f, math.Abs(float64(s.m.Passes[0].Tokens)-1-p))
	})
}

// otherPlace tries another position for the only one that the entries have. They cannot tell one that stands still from one that is off,
// or from one that is multiplied: the name is what they show, before those of the rules that would give the same.
func (s *search) otherPlace() error {
	p, only := s.onlyPlace()
	if !only {
		return nil
	}
	for _, k := range places(p) {
		m := Mistake{Kind: "position.ahead", Place: positionsSite, For: literal(p), X: some(k), By: literal(k - p)}
		if k < p {
			m.Kind, m.By = "position.behind", literal(p-k)
		}
		h := hypothesis{class: program.Known, say: func(*Entry) Name { return m.name() }}
		if math.Abs(k-p) > 2 && k != 0 { // one of many, and not one of those that are usual
			h.solved = 1
		}
		h.make = func(e *Entry) *program.Edited {
			return s.angles(e, func(f, _ float64) float64 { return float64(float32(f * k)) })
		}
		if err := s.try(h); err != nil {
			return err
		}
	}
	return nil
}

// places are the positions that are tried in place of another, the nearest first.
func places(p float64) []float64 {
	var all []float64
	for d := 1.0; d <= mostOffset; d++ {
		all = append(all, p+d)
		if p >= d {
			all = append(all, p-d)
		}
	}
	for k := 0.0; k < min(p-mostOffset, mostOffset+1); k++ {
		all = append(all, k)
	}
	return all
}

// onlyPlace is the position of the entries where they have one alone, as those of one decode step do.
func (s *search) onlyPlace() (p float64, only bool) {
	pass := s.first.Node.Pass
	all := s.first.Program.Of(program.Angle)
	if len(all) == 0 || s.m.Passes[pass].Tokens > 1 || slices.ContainsFunc(s.entries, func(e *Entry) bool { return e.Node.Pass != pass }) {
		return 0, false
	}
	for k, i := range all {
		positions, ok := s.valueAt(s.first, s.first.Program.Steps[i].Args[1])
		if !ok {
			return 0, false
		} else if k == 0 {
			p = positions[0]
		}
		if slices.ContainsFunc(positions, func(x float64) bool { return x != p }) {
			return 0, false
		}
	}
	return p, true
}

// angles has other angles than the products of frequencies and positions.
func (s *subject) angles(e *Entry, change func(frequency, position float64) float64) *program.Edited {
	ed := e.Program.Edit()
	all := e.Program.Of(program.Angle)
	for _, i := range all {
		st := &e.Program.Steps[i]
		frequencies, ok := s.valueAt(e, st.Args[0])
		positions, has := s.valueAt(e, st.Args[1])
		if !ok || !has || len(frequencies) != len(positions) {
			return nil
		}
		v := program.Value{Shape: st.Shape, Data: make([]float64, len(positions)), Bound: make([]float64, len(positions))}
		for k := range v.Data {
			v.Data[k] = change(frequencies[k], positions[k])
			v.Bound[k] = 3 * 0x1p-24 * math.Abs(v.Data[k]) // as of the primitive
		}
		ed.Pass(i, ed.Other(v))
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}
