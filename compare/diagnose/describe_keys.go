package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order"
)

// otherKeys describes masks by the keys that queries see and should not see, or do not see and should.
func otherKeys(x *difference) *Description {
	s := x.search
	if !s.first.exact() && s.m.List.Entries[s.first.Node.Entry].Compare != order.Pattern {
		return nil
	}
	d := &Description{Kind: "described.keys", Of: theResult}
	for n := range x.results {
		o := &x.results[n]
		last := len(o.shape) - 1
		query := -1
		if last > 0 {
			query = last - 1
		}
		if query < 0 {
			return nil
		}
		keys, past := o.shape[last], s.m.Passes[o.e.Node.Pass].Past
		for row := 0; row < len(o.want); row += keys {
			var lost, gained []int
			for k := range keys {
				right, has := o.value[row+k] > -hides, o.want[row+k] > -hides
				d.Elements++
				if right == has {
					continue
				}
				if d.Explained++; right {
					lost = append(lost, k)
				} else {
					gained = append(gained, k)
				}
			}
			if text := queryWords(past+row/keys%o.shape[query], lost, gained); text != "" && !slices.Contains(d.Cases, text) {
				d.Numbers++
				if len(d.Cases) <= mostValues {
					d.Cases = append(d.Cases, text)
				}
			}
		}
	}
	if d.Explained == 0 {
		return nil
	}
	d.Wrong = d.Numbers
	return d
}
