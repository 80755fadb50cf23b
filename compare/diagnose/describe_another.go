package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
)

// offered are captured tensors that are not computed from the entries, in any layer: a name stands for the tensor of that name in the layer of each entry.
func (s *search) offered() []string {
	target := s.first.Node.Entry
	from := map[int]bool{target: true}
	for k := target + 1; k < len(s.m.List.Entries); k++ {
		from[k] = slices.ContainsFunc(s.m.List.Entries[k].Inputs, func(r order.Ref) bool { return !r.Prev && from[s.m.List.Index(r.Name)] })
	}
	return slices.DeleteFunc(s.captured(""), func(name string) bool { return from[s.m.List.Index(s.here(name, s.first))] })
}

// captive describes a value within the operation that would have to be a captured tensor of the layer for the entries to be the trace's tensors. It is nil where none is it, and
// where a tensor is the right value as well.
func captive(s *search, all []observed, of Term) *Description {
	for _, name := range s.offered() {
		d := &Description{Kind: "described.another", Of: of, Like: tensorTerm(name)}
		wrong, given := 0, 0
		for n := range all {
			o := &all[n]
			v, ok := s.tensor(o.e, source{name: s.here(name, o.e)})
			if !ok || len(v.Data) != len(o.want) {
				d = nil
				break
			}
			for i, x := range v.Data {
				e := off(o, i)
				d.Elements++
				has := math.Abs(o.want[i]-x) <= e
				if has {
					d.Explained++
				}
				if math.Abs(o.want[i]-o.value[i]) > 4*e { // it tells the two apart
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
			return d
		}
	}
	return nil
}
