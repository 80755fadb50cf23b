package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// instances looks for a tensor or weight of another layer or stream that each entry reads, the same in all passes of an entry. The term
// names what the entries should read.
func (s *search) instances(of Term, others []string, class program.Class, with func(other string) func(e *Entry) *program.Edited) error {
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
	var pairs []string
	for _, name := range names {
		for _, other := range others {
			h := hypothesis{make: with(other)}
			if s.spent() {
				return s.ctx.Err()
			}
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
				pairs = append(pairs, name+"="+other)
				break
			}
		}
		if chosen[name] == nil {
			return nil
		}
	}
	m := Mistake{Kind: "instance.of-another-layer", Place: of.String(), Of: of, By: listTerm(Others, pairs)}
	if _, ok := layerOf(names[0]); !ok {
		m.Kind = "instance.another"
	}
	h := hypothesis{
		class: class, solved: len(names),
		make: func(e *Entry) *program.Edited {
			if other := chosen[s.m.List.Entries[e.Node.Entry].Name]; other != nil {
				return other(e)
			}
			return nil
		},
		say:   func(*Entry) Name { return m.name() },
		other: chosen[names[0]],
	}
	return s.try(h)
}

// inputs tries other captured tensors in place of those that the program reads.
func (s *search) inputs() error {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Input) {
		n := s.first.Inputs[t.Steps[i].Index]
		own := s.m.List.Entries[n.Entry].Name
		if item := s.first.Items[t.Steps[i].Index]; item != nil {
			for other := range s.m.List.Entries[n.Entry].Size(s.m.Passes[n.Pass], s.m.List.Config.SlidingWindow)[0] {
				if other == *item {
					continue
				}
				m := Mistake{Kind: "input.stream", Of: tensorTerm(own), N: other, M: *item}
				if err := s.try(s.reading(t.Of(i), source{name: own, item: &other}, m)); err != nil {
					return err
				}
			}
		}
		for _, other := range s.captured(own) {
			m := Mistake{Kind: "input.other", By: tensorTerm(other), For: tensorTerm(own)}
			if n.Pass != s.first.Node.Pass {
				m.Kind = "input.other-kept"
			}
			if err := s.try(s.reading(t.Of(i), source{name: other}, m)); err != nil {
				return err
			}
			if n.Pass == s.first.Node.Pass && s.cached(own) {
				if err := s.try(s.reading(t.Of(i), source{name: other, all: true}, m)); err != nil {
					return err
				}
			}
		}
		for _, other := range s.stacks(product(t.Steps[i].Shape)) {
			for item := range other.items {
				from := source{name: other.name, item: &item}
				m := Mistake{Kind: "input.other", By: from.term(), For: tensorTerm(own)}
				if err := s.try(s.reading(t.Of(i), from, m)); err != nil {
					return err
				}
			}
		}
		before := tensorTerm(own)
		before.Before = true
		if err := s.try(s.reading(t.Of(i), source{name: own, pass: -1}, Mistake{Kind: "input.pass-before", By: before})); err != nil {
			return err
		}
		var same []string
		for k := range s.m.List.Entries {
			if e := &s.m.List.Entries[k]; Role(e.Name) == Role(own) {
				same = append(same, e.Name)
			}
		}
		if err := s.instances(tensorTerm(own), same, program.InputOf, func(other string) func(e *Entry) *program.Edited {
			return func(e *Entry) *program.Edited { return s.reads(e, t.Of(i), source{name: other, all: true}) }
		}); err != nil {
			return err
		}
		if n.Pass == s.first.Node.Pass {
			continue
		}
		if err := s.instances(Term{Kind: TheKept, Name: Role(own)}, same, program.InputOf, func(other string) func(e *Entry) *program.Edited {
			return func(e *Entry) *program.Edited { return s.reads(e, t.Of(i), source{name: other}) }
		}); err != nil {
			return err
		}
	}
	return nil
}

// stack is a captured tensor whose first axis counts streams.
type stack struct {
	name  string
	items int
}

// stacks lists the captured stacks of tensors of some elements: one of each role.
func (s *search) stacks(elements int) []stack {
	var all []stack
	for _, name := range s.captured("") {
		e := &s.m.List.Entries[s.m.List.Index(name)]
		shape := e.Size(s.m.Passes[s.first.Node.Pass], s.m.List.Config.SlidingWindow)
		if len(shape) > 2 && s.stacked(s.m.List.Index(name)) && product(shape[1:]) == elements {
			all = append(all, stack{name, shape[0]})
		}
	}
	return all
}

// stacked reports whether the first axis of an entry counts streams.
func (s *subject) stacked(entry int) bool {
	axes := s.m.List.Entries[entry].Axes
	return axes != "" && axes[0] == order.AxisStream
}

// exchanged tries each two inputs in each other's place.
func (s *search) exchanged() error {
	t := s.first.signed(s.m)
	all := leafSteps(t, program.Input)
	for k, i := range all {
		for _, j := range all[:k] {
			a, b := t.Of(j), t.Of(i)
			m := Mistake{Kind: "inputs.exchanged", Of: s.value(s.first, t.Result(j)), By: s.value(s.first, t.Result(i))}
			err := s.try(hypothesis{
				class: program.Swapped,
				make: func(e *Entry) *program.Edited {
					t := e.signed(s.m)
					x, y := t.Copies(a), t.Copies(b)
					ed := e.Program.Edit()
					if len(x) != 1 || len(y) != 1 || !ed.Exchange(x[0], y[0]) {
						return nil
					}
					return ended(ed)
				},
				say: func(*Entry) Name { return m.name() },
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// source is a captured tensor: of some passes before, and an index of its first axis alone where it has one.
type source struct {
	name string
	pass int
	item *int
	all  bool // in place of what is read of the passes before, too
}

// term is the term of a captured tensor, or of a stream of it.
func (of source) term() Term {
	t := tensorTerm(of.name)
	if of.item != nil {
		t.Item = some(float64(*of.item))
	}
	return t
}

// cached reports whether an entry reads a tensor of several passes.
func (s *search) cached(name string) bool {
	return slices.ContainsFunc(s.entries, func(e *Entry) bool {
		n := 0
		for _, in := range e.Inputs {
			if Role(s.m.List.Entries[in.Entry].Name) == Role(name) {
				n++
			}
		}
		return n > 1
	})
}

// reading is the hypothesis that a place reads another captured tensor: of the layer of each entry.
func (s *search) reading(at program.Place, from source, m Mistake) hypothesis {
	m.Place = Role(from.name)
	return hypothesis{
		class: program.InputOf,
		make: func(e *Entry) *program.Edited {
			of := from
			of.name = beside(from.name, s.m.List.Entries[e.Node.Entry].Name)
			return s.reads(e, at, of)
		},
		say: func(e *Entry) Name { return m.name() },
	}
}

// captured lists tensors that could be read in place of one: one of each other role. What is computed from the entry is none; else it
// may come later in the order.
func (s *search) captured(own string) []string {
	var all []string
	seen := map[string]bool{Role(own): true}
	target := s.first.Node.Entry
	from := map[int]bool{target: true} // what is computed from the entry
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if k > target {
			from[k] = slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return !r.Prev && from[s.m.List.Index(r.Name)] })
			a, ok := layerOf(e.Name)
			if b, has := layerOf(s.m.List.Entries[target].Name); from[k] || !ok || !has || a != b {
				continue
			}
		}
		if k != target && !seen[Role(e.Name)] && s.m.Has(order.Node{Entry: k, Pass: s.first.Node.Pass}) {
			seen[Role(e.Name)] = true
			all = append(all, e.Name)
		}
	}
	return all
}

// tensor is a captured tensor that was not computed from an entry.
func (s *subject) tensor(e *Entry, of source) (program.Value, bool) {
	n := order.Node{Entry: s.m.List.Index(of.name), Pass: e.Node.Pass + of.pass}
	if n.Entry < 0 || n.Pass < 0 || n == e.Node || !s.m.Has(n) {
		return program.Value{}, false
	}
	v, err := s.m.Read(n)
	if s.failed(err) {
		return v, false
	}
	if of.item != nil {
		if len(v.Shape) < 2 || *of.item >= v.Shape[0] {
			return v, false
		}
		part := product(v.Shape[1:])
		v = program.Value{Shape: v.Shape[1:], Data: v.Data[*of.item*part:][:part]}
	}
	return v, true
}

// reads has a captured tensor in place of what is read at a place, each of the pass of that; nil where there is none of as many
// elements.
func (s *subject) reads(e *Entry, at program.Place, from source) *program.Edited {
	t := e.signed(s.m)
	steps := t.Copies(at)
	if len(steps) == 0 || s.m.List.Index(from.name) < 0 {
		return nil
	}
	if from.all {
		own := e.Inputs[t.Steps[steps[0]].Index].Entry
		for i := range t.Steps {
			if st := &t.Steps[i]; st.Prim == program.Input && e.Inputs[st.Index].Entry == own && !slices.Contains(steps, i) {
				steps = append(slices.Clone(steps), i)
			}
		}
	}
	ed := e.Program.Edit()
	for _, i := range steps {
		if !s.readAt(e, ed, i, from) {
			return nil
		}
	}
	return ended(ed)
}

// readAt has a captured tensor in place of an input; it reports whether there is one of as many elements.
func (s *subject) readAt(e *Entry, ed *program.Editor, i int, from source) bool {
	t := e.signed(s.m)
	size := product(t.Steps[i].Shape)
	from.pass += e.Inputs[t.Steps[i].Index].Pass - e.Node.Pass
	pass := e.Node.Pass + from.pass
	if pass < 0 {
		return false
	}
	shape := s.m.List.Entries[s.m.List.Index(from.name)].Size(s.m.Passes[pass], s.m.List.Config.SlidingWindow)
	if from.item != nil && len(shape) > 0 {
		shape = shape[1:]
	}
	if product(shape) != size {
		return false
	}
	v, ok := s.tensor(e, from)
	if !ok || len(v.Data) != size {
		return false
	}
	if slices.Equal(v.Shape, t.Steps[i].Shape) {
		ed.OtherInput(i, v)
		return true
	}
	other, some := ed.Other(v), false
	for k := range t.Steps { // its axes may be in another order: as its readers see them
		for a, arg := range t.Steps[k].Args {
			if t.Source(arg) == i {
				if some = ed.ReadAs(k, a, other); !some {
					return false
				}
			}
		}
	}
	return some
}
