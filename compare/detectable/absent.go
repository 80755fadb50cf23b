package detectable

import (
	"context"
	"errors"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// maxAbsent bounds the uncaptured entries examined for one mistake.
const maxAbsent = 6

// absent looks for mistakes in entries without a captured tensor, or without captured inputs, as if these had been
// captured. Their values are computed from the captured tensors.
type absent struct {
	*search
	values map[order.Node]program.Value
	asked  []order.Node // which of them were read
}

// reveals returns the names of the tensors that would show a mistake, with "*" for the layer; none where capturing more shows nothing.
// single: the model has to be computed in float32, too. Where that cannot be worked out, the names are of those that would have to be there.
func (s *search) reveals(ctx context.Context, k *candidate) (names []string, single bool, err error) {
	own := *s
	own.work = s.revealed // as much work again as all mistakes together
	defer func() { s.revealed = own.work }()
	a := &absent{search: &own, values: map[order.Node]program.Value{}}
	nodes := a.candidates(k)
	var unknown, moved []string
	for _, at := range isolate.Scattered(len(nodes))[:min(len(nodes), maxAbsent)] {
		n := nodes[at]
		virtual := &candidate{Usual: k.Usual}
		a.asked = nil
		known, err := a.try(ctx, n, virtual)
		if err != nil {
			return nil, false, err
		}
		needs := a.names(n)
		switch {
		case len(needs) == 0, a.workedOut(needs): // it was looked at, or what captures this trace cannot capture it
		case virtual.seen:
			return needs, false, nil
		case virtual.moved && moved == nil:
			moved = needs
		case !known && unknown == nil:
			unknown = needs
		}
	}
	if moved != nil && !k.moved {
		return moved, true, nil
	}
	return unknown, false, nil
}

// candidates are the entries that would show a mistake, were all captured.
func (a *absent) candidates(k *candidate) []order.Node {
	var all []order.Node
	for pass := range a.i.Env().Passes {
		for e := range a.i.List().Entries {
			if !k.shows[e] {
				continue
			}
			n := order.Node{Entry: e, Pass: pass}
			cut, err := a.i.List().Cut(a.has(k.Opens()), n)
			if err == nil && slices.ContainsFunc(cut.Steps, func(at order.Node) bool { return k.edits[at.Entry] }) {
				all = append(all, n)
			}
		}
	}
	return all
}

// has accepts every entry as captured, except entries that depend only on positions.
func (a *absent) has(opened bool) func(order.Node) bool {
	return func(n order.Node) bool {
		if a.i.Fixed(n.Entry) {
			return !opened && a.i.Has(n)
		}
		return true
	}
}

// try makes a mistake in one entry. known is false where the entry cannot be computed, or not with the work that is left.
func (a *absent) try(ctx context.Context, n order.Node, k *candidate) (known bool, err error) {
	cut, err := a.i.List().Cut(a.has(k.Opens()), n)
	if err != nil {
		return false, nil
	}
	a.asked = append(a.asked, n)
	for _, leaf := range cut.Leaves {
		if v, err := a.value(ctx, leaf); v.Shape == nil || err != nil {
			return false, err
		}
	}
	y, err := a.value(ctx, n)
	if y.Shape == nil || err != nil {
		return false, err
	}
	read := func(n order.Node) (program.Value, error) { return a.value(ctx, n) }
	t := a.i.Supposed(n, cut, y, read)
	r, err := a.prepared(ctx, t)
	if r == nil || err != nil {
		return false, err
	}
	a.read = read
	return true, a.made(ctx, r, n, false, k)
}

// value returns an entry's captured tensor, or its value computed from captured tensors. The value has no shape if
// it cannot be computed, or if the work budget is spent.
func (a *absent) value(ctx context.Context, n order.Node) (program.Value, error) {
	if !slices.Contains(a.asked, n) {
		a.asked = append(a.asked, n)
	}
	if v, ok := a.values[n]; ok {
		return v, nil
	}
	if a.i.Has(n) && a.i.Misfit(n) == nil {
		v, _, err := a.i.Value(n)
		return v, err
	}
	if a.i.Given(n) && a.i.Misfit(n) == nil {
		return a.i.Argument(n)
	}
	v, err := a.computed(ctx, n)
	if v.Shape != nil && err == nil {
		a.values[n] = v
	}
	return v, err
}

// computed is an entry, computed from the captured entries. The value has no shape if the entry cannot be computed, for example if the positions of its pass have
// the wrong shape.
func (a *absent) computed(ctx context.Context, n order.Node) (program.Value, error) {
	cut, err := a.i.List().Cut(func(n order.Node) bool {
		_, ok := a.values[n]
		return ok || (a.i.Given(n) || a.i.Has(n)) && a.i.Misfit(n) == nil
	}, n)
	if err != nil {
		return program.Value{}, nil
	}
	f, err := cut.Formula(a.i.Env().Passes, a.i.Env().DType)
	if errors.Is(err, order.ErrOwn) {
		return program.Value{}, nil
	} else if err != nil {
		return program.Value{}, err
	}
	if a.work += f.Time(); a.work > a.most {
		return program.Value{}, nil
	}
	env := a.i.Env()
	env.Bounds = false
	env.Read = func(n order.Node) (program.Value, error) {
		if v, ok := a.values[n]; ok {
			return v, nil
		}
		return a.i.OrArgument(n)
	}
	v, err := cut.Value(ctx, env)
	if err != nil {
		return program.Value{}, err
	}
	env.Round(v, a.i.List().At(n).DTypeOf(env.DType))
	return v, nil
}

// workedOut reports whether the program that captured the trace had to work out one of the tensors itself.
func (a *absent) workedOut(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return a.i.Recomputes(func(have string) bool { return hooks.Match(name, have) })
	})
}

// names are those of what was read and not captured, without the layers.
func (a *absent) names(n order.Node) []string {
	var all []string
	for _, at := range append(slices.Clone(a.asked), n) {
		e := a.i.List().At(at)
		if name := order.NameOf(e.Name).Beside(order.NameOf(order.AnyLayer)).String(); !(a.i.Has(at) && a.i.Misfit(at) == nil) && !a.i.Given(at) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
