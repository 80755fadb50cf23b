package compare

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// Divergence is the first row that does not match, and its surroundings.
type Divergence struct {
	Row       Row      `json:"row"`
	LastMatch string   `json:"last_match,omitempty"` // key of the last match before it
	Parents   []Parent `json:"parents,omitempty"`    // its nearest ancestors in the order that were compared
	// Between lists the uncompared ancestors on the way to Parents: the bug may be in any of them.
	Between []string `json:"between,omitempty"`
	// Fault is an uncompared ancestor that is wrong on its own inputs; nil if unknown.
	Fault *Fault `json:"fault,omitempty"`
	// Downstream is where the error goes; nil where nothing that is computed from it was compared.
	Downstream *Downstream    `json:"downstream,omitempty"`
	Weights    []order.Weight `json:"weights,omitempty"` // that the operation uses
	Hints      []string       `json:"hints,omitempty"`   // what to look at next, a sentence each
	Code       *Code          `json:"code,omitempty"`    // what computes it, where a side was recorded as it ran
	// Unproven lists the map's lines for the entry and its parents without confirmation by a value. The finding
	// depends on these lines being right.
	Unproven []string `json:"unproven,omitempty"`
}

// Fault is an entry without a row that is wrong on its own inputs.
type Fault struct {
	Key     string            `json:"key"`
	Finding *diagnose.Finding `json:"finding,omitempty"` // the name of the bug, or what was tried to find it
}

// Bug returns the finding about the wrong entry: the row itself, or an ancestor, named by in. It returns nil and ""
// if neither is known.
func (d *Divergence) Bug() (f *diagnose.Finding, in string) {
	switch c := d.Row.Isolated; {
	case d.Fault != nil:
		return d.Fault.Finding, d.Fault.Key
	case c != nil:
		return c.Finding, ""
	}
	return nil, ""
}

// Code tells how an entry is computed, for sides recorded as they ran.
type Code struct {
	Local     string `json:"local,omitempty"`     // the line of source, such as "transformers/models/qwen3/modeling_qwen3.py:213"
	Reference string `json:"reference,omitempty"` // that of the reference
	// Compared says that both sides were recorded, and that the steps from the nearest captured tensors to this
	// tensor were compared.
	Compared bool `json:"compared,omitempty"`
	// Steps is a diff of these steps: "- " marks a step of the reference only, "+ " a step of the local side only.
	// It is empty if the steps are equal.
	Steps []string `json:"steps,omitempty"`
}

// Parent is a compared ancestor of an entry.
type Parent struct {
	Key     string  `json:"key"`
	Stream  *int    `json:"stream,omitempty"` // the one index of its first axis that is used
	Verdict Verdict `json:"verdict"`
}

// divergence describes the first row that does not match.
func (w *walk) divergence(ctx context.Context, row Row) (*Divergence, error) {
	d := &Divergence{Row: row, LastMatch: w.decided.lastMatch}
	if e, ok := w.plan.Entry(row.Name); ok {
		d.Weights = e.Weights
		a := w.ancestors.nearest(e, row.Pass)
		d.Parents, d.Between = a.parents, a.between
	}
	if w.o.Code != nil && w.plan.Mode != sides.Alone && row.Name != order.InputIDs {
		d.Code = w.o.Code(row.Name, row.Pass)
	}
	var err error
	if d.Fault, err = w.certifier.fault(ctx, &row); err != nil {
		return nil, err
	}
	d.Unproven = unproven(w.o.Map, d)
	h := hinter{plan: w.plan, o: w.o, decided: w.decided, d: d, decoding: slices.ContainsFunc(w.res.Rows, func(other Row) bool { return other.Pass < row.Pass })}
	h.find()
	d.Hints = h.hints
	return d, nil
}

// unproven are the lines of a map on which a divergence stands.
func unproven(m *Map, d *Divergence) (lines []string) {
	if m == nil {
		return nil
	}
	add := func(name string) {
		if line, ok := m.Unproven[name]; ok && !slices.Contains(lines, line) {
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

// Downstream shows how far the error of the first divergence spreads within its pass: at its origin, a fault
// swallowed by a soft cap or a top-k looks like a fault that decides the next token.
type Downstream struct {
	Compared int `json:"compared"` // entries of the pass that are computed from it and were looked at
	Past     int `json:"past"`     // those of them beyond their accumulated limit
	// Last is the key of the last entry over its limit, or empty, and LastRelL2 the relative L2 of this entry.
	Last      string         `json:"last,omitempty"`
	LastRelL2 measure.Number `json:"last_rel_l2,omitempty"`
	// Vanishes is the key of the first entry after Last: from there on every entry is within its limit. It is empty
	// if the error reaches the end of the examined entries.
	Vanishes string `json:"vanishes,omitempty"`
	// Until is the key of the next descendant certified to be wrong on its own inputs. The entries after it show
	// that fault, and are not examined. It is empty for a stopped walk.
	Until string `json:"until,omitempty"`
	// Partial: the look-ahead ended before the pass did, at lookAheadBytes.
	Partial bool `json:"partial,omitempty"`
}

// lookAheadBytes bounds the bytes read of either trace after the first divergence, since a walk stopped there must
// not cost as much as a complete walk. A prompt of dozens of tokens through a model of 30 layers is within the
// bound.
const lookAheadBytes = 256 << 20

// add takes the next entry in.
func (d *Downstream) add(r *Row, past bool) {
	d.Compared++
	switch {
	case past:
		d.Past++
		d.Last, d.Vanishes, d.LastRelL2 = r.Key(), "", measure.Nan
		if r.Metrics != nil {
			d.LastRelL2 = r.Metrics.RelL2
		}
	case d.Vanishes == "":
		d.Vanishes = r.Key()
	}
}

// downstream follows the first divergence to the end of its pass. What it measures is certified and recorded nowhere: the walk
// may have stopped, and where it went on, certificates have had their say in the verdicts.
func (w *walk) downstream(ctx context.Context) error {
	d := w.res.Divergence
	if d == nil || w.plan.List == nil || w.plan.Mode == sides.Alone || d.Row.Name == order.InputIDs || w.plan.List.Config == nil {
		return nil
	}
	down := &Downstream{LastRelL2: measure.Nan}
	from := map[string]bool{d.Row.Name: true}
	var read int64
	for i := range w.plan.Entries {
		e := &w.plan.Entries[i]
		if !descends(e, from) {
			continue
		}
		if key := capture.Key(d.Row.Pass, e.Name, 0); w.certifier.wrongItself(key) {
			down.Until = key
			break
		}
		from[e.Name] = true
		if w.plan.Derived(i) || !w.plan.Walked(i, d.Row.Pass) {
			continue
		}
		l, r, both := w.plan.Lookup(d.Row.Pass, e.Name)
		if !both {
			continue
		}
		if read += max(l.Size, r.Size); read > lookAheadBytes {
			down.Partial = true
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := w.facts.look(ctx, i, d.Row.Pass, l, r)
		if err != nil {
			return err
		}
		down.add(p.row, !p.agrees())
	}
	if down.Compared > 0 || down.Until != "" {
		d.Downstream = down
	}
	return nil
}

// descends reports whether an entry is computed, in the same pass, from one of some others.
func descends(e *order.Entry, from map[string]bool) bool {
	for _, in := range e.Inputs {
		if !in.Prev && from[in.Name] {
			return true
		}
	}
	return false
}
