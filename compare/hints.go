package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
)

// clearScale is how far a fitted scale has to be from 1, and clearCosine how near the tensors to parallel, for the scale
// to be the explanation.
const (
	clearScale  = 1e-2
	clearCosine = 0.9999
)

// ownWeights is what to do next with a port whose weights look quantised.
const ownWeights = "verify the port with its own weights: --weights FILE; tracediff weights FILE compares them with the original's"

// hinter finds what to look at next of a divergence.
type hinter struct {
	plan     *plan.Plan
	o        *Options
	decided  *decided
	d        *Divergence
	decoding bool // a pass before that of the divergence was compared
	hints    []string
}

func (h *hinter) add(format string, args ...any) {
	h.hints = append(h.hints, fmt.Sprintf(format, args...))
}

// find finds all hints.
func (h *hinter) find() {
	h.first()
	if h.plan.Mode == sides.AB && h.d.Row.Name != order.InputIDs {
		h.add("tracediff compare --isolate FILE says which operations of one side are wrong")
	}
}

// first stops at a hint that explains everything.
func (h *hinter) first() {
	d := h.d
	r := &d.Row
	if batch := batched(h.plan, r.Pass, r.Name); batch != "" && r.Class == gate.Shape {
		h.add("%s", batch)
		return
	}
	if length := otherLength(h.plan, r); length != "" && r.Class == gate.Shape {
		h.add("%s", length)
		return
	}
	if cells := otherCells(h.plan, r); cells != "" && r.Class == gate.Shape {
		h.add("%s", cells)
		return
	}
	if r.Name == order.InputIDs && r.Class == gate.DType {
		h.add("token ids are whole numbers: save %s of your port in an integer dtype, such as int64", order.InputIDs)
		return
	}
	if r.Name == order.InputIDs {
		h.add("the two sides were given different tokens: look at the tokenizer, BOS and the chat template, or pass the same ids to both with --tokens")
		return
	}
	if r.Overflowed() {
		h.add("your port's trace does not have these numbers: dump float32 or bfloat16; a port that computes in %s cannot hold them", r.Overflow.DType)
		return
	}
	if text, err := swapped(h.plan, h.o.Map != nil, r); err == nil && text != "" {
		h.add("%s", text)
	} else if f, _ := d.Bug(); f.OnlyInDump() {
		h.add("dump the tensor right after it is computed, before its memory is reused; what reads it is right with the right values")
		h.expected()
		return
	}
	if f, _ := d.Bug(); f.Quantised() && !h.o.Isolator.Options().Own {
		h.add(ownWeights)
		h.expected()
		return
	}
	if c := r.Isolated; c != nil && c.Finding.Named() || d.Fault != nil && d.Fault.Finding.Named() { // its name says what to look at
		h.expected()
		return
	}
	if c := r.Isolated; c != nil && c.Finding != nil && c.Finding.Likely != "" {
		h.add(ownWeights)
		return
	}
	if m := r.Metrics; m != nil {
		scale := float64(m.Scale)
		if float64(m.Cosine) > clearCosine && math.Abs(scale-1) > clearScale {
			h.add("%s is %.6g times %s: a factor is missing, wrong or applied twice", h.plan.Names[local].Tensor, scale, h.plan.Names[reference].Tensor)
		} else if float64(m.Cosine) < -clearCosine {
			h.add("the two sides have opposite signs")
		}
	}
	if c := r.Isolated; c != nil && c.Outcome == isolate.Unidentified && len(d.Between) == 0 { // else what is between tells more
		finer := " or --dtype float32"
		if h.o.Given || r.Local.DType == hooks.F32.String() {
			finer = ""
		}
		h.add("rounding could explain this tensor, and so could a mistake of that size: a longer prompt%s tells them apart", finer)
	}
	h.parents()
	if h.decoding {
		h.add("every entry compared in the passes before matches: look at what a decode step adds, the positions, the cache and the mask")
	}
	if e, ok := h.plan.Entry(r.Name); ok && e.Op != nil && len(d.Between) == 0 {
		if h.o.Isolator != nil {
			if known, ok := h.o.Isolator.Lift(r.Name, r.Pass); ok {
				e = known
			}
		}
		h.operation(e)
	}
}

// operation says what an entry's operation is, with its constants.
func (h *hinter) operation(e *order.Entry) {
	switch o := e.Op.(type) {
	case recorded.Op:
		at := ""
		if e.Line != "" {
			at = ", at " + e.Line
		}
		if e.Expression != "" {
			at += ": `" + e.Expression + "`"
		}
		h.add("the recorded model computes it as %s%s", o.Call(), at)
	case recorded.Seen, recorded.Constants, recorded.Unknown:
	default:
		if constants, err := op.Marshal(o); err == nil && len(constants) > len(`{"kind":""}`)+len(o.Kind()) {
			h.add("the order has this operation as %s", constants)
		}
	}
}

// parents adds hints from the compared and the uncompared ancestors.
func (h *hinter) parents() {
	d := h.d
	matching := 0
	for _, p := range d.Parents {
		if p.Verdict == Match || p.Verdict == Recomputed {
			matching++
		}
	}
	h.expected()
	row := &d.Row
	switch {
	case d.Fault != nil:
		within := ""
		if h.o.Scope.Level > 0 && h.o.Scope.Level < 3 {
			within = "; --level 3 compares it"
		}
		h.add("the fault is in %s, which was not compared: check that operation in your port%s", d.Fault.Key, within)
	case matching < len(d.Parents):
	case row.Facts.Seen == SeenPast && row.Isolated == nil && row.Growth > 0 && row.Growth < ownGrowth:
		text := fmt.Sprintf("the error is inherited: it is only %.3g times the error of its inputs, which match", float64(row.Growth))
		if h.o.Certifying == Declined {
			text += "; without --no-isolate each operation is verified"
		}
		h.add("%s", text)
	case len(d.Between) > 0 && !(row.Isolated != nil && row.Isolated.Good()):
		h.between()
	case len(d.Parents) == 0:
	case row.Gap != "": // the report has a line for it
	case row.Isolated != nil && row.Isolated.Good():
		h.add("all its inputs match and your port's operation is correct: check the reference, tracediff compare --isolate REFERENCE")
	case h.plan.Mode == sides.AB:
		h.add("all its inputs match: the operation or its weights differ")
	case h.plan.Mode == sides.Alone:
		h.add("check this operation in your port%s", weightsOf(d))
	default:
		h.add("all its inputs match: check this operation in your port%s", weightsOf(d))
	}
}

// weightsOf are the tensors of the checkpoint that the operation of a divergence reads, for a sentence.
func weightsOf(d *Divergence) string {
	var names []string
	for _, w := range d.Weights {
		names = append(names, w.Name)
	}
	if names == nil {
		return ""
	}
	return " and its weights: " + strings.Join(names, ", ")
}

// between says which of the entries between a divergence and its inputs to have in the trace next: the outputs of layers if
// there are any, else what stands at the boundaries of blocks, since these halve the search soonest.
func (h *hinter) between() {
	d := h.d
	const where = "the fault is in this entry or in an entry that was not compared: "
	if !h.o.Given {
		h.add(where + "capture them with --level 3")
		return
	}
	between := map[string]bool{}
	both := ""
	for _, key := range d.Between {
		between[key] = true
		if pass, name, _, ok := capture.ParseKey(key); !ok || !inReference(h.plan, pass, name) {
			both = " on both sides"
		}
	}
	var layers, blocks []string
	for _, e := range h.plan.List.Entries {
		key := capture.Key(d.Row.Pass, e.Name, 0)
		if e.Level != 1 || e.Layer < 0 || !between[key] {
			continue
		}
		blocks = append(blocks, key)
		if e.Name == order.InLayer(e.Layer, "out").String() {
			layers = append(layers, key)
		}
	}
	for _, first := range [][]string{layers, blocks} {
		if len(first) > 0 {
			h.add(where+"dump %s%s first", isolate.Some(first), both)
			return
		}
	}
	h.add(where+"dump %s%s", isolate.Some(d.Between), both)
}

// inReference reports whether the reference has an entry.
func inReference(pl *plan.Plan, pass int, name string) bool {
	_, ok := pl.Sides[reference].Trace.Lookup(pass, name)
	return ok
}

// expected says that a divergence may be what expected differences lead to.
func (h *hinter) expected() {
	for _, p := range h.d.Parents {
		if h.decided.different[p.Key] {
			h.add("computed from %s, which was expected to differ: if this entry is too, name it in another --expect-different", p.Key)
			break
		}
	}
}
