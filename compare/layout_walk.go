package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// layoutsOf prepares those of both sides.
func (w *walker) layoutsOf(o Options) (l [2]*keyorder.Layout) {
	for side := range l {
		switch {
		case o.Isolator != nil && w.sides[side].trace == o.Isolator.Trace():
			l[side] = o.Isolator.Layout()
		default:
			l[side] = keyorder.New(w.sides[side].trace, o.Order)
		}
	}
	return l
}

// logical returns, for tensors whose keys lie in an order of their own on either side, that order: from the oldest key to
// the newest.
func (w *walker) logical(pass int, l, r capture.Record) (cutL, cutR *measure.Cut, err error) {
	var cuts [2]*measure.Cut
	for side, rec := range []capture.Record{l, r} {
		layout := w.layouts[side]
		if rec.Firing > 0 || layout.List == nil {
			continue
		}
		n := order.Node{Entry: layout.List.Index(rec.Name), Pass: pass}
		if n.Entry < 0 {
			continue
		}
		slots, err := layout.Slots(n)
		if err != nil {
			return nil, nil, err
		}
		if slots != nil {
			cuts[side] = &measure.Cut{Axis: keyorder.KeyAxis(&layout.List.Entries[n.Entry]), Rows: slots}
		}
	}
	return cuts[local], cuts[reference], nil
}

// lookOutside sees queries of a side that see a key which no query of the pass may see.
func (w *walker) lookOutside(p *pair) error {
	for side, layout := range w.layouts[:len(w.traces())] {
		if layout.List == nil || p.row.Firing > 0 {
			continue
		}
		at := layout.List.Index(p.row.Name)
		if at < 0 {
			continue
		}
		out, err := layout.Outside(order.Node{Entry: at, Pass: p.pass})
		if err != nil {
			return err
		}
		if out != nil {
			p.see(SeenKeys, "in %s %s", p.names[side].Trace, out.What)
		}
	}
	return nil
}

// Within reports whether both sides have an entry, and show no difference beyond its limit. Of a trace alone nothing is asked.
func (w *walker) Within(pass int, name string) (compared, within bool, err error) {
	if w.o.Alone {
		return true, true, nil
	}
	i := slices.IndexFunc(w.plan.entries, func(e order.Entry) bool { return e.Name == name })
	if i < 0 || !slices.Contains(w.plan.common(), pass) || !w.plan.covered(i) || w.plan.rowless(i, pass) {
		return false, false, nil
	}
	l, hasL := w.sides[local].trace.Lookup(pass, name)
	r, hasR := w.sides[reference].trace.Lookup(pass, name)
	if !hasL || !hasR {
		return false, false, nil
	}
	p, err := w.pair(i, pass, l, r)
	if err == nil && p.seen == SeenWithin {
		_, err = w.beside(p)
	}
	return true, err == nil && (p.seen == SeenWithin || p.seen == SeenWider), err
}

// layoutOf says what is in other numbers and where that cancels.
func layoutOf(l *chain.Reparametrisation) string {
	return strings.Join(l.What, "; ") + "; this cancels in " + places(l.Cancels)
}

// places are the modules of some keys, each once.
func places(keys []string) string {
	var names []string
	for _, k := range keys {
		if _, name, ok := strings.Cut(k, "/"); ok {
			k = name
		}
		if k = diagnose.Module(k); !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return strings.Join(names, ", ")
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
		for _, note := range l.Notes() {
			w.res.Layouts = append(w.res.Layouts, fmt.Sprintf(note, whose))
		}
	}
}
