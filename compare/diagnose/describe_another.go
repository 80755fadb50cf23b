package diagnose

import "math"

// captive describes a value within the operation that would have to be a captured tensor of the layer for the entries to be the trace's tensors. It is nil where none is it, and
// where a tensor is the right value as well.
func captive(s *search, all []observed, of Term) *Description {
	for _, name := range s.captured("") {
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
