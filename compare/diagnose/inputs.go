package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// inputs yields other captured tensors in place of the tensors that the program reads.
func inputs(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range leafSteps(t, program.Input) {
			n := s.first.Inputs[t.Steps[i].Index()]
			own, at := s.m.List.Entries[n.Entry].Name, placed(t.PlaceOf(i))
			var same []string
			for k := range s.m.List.Entries {
				if e := &s.m.List.Entries[k]; order.NameOf(e.Name).Role() == order.NameOf(own).Role() {
					same = append(same, e.Name)
				}
			}
			others := []iter.Seq[Mistake]{slices.Values(otherInputs(s, i)), instances(s, Mistake{Of: tensorTerm(own), Edit: at}, same)}
			if n.Pass != s.first.Node.Pass {
				others = append(others, instances(s, Mistake{Of: Term{Kind: TheKept, Name: order.NameOf(own).Role()}, Edit: at}, same))
			}
			for _, all := range others {
				for m := range all {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// keptToo is a second place of a mistake. It stands for inputs that have the same tensor in earlier passes.
const keptToo = -3

// otherInputs are the mistakes of a wrong stream or tensor in place of an input, or of the input's tensor in the pass before.
func otherInputs(s *search, step int) (all []Mistake) {
	t := s.first.signed(s.m)
	at, n, item := t.PlaceOf(step), s.first.Inputs[t.Steps[step].Index()], s.first.Items[t.Steps[step].Index()]
	own := s.m.List.Entries[n.Entry].Name
	add := func(from string, m Mistake, at ...edit.Place) {
		m.Place, m.Source, m.Edit = order.NameOf(from).Role(), from, placed(at...)
		all = append(all, m)
	}
	if item != nil {
		for other := range s.m.List.Entries[n.Entry].Size(s.m.Passes[n.Pass], s.m.List.Config.SlidingWindow)[0] {
			if other != *item {
				add(own, Mistake{Kind: "input.stream", Of: tensorTerm(own), N: other, M: *item}, at)
			}
		}
	}
	kind, kept := Kind("input.other"), false
	if n.Pass != s.first.Node.Pass {
		kind = "input.other-kept"
	} else {
		kept = readInPasses(s, own)
	}
	for _, other := range capturedLike(s, own) {
		m := Mistake{Kind: kind, By: tensorTerm(other), For: tensorTerm(own)}
		if add(other, m, at); kept {
			add(other, m, at, edit.Place{Arg: keptToo})
		}
	}
	for _, from := range streams(s, program.Size(t.Steps[step].Shape)) {
		add(from.name, Mistake{Kind: "input.other", By: from.term(), For: tensorTerm(own)}, at)
	}
	before := tensorTerm(own)
	before.Before = true
	add(own, Mistake{Kind: "input.pass-before", By: before}, at)
	return all
}

// otherInput puts a captured tensor in place of the input at the place of a mistake.
func otherInput(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	if !ok {
		return nil
	}
	from, own := source{name: s.here(m.Source, e), item: streamOf(m.By), all: len(d.At) > 1}, s.m.List.Entries[e.Node.Entry].Name
	switch m.Kind {
	case "input.stream":
		from.item = &m.N
	case "input.pass-before":
		from.pass = -1
	case "input.layer-before":
		from.name = before(from.name)
	case "input.chained":
		from.name = before(own)
	case "input.own-stream":
		item := order.NameOf(own).Number() + m.N
		from.item = &item
	}
	return reads(s, e, d.At[0], from)
}

// before returns the name of the same tensor in the layer or stream before. The result is empty if no layer or stream comes before.
func before(name string) string {
	other, _ := order.NameOf(name).Next(-1)
	return other.String()
}

// streams lists the streams of captured stacks of tensors with some number of elements: one stack of each role.
func streams(s *search, elements int) []source {
	var all []source
	for _, name := range capturedLike(s, "") {
		at := s.m.List.Index(name)
		shape := s.m.List.Entries[at].Size(s.m.Passes[s.first.Node.Pass], s.m.List.Config.SlidingWindow)
		if len(shape) > 2 && stacked(s.subject, at) && program.Size(shape[1:]) == elements {
			for item := range shape[0] {
				all = append(all, source{name: name, item: &item})
			}
		}
	}
	return all
}

// stacked reports whether the first axis of an entry counts streams.
func stacked(s *subject, entry int) bool {
	axes := s.m.List.Entries[entry].Axes
	return axes != "" && axes[0] == order.AxisStream
}

// exchanged yields each pair of inputs exchanged.
func exchanged(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	var all []Mistake
	inputs := leafSteps(t, program.Input)
	for k, i := range inputs {
		for _, j := range inputs[:k] {
			all = append(all, Mistake{Kind: "inputs.exchanged", Of: s.value(s.first, t.Result(j)), By: s.value(s.first, t.Result(i)), Edit: placed(t.PlaceOf(j), t.PlaceOf(i))})
		}
	}
	return slices.Values(all)
}

// exchangedInputs exchanges two inputs.
func exchangedInputs(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	if !ok || len(d.At) < 2 {
		return nil
	}
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	x, y := t.Copies(d.At[0]), t.Copies(d.At[1])
	if len(x) != 1 || len(y) != 1 || !ed.Exchange(x[0], y[0]) {
		return nil
	}
	return ended(ed)
}

// source is a captured tensor: its name, its pass relative to the entry's pass, and the index of its first axis if only one stream is read.
type source struct {
	name string
	pass int
	item *int
	all  bool // also in place of inputs of earlier passes
}

// term is the term of a captured tensor, or of a stream of it.
func (of source) term() Term {
	t := tensorTerm(of.name)
	if of.item != nil {
		t.Item = some(float64(*of.item))
	}
	return t
}

// streamOf is the stream in a term; nil for no stream.
func streamOf(t Term) *int {
	if !t.Item.Has {
		return nil
	}
	n := int(t.Item.Value)
	return &n
}

// readInPasses reports whether an entry reads a tensor of several passes.
func readInPasses(s *search, name string) bool {
	return slices.ContainsFunc(s.entries, func(e *Entry) bool {
		n := 0
		for _, in := range e.Inputs {
			if order.NameOf(s.m.List.Entries[in.Entry].Name).Role() == order.NameOf(name).Role() {
				n++
			}
		}
		return n > 1
	})
}

// capturedLike lists captured tensors that could be read in place of the tensor own: a single tensor of each other role. A tensor that
// comes later in the order than the entry is listed if the tensor belongs to the layer of the entry and is not computed from the entry.
func capturedLike(s *search, own string) []string {
	var all []string
	seen := map[string]bool{order.NameOf(own).Role(): true}
	target := s.first.Node.Entry
	from := map[int]bool{target: true} // entries that are computed from the entry
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if k > target {
			from[k] = slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return !r.Prev && from[s.m.List.Index(r.Name)] })
			if from[k] || !order.NameOf(e.Name).SameLayer(order.NameOf(s.m.List.Entries[target].Name)) {
				continue
			}
		}
		if k != target && !seen[order.NameOf(e.Name).Role()] && s.m.Has(order.Node{Entry: k, Pass: s.first.Node.Pass}) {
			seen[order.NameOf(e.Name).Role()] = true
			all = append(all, e.Name)
		}
	}
	return all
}

// tensor reads a captured tensor, or a stream of the tensor. It is not ok for the entry's own tensor.
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
		if len(v.Shape) < 2 || *of.item < 0 || *of.item >= v.Shape[0] {
			return v, false
		}
		part := program.Size(v.Shape[1:])
		v = program.Value{Shape: v.Shape[1:], Data: v.Data[*of.item*part:][:part]}
	}
	return v, true
}

// reads puts a captured tensor in place of the inputs at a place; each input gets the tensor of its own pass. It is nil if the tensor does not have as
// many elements as an input.
func reads(s *subject, e *Entry, at edit.Place, from source) *program.Edited {
	t := e.signed(s.m)
	steps := t.Copies(at)
	if len(steps) == 0 || s.m.List.Index(from.name) < 0 {
		return nil
	}
	if from.all {
		own := e.Inputs[t.Steps[steps[0]].Index()].Entry
		for i := range t.Steps {
			if st := &t.Steps[i]; st.Prim == program.Input && e.Inputs[st.Index()].Entry == own && !slices.Contains(steps, i) {
				steps = append(slices.Clone(steps), i)
			}
		}
	}
	ed := edit.NewEditor(e.Program)
	for _, i := range steps {
		if !readAt(s, e, ed, i, from) {
			return nil
		}
	}
	return ended(ed)
}

// readAt puts a captured tensor in place of an input. It reports false if the tensor is missing or does not have as many elements.
func readAt(s *subject, e *Entry, ed *edit.Editor, i int, from source) bool {
	t := e.signed(s.m)
	size := program.Size(t.Steps[i].Shape)
	from.pass += e.Inputs[t.Steps[i].Index()].Pass - e.Node.Pass
	pass := e.Node.Pass + from.pass
	if pass < 0 {
		return false
	}
	shape := s.m.List.Entries[s.m.List.Index(from.name)].Size(s.m.Passes[pass], s.m.List.Config.SlidingWindow)
	if from.item != nil && len(shape) > 0 {
		shape = shape[1:]
	}
	if program.Size(shape) != size {
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
	for k := range t.Steps { // the axes of the tensor may have another order: the order that the readers of the input see
		for a, arg := range t.Steps[k].Args {
			if arg.Step == i {
				if some = ed.ReadAs(k, a, other); !some {
					return false
				}
			}
		}
	}
	return some
}
