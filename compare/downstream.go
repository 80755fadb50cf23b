package compare

import (
	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Downstream is where the error of the first divergence goes within its pass: a fault that a softcap or a top-k swallows
// and one that decides the next token look alike where they begin.
type Downstream struct {
	Compared int `json:"compared"` // entries of the pass that are computed from it and were looked at
	Past     int `json:"past"`     // those of them beyond their accumulated limit
	// Last is the key of the last entry beyond its limit, empty where none is, and LastRelL2 its relative L2.
	Last      string         `json:"last,omitempty"`
	LastRelL2 measure.Number `json:"last_rel_l2,omitempty"`
	// Vanishes is the key of the first entry after that: it and all that follow are within their limits. Empty where the
	// error reaches the end of what was looked at.
	Vanishes string `json:"vanishes,omitempty"`
	// Until is the key of the next entry computed from it that is certified to be wrong by itself: what follows shows that
	// fault, and is not looked at. A walk that stopped knows of none.
	Until string `json:"until,omitempty"`
	// Partial: the look-ahead ended before the pass did, at lookAheadBytes.
	Partial bool `json:"partial,omitempty"`
}

// lookAheadBytes bounds what is read of either trace behind the first divergence: a walk that stops there is not to cost
// what a walk to the end does. A prompt of dozens of tokens through a model of 30 layers is within it.
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
func (w *walker) downstream() error {
	d := w.res.Divergence
	if d == nil || w.o.Order == nil || w.o.Alone || d.Row.Name == order.InputIDs || w.o.Order.Config == nil {
		return nil
	}
	down := &Downstream{LastRelL2: measure.Nan}
	from := map[string]bool{d.Row.Name: true}
	var read int64
	for i := range w.plan.entries {
		e := &w.plan.entries[i]
		if !descends(e, from) {
			continue
		}
		if key := capture.Key(d.Row.Pass, e.Name, 0); w.wrongItself(key) {
			down.Until = key
			break
		}
		from[e.Name] = true
		if !w.plan.covered(i) || w.plan.derived(i) || w.plan.rowless(i, d.Row.Pass) {
			continue
		}
		l, hasL := w.sides[local].trace.Lookup(d.Row.Pass, e.Name)
		r, hasR := w.sides[reference].trace.Lookup(d.Row.Pass, e.Name)
		if !hasL || !hasR {
			continue
		}
		if read += max(l.Size, r.Size); read > lookAheadBytes {
			down.Partial = true
			break
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		p, err := w.look(i, d.Row.Pass, l, r)
		if err != nil {
			return err
		}
		down.add(p.row, p.seen != SeenWithin && p.seen != SeenWider)
	}
	if down.Compared > 0 || down.Until != "" {
		d.Downstream = down
	}
	return nil
}

// wrongItself reports whether the walk found an entry to be a BUG.
func (w *walker) wrongItself(key string) bool {
	if w.chain == nil || w.verdicts[key] != Mismatch {
		return false
	}
	return w.chain.Bug(key) != nil
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
