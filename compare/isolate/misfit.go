package isolate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Misfit is a captured tensor with another shape, dtype or extent than the order's entry. The tensor is compared
// with nothing, and nothing is computed from it. Entries computed from it are not isolated either: the trace does
// not show their real input, and they would be blamed for this tensor's fault.
type Misfit struct {
	Key   string
	Class gate.Class // empty where the tensor is right in what it has
	Is    string     // "is int32, not float32"
}

// Error is the tensor or weight and how it is: "layers.0.in is int32, not float32".
func (m *Misfit) Error() string { return m.Key + " " + m.Is }

// Misfit says what keeps a captured node from being computed with; nil where nothing does.
func (i *Isolator) Misfit(n order.Node) *Misfit { return misfitIn(i, n, false) }

// misfitIn is Misfit for a computation of all rows, or of only the last token's row.
func misfitIn(i *Isolator, n order.Node, last bool) *Misfit {
	e := i.list.At(n)
	rec, ok := i.trace.Lookup(n.Pass, e.Name)
	if !ok || n.Pass >= len(i.env.Passes) { // without token ids, nothing says which shape it should have
		return nil
	}
	bad := &Misfit{Key: capture.Key(n.Pass, e.Name, 0)}
	if rec.LastRow && !last {
		bad.Is = "has only the row of the last token"
		return bad
	}
	want := e.Size(i.env.Passes[n.Pass], i.list.Config.SlidingWindow)
	if at := TokenAxis(e); rec.LastRow && at >= 0 {
		want[at] = 1
	}
	if !slices.Equal(rec.Shape, want) {
		bad.Class, bad.Is = gate.Shape, fmt.Sprintf("has shape %v, not %v", rec.Shape, want)
		return bad
	}
	switch out, err := i.layout.Outside(n); {
	case err != nil:
		bad.Is = "cannot be read: " + err.Error()
		return bad
	case out != "":
		bad.Is = "lets a query attend to a key that no query may attend to: " + out
		return bad
	}
	if want := e.DTypeOf(i.env.DType); rec.DType != i.o.Stored && otherNumbers(e, rec.DType, want) {
		bad.Class, bad.Is = gate.DType, fmt.Sprintf("is %s, not %s", rec.DType, want)
		return bad
	}
	return nil
}

// opaqueWeight returns the first weight of a cut with an unknown arithmetic of its products, or nil.
func opaqueWeight(i *Isolator, cut *order.Plan) *Misfit {
	if i.o.Opaque == nil {
		return nil
	}
	for _, n := range cut.Steps {
		e := i.list.At(n)
		if _, product := e.Op.(op.Linear); !product || len(e.Weights) == 0 {
			continue
		}
		if why := i.o.Opaque(e.Weights[0], n.Pass); why != "" {
			return &Misfit{Key: "the weight " + e.Weights[0].Name, Is: why}
		}
	}
	return nil
}

// otherNumbers reports whether a dtype cannot hold what an entry is: it has whole numbers for fractions, or fewer digits than
// the order computes it with, in which an engine's mistakes are rounded away. A mask may be written in any.
func otherNumbers(e *order.Entry, d, want hooks.DType) bool {
	if e.Compare == order.Pattern {
		return false
	}
	return d.Float() != want.Float() || d.Float() && floats.Precision(d) < floats.Precision(want)
}

// Needs collects what keeps some entries from having been captured, or from having been compared.
type Needs struct {
	Given bool // the trace is a file that a person's own program wrote: no flag captures more

	names                   []string // keys of all entries, as given
	level                   int
	layers, passes, tensors bool
	hook                    string // an entry that its trace's scope has, and that nobody fired
	Entries                 int
}

// Of adds a missing entry of a pass, and finds out whether one of these scopes excludes the entry.
func (n *Needs) Of(e *order.Entry, pass int, scopes ...capture.Scope) {
	n.Entries++
	n.names = append(n.names, capture.Key(pass, e.Name, 0))
	explained := false
	for _, s := range scopes {
		if s.Level == 0 { // undeclared
			continue
		}
		if e.Level > s.Level {
			n.level, explained = max(n.level, e.Level), true
		}
		if e.Layer >= 0 && !s.Layers.Has(e.Layer) {
			n.layers, explained = true, true
		}
		if !s.Passes.Has(pass) {
			n.passes, explained = true, true
		}
		if len(s.Tensors) > 0 {
			n.tensors, explained = true, true
		}
	}
	if !explained && n.hook == "" {
		n.hook = capture.Key(pass, e.Name, 0)
	}
}

// String describes how to capture the missing entries: flags to add or remove, or the first missing hook. It is
// empty if no entry is missing.
func (n *Needs) String() string {
	if n.Given && len(n.names) > 0 {
		text := "dump " + Some(n.names) + " to have it"
		if len(n.names) > 5 { // Some leaves names out
			text += " (tracediff order lists them)"
		}
		return text
	}
	text := ""
	if n.level > 0 {
		text = fmt.Sprintf(" with --level %d", n.level)
	}
	var without []string
	for _, f := range []struct {
		is   bool
		flag string
	}{{n.layers, "--layers"}, {n.passes, "--passes"}, {n.tensors, "--tensors"}} {
		if f.is {
			without = append(without, f.flag)
		}
	}
	if without != nil {
		text += " without " + strings.Join(without, " and ")
	}
	switch {
	case text != "":
		return "capture" + text + " to have it"
	case n.hook != "":
		return "add a hook that fires " + n.hook
	}
	return ""
}

// Some are the first of many names.
func Some(names []string) string {
	const most = 4
	if n := len(names) - most; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}
