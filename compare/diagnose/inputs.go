package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// instances looks for what entries read of another layer, or stream: each entry by itself, all of its passes together.
func (s *search) instances(rank int, role string, others []string, class program.Class, with func(other string) func(e *Entry) *program.Edited) error {
	if len(others) < 2 {
		return nil
	}
	byName := map[string][]*Entry{}
	var names []string
	for _, e := range s.entries {
		name := s.m.List.Entries[e.Node.Entry].Name
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], e)
	}
	chosen := map[string]func(e *Entry) *program.Edited{}
	var words []string
	for _, name := range names {
		for _, other := range others {
			h := hypothesis{make: with(other)}
			s.tried++
			good := true
			for _, e := range byName[name] {
				may, err := s.may(h, e.Small())
				if err != nil {
					return err
				}
				if good = may; !good {
					break
				}
			}
			if good {
				chosen[name] = h.make
				words = append(words, name+" has that of "+other)
				break
			}
		}
		if chosen[name] == nil {
			return nil
		}
	}
	text := role + " is that of another layer: "
	if _, ok := layerOf(names[0]); !ok {
		text = role + " is another one: "
	}
	h := hypothesis{
		class: class, rank: rank, solved: len(names),
		make: func(e *Entry) *program.Edited { return chosen[s.m.List.Entries[e.Node.Entry].Name](e) },
		say:  func(*Entry) Name { return Name{What: text + strings.Join(words, "; "), Site: role} },
	}
	return s.try(h)
}

// inputs tries other captured tensors in place of those that the program reads.
func (s *search) inputs() error {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Input) {
		n := s.first.Inputs[t.Steps[i].Index]
		own := s.m.List.Entries[n.Entry].Name
		for rank, other := range s.captured(own) {
			if err := s.try(s.reading(t.Of(i), rank, own, other, 0)); err != nil {
				return err
			}
		}
		if err := s.try(s.reading(t.Of(i), 1000, own, own, -1)); err != nil {
			return err
		}
		var same []string
		for k := range s.m.List.Entries {
			if e := &s.m.List.Entries[k]; Role(e.Name) == Role(own) {
				same = append(same, e.Name)
			}
		}
		if err := s.instances(1001, Role(own), same, program.InputOf, func(other string) func(e *Entry) *program.Edited {
			return func(e *Entry) *program.Edited { return s.reads(e, t.Of(i), other, 0) }
		}); err != nil {
			return err
		}
	}
	return nil
}

// exchanged tries each two inputs in each other's place.
func (s *search) exchanged() error {
	t := s.first.signed(s.m)
	all := leafSteps(t, program.Input)
	for k, i := range all {
		for _, j := range all[:k] {
			a, b := t.Of(j), t.Of(i)
			text := fmt.Sprintf("%s and %s are exchanged", s.value(s.first, t.Result(j)), s.value(s.first, t.Result(i)))
			err := s.try(hypothesis{
				class: program.Swapped, rank: k,
				make: func(e *Entry) *program.Edited {
					t := e.signed(s.m)
					x, y := t.Copies(a), t.Copies(b)
					ed := e.Program.Edit()
					if len(x) != 1 || len(y) != 1 || !ed.Exchange(x[0], y[0]) {
						return nil
					}
					d, err := ed.End()
					if err != nil {
						return nil
					}
					return d
				},
				say: func(*Entry) Name { return Name{What: text} },
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// reading is the hypothesis that a place reads another captured tensor.
func (s *search) reading(at program.Place, rank int, own, other string, pass int) hypothesis {
	text := fmt.Sprintf("reads %s, not %s", Role(other), Role(own))
	if pass != 0 {
		text = fmt.Sprintf("reads %s of the pass before", Role(own))
	}
	return hypothesis{
		class: program.InputOf, rank: rank,
		make: func(e *Entry) *program.Edited {
			return s.reads(e, at, beside(other, s.m.List.Entries[e.Node.Entry].Name), pass)
		},
		say: func(e *Entry) Name { return Name{What: text, Site: Role(own)} },
	}
}

// captured lists tensors that could be read in place of one: one of each other role.
func (s *search) captured(own string) []string {
	var all []string
	seen := map[string]bool{Role(own): true}
	target := s.first.Node.Entry
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if k < target && !seen[Role(e.Name)] && s.m.Has(order.Node{Entry: k, Pass: s.first.Node.Pass}) {
			seen[Role(e.Name)] = true
			all = append(all, e.Name)
		}
	}
	return all
}

// tensor is a captured tensor that was computed before an entry.
func (s *search) tensor(e *Entry, name string, pass int) (program.Value, bool) {
	n := order.Node{Entry: s.m.List.Index(name), Pass: e.Node.Pass + pass}
	if n.Entry < 0 || n.Pass < 0 || pass == 0 && n.Entry >= e.Node.Entry || !s.m.Has(n) {
		return program.Value{}, false
	}
	v, err := s.m.Read(n)
	return v, !s.failed(err)
}

// reads has a captured tensor in place of what is read at a place; nil where there is none of as many elements.
func (s *search) reads(e *Entry, at program.Place, name string, pass int) *program.Edited {
	t := e.signed(s.m)
	all := t.Copies(at)
	n := s.m.List.Index(name)
	if len(all) == 0 || n < 0 || e.Node.Pass+pass < 0 {
		return nil
	}
	size := product(t.Steps[all[0]].Shape)
	if product(s.m.List.Entries[n].Size(s.m.Passes[e.Node.Pass+pass], s.m.List.Config.SlidingWindow)) != size {
		return nil
	}
	v, ok := s.tensor(e, name, pass)
	if !ok || len(v.Data) != size {
		return nil
	}
	ed := e.Program.Edit()
	for _, i := range all {
		if slices.Equal(v.Shape, t.Steps[i].Shape) {
			ed.OtherInput(i, v)
			continue
		}
		other, some := ed.Other(v), false
		for k := range t.Steps { // its axes may be in another order: as its readers see them
			for a, arg := range t.Steps[k].Args {
				if t.Source(arg) == i {
					if some = ed.ReadAs(k, a, other); !some {
						return nil
					}
				}
			}
		}
		if !some {
			return nil
		}
	}
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}
