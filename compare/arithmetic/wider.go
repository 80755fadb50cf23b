package arithmetic

import (
	"context"
	"errors"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// The trace's entries are looked at until widerEntries are left by transformers' arithmetic, or widerLooked have been looked at. If
// these show too little, and wider inputs give one at least, entries of a single step are, until they show enough: they cost least.
const (
	widerEntries = 32
	widerLooked  = 256
)

// ComputedWider reports whether a float32 trace was computed in double precision and stored as float32. It is a property of the whole trace, never of an
// entry, and has two conditions. Inputs within half a unit of what was captured, in transformers' arithmetic, give most of the entries of most places in a
// layer that the captured inputs do not give: places are counted, since a mistake in one place makes wrong entries in all layers and passes. And in two
// places at least, they give as many elements and rows as any arithmetic has to show of entries that are a single step, such as a sum of two tensors: these
// have nothing else to be computed from. In 16 bits half a unit hides mistakes, and nothing is asked.
func (k *Forms) ComputedWider(ctx context.Context) (bool, error) {
	if k.I.Env().DType != hooks.F32 {
		return false, nil
	}
	return k.wide.Get(ctx, struct{}{}, func(ctx context.Context) (bool, error) { return lookWider(ctx, k.I) })
}

func lookWider(ctx context.Context, i *isolate.Isolator) (bool, error) {
	var nodes []order.Node
	forms := i.CapturedForms()
	for _, name := range forms.Names {
		nodes = append(nodes, forms.Nodes[name]...)
	}
	left, explained, in := 0, 0, votes{}
	var given []*isolate.Evidence
	look := func(n order.Node) error {
		e, gives, err := GivenWider(ctx, i, n)
		if e == nil || err != nil {
			return err
		}
		left++
		in.add(e, gives)
		if gives {
			explained++
			if edit.Single(e.Formula.Program) {
				given = append(given, e)
			}
		}
		return nil
	}
	shown := func() bool { return in.most() && proven(given) && kinds(given) >= thresholds.Wider.Places }
	nodes = isolate.Permuted(nodes, isolate.Scattered(len(nodes)))
	some := min(widerLooked, len(nodes))
	for looked := 0; looked < some && left < widerEntries; looked++ {
		if err := look(nodes[looked]); err != nil {
			return false, err
		}
	}
	for _, n := range nodes[some:] {
		if explained == 0 || shown() {
			break
		}
		if single, err := isSingle(i, n); err != nil {
			return false, err
		} else if !single {
			continue
		}
		if err := look(n); err != nil {
			return false, err
		}
	}
	return shown(), nil
}

// votes has two counts for each place in a layer: entries that transformers' arithmetic does not explain, and how many of these wider inputs give.
type votes map[string]*struct{ left, given int }

func (v votes) add(e *isolate.Evidence, given bool) {
	role := isolate.RoleOf(e.Entry)
	if v[role] == nil {
		v[role] = &struct{ left, given int }{}
	}
	if v[role].left++; given {
		v[role].given++
	}
}

// most reports whether wider inputs give most of the entries of most places.
func (v votes) most() bool {
	places := 0
	for _, of := range v {
		if mostOf(of.given, of.left) {
			places++
		}
	}
	return mostOf(places, len(v))
}

// GivenWider returns an entry that transformers' arithmetic does not explain, and whether wider inputs explain the entry. For any other entry it returns nil.
// It returns nil for an entry without inputs of floats, for an entry that is too large, and for an entry whose first tokens are explained. If wider inputs do
// not explain the first tokens, givenWider does not look at other tokens. Attention of a long prompt is computed some queries at a time, and givenWider returns
// it with some queries.
func GivenWider(ctx context.Context, i *isolate.Isolator, n order.Node) (e *isolate.Evidence, gives bool, err error) {
	whole, err := i.Unread(n, i.Has)
	if isolate.Lacking(err) || err == nil && TooLarge(whole) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	if e, err = firstTokens(ctx, whole); e != nil && err == nil {
		if len(e.Left) == 0 || !readsFloats(e.Trial) {
			return nil, false, nil
		}
		if _, rest, _, err := e.Judge(ctx, &isolate.Arithmetic{Wide: true}); len(rest) > 0 || err != nil {
			return e, false, err
		}
	}
	if err != nil {
		return nil, false, err
	}
	if whole.Queries() > 0 {
		return inQueriesWider(ctx, whole)
	}
	if e, err = i.Evidence(ctx, n); e == nil || err != nil || len(e.Left) == 0 || e.Formula != nil && !readsFloats(e.Trial) {
		return nil, false, err
	}
	_, rest, _, err := e.Judge(ctx, &isolate.Arithmetic{Wide: true})
	return e, len(rest) == 0, err
}

// TooLarge reports whether an entry has more than blockElements elements and cannot be computed in pieces, such as masked scores of a long prompt. The other
// entries of a trace show as much.
func TooLarge(t *isolate.Trial) bool {
	return program.Size(t.Isolator.List().Size(t.Node, t.Isolator.Env().Passes)) > t.Isolator.Block && t.Pieces() == 0
}

// firstTokens are the first tokens of an entry of more, as evidence: each has rows of its own, or is a query of an attention. It is nil for any other
// entry.
func firstTokens(ctx context.Context, t *isolate.Trial) (*isolate.Evidence, error) {
	first, err := isolate.Beginning(t, isolate.FocusTokens)
	if err != nil {
		return nil, err
	}
	if first.Rows() == nil {
		if first, err = isolate.FirstQueries(ctx, first, isolate.FocusTokens); first == nil || err != nil {
			return nil, err
		}
	}
	_, left, _, err := first.Judge(ctx, &isolate.Arithmetic{})
	if first.Formula == nil || err != nil {
		return nil, err
	}
	return &isolate.Evidence{Trial: first, Left: left}, nil
}

// inQueriesWider is givenWider for attention that is computed some queries at a time. It returns the first queries that transformers' arithmetic does not
// explain.
func inQueriesWider(ctx context.Context, t *isolate.Trial) (e *isolate.Evidence, gives bool, err error) {
	gives, err = isolate.EachBlock(ctx, t, false, func(part *isolate.Trial, j *isolate.Judgement) (bool, error) {
		left, _, err := part.Unexplained(ctx, j, &isolate.Arithmetic{}, j.Outside())
		if len(left) == 0 || err != nil {
			return true, err
		}
		if e == nil {
			e = &isolate.Evidence{Trial: part, Left: left}
		}
		if !readsFloats(part) {
			return false, nil
		}
		_, rest, _, err := part.Judge(ctx, &isolate.Arithmetic{Wide: true})
		return len(rest) == 0, err
	})
	if e == nil || err != nil || !readsFloats(e.Trial) {
		return nil, false, err
	}
	return e, gives, nil
}

// kinds counts the places in a layer that some entries have.
func kinds(of []*isolate.Evidence) int {
	names := map[string]bool{}
	for _, e := range of {
		names[isolate.RoleOf(e.Entry)] = true
	}
	return len(names)
}

// isSingle reports whether an entry is computed in one step.
func isSingle(i *isolate.Isolator, n order.Node) (bool, error) {
	cut, err := i.List().Cut(i.Has, n)
	if err != nil {
		return false, err
	}
	f, err := cut.Formula(i.Env().Passes, i.Env().DType)
	if errors.Is(err, order.ErrOwn) {
		return false, nil
	}
	return err == nil && edit.Single(f.Program), err
}

// readsFloats reports whether the entry is computed from a captured tensor of floats. A rotary table is not.
func readsFloats(t *isolate.Trial) bool {
	return slices.ContainsFunc(t.Formula.Inputs, func(n order.Node) bool {
		rec, ok := t.Isolator.Trace().Lookup(n.Pass, t.Isolator.List().At(n).Name)
		return ok && rec.DType.Float()
	})
}
