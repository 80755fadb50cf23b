package capture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Attach registers write, such as a [Writer]'s Observe, for the entries that a scope selects: write gets only the
// passes and rows in scope. Call Attach before the model is built. passes has the number of tokens of each forward
// call, from which the position of a row in the sequence follows.
func Attach(reg *hooks.Registry, write hooks.Observer, l *order.List, s Scope, passes []int) error {
	r := newRecorder(s, passes)
	r.write = write
	for _, e := range s.Select(l) {
		if err := reg.Observe(e.Name, func(ev hooks.Event) error { return r.observe(e, ev) }); err != nil {
			return err
		}
	}
	return nil
}

// Only returns the part of an event that is in scope, for a run that records more: the rows in scope, valid until the
// next call, and whether the event has any. l and passes are the same as for [Attach].
func Only(l *order.List, s Scope, passes []int) func(hooks.Event) (hooks.Event, bool) {
	r, entries := newRecorder(s, passes), map[string]*order.Entry{}
	for _, e := range s.Select(l) {
		entries[e.Name] = e
	}
	return func(ev hooks.Event) (hooks.Event, bool) {
		e := entries[ev.Name]
		if e == nil || ev.Pass >= len(passes) {
			return ev, false
		}
		return r.narrow(e, ev)
	}
}

func newRecorder(s Scope, passes []int) *recorder {
	r := &recorder{scope: s, passes: passes, starts: make([]int, len(passes))}
	for i := 1; i < len(passes); i++ {
		r.starts[i] = r.starts[i-1] + passes[i-1]
	}
	return r
}

type recorder struct {
	write          hooks.Observer
	scope          Scope
	passes, starts []int // tokens of each pass, and before it
	scratch        []byte
}

func (r *recorder) observe(e *order.Entry, ev hooks.Event) error {
	if ev.Pass >= len(r.passes) {
		return fmt.Errorf("pass %d fired, and only %d passes were planned", ev.Pass, len(r.passes))
	}
	if ev, ok := r.narrow(e, ev); ok {
		return r.write(ev)
	}
	return nil
}

// narrow cuts an event to the passes and rows in scope; false if nothing of the event is in scope.
func (r *recorder) narrow(e *order.Entry, ev hooks.Event) (hooks.Event, bool) {
	if !r.scope.Passes.Has(ev.Pass) {
		return ev, false
	}
	axis := strings.IndexRune(e.Axes, order.AxisToken)
	if len(r.scope.Positions) == 0 || axis < 0 || e.Name == order.InputIDs {
		return ev, true
	}
	rows := r.scope.Rows(r.starts[ev.Pass], r.passes[ev.Pass])
	if len(rows) == 0 {
		return ev, false
	}
	ev.Tensor = r.take(ev.Tensor, axis, rows)
	return ev, true
}

// take copies rows of one axis into scratch.
func (r *recorder) take(t hooks.Tensor, axis int, rows []int) hooks.Tensor {
	outer, _ := hooks.Elements(t.Shape[:axis])
	inner, _ := hooks.Elements(t.Shape[axis+1:])
	inner *= t.DType.Size()
	r.scratch = r.scratch[:0]
	for o := range outer {
		for _, row := range rows {
			from := (o*t.Shape[axis] + row) * inner
			r.scratch = append(r.scratch, t.Data[from:from+inner]...)
		}
	}
	shape := slices.Clone(t.Shape)
	shape[axis] = len(rows)
	return hooks.Tensor{DType: t.DType, Shape: shape, Data: r.scratch}
}

// Reserve is the header room that a capture needs: passes has the number of tokens of each forward call.
func Reserve(l *order.List, s Scope, passes []int) int {
	window := 0
	if l.Config != nil {
		window = l.Config.SlidingWindow
	}
	n, past := 0, 0
	selected := s.Select(l)
	for k, tokens := range passes {
		if s.Passes.Has(k) {
			for _, e := range selected {
				n += HeaderBytes(Key(k, e.Name, 0), hooks.BF16, e.Size(order.Pass{Past: past, Tokens: tokens}, window))
			}
		}
		past += tokens
	}
	return n
}

// DataBytes estimates the bytes of data that a capture of a list writes in a model's dtype: passes has the number of
// tokens of each forward call. Positions of the scope, which leave out rows, are not subtracted, and the header is not
// counted. The sizes are from a configuration that nobody has checked, so the sum is a float and cannot overflow.
func DataBytes(l *order.List, s Scope, dtype hooks.DType, passes []int) float64 {
	window := 0
	if l.Config != nil {
		window = l.Config.SlidingWindow
	}
	// Thousands of entries have some dozens of shapes: a long decode adds up the shapes at each step, not the
	// entries.
	type form struct{ shape, dtype string }
	entries, times := map[form]*order.Entry{}, map[form]int{}
	for _, e := range s.Select(l) {
		f := form{fmt.Sprint(e.Shape), e.DType}
		entries[f] = e
		times[f]++
	}
	sum, past := 0.0, 0
	for k, tokens := range passes {
		for f, e := range entries {
			if !s.Passes.Has(k) {
				break
			}
			n := float64(times[f]) * float64(e.DTypeOf(dtype).Size())
			for _, d := range e.Size(order.Pass{Past: past, Tokens: tokens}, window) {
				n *= float64(d)
			}
			sum += n
		}
		past += tokens
	}
	return sum
}
