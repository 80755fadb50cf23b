package isolate

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Tensors are the tensors of a trace as the entries of its order.
type Tensors struct {
	trace   *capture.Trace
	list    *order.List
	env     order.Env        // what entries are computed in; its Read reads captured entries
	derived map[string]bool  // recomputed by the capturing side, where the order has it so: says nothing about the engine
	layout  *keyorder.Layout // of cached keys and values
	// positioned: the trace says where its tokens stand.
	positioned bool
}

// Value reads a captured entry, with cached keys from the oldest to the newest, and returns the dtype of its elements. A boolean mask (true: a key is seen)
// becomes an additive mask if the order has an additive mask there.
func (t *Tensors) Value(n order.Node) (program.Value, hooks.DType, error) {
	e := t.list.At(n)
	if t.assumed(n) {
		return t.positions(n.Pass), hooks.I64, nil
	}
	v, err := t.layout.Value(n)
	rec, ok := t.trace.Lookup(n.Pass, e.Name)
	if err != nil || !ok || e.Compare != order.Pattern || rec.DType.Float() || !e.DTypeOf(t.env.DType).Float() {
		return v, rec.DType, err
	}
	for k, seen := range v.Data {
		if v.Data[k] = 0; seen == 0 {
			v.Data[k] = math.Inf(-1)
		}
	}
	return v, t.env.DType, nil
}

// Has reports whether a node was captured, or is known without.
func (t *Tensors) Has(n order.Node) bool {
	name := t.list.At(n).Name
	_, ok := t.trace.Lookup(n.Pass, name)
	return ok && !t.derived[name] || t.assumed(n)
}

// AssumedPositions are where the tokens of a pass are taken to stand in a trace that does not say so: the first is at 0, and each pass goes
// on where the one before has ended. ok is false of a trace that does.
func (t *Tensors) AssumedPositions(pass int) (positions []int64, ok bool) {
	at := t.list.Index(order.PositionIDs)
	if at < 0 || !t.assumed(order.Node{Entry: at, Pass: pass}) {
		return nil, false
	}
	p := t.env.Passes[pass]
	for k := range p.Tokens {
		positions = append(positions, int64(p.Past+k))
	}
	return positions, true
}

// assumed reports whether a node is position_ids, and the trace has no positions.
func (t *Tensors) assumed(n order.Node) bool {
	return !t.positioned && n.Pass < len(t.env.Passes) && t.list.At(n).Name == order.PositionIDs
}

// positions are those that are assumed, as a tensor: [1, T].
func (t *Tensors) positions(pass int) program.Value {
	all, _ := t.AssumedPositions(pass)
	v := program.Value{Shape: []int{1, len(all)}}
	for _, p := range all {
		v.Data = append(v.Data, float64(p))
	}
	return v
}

// lastRow reports whether the trace has only the last token's row of a node.
func (t *Tensors) lastRow(n order.Node) bool {
	rec, ok := t.trace.Lookup(n.Pass, t.list.Entries[n.Entry].Name)
	return ok && rec.LastRow
}

// Given reports whether a node is an argument of the model.
func (t *Tensors) Given(n order.Node) bool {
	_, given := t.list.At(n).Op.(op.Given)
	return given
}

// Fixed reports whether an entry is the same in every model of its settings: it follows from positions, without any weight.
func (t *Tensors) Fixed(entry int) bool {
	e := &t.list.Entries[entry]
	if e.Op == nil || len(e.Weights) > 0 || len(e.Inputs) == 0 {
		return false
	}
	return !slices.ContainsFunc(e.Inputs, func(r order.Ref) bool {
		at := t.list.Index(r.Name)
		return r.Prev || !t.Given(order.Node{Entry: at}) && !t.Fixed(at)
	})
}

// Recomputed reports whether the recorder recomputed an entry; such an entry is no evidence about the engine.
func (t *Tensors) Recomputed(name string) bool { return t.derived[name] }

// Recomputes reports whether the capturing side recomputed an entry of some name.
func (t *Tensors) Recomputes(is func(name string) bool) bool {
	for name := range t.derived {
		if is(name) {
			return true
		}
	}
	return false
}

// Lift is an entry of a recorded program as one known operation; see [order.List.Lift].
func (t *Tensors) Lift(name string, pass int) (*order.Entry, bool) {
	at := t.list.Index(name)
	if at < 0 {
		return nil, false
	}
	return t.list.Lift(order.Node{Entry: at, Pass: pass})
}

// OrArgument reads a captured entry, or an argument of the model that was not captured.
func (t *Tensors) OrArgument(n order.Node) (program.Value, error) {
	if !t.Has(n) {
		return t.Argument(n)
	}
	v, _, err := t.Value(n)
	return v, err
}

// Argument is an argument of the model as the token ids of a trace give it.
func (t *Tensors) Argument(n order.Node) (program.Value, error) {
	p := t.env.Passes[n.Pass]
	if t.list.At(n).Name == order.InputIDs {
		return t.trace.Value(n.Pass, order.InputIDs)
	}
	v := program.Value{Shape: []int{1, p.Tokens}, Data: make([]float64, p.Tokens)}
	for k := range v.Data {
		v.Data[k] = float64(p.Past + k)
	}
	return v, nil
}

// Trace is the trace whose entries are computed.
func (t *Tensors) Trace() *capture.Trace { return t.trace }

// List is the order of the model.
func (t *Tensors) List() *order.List { return t.list }

// Env is what entries are computed in. Its Read reads captured entries.
func (t *Tensors) Env() order.Env { return t.env }

// Layout is the order in which the trace has its cached keys.
func (t *Tensors) Layout() *keyorder.Layout { return t.layout }
