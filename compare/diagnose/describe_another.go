package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program/edit"
)

// offeredTensors are captured tensors that are not computed from the entries, in any layer, and that the program does not compute itself. A name stands
// for the tensor of the name in the layer of each entry.
func offeredTensors(s *search) []string {
	target := s.first.Node.Entry
	from := map[int]bool{target: true}
	for k := target + 1; k < len(s.m.List.Entries); k++ {
		from[k] = slices.ContainsFunc(s.m.List.Entries[k].Inputs, func(r order.Ref) bool { return !r.Prev && from[s.m.List.Index(r.Name)] })
	}
	inside := insideOf(s)
	return slices.DeleteFunc(capturedLike(s, ""), func(name string) bool {
		k := s.m.List.Index(s.here(name, s.first))
		return from[k] || inside[k]
	})
}

// insideOf are the entries between the captured inputs and the result of the first entry's program.
func insideOf(s *search) map[int]bool {
	all := map[int]bool{}
	next := []int{s.first.Node.Entry}
	for len(next) > 0 {
		k := next[0]
		next = next[1:]
		for _, r := range s.m.List.Entries[k].Inputs {
			at := s.m.List.Index(r.Name)
			if at >= 0 && !r.Prev && !all[at] && !slices.ContainsFunc(s.first.Inputs, func(n order.Node) bool { return n.Entry == at }) {
				all[at] = true
				next = append(next, at)
			}
		}
	}
	return all
}

// captive describes a value within the operation that has to be a captured tensor of the layer to give the trace's tensors. It is nil if no captured
// tensor fits, and if a fitting tensor is the right value as well.
func (x *difference) captive(all []observed, of Term, at edit.Place) *Description {
	s := x.search
	for _, name := range offeredTensors(x.search) {
		d := &Description{Kind: "described.another", Of: of, Like: tensorTerm(name)}
		wrong, given := 0, 0
		for n := range all {
			o := &all[n]
			v, ok := s.tensor(o.e, source{name: s.here(name, o.e)})
			if !ok || len(v.Data) != len(o.want) {
				d = nil
				break
			}
			for i, y := range v.Data {
				e := off(o, i)
				d.Elements++
				has := math.Abs(o.want[i]-y) <= e
				if has {
					d.Explained++
				}
				if math.Abs(o.want[i]-o.value[i]) > 4*e { // the element tells the two apart
					if wrong++; has {
						given++
					}
				}
			}
			if float64(d.Explained) < leastShare*float64(d.Elements) {
				break
			}
		}
		if s.err != nil {
			return nil
		}
		if d != nil && wrong >= shownElements && float64(given) >= leastShare*float64(wrong) && float64(d.Explained) >= leastShare*float64(d.Elements) {
			s.draft(d).proposes = []Mistake{{Kind: "value.other", Place: d.Like.Name, Of: of, By: d.Like, Source: name, Edit: placed(at)}}
			return d
		}
	}
	return nil
}
