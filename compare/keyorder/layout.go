package keyorder

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Layout has the order of a trace's cached keys. An engine with a ring buffer shows its slots in memory order, not from the oldest key to the
// newest. Attention does not depend on the order as long as keys, values, scores and mask share the order, so the order is no mistake. It
// is found by content, in the keys of one layer and pass, and undone in all tensors with a key axis before they are judged: a tensor
// with a different order is wrong.
//
// A tensor whose keys a map has put into order is not changed. If a map has ordered the keys of a layer, the order of the layer's
// other tensors is found by the scores.
//
// Several goroutines may use a Layout.
type Layout struct {
	trace  *capture.Trace
	List   *order.List
	layers map[int]*cached  // by layer
	types  map[string][]int // the layers that read a mask, by its name
	// expect computes a node from entries without keys; nil where nothing does, and its value has no data where that is too much.
	Expect func(order.Node) (program.Value, error)

	mu      sync.Mutex
	outside map[order.Node]string // what was found so far
}

// cached is the cache of one layer.
type cached struct {
	mu     sync.Mutex
	keys   int     // its entry in the list
	scores []int   // entries that find keys without a tensor, in order of preference
	source *cached // whose keys it shares; nil for its own
	fresh  int     // the entry with only the pass's own keys
	values int     // the entry with its values; −1 for none
	slots  [][]int // by pass: the slot of each key, oldest first; nil for the usual order
}

// New knows nothing of a trace of some rows, or with an order without operations.
func New(t *capture.Trace, list *order.List) *Layout {
	l := &Layout{trace: t, List: list, layers: map[int]*cached{}, types: map[string][]int{}, outside: map[order.Node]string{}}
	if list == nil || list.Config == nil || t.SomeRows() {
		return l
	}
	byEntry := map[int]*cached{}
	for i := range list.Entries {
		e := &list.Entries[i]
		if len(e.Inputs) == 0 || e.Layer >= len(list.Config.LayerTypes) {
			continue
		}
		switch op.KeysOf(e.Op) {
		case op.AppendKeys:
			if list.Index(e.Inputs[0].Name) >= 0 {
				byEntry[i] = &cached{keys: i, fresh: list.Index(e.Inputs[0].Name), values: -1}
				l.layers[e.Layer] = byEntry[i]
			}
		case op.HandOnKeys:
			if from := byEntry[list.Index(e.Inputs[0].Name)]; from != nil {
				l.layers[e.Layer] = &cached{keys: i, source: from, values: -1}
			}
		}
		if c := l.layers[e.Layer]; c != nil && c.source == nil && e.Op.Kind() == (op.Cache{}).Kind() && op.KeysOf(e.Op) == op.NoKeys {
			c.values = i
		}
		if c := l.layers[e.Layer]; c != nil && e.Compare == order.All && KeyAxis(e) == len(e.Axes)-1 {
			c.scores = append(c.scores, i)
		}
		for _, in := range e.Inputs {
			if at := list.Index(in.Name); at >= 0 && list.Entries[at].Compare == order.Pattern {
				l.types[in.Name] = append(l.types[in.Name], e.Layer)
			}
		}
	}
	return l
}

// KeyAxis is the axis of an entry that counts keys, −1 for none.
func KeyAxis(e *order.Entry) int { return strings.IndexRune(e.Axes, order.AxisKey) }

// Value reads a node with its keys from the oldest to the newest.
func (l *Layout) Value(n order.Node) (program.Value, error) {
	e := &l.List.Entries[n.Entry]
	v, err := l.trace.Value(n.Pass, e.Name)
	if err != nil {
		return v, err
	}
	slots, err := l.Slots(n)
	if err != nil || slots == nil {
		return v, err
	}
	return reorder(v, KeyAxis(e), slots), nil
}

// reorder takes indexes of an axis in another order.
func reorder(v program.Value, axis int, order []int) program.Value {
	inner := measure.Elements(v.Shape[axis+1:])
	out := program.Value{Shape: v.Shape, Data: make([]float64, 0, len(v.Data))}
	for block := 0; block < len(v.Data); block += len(order) * inner {
		for _, s := range order {
			out.Data = append(out.Data, v.Data[block+s*inner:][:inner]...)
			if v.Bound != nil {
				out.Bound = append(out.Bound, v.Bound[block+s*inner:][:inner]...)
			}
		}
	}
	return out
}

// Slots returns where a node's tensor has its keys, oldest first; nil for the usual order, and for a tensor without keys.
func (l *Layout) Slots(n order.Node) ([]int, error) {
	e := &l.List.Entries[n.Entry]
	if KeyAxis(e) < 0 {
		return nil, nil
	}
	rec, ok := l.trace.Lookup(n.Pass, e.Name)
	if !ok || rec.InOrder || len(rec.Shape) != len(e.Axes) {
		return nil, nil
	}
	var slots []int
	var err error
	if e.Compare == order.Pattern && e.Layer < 0 && len(e.Inputs) > 0 {
		slots, err = l.ofMask(n)
	} else if c := l.layers[e.Layer]; c != nil {
		slots, err = l.of(c, n.Pass)
	}
	if len(slots) != rec.Shape[KeyAxis(e)] { // of another size: a mistake that is not ours to hide
		return nil, err
	}
	return slots, err
}

// ofMask is the order of the layers that read the mask, if the mask needs an order: all these layers have the same order, which puts the mask
// right.
func (l *Layout) ofMask(n order.Node) ([]int, error) {
	e := &l.List.Entries[n.Entry]
	var slots []int
	for i, layer := range l.types[e.Name] {
		c := l.layers[layer]
		if c == nil {
			return nil, nil
		}
		own, err := l.of(c, n.Pass)
		if err != nil || own == nil || i > 0 && !slices.Equal(own, slots) {
			return nil, err
		}
		slots = own
	}
	if _, ok := l.trace.Lookup(n.Pass, e.Inputs[0].Name); slots == nil || !ok {
		return nil, nil
	}
	positions, err := l.trace.Value(n.Pass, e.Inputs[0].Name)
	if err != nil {
		return nil, err
	}
	got, err := l.trace.Value(n.Pass, e.Name)
	if err != nil {
		return nil, err
	}
	want, err := program.Eval(e.Op, program.Call{In: []program.Value{positions}, Shape: got.Shape})
	if err != nil || KeyAxis(e) != len(got.Shape)-1 || len(slots) != got.Shape[len(got.Shape)-1] {
		return nil, err
	}
	if samePattern(got.Data, want.Data) || !samePattern(reorder(got, len(got.Shape)-1, slots).Data, want.Data) {
		return nil, nil
	}
	return slots, nil
}

// samePattern reports whether two masks hide the same.
func samePattern(a, b []float64) bool {
	for i := range a {
		if (a[i] < 0) != (b[i] < 0) {
			return false
		}
	}
	return true
}

// of returns the slots of a layer's keys in a pass. A cache is built up, so those of the passes before are found first.
func (l *Layout) of(c *cached, pass int) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := len(c.slots); p <= pass; p++ {
		slots, err := l.find(c, p)
		if err != nil {
			return nil, fmt.Errorf("looking for the layout of %s in pass %d: %w", l.List.Entries[c.keys].Name, p, err)
		}
		c.slots = append(c.slots, slots)
	}
	return c.slots[pass], nil
}

// find matches the keys of a pass with the expected keys.
func (l *Layout) find(c *cached, pass int) ([]int, error) {
	got, err := l.rows(c, pass, nil)
	switch {
	case err != nil:
		return nil, err
	case got == nil || l.inOrder(c.keys, pass):
		return l.byScores(c, pass)
	}
	var want *keyRows
	if c.source != nil {
		slots, err := l.of(c.source, pass)
		if err != nil {
			return nil, err
		}
		want, err = l.rows(c.source, pass, slots)
		if err != nil || want == nil {
			return nil, err
		}
	} else if want, err = l.grown(c, pass, got); err != nil || want == nil {
		return nil, err
	}
	slots := match(got, want)
	if slots == nil || c.source != nil {
		return slots, nil
	}
	if shared, err := l.shared(c, pass, slots); !shared || err != nil {
		return nil, err
	}
	return slots, nil
}

// shared reports whether the values of a pass are not known to lie as usual, in place of in the order of the keys: then it is the keys
// that lie wrongly.
func (l *Layout) shared(c *cached, pass int, slots []int) (bool, error) {
	rec, ok := l.trace.Lookup(pass, l.List.Entries[c.fresh].Name)
	if c.values < 0 || pass == 0 || !ok || l.inOrder(c.values, pass) {
		return true, nil
	}
	name := l.List.Entries[c.values].Name
	now, err := l.rowsOf(name, pass, nil)
	if err != nil || now == nil || now.keys != len(slots) {
		return true, err
	}
	before, err := l.rowsOf(name, pass-1, c.slots[pass-1])
	kept := now.keys - rec.Shape[2]
	if err != nil || before == nil || before.keys < kept || before.width != now.width || len(before.heads) != len(now.heads) {
		return true, err
	}
	usual, inSlots := true, true
	for i := range kept {
		usual = usual && now.same(i, before, before.keys-kept+i)
		inSlots = inSlots && now.same(slots[i], before, before.keys-kept+i)
	}
	return !usual || inSlots, nil
}

// byScores finds the order of keys without a tensor by the scores computed from the keys.
func (l *Layout) byScores(c *cached, pass int) ([]int, error) {
	for _, at := range c.scores {
		n, e := order.Node{Entry: at, Pass: pass}, &l.List.Entries[at]
		if rec, ok := l.trace.Lookup(pass, e.Name); !ok || rec.InOrder || len(rec.Shape) != len(e.Axes) || l.Expect == nil {
			continue
		}
		want, err := l.Expect(n)
		if err != nil || want.Data == nil {
			return nil, err
		}
		got, err := l.trace.Value(pass, e.Name)
		if err != nil || !slices.Equal(got.Shape, want.Shape) {
			return nil, err
		}
		keys := got.Shape[len(got.Shape)-1]
		slots := turned(got.Data, want.Data, keys)
		if slots == nil {
			slots = assigned(got.Data, want.Data, keys)
		}
		if slots != nil && l.moves(c, n, slots) {
			return nil, nil
		}
		return slots, nil
	}
	return nil, nil
}

// moves reports whether keys lie in another order than in the pass before although the cache has only grown: it has dropped no key, and no slot was used again.
// No engine does that. Two wrong keys, each like the other by chance, seem to. scores is the node that the order was found in.
func (l *Layout) moves(c *cached, scores order.Node, slots []int) bool {
	e := &l.List.Entries[scores.Entry]
	before, ok := l.trace.Lookup(scores.Pass-1, e.Name)
	if !ok || len(before.Shape) != len(e.Axes) {
		return false
	}
	rec, _ := l.trace.Lookup(scores.Pass, e.Name)
	held, old := before.Shape[KeyAxis(e)], c.slots[scores.Pass-1]
	if held != len(slots)-rec.Shape[KeyAxis(e)-1] || old != nil && len(old) != held {
		return false
	}
	for i := 1; i < held; i++ {
		if (slots[i-1] < slots[i]) != (old == nil || old[i-1] < old[i]) {
			return true
		}
	}
	return false
}

// grown is what the keys of a pass should be: the last of the pass before, then the new ones. nil when these were not captured.
func (l *Layout) grown(c *cached, pass int, like *keyRows) (*keyRows, error) {
	e := &l.List.Entries[c.fresh]
	rec, ok := l.trace.Lookup(pass, e.Name)
	if !ok || !oneSequence(rec.Shape) || rec.Shape[1] != len(like.heads) || rec.Shape[3] != like.width {
		return nil, nil
	}
	now, err := l.trace.Value(pass, e.Name)
	if err != nil {
		return nil, err
	}
	fresh := newKeyRows(now, nil)
	kept := like.keys - fresh.keys
	if kept <= 0 {
		return fresh, nil
	}
	if pass == 0 {
		return nil, nil
	}
	before, err := l.rows(c, pass-1, c.slots[pass-1])
	if err != nil || before == nil || !l.keeps(c, before.keys, kept) || len(before.heads) != len(like.heads) || before.width != like.width {
		return nil, err
	}
	return before.then(kept, fresh), nil
}

// keeps reports whether a layer keeps kept of the previous pass's keys: all keys, or as many as the window leaves. A tensor with another
// number of keys is not a cache.
func (l *Layout) keeps(c *cached, keys, kept int) bool {
	config := l.List.Config
	if keys > kept && config.LayerTypes[l.List.Entries[c.keys].Layer] == order.Sliding {
		return kept == config.SlidingWindow-1
	}
	return keys == kept
}

// rows reads a layer's keys of a pass, in an order; nil when they were not captured.
func (l *Layout) rows(c *cached, pass int, slots []int) (*keyRows, error) {
	return l.rowsOf(l.List.Entries[c.keys].Name, pass, slots)
}

func (l *Layout) rowsOf(name string, pass int, slots []int) (*keyRows, error) {
	rec, ok := l.trace.Lookup(pass, name)
	if !ok || !oneSequence(rec.Shape) {
		return nil, nil
	}
	v, err := l.trace.Value(pass, name)
	if err != nil {
		return nil, err
	}
	if rec.InOrder {
		slots = nil
	}
	return newKeyRows(v, slots), nil
}

// inOrder reports whether a map has put the keys of an entry into order.
func (l *Layout) inOrder(entry, pass int) bool {
	rec, ok := l.trace.Lookup(pass, l.List.Entries[entry].Name)
	return ok && rec.InOrder
}

// oneSequence reports whether a shape is one of keys, [1, h, S, D]: a file may hold any.
func oneSequence(shape []int) bool { return len(shape) == 4 && shape[0] == 1 }
