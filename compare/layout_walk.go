package compare

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// layoutsOf prepares those of both sides.
func (w *walker) layoutsOf(o Options) (l [2]*layout) {
	for side := range l {
		switch {
		case o.Isolator != nil && w.sides[side].trace == o.Isolator.trace:
			l[side] = o.Isolator.layout
		default:
			l[side] = newLayout(w.sides[side].trace, o.Order)
		}
	}
	return l
}

// logical returns, for tensors whose keys lie in an order of their own on either side, that order: from the oldest key to
// the newest.
func (w *walker) logical(pass int, l, r capture.Record) (cutL, cutR *cut, err error) {
	var cuts [2]*cut
	for side, rec := range []capture.Record{l, r} {
		layout := w.layouts[side]
		if rec.Firing > 0 || layout.list == nil {
			continue
		}
		n := order.Node{Entry: layout.list.Index(rec.Name), Pass: pass}
		if n.Entry < 0 {
			continue
		}
		slots, err := layout.slots(n)
		if err != nil {
			return nil, nil, err
		}
		if slots != nil {
			cuts[side] = &cut{axis: keyAxis(&layout.list.Entries[n.Entry]), rows: slots}
		}
	}
	return cuts[local], cuts[reference], nil
}

// noteLayouts says of each side and type of layer from when on the keys that were looked at lie in another order.
func (w *walker) noteLayouts() {
	sides := w.layouts[:]
	if w.layouts[local] == w.layouts[reference] {
		sides = sides[:1]
	}
	for side, l := range sides {
		whose := " of " + w.names[side].Trace
		if len(sides) == 1 {
			whose = ""
		}
		for _, note := range l.notes() {
			w.res.Layouts = append(w.res.Layouts, fmt.Sprintf(note, whose))
		}
	}
}

// notes puts the orders that were found into words, by type of layer; %s is whose they are.
func (l *layout) notes() []string {
	type kind struct {
		first  int // pass
		layers int // that have another order in it
		other  bool
	}
	kinds, all := map[string]*kind{}, map[string]int{}
	for _, layer := range slices.Sorted(maps.Keys(l.layers)) {
		c, t := l.layers[layer], l.list.Config.LayerTypes[layer]
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
			what = "another order than by position"
		}
		if k.layers < all[t] {
			where = fmt.Sprintf(" in %d of %d layers", k.layers, all[t])
		}
		name := map[string]string{order.Sliding: "sliding", order.Full: "full"}[t]
		notes = append(notes, fmt.Sprintf("keys of %s layers%%s lie in %s%s from pass %d on", name, what, where, k.first))
	}
	return notes
}
