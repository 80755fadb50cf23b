package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
)

// Divergence is the first row that does not match, with what is known around it.
type Divergence struct {
	Row       Row      `json:"row"`
	LastMatch string   `json:"last_match,omitempty"` // key of the last match before it
	Parents   []Parent `json:"parents,omitempty"`    // its nearest ancestors in the order that were compared
	// Between has the ancestors on the way to those that were not compared: the bug may be in any of them.
	Between []string `json:"between,omitempty"`
	// Fault is an entry that it was computed from, that was not compared and that is wrong on its own inputs; nil where none is known.
	Fault *Fault `json:"fault,omitempty"`
	// Downstream is where the error goes; nil where nothing that is computed from it was compared.
	Downstream *Downstream    `json:"downstream,omitempty"`
	Weights    []order.Weight `json:"weights,omitempty"` // that the operation uses
	Hints      []string       `json:"hints,omitempty"`   // what to look at next, a sentence each
	Code       *Code          `json:"code,omitempty"`    // what computes it, where a side was recorded as it ran
	// Unproven lists the lines of the map that name the entry and its parents and that no value proves. The finding holds if these lines are right.
	Unproven []string `json:"unproven,omitempty"`
}

// Fault is an entry that no row is about and that is wrong on its own inputs.
type Fault struct {
	Key     string            `json:"key"`
	Finding *diagnose.Finding `json:"finding,omitempty"` // the name of the bug, or what was tried to find it
}

// Bug is what is wrong with the entry that is at fault: of the row, or of the one that it was computed from, with its key. nil and
// empty where neither is known.
func (d *Divergence) Bug() (f *diagnose.Finding, in string) {
	switch c := d.Row.Isolated; {
	case d.Fault != nil:
		return d.Fault.Finding, d.Fault.Key
	case c != nil:
		return c.Finding, ""
	}
	return nil, ""
}

// Code is what computes an entry on the sides that were recorded as they ran.
type Code struct {
	Local     string `json:"local,omitempty"`     // the line of source, such as "transformers/models/qwen3/modeling_qwen3.py:213"
	Reference string `json:"reference,omitempty"` // that of the reference
	// Compared says that both sides were recorded, and their steps from the captured tensors before it to this one were compared.
	Compared bool `json:"compared,omitempty"`
	// Steps are those of both as a diff: "- " before one of the reference alone, "+ " before one of the local side alone. None where
	// both compute it alike.
	Steps []string `json:"steps,omitempty"`
}

// Parent is a compared ancestor of an entry.
type Parent struct {
	Key     string  `json:"key"`
	Stream  *int    `json:"stream,omitempty"` // the one index of its first axis that is used
	Verdict Verdict `json:"verdict"`
}

func (w *walker) divergence(row Row) (*Divergence, error) {
	d := &Divergence{Row: row, LastMatch: w.lastMatch}
	if w.o.Order != nil {
		if e, ok := w.o.Order.Lookup(row.Name); ok {
			d.Weights = e.Weights
			a := w.nearest(e, row.Pass)
			d.Parents, d.Between = a.parents, a.between
		}
	}
	if w.o.Code != nil && !w.o.Alone && row.Name != order.InputIDs {
		d.Code = w.o.Code(row.Name, row.Pass)
	}
	var err error
	if d.Fault, err = w.fault(&row); err != nil {
		return nil, err
	}
	d.Unproven = w.unproven(d)
	d.Hints = w.hints(d)
	if w.o.AB && row.Name != order.InputIDs {
		d.Hints = append(d.Hints, "tracediff compare --isolate FILE says of one side by itself which of its operations are wrong")
	}
	return d, nil
}

// unproven are the lines on which a divergence stands.
func (w *walker) unproven(d *Divergence) (lines []string) {
	if w.o.Map == nil {
		return nil
	}
	add := func(name string) {
		if line, ok := w.o.Map.Unproven[name]; ok && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	add(d.Row.Name)
	for _, p := range d.Parents {
		if _, name, _, ok := capture.ParseKey(p.Key); ok {
			add(name)
		}
	}
	return lines
}

// clearScale is how far a fitted scale has to be from 1, and clearCosine how near the tensors to parallel, for the scale
// to be the explanation.
const (
	clearScale  = 1e-2
	clearCosine = 0.9999
)

// ownWeights is what to do next with a port whose weights look quantised.
const ownWeights = "verify the port with its own weights: --weights FILE; tracediff weights FILE compares them with the original's"

func (w *walker) hints(d *Divergence) []string {
	var hints []string
	add := func(format string, args ...any) { hints = append(hints, fmt.Sprintf(format, args...)) }
	r := &d.Row
	if batch := w.batched(r.Pass, r.Name); batch != "" && r.Class == gate.Shape {
		add("%s", batch)
		return hints
	}
	if length := otherLength(w, r); length != "" && r.Class == gate.Shape {
		add("%s", length)
		return hints
	}
	if r.Name == order.InputIDs && r.Class == gate.DType {
		add("token ids are whole numbers: save %s of the local side in an integer dtype, such as int64", order.InputIDs)
		return hints
	}
	if r.Name == order.InputIDs {
		add("the two sides were given different tokens: look at the tokenizer, BOS and the chat template, or pass the same ids to both with --tokens")
		return hints
	}
	if r.Overflowed() {
		add("the local trace does not have these numbers: dump float32 or bfloat16; a port that computes in %s cannot hold them", r.Overflow.DType)
		return hints
	}
	if text, err := w.swapped(r); err == nil && text != "" {
		add("%s", text)
	}
	if f, _ := d.Bug(); f.Quantised() && !w.o.Isolator.Options().Own {
		add(ownWeights)
		w.hintExpected(d, add)
		return hints
	}
	if c := r.Isolated; c != nil && c.Finding.Named() || d.Fault != nil && d.Fault.Finding.Named() { // its name says what to look at
		w.hintExpected(d, add)
		return hints
	}
	if c := r.Isolated; c != nil && c.Finding != nil && c.Finding.Likely != "" {
		add(ownWeights)
		return hints
	}
	if m := r.Metrics; m != nil {
		scale := float64(m.Scale)
		if float64(m.Cosine) > clearCosine && math.Abs(scale-1) > clearScale {
			add("%s is %.6g times %s: a factor is missing, wrong or applied twice", w.names[local].Tensor, scale, w.names[reference].Tensor)
		} else if float64(m.Cosine) < -clearCosine {
			add("the two sides have opposite signs")
		}
	}
	if c := r.Isolated; c != nil && c.Outcome == isolate.Unidentified && len(d.Between) == 0 { // else what is between tells more
		finer := " or --dtype float32"
		if w.o.Given || r.Local.DType == hooks.F32.String() {
			finer = ""
		}
		add("rounding could explain this tensor, and so could a mistake of that size: a longer prompt%s tells them apart", finer)
	}
	w.hintParents(d, add)
	if slices.ContainsFunc(w.res.Rows, func(other Row) bool { return other.Pass < r.Pass }) {
		add("every entry compared in the passes before matches: look at what a decode step adds, the positions, the cache and the mask")
	}
	if e, ok := w.entryOf(r.Name); ok && e.Op != nil && len(d.Between) == 0 {
		if w.o.Isolator != nil {
			if known, ok := w.o.Isolator.Lift(r.Name, r.Pass); ok {
				e = known
			}
		}
		hintOperation(e, add)
	}
	return hints
}

// hintOperation says what an entry's operation is, with its constants.
func hintOperation(e *order.Entry, add func(string, ...any)) {
	switch o := e.Op.(type) {
	case recorded.Op:
		at := ""
		if e.Line != "" {
			at = ", at " + e.Line
		}
		if e.Expression != "" {
			at += ": `" + e.Expression + "`"
		}
		add("the recorded model computes it as %s%s", o.Call(), at)
	case recorded.Seen, recorded.Constants, recorded.Unknown:
	default:
		if constants, err := op.Marshal(o); err == nil && len(constants) > len(`{"kind":""}`)+len(o.Kind()) {
			add("the order has this operation as %s", constants)
		}
	}
}

// batched says of an entry which side has several sequences, where one is compared; empty where none has.
func (w *walker) batched(pass int, name string) string {
	e, ok := w.entryOf(name)
	if !ok || len(e.Axes) == 0 || e.Axes[0] != order.AxisBatch {
		return ""
	}
	for side, s := range w.sides {
		rec, ok := s.trace.Lookup(pass, name)
		if ok && len(rec.Shape) == len(e.Shape) && rec.Shape[0] > 1 && e.Shape[0] == 1 {
			return fmt.Sprintf("%s has %d sequences, and one is compared: %s", w.names[side].Trace, rec.Shape[0], capture.OneSequence)
		}
	}
	return ""
}

// entryOf looks an entry up in the order, if there is one.
func (w *walker) entryOf(name string) (*order.Entry, bool) {
	if w.o.Order == nil {
		return nil, false
	}
	return w.o.Order.Lookup(name)
}

func (w *walker) hintParents(d *Divergence, add func(string, ...any)) {
	matching := 0
	for _, p := range d.Parents {
		if p.Verdict == Match || p.Verdict == Recomputed {
			matching++
		}
	}
	w.hintExpected(d, add)
	row := &d.Row
	switch {
	case d.Fault != nil:
		within := ""
		if w.o.Scope.Level > 0 && w.o.Scope.Level < 3 {
			within = "; --level 3 compares it"
		}
		add("the fault is in %s, which was not compared: check that operation in the local model%s", d.Fault.Key, within)
	case matching < len(d.Parents):
	case row.Facts.Seen == SeenPast && row.Isolated == nil && row.Growth > 0 && row.Growth < ownGrowth:
		text := fmt.Sprintf("the error is inherited: it is only %.3g times that of its inputs, which match", float64(row.Growth))
		if w.o.Certifying == Declined {
			text += "; without --no-isolate each operation is verified"
		}
		add("%s", text)
	case len(d.Between) > 0 && !(row.Isolated != nil && row.Isolated.Good()):
		w.hintBetween(d, add)
	case len(d.Parents) == 0:
	case row.Gap != "": // the report has a line for it
	case row.Isolated != nil && row.Isolated.Good():
		add("all its inputs match and the local operation is correct: check the reference, tracediff compare --isolate REFERENCE")
	case w.o.AB:
		add("all its inputs match: the operation or its weights differ")
	case w.o.Alone:
		add("check this operation in the local model%s", weightsOf(d))
	default:
		add("all its inputs match: check this operation in the local model%s", weightsOf(d))
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

// fault is the entry that was not compared, that a row was computed from and that is wrong on its own inputs; nil where none is known.
func (w *walker) fault(r *Row) (*Fault, error) {
	if w.chain == nil || r.Firing > 0 || r.Isolated == nil || !r.Isolated.Good() {
		return nil, nil
	}
	got, err := w.chain.At(w.ctx, r.Name, r.Pass) // known since the row was judged
	if err != nil || got.Wrong == "" || w.Compared(got.Wrong) {
		return nil, err
	}
	f := &Fault{Key: got.Wrong}
	if _, name, _, ok := capture.ParseKey(got.Wrong); ok {
		f.Finding, err = w.o.Isolator.Name(w.ctx, name)
	}
	return f, err
}

// hintBetween says which of the entries between a divergence and its inputs to have in the trace next: the outputs of layers if
// there are any, else what stands at the boundaries of blocks, since these halve the search soonest.
func (w *walker) hintBetween(d *Divergence, add func(string, ...any)) {
	const where = "the fault is in this entry or in one of those that were not compared: "
	if !w.o.Given {
		add(where + "capture them with --level 3")
		return
	}
	between := map[string]bool{}
	both := ""
	for _, key := range d.Between {
		between[key] = true
		if pass, name, _, ok := capture.ParseKey(key); !ok || !w.inReference(pass, name) {
			both = " on both sides"
		}
	}
	var layers, blocks []string
	for _, e := range w.o.Order.Entries {
		key := capture.Key(d.Row.Pass, e.Name, 0)
		if e.Level != 1 || e.Layer < 0 || !between[key] {
			continue
		}
		blocks = append(blocks, key)
		if e.Name == fmt.Sprintf("layers.%d.out", e.Layer) {
			layers = append(layers, key)
		}
	}
	for _, first := range [][]string{layers, blocks} {
		if len(first) > 0 {
			add(where+"dump %s%s first", isolate.Some(first), both)
			return
		}
	}
	add(where+"dump %s%s", isolate.Some(d.Between), both)
}

// inReference reports whether the reference has an entry.
func (w *walker) inReference(pass int, name string) bool {
	_, ok := w.sides[reference].trace.Lookup(pass, name)
	return ok
}

// hintExpected says that a divergence may be what expected differences lead to.
func (w *walker) hintExpected(d *Divergence, add func(string, ...any)) {
	for _, p := range d.Parents {
		if w.different[p.Key] {
			add("computed from %s, which was expected to differ: if this is too, expect it with another --expect-different", p.Key)
			break
		}
	}
}
