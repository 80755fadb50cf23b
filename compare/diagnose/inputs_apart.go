package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// chained yields an earlier result of the same operation in place of an input, as where several projections should read one tensor and each reads the
// result of the projection before. It also yields tensors of the layer before.
func chained(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	target := s.m.List.Entries[s.first.Node.Entry].Name
	var all []Mistake
	for _, i := range leafSteps(t, program.Input) {
		n := s.first.Inputs[t.Steps[i].Index()]
		own := s.m.List.Entries[n.Entry].Name
		if n.Pass != s.first.Node.Pass {
			continue
		}
		add := func(kind Kind, name string) {
			all = append(all, Mistake{Kind: kind, Place: order.NameOf(name).Role(), By: tensorTerm(name), For: tensorTerm(own), Source: name, Edit: placed(t.PlaceOf(i))})
		}
		add("input.chained", target)
		if !order.NameOf(target).Within() {
			all = append(all, ownStreams(s, i)...)
			continue
		}
		for _, other := range append([]string{own}, capturedLike(s, own)...) {
			if order.NameOf(other).Within() {
				add("input.layer-before", other)
			}
		}
	}
	return slices.Values(all)
}

// ownStreams are the mistakes of a stack of streams in place of an input, where each entry of a role reads the stream with the entry's number, or the
// stream before or after.
func ownStreams(s *search, step int) (all []Mistake) {
	if order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name).Number() < 0 {
		return nil
	}
	t := s.first.signed(s.m)
	seen := map[string]bool{}
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		shape := other.Size(s.m.Passes[s.first.Node.Pass], s.m.List.Config.SlidingWindow)
		if seen[order.NameOf(other.Name).Role()] || !stacked(s.subject, k) || len(shape) < 3 || program.Size(shape[1:]) != program.Size(t.Steps[step].Shape) {
			continue
		}
		seen[order.NameOf(other.Name).Role()] = true
		m := Mistake{Kind: "input.own-stream", Place: order.NameOf(other.Name).Role(), By: tensorTerm(other.Name), For: s.value(s.first, t.Result(step)), Source: other.Name, Edit: placed(t.PlaceOf(step))}
		for m.N = -1; m.N <= 1; m.N++ {
			all = append(all, m)
		}
	}
	return all
}

// mostApart is the largest number of readers of inputs; the search tries other tensors for one reader at a time.
const mostApart = 6

// apartInputs yields wrong tensors for one of several readers of an input. The other readers have the right tensor.
func apartInputs(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	var readers []int
	for _, i := range t.Firsts() {
		for _, a := range t.Steps[i].Args {
			from := a.Step
			if t.Steps[from].Prim == program.Input && len(program.ReadersOf(t.Program, from)) > 1 && !slices.Contains(readers, i) {
				readers = append(readers, i)
			}
		}
	}
	var all []Mistake
	for _, i := range readers[:min(len(readers), mostApart)] {
		for a, v := range t.Steps[i].Args {
			from := v.Step
			if t.Steps[from].Prim != program.Input || slices.IndexFunc(t.Steps[i].Args, func(o program.Var) bool { return o.Same(v) }) != a {
				continue
			}
			own, at := s.m.List.Entries[s.first.Inputs[t.Steps[from].Index()].Entry].Name, t.PlaceOf(i)
			at.Arg = a
			for _, other := range sourcesOf(s, own, program.Size(v.Shape)) {
				all = append(all, Mistake{
					Kind: "input.apart", Place: order.NameOf(other.name).Role(), Of: s.step(s.first, i), By: other.term(), For: s.value(s.first, v), Source: other.name, Edit: placed(at),
				})
			}
		}
	}
	return slices.Values(all)
}

// inPlace yields steps that read a part of an input after the operation has overwritten the input with its result: the second half of a rotation that is
// done in place reads the new first half.
func inPlace(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	var all []Mistake
	for _, i := range t.Firsts() {
		for a, v := range t.Steps[i].Args {
			size := program.Size(t.Steps[v.Step].Shape)
			if t.Steps[v.Step].Prim != program.Input || program.Size(v.Shape) >= size || size != program.Size(t.Out.Shape) {
				continue
			}
			at := t.PlaceOf(i)
			at.Arg = a
			all = append(all, Mistake{Kind: "input.overwritten", Place: s.site(s.first, i), Of: s.step(s.first, i), By: s.value(s.first, t.Result(v.Step)), Edit: placed(at)})
		}
	}
	return slices.Values(all)
}

// readOverwritten puts the port's own result in place of an input, for one step. The result lies where another step reads the input in the result's order.
func readOverwritten(s *subject, e *Entry, m Mistake) *program.Edited {
	y, _ := e.Target()
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		if e.Program.Steps[v.Step].Prim != program.Input {
			return ed.Fail("input")
		}
		from := program.Value{Shape: e.Program.Steps[v.Step].Shape}
		from.Data = make([]float64, program.Size(from.Shape))
		if !writtenOver(e.Program, v.Step, y, from.Data) {
			return ed.Fail("shapes")
		}
		o := ed.Other(from)
		return program.Var{Step: o.Step, Off: v.Off, Shape: v.Shape, Stride: v.Stride}
	})
}

// writtenOver writes a result over the input that a step of the program reads in the result's order. It is false if no step reads all of the input so.
func writtenOver(p *program.Program, input int, y, to []float64) bool {
	for i := range p.Steps {
		for _, v := range p.Steps[i].Args {
			if v.Step != input || !slices.Equal(v.Shape, p.Out.Shape) || len(y) != len(to) {
				continue
			}
			for n, x := range y {
				at := v.Off
				for k := len(v.Shape) - 1; k >= 0; k-- {
					at += n % v.Shape[k] * v.Stride[k]
					n /= v.Shape[k]
				}
				to[at] = x
			}
			return true
		}
	}
	return false
}

// sourcesOf are the captured tensors, and streams of stacks, with some number of elements, without the tensor that is read.
func sourcesOf(s *search, own string, elements int) []source {
	var all []source
	for _, name := range capturedLike(s, own) {
		if program.Size(s.shapeOf(order.Ref{Name: name}, s.first.Node.Pass)) == elements {
			all = append(all, source{name: name})
		}
	}
	return append(all, streams(s, elements)...)
}

// inputApart puts a captured tensor in place of an input, for one step.
func inputApart(s *subject, e *Entry, m Mistake) *program.Edited {
	t, ed, at := e.signed(s.m), edit.NewEditor(e.Program), s.place(m)
	x, ok := s.tensor(e, source{name: s.here(m.Source, e), item: streamOf(m.By)})
	all := t.Copies(at)
	if !ok || len(all) == 0 {
		return nil
	}
	for _, i := range all {
		args := t.Steps[i].Args
		if len(x.Data) != program.Size(args[at.Arg].Shape) {
			return nil
		}
		v := ed.Other(program.Value{Shape: args[at.Arg].Shape, Data: x.Data})
		for a, o := range args {
			if o.Same(args[at.Arg]) {
				ed.Read(i, a, v)
			}
		}
	}
	return ended(ed)
}
