package compare

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// pairing puts the tensors of two traces side by side.
type pairing struct {
	plan *plan.Plan
	keys [2]*keyorder.Layout // the orders in which the sides have cached keys
}

// newPairing prepares the pairing of a plan.
func newPairing(pl *plan.Plan, i *Isolator) *pairing {
	x := &pairing{plan: pl}
	for side, s := range pl.Sides {
		if i != nil && s.Trace == i.Trace() {
			x.keys[side] = i.Layout()
		} else {
			x.keys[side] = keyorder.New(s.Trace, pl.List)
		}
	}
	return x
}

// pair puts two tensors side by side. Their shapes are held to each other, and to the order.
func (x *pairing) pair(i, pass int, l, r capture.Record) (*pair, error) {
	e := &x.plan.Entries[i]
	row := &Row{
		Name: e.Name, Pass: pass, Layer: e.Layer, Behind: x.plan.Behind(i), Derived: x.plan.Derived(i), Local: describe(l), Ref: describe(r),
	}
	if e.Op != nil {
		row.Op = e.Op.Kind()
	}
	p := &pair{row: row, entry: e, early: x.plan.Early(i), names: x.plan.Names, seen: observation{what: SeenWithin}, shows: evidence{content: Tested}}
	axesL, axesR := x.plan.AxesOf(local, e, len(l.Shape)), x.plan.AxesOf(reference, e, len(r.Shape))
	if axesL != axesR && axesL != "" && axesR != "" {
		p.see(SeenShape, "axes: %s", p.names.Pair(strconv.Quote(axesL), strconv.Quote(axesR)))
		return p, nil
	}
	p.axes = axesR
	var cuts [2]*measure.Cut
	var err error
	if axesL != "" && axesL == axesR {
		if cuts, err = x.cuts(axesR, pass, l, r); err != nil {
			return nil, err
		}
	}
	for side, cut := range cuts {
		if cut != nil && rune(axesL[cut.Axis]) == order.AxisKey {
			p.remark(OtherLayout, "the keys of %s are in another order; they are compared from the oldest to the newest", p.names[side].Trace)
			break
		}
	}
	p.cut = cuts[reference]
	p.l, p.r = measure.Whole(x.plan.Sides[local].Trace, l).Cut(cuts[local]), measure.Whole(x.plan.Sides[reference].Trace, r).Cut(p.cut)
	if !slices.Equal(p.l.Shape, p.r.Shape) {
		p.see(SeenShape, "%s", p.names.Shapes(p.l.Shape, p.r.Shape))
	}
	for side, rec := range []capture.Record{l, r} {
		if want := x.plan.Shape(side, pass, e, rec); want != "" && x.plan.Mode != sides.Alone {
			p.see(SeenShape, "%s has shape %v, and the order and the ids give %s", p.names[side].Trace, rec.Shape, want)
		}
	}
	return p, nil
}

// cuts returns the wanted rows common to both sides. If all rows are compared as they lie, it returns the order of
// the cached keys. Both cuts are nil for whole tensors.
func (x *pairing) cuts(axes string, pass int, l, r capture.Record) ([2]*measure.Cut, error) {
	rows, narrowed, err := x.plan.CommonRows(axes, pass, l, r)
	if narrowed || err != nil {
		return rows, err
	}
	return x.logical(pass, l, r)
}

// logical returns, for tensors whose keys lie in an order of their own on either side, that order: from the oldest key to
// the newest.
func (x *pairing) logical(pass int, l, r capture.Record) (cuts [2]*measure.Cut, err error) {
	for side, rec := range []capture.Record{l, r} {
		layout := x.keys[side]
		if rec.Firing > 0 || layout.List == nil {
			continue
		}
		n := order.Node{Entry: layout.List.Index(rec.Name), Pass: pass}
		if n.Entry < 0 {
			continue
		}
		slots, err := layout.Slots(n)
		if err != nil {
			return cuts, err
		}
		if slots != nil {
			cuts[side] = &measure.Cut{Axis: keyorder.KeyAxis(&layout.List.Entries[n.Entry]), Rows: slots}
		}
	}
	return cuts, nil
}

// lookOutside sees queries of a side that see a key which no query of the pass may see.
func (x *pairing) lookOutside(p *pair) error {
	for side, layout := range x.keys[:len(x.plan.Each())] {
		if layout.List == nil || p.row.Firing > 0 {
			continue
		}
		at := layout.List.Index(p.row.Name)
		if at < 0 {
			continue
		}
		out, err := layout.Outside(order.Node{Entry: at, Pass: p.row.Pass})
		if err != nil {
			return err
		}
		if out != "" {
			p.see(SeenKeys, "in %s %s", p.names[side].Trace, out)
		}
	}
	return nil
}

// notes say of each side and type of layer from when on the keys that were looked at lie in another order.
func (x *pairing) notes() (all []string) {
	layouts := x.keys[:]
	if x.keys[local] == x.keys[reference] {
		layouts = layouts[:1]
	}
	for side, l := range layouts {
		whose := " of " + x.plan.Names[side].Trace
		if len(layouts) == 1 {
			whose = ""
		}
		for _, note := range l.Notes() {
			all = append(all, fmt.Sprintf(note, whose))
		}
	}
	return all
}
