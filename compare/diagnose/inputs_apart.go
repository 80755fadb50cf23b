package diagnose

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
)

// lastNumber is that of a layer, or of a stream, in a name.
var lastNumber = regexp.MustCompile(`(^|\.)(\d+)(\.|$)`)

// neighbour is the name with another layer or stream, some further on; empty where it has none.
func neighbour(name string, by int) string {
	at := lastNumber.FindStringSubmatchIndex(name)
	if at == nil {
		return ""
	}
	n, err := strconv.Atoi(name[at[4]:at[5]])
	if err != nil || n+by < 0 {
		return ""
	}
	return name[:at[4]] + strconv.Itoa(n+by) + name[at[5]:]
}

// numbered is the number of a layer, or of a stream, in a name; −1 where it has none.
func numbered(name string) int {
	at := lastNumber.FindStringSubmatch(name)
	if at == nil {
		return -1
	}
	n, err := strconv.Atoi(at[2])
	if err != nil {
		return -1
	}
	return n
}

// chained tries what the same operation made before in place of an input, as where each of several projections should read one tensor and
// reads what the last of them gave; and tensors of the layer before.
func (s *search) chained() error {
	t := s.first.signed(s.m)
	target := s.m.List.Entries[s.first.Node.Entry].Name
	for _, i := range leafSteps(t, program.Input) {
		n := s.first.Inputs[t.Steps[i].Index]
		own := s.m.List.Entries[n.Entry].Name
		if n.Pass != s.first.Node.Pass {
			continue
		}
		try := func(kind Kind, role string, name func(entry string) string) error {
			m := Mistake{Kind: kind, Place: role, By: tensorTerm(role), For: tensorTerm(own)}
			return s.try(hypothesis{
				class: program.InputOf, say: func(*Entry) Name { return m.name() },
				make: func(e *Entry) *program.Edited {
					other := name(s.m.List.Entries[e.Node.Entry].Name)
					if other == "" {
						return nil
					}
					return s.reads(e, t.Of(i), source{name: other})
				},
			})
		}
		if err := try("input.chained", Role(target), func(entry string) string { return neighbour(entry, -1) }); err != nil {
			return err
		}
		if _, ok := layerOf(target); !ok {
			if err := s.ownStreams(t, i, own); err != nil {
				return err
			}
			continue
		}
		for _, other := range append([]string{own}, s.captured(own)...) {
			if _, ok := layerOf(other); !ok {
				continue
			}
			if err := try("input.layer-before", Role(other), func(entry string) string { return neighbour(beside(other, entry), -1) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownStreams tries streams of stacks in place of an input where each entry of a role has a stream of its own: that of its number, and those
// beside it.
func (s *search) ownStreams(t *program.Parts, i int, own string) error {
	if numbered(s.m.List.Entries[s.first.Node.Entry].Name) < 0 {
		return nil
	}
	seen := map[string]bool{}
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		shape := other.Size(s.m.Passes[s.first.Node.Pass], s.m.List.Config.SlidingWindow)
		if seen[Role(other.Name)] || !s.stacked(k) || len(shape) < 3 || product(shape[1:]) != product(t.Steps[i].Shape) {
			continue
		}
		seen[Role(other.Name)] = true
		for by := -1; by <= 1; by++ {
			m := Mistake{Kind: "input.own-stream", Place: Role(other.Name), By: tensorTerm(other.Name), For: s.value(s.first, t.Result(i)), N: by}
			if err := s.try(hypothesis{
				class: program.InputOf, say: func(*Entry) Name { return m.name() },
				make: func(e *Entry) *program.Edited {
					item := numbered(s.m.List.Entries[e.Node.Entry].Name) + by
					if item < 0 {
						return nil
					}
					return s.reads(e, t.Of(i), source{name: other.Name, item: &item})
				},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostApart bounds the readers of inputs, each by itself, that are tried with other tensors.
const mostApart = 6

// apartInputs tries another captured tensor for one of several steps that read an input: the others read what they should.
func (s *search) apartInputs() error {
	t := s.first.signed(s.m)
	var readers []int
	for _, i := range t.Firsts() {
		for _, a := range t.Steps[i].Args {
			from := t.Source(a)
			if t.Steps[from].Prim != program.Input || len(readersOf(t.Program, from)) < 2 || slices.Contains(readers, i) {
				continue
			}
			readers = append(readers, i)
		}
	}
	if len(readers) > mostApart {
		readers = readers[:mostApart]
	}
	for _, i := range readers {
		for a, v := range t.Steps[i].Args {
			from := t.Source(v)
			if t.Steps[from].Prim != program.Input || slices.IndexFunc(t.Steps[i].Args, func(o program.Var) bool { return o.Same(v) }) != a {
				continue
			}
			own := s.m.List.Entries[s.first.Inputs[t.Steps[from].Index].Entry].Name
			for _, other := range s.sourcesOf(own, product(v.Shape())) {
				m := Mistake{Kind: "input.apart", Place: Role(other.name), Of: s.step(s.first, i), By: other.term(), For: s.value(s.first, v)}
				if err := s.try(hypothesis{
					class: program.InputOf, say: func(*Entry) Name { return m.name() },
					make: func(e *Entry) *program.Edited { return s.readsApart(e, t.Of(i), a, other) },
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sourcesOf are captured tensors of some elements, and streams of stacks, beside one that is read.
func (s *search) sourcesOf(own string, elements int) []source {
	var all []source
	for _, name := range s.captured(own) {
		e := &s.m.List.Entries[s.m.List.Index(name)]
		if product(e.Size(s.m.Passes[s.first.Node.Pass], s.m.List.Config.SlidingWindow)) == elements {
			all = append(all, source{name: name})
		}
	}
	for _, o := range s.stacks(elements) {
		for item := range o.items {
			all = append(all, source{name: o.name, item: &item})
		}
	}
	return all
}

// readsApart has a captured tensor in place of what one step reads.
func (s *subject) readsApart(e *Entry, at program.Place, arg int, from source) *program.Edited {
	t, ed := e.signed(s.m), e.Program.Edit()
	from.name = beside(from.name, s.m.List.Entries[e.Node.Entry].Name)
	x, ok := s.tensor(e, from)
	all := t.Copies(at)
	if !ok || len(all) == 0 {
		return nil
	}
	for _, i := range all {
		args := t.Steps[i].Args
		if len(x.Data) != product(args[arg].Shape()) {
			return nil
		}
		v := ed.Other(program.Value{Shape: args[arg].Shape(), Data: x.Data})
		for a, o := range args {
			if o.Same(args[arg]) {
				ed.Read(i, a, v)
			}
		}
	}
	return ended(ed)
}
