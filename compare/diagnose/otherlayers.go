package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostOfOther is the largest number of operations of another layer that are computed in the entry's layer.
const mostOfOther = 12

// asOtherLayers yields the computation of another kind of layer in the entry's place, with the tensors of the entry's layer: a sparse gate in a dense
// layer, or new keys in a layer that shares the keys of another layer. One layer of each kind is tried, and the layer with which the entry's layer
// shares.
func asOtherLayers(s *search) iter.Seq[Mistake] {
	var all []Mistake
	entry := &s.m.List.Entries[s.first.Node.Entry]
	if !order.NameOf(entry.Name).Within() {
		return slices.Values(all)
	}
	seen := []string{readsOf(entry)}
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		shared := slices.ContainsFunc(entry.Inputs, func(r order.Ref) bool { return r.Name == other.Name })
		if order.NameOf(other.Name).Role() != order.NameOf(entry.Name).Role() || readsOf(other) == readsOf(entry) || slices.Contains(seen, readsOf(other)) && !shared {
			continue
		}
		seen = append(seen, readsOf(other))
		if through := throughLayer(s.subject, k, entry.Name); len(through) > 0 {
			all = append(all, Mistake{
				Kind: "layer.other-kind", Place: order.NameOf(entry.Name).Role(), Of: tensorTerm(entry.Name), By: Term{Kind: ALayer, Name: order.NameOf(other.Name).Path()}, For: listTerm(Modules, through),
			})
		}
	}
	return slices.Values(all)
}

// asOtherLayer makes a program with the computation of another layer in the entry's place.
func asOtherLayer(s *subject, e *Entry, m Mistake) *program.Edited {
	k := s.m.List.Index(order.NameOf(m.By.Name).Here(order.NameOf(s.m.List.Entries[e.Node.Entry].Name).Module()).String())
	if k < 0 {
		return nil
	}
	o := &otherLayer{subject: s, e: e, ed: edit.NewEditor(e.Program), done: map[order.Node]program.Var{}}
	v, ok := o.computed(order.Node{Entry: k, Pass: e.Node.Pass})
	if !ok || !slices.Equal(v.Shape, e.Program.Out.Shape) {
		return nil
	}
	o.ed.Return(v)
	return ended(o.ed)
}

// readsOf lists the roles of an entry's inputs. Entries of one role that are computed in different ways have different lists.
func readsOf(e *order.Entry) string {
	var all []string
	for _, r := range e.Inputs {
		all = append(all, order.NameOf(r.Name).Role())
	}
	return strings.Join(all, ",")
}

// throughLayer lists, in order, the modules through which another layer computes an entry and which the layer of own does not have.
func throughLayer(s *subject, entry int, own string) []string {
	var all []string
	seen := map[int]bool{entry: true}
	for next := []int{entry}; len(next) > 0; next = next[1:] {
		for _, r := range s.m.List.Entries[next[0]].Inputs {
			at := s.m.List.Index(r.Name)
			name := order.NameOf(r.Name)
			if !name.Within() || r.Prev || seen[at] || s.m.List.Index(name.Beside(order.NameOf(own)).String()) >= 0 {
				continue
			}
			seen[at] = true
			all, next = append(all, name.Module()), append(next, at)
		}
	}
	slices.Reverse(all)
	return all
}

// otherLayer computes an entry of another layer from the tensors in the layer of e.
type otherLayer struct {
	*subject
	e    *Entry
	ed   *edit.Editor
	done map[order.Node]program.Var

	widths [2]int // size of the last axis in the other layer and in the entry's layer, if the sizes differ
}

// value returns the tensor in the entry's layer for an entry of the other layer: the captured tensor, or else the result of the other layer's
// operation.
func (o *otherLayer) value(n order.Node, r order.Ref) (program.Var, bool) {
	name := o.m.List.Entries[n.Entry].Name
	here := o.here(name, o.e)
	if at := o.m.List.Index(here); at >= 0 {
		v, ok := o.tensor(o.e, source{name: here, item: r.Index, pass: n.Pass - o.e.Node.Pass})
		if !ok {
			return program.Var{}, false
		}
		there := o.shapeOf(order.Ref{Name: name, Index: r.Index}, n.Pass)
		if a, b := there[len(there)-1], v.Shape[len(v.Shape)-1]; a != b {
			o.widths = [2]int{a, b}
		}
		return o.ed.Other(v), true
	}
	v, ok := o.done[n]
	if !ok {
		if v, ok = o.computed(n); !ok {
			return v, false
		}
		o.done[n] = v
	}
	return v, r.Index == nil
}

// computed is the result of an entry's operation.
func (o *otherLayer) computed(n order.Node) (program.Var, bool) {
	entry := &o.m.List.Entries[n.Entry]
	if entry.Op == nil || len(entry.Inputs) == 0 || len(o.done) > mostOfOther {
		return program.Var{}, false
	}
	if _, own := entry.Op.(program.Own); own {
		return program.Var{}, false
	}
	var in, w []program.Var
	for _, r := range entry.Inputs {
		at := order.Node{Entry: o.m.List.Index(r.Name), Pass: n.Pass}
		if r.Prev {
			if at.Pass -= 1 + r.Back; at.Pass < 0 {
				continue
			}
		}
		v, ok := o.value(at, r)
		if !ok {
			return v, false
		}
		in = append(in, v)
	}
	for _, of := range entry.Weights {
		if here, ok := o.weightOf(o.here(of.Name, o.e)); ok {
			of = here
		}
		rows, err := o.m.Weights(of)
		if o.failed(err) {
			return program.Var{}, false
		}
		w = append(w, o.ed.OtherRows(rows))
	}
	size := slices.Clone(entry.Size(o.m.Passes[n.Pass], o.m.List.Config.SlidingWindow))
	if last := len(size) - 1; size[last] == o.widths[0] {
		size[last] = o.widths[1]
	}
	y := o.ed.Apply(entry.Op, "", size, in, w)
	return o.ed.R(y), o.ed.Err() == nil
}
