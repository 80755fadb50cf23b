package compare_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/testengine"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// model fires made-up tensors for every entry of an order: of the right shapes, with real token ids, positions and
// masks, and otherwise Gaussian numbers that depend on the name, the pass and the element. What a test is about it
// changes on the way.
type model struct {
	list   *order.List
	dtype  hooks.DType
	passes [][]float64 // token ids
	scope  capture.Scope
	// change may alter an event, or drop it by returning false.
	change func(e *order.Entry, ev *hooks.Event) bool
	edit   func(m *capture.Manifest)
}

var prompt = [][]float64{{2, 500, 501, 502, 503, 504}}

func (m model) trace(t testing.TB, side string) *capture.Trace {
	t.Helper()
	if m.dtype == 0 {
		m.dtype = hooks.F32
	}
	if m.passes == nil {
		m.passes = prompt
	}
	if m.scope.Level == 0 {
		m.scope.Level = 3
	}
	man := manifest(side, m.dtype)
	man.Scope, man.Passes = m.scope, len(m.passes)
	if m.list.Config != nil {
		man.Config = m.list.Config.Canonical()
	}
	for _, e := range m.scope.Select(m.list) {
		man.Entries = append(man.Entries, e.Name)
		if e.Derived() && side == "reference" {
			man.Derived = append(man.Derived, e.Name)
		}
	}
	if m.edit != nil {
		m.edit(&man)
	}
	return build(t, man, m.events()...)
}

func (m model) events() []hooks.Event {
	var events []hooks.Event
	past := 0
	for pass, tokens := range m.passes {
		if m.scope.Passes.Has(pass) {
			for _, e := range m.scope.Select(m.list) {
				if ev, ok := m.event(e, pass, past, tokens); ok {
					events = append(events, ev)
				}
			}
		}
		past += len(tokens)
	}
	return events
}

func (m model) event(e *order.Entry, pass, past int, tokens []float64) (hooks.Event, bool) {
	shape := e.Size(order.Pass{Past: past, Tokens: len(tokens)}, m.list.Config.SlidingWindow)
	values := m.values(e, past, tokens, shape)
	d := m.dtype
	if e.DType != "" {
		d, _ = hooks.ParseDType(e.DType)
	}
	if axis := strings.IndexRune(e.Axes, order.AxisToken); axis >= 0 && len(m.scope.Positions) > 0 && e.Name != "input_ids" {
		rows := m.scope.Rows(past, len(tokens))
		if len(rows) == 0 {
			return hooks.Event{}, false
		}
		values = takeRows(values, shape, axis, rows)
		shape = slices.Clone(shape)
		shape[axis] = len(rows)
	}
	ev := in(pass, fire(e.Name, d, shape, values...))
	if m.change != nil && !m.change(e, &ev) {
		return ev, false
	}
	return ev, true
}

func (m model) values(e *order.Entry, past int, tokens []float64, shape []int) []float64 {
	n, _ := hooks.Elements(shape)
	values := make([]float64, n)
	switch {
	case e.Name == "input_ids":
		return tokens
	case e.Name == "position_ids":
		for i := range values {
			values[i] = float64(past + i)
		}
		return values
	}
	hash := fnv.New64a()
	hash.Write([]byte(e.Name))
	rng := rand.New(rand.NewPCG(hash.Sum64(), uint64(past)))
	for i := range values {
		values[i] = rng.NormFloat64()
		if e.Compare == order.All {
			continue
		}
		keys := shape[len(shape)-1]
		query, key := i/keys%len(tokens), i%keys
		if key > query+keys-len(tokens) {
			values[i] = -math.MaxFloat32
			if m.dtype == hooks.BF16 {
				values[i] = -0x1.fep127
			}
		} else if e.Compare == order.Pattern {
			values[i] = 0
		}
	}
	return values
}

// takeRows keeps some indexes of one axis.
func takeRows(values []float64, shape []int, axis int, rows []int) []float64 {
	inner, _ := hooks.Elements(shape[axis+1:])
	var out []float64
	for o := 0; o < len(values); o += shape[axis] * inner {
		for _, r := range rows {
			out = append(out, values[o+r*inner:o+(r+1)*inner]...)
		}
	}
	return out
}

// edited returns an event with its values changed by f, which gets the element's number.
func edited(ev hooks.Event, f func(i int, v float64) float64) hooks.Event {
	values := testengine.ValuesOf(ev.Tensor)
	for i := range values {
		values[i] = f(i, values[i])
	}
	return in(ev.Pass, fire(ev.Name, ev.Tensor.DType, ev.Tensor.Shape, values...))
}

// changing returns a model.change that alters one entry of one pass.
func changing(name string, pass int, f func(i int, v float64) float64) func(*order.Entry, *hooks.Event) bool {
	return func(e *order.Entry, ev *hooks.Event) bool {
		if e.Name == name && ev.Pass == pass {
			*ev = edited(*ev, f)
		}
		return true
	}
}

// without returns a model.change that drops some entries.
func without(names ...string) func(*order.Entry, *hooks.Event) bool {
	return func(e *order.Entry, _ *hooks.Event) bool { return !slices.Contains(names, e.Name) }
}
