package isolate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// ErrNoWeights is the error for unknown weights. An entry with such weights is not confirmed.
var ErrNoWeights = errors.New("the checkpoint is not known")

// NewConfirmer prepares a trace for confirming its constants. The trace may hold only some rows of its tensors;
// then only constants derived from the model's arguments are confirmed. For other defects of the trace NewConfirmer
// returns the errors of [New].
func NewConfirmer(t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error), d hooks.DType) (*Isolator, error) {
	return prepareTrace(t, list, weights, Options{Arithmetic: Strict, DType: d}, t.SomeRows())
}

// Confirms reports whether a constant tensor of the trace is the constant of the order. It returns the keys of the
// inputs used: arguments of the model, weights, and captured entries that are not constant, since a zero computed
// from a zero proves nothing. It returns no keys if the constant cannot be computed, or differs. The error comes
// from reading the trace or the weights.
func (i *Isolator) Confirms(ctx context.Context, name string, pass int) ([]string, error) {
	n := order.Node{Entry: i.list.Index(name), Pass: pass}
	if n.Entry < 0 || pass >= len(i.env.Passes) || !i.Has(n) {
		return nil, nil
	}
	if i.narrow {
		return i.confirmsRows(ctx, n)
	}
	t, err := i.TrialFrom(n, func(n order.Node) bool {
		_, given := i.list.At(n).Op.(op.Given)
		return given || i.Has(n)
	})
	var bare *order.BareError
	var bad *Misfit
	switch {
	case errors.As(err, &bare), errors.As(err, &bad):
		return nil, nil
	case err != nil:
		return nil, err
	case len(t.Cut.Steps) > maxConfirmed:
		return nil, nil
	}
	for _, leaf := range t.Cut.Leaves {
		if sound, err := i.sound(ctx, leaf); err != nil || !sound {
			return nil, err
		}
	}
	t.Read = i.OrArgument
	j, err := t.Evaluate(ctx, Evaluation{Arithmetic: &Arithmetic{}})
	if errors.Is(err, ErrNoWeights) {
		return nil, nil
	}
	if err != nil || !i.confirms(j) {
		return nil, err
	}
	return keysOf(i, t.Cut.Leaves), nil
}

// sound reports whether something follows from a captured entry, or an argument: it varies, or is a constant that the order gives
// itself.
func (i *Isolator) sound(ctx context.Context, n order.Node) (bool, error) {
	e := i.list.At(n)
	if _, given := e.Op.(op.Given); given {
		return true, nil
	}
	i.mu.Lock()
	sound, known := i.follows[n]
	i.mu.Unlock()
	if known {
		return sound, nil
	}
	sound, err := i.varies(n)
	if err == nil && !sound {
		var from []string
		from, err = i.Confirms(ctx, e.Name, n.Pass)
		sound = from != nil
	}
	if err != nil {
		return false, err
	}
	i.mu.Lock()
	i.follows[n] = sound
	i.mu.Unlock()
	return sound, nil
}

// confirms reports whether a tensor is the computed value, within the reach that a limit would ask for.
func (i *Isolator) confirms(j *Judgement) bool {
	l := Look(j)
	c := l.Certificate()
	return len(l.outside) == 0 && (c.Unequal == 0 || float64(c.Reach) <= gate.TableLimit(i.env.DType))
}

func keysOf(i *Isolator, nodes []order.Node) []string {
	keys := []string{}
	for _, n := range nodes {
		keys = append(keys, capture.Key(n.Pass, i.list.At(n).Name, 0))
	}
	return keys
}

// confirmsRows is Confirms for a trace with only some rows of its tensors. Values derived only from the arguments
// are computed for all rows, and compared at the rows of the trace.
func (i *Isolator) confirmsRows(ctx context.Context, n order.Node) ([]string, error) {
	e := i.list.At(n)
	cut, err := i.list.Cut(func(n order.Node) bool {
		_, given := i.list.At(n).Op.(op.Given)
		return given
	}, n)
	if err != nil {
		return nil, nil // from more than the arguments
	}
	env := i.env
	env.Read = i.Argument
	x, err := cut.Value(ctx, env)
	if errors.Is(err, ErrNoWeights) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := i.env.Passes[n.Pass]
	if at := strings.IndexRune(e.Axes, order.AxisToken); at >= 0 {
		x = rowsOf(x, at, i.trace.Manifest().Scope.Rows(p.Past, p.Tokens))
	}
	y, err := i.trace.Value(n.Pass, e.Name)
	if err != nil || !slices.Equal(x.Shape, y.Shape) {
		return nil, err
	}
	rec, _ := i.trace.Lookup(n.Pass, e.Name)
	if !rec.DType.Float() || !i.confirms(&Judgement{X: x, Y: y, DType: rec.DType, Model: i.env.DType, Rule: e.Compare, run: runOf(e, y.Shape)}) {
		return nil, nil
	}
	return keysOf(i, cut.Leaves), nil
}

// maxConfirmed bounds the entries computed to confirm one entry: about two layers, so a trace with few tensors does
// not cost a forward pass.
const maxConfirmed = 128

// rowsOf takes some indexes of an axis of a value and its bounds.
func rowsOf(v program.Value, axis int, rows []int) program.Value {
	inner := measure.Elements(v.Shape[axis+1:])
	out := program.Value{Shape: slices.Clone(v.Shape)}
	out.Shape[axis] = len(rows)
	if v.Terms != nil {
		out.Terms = &program.Terms{Unit: v.Terms.Unit}
	}
	for block := 0; block < len(v.Data); block += v.Shape[axis] * inner {
		for _, r := range rows {
			out.Data = append(out.Data, v.Data[block+r*inner:][:inner]...)
			if v.Bound != nil {
				out.Bound = append(out.Bound, v.Bound[block+r*inner:][:inner]...)
			}
			if v.Terms != nil {
				out.Terms.Count = append(out.Terms.Count, v.Terms.Count[block+r*inner:][:inner]...)
				out.Terms.Most = append(out.Terms.Most, v.Terms.Most[block+r*inner:][:inner]...)
			}
		}
	}
	return out
}

// varies reports whether a captured entry can confirm a constant: it has two different elements, or is a single number other than
// 0.
func (i *Isolator) varies(n order.Node) (bool, error) {
	if !i.Has(n) || i.Misfit(n) != nil {
		return false, nil
	}
	v, _, err := i.Value(n)
	if err != nil {
		return false, err
	}
	return len(v.Data) == 1 && v.Data[0] != 0 || slices.ContainsFunc(v.Data, func(x float64) bool { return x != v.Data[0] }), nil
}
