package testengine

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// Engine is the list's data flow, with an arithmetic for each entry in each pass. It takes from the order what is computed from what,
// and the constants; every number is its own.
type Engine struct {
	Name   string
	DType  hooks.DType
	Choose func(e *order.Entry, tokens int) Arithmetic // what computes an entry of a pass of so many tokens
	Drop   []string                                    // entries that are not captured, by the end of their name; level 3 too then

	exact bool // what it stores is narrower than what it computes on with
	first int  // the position of the first token
}

// Captured reports whether the engine shows an entry.
func (g *Engine) Captured(e *order.Entry) bool {
	return g.Drop == nil || e.Level < 3 && !slices.ContainsFunc(g.Drop, func(end string) bool { return strings.HasSuffix(e.Name, end) })
}

// Run is one run of an engine. Each entry is also computed in a second way, in another arithmetic or without the mistake, from the
// captured tensors of the engine: isolation has no others.
type Run struct {
	*Engine
	Events      []hooks.Event // what was captured so far
	Differences []Difference  // from the shadow

	t      testing.TB
	c      ordertest.Case
	other  func(e *order.Entry, tokens int) Arithmetic // of the shadow
	damage *Damage                                     // nil for none
	loaded map[string]Tensor                           // weights by name

	pass   int // the one that is computed
	own    tensors
	shadow tensors
}

// tensors are those of the pass that is computed, and of the pass before.
type tensors struct{ now, old map[string]Tensor }

// next begins a pass.
func (t *tensors) next() { t.now, t.old = map[string]Tensor{}, t.now }

// Difference is where a captured tensor is not what its shadow is.
type Difference struct {
	Name           string
	Pass           int
	Tokens         int // of the pass
	Elements, Rows int // that differ
}

// Start begins a run. shadow returns the arithmetic of a second computation of each entry, alongside the engine's.
func (g *Engine) Start(t testing.TB, c ordertest.Case, shadow func(e *order.Entry, tokens int) Arithmetic, d *Damage) *Run {
	return &Run{Engine: g, t: t, c: c, other: shadow, damage: d, loaded: map[string]Tensor{}}
}

// Trace computes all passes and returns the trace.
func (r *Run) Trace() *capture.Trace {
	r.t.Helper()
	r.Forward()
	return Build(r.t, r.Manifest(), r.Events...)
}

// Manifest is that of the engine's trace.
func (r *Run) Manifest() capture.Manifest {
	m := Manifest("local", r.DType)
	m.Passes, m.Config = len(r.c.Passes), r.c.List.Config.Canonical()
	if r.Drop != nil {
		m.Scope.Level = 0
	}
	for i := range r.c.List.Entries {
		if e := &r.c.List.Entries[i]; r.Captured(e) {
			m.Entries = append(m.Entries, e.Name)
		}
	}
	return m
}

// Forward computes all passes.
func (r *Run) Forward() {
	past := 0
	for pass, ids := range r.c.Passes {
		r.pass = pass
		r.own.next()
		r.shadow.next()
		for i := range r.c.List.Entries {
			r.entry(&r.c.List.Entries[i], pass, past, ids)
		}
		past += len(ids)
	}
}

// entry computes one entry and its shadow.
func (r *Run) entry(e *order.Entry, pass, past int, ids []int) {
	shape := e.Size(order.Pass{Past: past, Tokens: len(ids)}, r.c.List.Config.SlidingWindow)
	y, given := arguments(e, shape, r.first+past, ids)
	shadow := y
	if given {
		r.fire(e, pass, hooks.I64, y)
	} else {
		a := r.Choose(e, len(ids))
		y = r.compute(e, a, shape, r.own, r.damage)
		shadow = r.compute(e, r.other(e, len(ids)), shape, r.shadow, nil)
		r.fire(e, pass, a.stored(e), y)
	}
	r.own.now[e.Name], r.shadow.now[e.Name] = y, shadow
	if r.Captured(e) {
		r.compare(e, pass, len(ids), y, shadow)
		r.shadow.now[e.Name] = r.shown(y)
	}
}

// arguments are the ids and positions of a pass, which nobody computes.
func arguments(e *order.Entry, shape []int, past int, ids []int) (y Tensor, given bool) {
	if e.Name != order.InputIDs && e.Name != "position_ids" {
		return Tensor{}, false
	}
	y = Tensor{shape, make([]float64, len(ids))}
	for t, id := range ids {
		y.Data[t] = float64(id)
		if e.Name != order.InputIDs {
			y.Data[t] = float64(past + t)
		}
	}
	return y, true
}

// shown returns a captured tensor as isolation reads it: as stored in the trace. The shadow of a damaged engine is
// the engine itself, and reads the computed tensor.
func (r *Run) shown(y Tensor) Tensor {
	if !r.exact || r.damage != nil {
		return y
	}
	stored := Tensor{y.Shape, make([]float64, len(y.Data))}
	for i, v := range y.Data {
		stored.Data[i] = float64(float32(v))
	}
	return stored
}

// compute evaluates an entry from these tensors.
func (r *Run) compute(e *order.Entry, a Arithmetic, shape []int, from tensors, d *Damage) Tensor {
	c := Call{Arithmetic: a, Entry: e, Pass: r.pass, op: e.Op, Shape: shape}
	for _, ref := range e.Inputs {
		x, ok := from.now[ref.Name]
		if ref.Prev {
			x, ok = from.old[ref.Name]
		}
		if !ok {
			continue // nothing was cached before the first pass
		}
		if ref.Index != nil {
			n := len(x.Data) / x.Shape[0]
			x = Tensor{x.Shape[1:], x.Data[*ref.Index*n:][:n]}
		}
		c.In = append(c.In, x)
	}
	for _, w := range e.Weights {
		c.W = append(c.W, r.Weight(w))
	}
	var y []float64
	if d != nil && d.At[e.Name] {
		y = d.Mistake.Compute(c)
	} else {
		y = c.Eval()
	}
	if to := a.stored(e); !a.exact && to.Float() {
		rounding := a
		rounding.DType = to
		for i, v := range y {
			y[i] = rounding.r(v)
		}
	}
	return Tensor{shape, y}
}

// ComputeFrom evaluates an entry from these tensors, by their names.
func (r *Run) ComputeFrom(e *order.Entry, a Arithmetic, shape []int, from map[string]Tensor) Tensor {
	return r.compute(e, a, shape, tensors{now: from}, nil)
}

// Weight reads a tensor of the checkpoint, in the model's dtype.
func (r *Run) Weight(w order.Weight) Tensor {
	if d, ok := r.loaded[w.Name]; ok {
		return d
	}
	t, err := reference.Weights(r.c.Checkpoint, r.DType)(w)
	if err != nil {
		r.t.Fatal(err)
	}
	rows, cols := t.Size()
	d := Tensor{[]int{rows, cols}, make([]float64, rows*cols)}
	for i := range rows {
		if err := t.Row(d.Data[i*cols:][:cols], i); err != nil {
			r.t.Fatal(err)
		}
	}
	r.loaded[w.Name] = d
	return d
}

func (r *Run) fire(e *order.Entry, pass int, d hooks.DType, y Tensor) {
	if !r.Captured(e) {
		return
	}
	r.Events = append(r.Events, InPass(pass, Fire(e.Name, d, y.Shape, y.Data...)))
}

// compare notes where an entry is not its shadow, as it is stored.
func (r *Run) compare(e *order.Entry, pass, tokens int, y, shadow Tensor) {
	at, n := Difference{Name: e.Name, Pass: pass, Tokens: tokens}, y.Last()
	rows := map[int]bool{}
	for i, v := range y.Data {
		if w := shadow.Data[i]; float32(v) != float32(w) && (v == v || w == w) {
			at.Elements++
			rows[i/n] = true
		}
	}
	if at.Rows = len(rows); at.Elements > 0 {
		r.Differences = append(r.Differences, at)
	}
}

// Tensor is a tensor of the current pass. It has no data before the engine has computed it.
func (r *Run) Tensor(name string) Tensor { return r.own.now[name] }

// Replay computes the entries of a trace again, each from the trace's own tensors: hold gets what was computed, and puts what stands in
// the trace into its place. Entries that the trace has not are computed from what was computed.
func (r *Run) Replay(tr *capture.Trace, hold func(rec capture.Record, e *order.Entry, y Tensor)) {
	r.t.Helper()
	passes, err := tr.IDs()
	if err != nil {
		r.t.Fatal(err)
	}
	past := 0
	for pass, ids := range passes {
		r.pass = pass
		r.own.next()
		for i := range r.c.List.Entries {
			e := &r.c.List.Entries[i]
			shape := e.Size(order.Pass{Past: past, Tokens: len(ids)}, r.c.List.Config.SlidingWindow)
			y, given := arguments(e, shape, past, ids)
			if !given {
				y = r.compute(e, r.Choose(e, len(ids)), shape, r.own, nil)
				if rec, ok := tr.Lookup(pass, e.Name); ok && rec.DType.Float() && slices.Equal(rec.Shape, shape) {
					hold(rec, e, y)
				}
			}
			r.own.now[e.Name] = y
		}
		past += len(ids)
	}
}
