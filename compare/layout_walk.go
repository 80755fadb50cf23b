package compare

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
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
