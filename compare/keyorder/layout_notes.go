package keyorder

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Notes describes the orders found, by type of layer; %s is the owner.
func (l *Layout) Notes() []string {
	type kind struct {
		first  int // pass
		layers int // that have another order in it
		other  bool
	}
	kinds, all := map[string]*kind{}, map[string]int{}
	for _, layer := range slices.Sorted(maps.Keys(l.layers)) {
		c, t := l.layers[layer], l.List.Config.LayerTypes[layer]
		pass := slices.IndexFunc(c.slots, func(s []int) bool { return s != nil })
		if len(c.slots) > 0 {
			all[t]++
		}
		if pass < 0 {
			continue
		}
		k := kinds[t]
		if k == nil {
			k = &kind{first: pass}
			kinds[t] = k
		}
		k.first = min(k.first, pass)
		k.layers++
		k.other = k.other || slices.ContainsFunc(c.slots, func(s []int) bool { return s != nil && !ring(s) })
	}
	var notes []string
	for _, t := range slices.Sorted(maps.Keys(kinds)) {
		k, what, where := kinds[t], "ring-buffer order", ""
		if k.other {
			what = "an order other than by position"
		}
		if k.layers < all[t] {
			where = fmt.Sprintf(" in %d of %d layers", k.layers, all[t])
		}
		name := map[string]string{order.Sliding: "sliding", order.Full: "full"}[t]
		beside := ""
		if slices.ContainsFunc(l.trace.Records(), func(r capture.Record) bool { return r.InOrder }) {
			beside = ", in addition to the keys that the map has put into order"
		}
		notes = append(notes, fmt.Sprintf("keys of %s layers%%s lie in %s%s from pass %d on%s", name, what, where, k.first, beside))
	}
	return notes
}
