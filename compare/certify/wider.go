package certify

import (
	"context"
	"errors"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// The trace's entries are looked at until widerEntries are left by transformers' arithmetic, or widerLooked have been looked at. If
// these show too little, entries of a single step are, until they show enough: they cost least.
const (
	widerEntries = 32
	widerLooked  = 256

	// Entries of a single step have to show it in widerKinds places of a layer. Null hypothesis: a mistake of a unit in one of them,
	// in one layer or in all.
	widerKinds = 2
)

// computedWider reports whether a float32 trace was computed in double precision and stored as float32. That is so where
// inputs within half a unit of what was captured, in transformers' arithmetic, give most of the entries that the captured
// inputs do not give; and where they give as many elements and rows as any arithmetic has to show of entries that are a single
// step, such as a sum of two tensors, in two places of a layer: these have nothing else to be computed from. It is a property of the
// whole trace, never of an entry. In 16 bits half a unit hides mistakes, and nothing is asked.
func (k *forms) computedWider(ctx context.Context) (bool, error) {
	if k.i.env.DType != hooks.F32 {
		return false, nil
	}
	return k.wide.Get(ctx, struct{}{}, k.i.lookWider)
}

func (i *Isolator) lookWider(ctx context.Context) (bool, error) {
	var nodes []order.Node
	forms := i.capturedForms()
	for _, name := range forms.names {
		nodes = append(nodes, forms.nodes[name]...)
	}
	left, explained := 0, 0
	var given []*evidence
	look := func(n order.Node) error {
		e, gives, err := i.givenWider(ctx, n)
		if e == nil || err != nil {
			return err
		}
		left++
		if gives {
			explained++
			if e.formula.Single() {
				given = append(given, e)
			}
		}
		return nil
	}
	nodes = permuted(nodes, scattered(len(nodes)))
	some := min(widerLooked, len(nodes))
	for looked := 0; looked < some && left < widerEntries; looked++ {
		if err := look(nodes[looked]); err != nil {
			return false, err
		}
	}
	for _, n := range nodes[some:] {
		if 2*explained <= left || proven(given) && kinds(given) >= widerKinds {
			break
		}
		if single, err := i.single(n); err != nil {
			return false, err
		} else if !single {
			continue
		}
		if err := look(n); err != nil {
			return false, err
		}
	}
	return 2*explained > left && proven(given) && kinds(given) >= widerKinds, nil
}

// givenWider returns an entry that transformers' arithmetic does not explain, and whether wider inputs explain the entry. For any other entry it returns nil.
// It returns nil for an entry without inputs of floats, for an entry that is too large, and for an entry whose first tokens are explained. If wider inputs do
// not explain the first tokens, givenWider does not look at other tokens. Attention of a long prompt is computed some queries at a time, and givenWider returns
// it with some queries.
func (i *Isolator) givenWider(ctx context.Context, n order.Node) (e *evidence, gives bool, err error) {
	whole, err := i.unread(n, i.has)
	if lacking(err) || err == nil && whole.tooLarge() {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	if e, err = whole.firstTokens(ctx); e != nil && err == nil {
		if len(e.left) == 0 || !e.readsFloats() {
			return nil, false, nil
		}
		if _, rest, _, err := e.strict(ctx, &arithmetic{wide: true}); len(rest) > 0 || err != nil {
			return e, false, err
		}
	}
	if err != nil {
		return nil, false, err
	}
	if whole.queries() > 0 {
		return whole.inQueriesWider(ctx)
	}
	if e, err = i.evidence(ctx, n); e == nil || err != nil || len(e.left) == 0 || e.formula != nil && !e.readsFloats() {
		return nil, false, err
	}
	_, rest, _, err := e.strict(ctx, &arithmetic{wide: true})
	return e, len(rest) == 0, err
}

// tooLarge reports whether an entry has more than blockElements elements and cannot be computed in pieces, such as masked scores of a long prompt. The other
// entries of a trace show as much.
func (t *trial) tooLarge() bool {
	return size(t.i.list.Size(t.node, t.i.env.Passes)) > t.i.block && t.pieces() == 0
}

// firstTokens are the first tokens of an entry of more, as evidence: each has rows of its own, or is a query of an attention. It is nil for any other
// entry.
func (t *trial) firstTokens(ctx context.Context) (*evidence, error) {
	first, err := t.beginning(focusTokens)
	if err != nil {
		return nil, err
	}
	if first.kept == nil {
		if first, err = first.firstQueries(ctx, focusTokens); first == nil || err != nil {
			return nil, err
		}
	}
	_, left, _, err := first.strict(ctx, &arithmetic{})
	if first.formula == nil || err != nil {
		return nil, err
	}
	return &evidence{first, left}, nil
}

// inQueriesWider is givenWider for attention that is computed some queries at a time. It returns the first queries that transformers' arithmetic does not
// explain.
func (t *trial) inQueriesWider(ctx context.Context) (e *evidence, gives bool, err error) {
	gives, err = t.eachBlock(ctx, false, func(part *trial, j *judged) (bool, error) {
		left, _, err := part.explained(ctx, j, &arithmetic{}, j.outside())
		if len(left) == 0 || err != nil {
			return true, err
		}
		if e == nil {
			e = &evidence{part, left}
		}
		if !part.readsFloats() {
			return false, nil
		}
		_, rest, _, err := part.strict(ctx, &arithmetic{wide: true})
		return len(rest) == 0, err
	})
	if e == nil || err != nil || !e.readsFloats() {
		return nil, false, err
	}
	return e, gives, nil
}

// kinds counts the places in a layer that some entries have.
func kinds(of []*evidence) int {
	names := map[string]bool{}
	for _, e := range of {
		names[roleOf(e.entry)] = true
	}
	return len(names)
}

// single reports whether an entry is computed in one step.
func (i *Isolator) single(n order.Node) (bool, error) {
	cut, err := i.list.Cut(i.has, n)
	if err != nil {
		return false, err
	}
	f, err := cut.Formula(i.env.Passes, i.env.DType)
	if errors.Is(err, order.ErrOwn) {
		return false, nil
	}
	return err == nil && f.Single(), err
}

// readsFloats reports whether the entry is computed from a captured tensor of floats. A rotary table is not.
func (t *trial) readsFloats() bool {
	return slices.ContainsFunc(t.formula.Inputs, func(n order.Node) bool {
		rec, ok := t.i.trace.Lookup(n.Pass, t.i.list.At(n).Name)
		return ok && rec.DType.Float()
	})
}
