package diagnose

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// readers tries another stream of a stack for one of the steps that read one, where others read it as they should.
func (s *search) readers() error {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Input) {
		item := s.first.Items[t.Steps[i].Index]
		if item == nil {
			continue
		}
		n := s.first.Inputs[t.Steps[i].Index]
		own := s.m.List.Entries[n.Entry].Name
		at := t.Of(i)
		var places []program.Place
		for _, k := range readersOf(t.Program, i) {
			if of := t.Of(k); !slices.Contains(places, of) {
				places = append(places, of)
			}
		}
		if len(places) < 2 {
			continue
		}
		for rank, reader := range places {
			step := s.step(s.first, t.Copies(reader)[0])
			for other := range s.m.List.Entries[n.Entry].Size(s.m.Passes[n.Pass], s.m.List.Config.SlidingWindow)[0] {
				if other == *item {
					continue
				}
				text := fmt.Sprintf("%s reads stream %d of %s, not %d", step, other, Role(own), *item)
				if err := s.try(hypothesis{
					class: program.InputOf, rank: 2000 + 100*rank + other,
					make: func(e *Entry) *program.Edited { return s.readBy(e, at, reader, source{name: own, item: &other}) },
					say:  func(*Entry) Name { return Name{What: text, Site: Role(own)} },
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readBy has another captured tensor in place of an input, for one of the steps that read it.
func (s *search) readBy(e *Entry, at, reader program.Place, from source) *program.Edited {
	t := e.signed(s.m)
	from.name = beside(from.name, s.m.List.Entries[e.Node.Entry].Name)
	v, ok := s.tensor(e, from)
	steps := t.Copies(at)
	if !ok || len(steps) == 0 {
		return nil
	}
	ed, some := e.Program.Edit(), false
	other := ed.Other(v)
	for _, k := range t.Copies(reader) {
		for a, arg := range t.Steps[k].Args {
			if slices.Contains(steps, t.Source(arg)) {
				if !ed.ReadAs(k, a, other) {
					return nil
				}
				some = true
			}
		}
	}
	if !some {
		return nil
	}
	return ended(ed)
}
