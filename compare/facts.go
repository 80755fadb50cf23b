package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// facts are what the pairs of a comparison show before any entry is certified; see [chain.Facts]. They depend on the two traces only, and on nothing that
// the walk has decided. A chain may ask for the facts of an entry that the walk has not reached: the pair is then measured, and waits for the walk.
type facts struct {
	*measurer
	by      *Certification
	known   map[string]chain.Fact // by key
	waiting map[string]*measured  // by key
}

// measured is a pair, and the sums over its tensors; the sums are nil for tensors of different shapes. misplaced says that position_ids do not
// match the token ids, or is empty.
type measured struct {
	pair      *pair
	sums      *measure.Sums
	misplaced string
}

func newFacts(m *measurer, by *Certification) *facts {
	return &facts{measurer: m, by: by, known: map[string]chain.Fact{}, waiting: map[string]*measured{}}
}

// look returns the measured pair of one firing of an entry. If both sides have the same unusual positions, the intended positions are unknown,
// and the tensors show nothing.
func (f *facts) look(ctx context.Context, i, pass int, l, r capture.Record) (*pair, error) {
	at := key(l)
	got := f.waiting[at]
	if delete(f.waiting, at); got == nil {
		var err error
		if got, err = f.measured(ctx, i, pass, l, r); err != nil {
			return nil, err
		}
	}
	if err := f.remarks(ctx, got.pair, got.sums); err != nil {
		return nil, err
	}
	if got.misplaced != "" && f.plan.Mode != sides.Alone {
		got.pair.shows = evidence{Untested, got.misplaced}
	}
	return got.pair, nil
}

// measured measures a pair, and keeps the facts. In a single trace, unusual positions are a mistake.
func (f *facts) measured(ctx context.Context, i, pass int, l, r capture.Record) (*measured, error) {
	p, err := f.pair(i, pass, l, r)
	if err != nil {
		return nil, err
	}
	got := &measured{pair: p}
	if p.seen.what == SeenWithin {
		if got.sums, err = f.measure(ctx, p); err != nil {
			return nil, err
		}
	}
	if got.misplaced, err = f.positions(p, l); err != nil {
		return nil, err
	}
	if got.misplaced != "" && f.plan.Mode == sides.Alone {
		p.see(SeenNumbers, "%s", got.misplaced)
	}
	fact := chain.Fact{Compared: true, Within: p.agrees(), Same: p.seen.what == SeenWithin && p.printed() == nil}
	if g := p.row.Gate; g.Tolerant() {
		fact.Limit = float64(g.Checks[0].Limit)
	}
	f.known[key(l)] = fact
	return got, nil
}

// key is the key of a row with a local tensor.
func key(l capture.Record) string { return capture.Key(l.Pass, l.Name, l.Firing) }

// Of returns the facts of the first firing of an entry.
func (f *facts) Of(ctx context.Context, pass int, name string) (chain.Fact, error) {
	if f.plan.Mode != sides.Alone {
		return f.of(ctx, pass, name)
	}
	_, _, compared := f.compared(pass, name)
	return chain.Fact{Compared: compared, Within: true}, nil
}

// of measures the first firing of an entry, unless it is measured already.
func (f *facts) of(ctx context.Context, pass int, name string) (chain.Fact, error) {
	l, r, compared := f.compared(pass, name)
	if !compared {
		return chain.Fact{}, nil
	}
	at := key(l)
	if fact, ok := f.known[at]; ok {
		return fact, nil
	}
	got, err := f.measured(ctx, f.plan.Index(name), pass, l, r)
	if err != nil {
		return chain.Fact{}, err
	}
	f.waiting[at] = got
	return f.known[at], nil
}

// compared returns the records of the first firing of an entry, and whether the walk makes a row of them.
func (f *facts) compared(pass int, name string) (l, r capture.Record, compared bool) {
	i := f.plan.Index(name)
	l, r, both := f.plan.Lookup(pass, name)
	return l, r, both && i >= 0 && slices.Contains(f.plan.Common(), pass) && f.plan.Walked(i, pass)
}

// Given reports whether an argument of the model has the same values on both sides. An argument that is out of scope has no row: all its values are
// compared.
func (f *facts) Given(ctx context.Context, pass int, name string) (bool, error) {
	if fact, err := f.of(ctx, pass, name); fact.Compared || err != nil {
		return fact.Same, err
	}
	var values [2][]int64
	for side := range values {
		v, ok, err := sides.Integers(f.plan.Sides[side].Trace, pass, name)
		if !ok && err == nil && name == order.PositionIDs {
			v, ok = f.by.assumed(f.plan.Mode, side, pass)
		}
		if err != nil || !ok {
			return false, err
		}
		values[side] = v
	}
	return slices.Equal(values[local], values[reference]), nil
}

// assumed are where the tokens of a pass are taken to stand on a side that does not say so; ok is false where it does, or nothing of it is
// certified.
func (o *Certification) assumed(m sides.Mode, side, pass int) (positions []int64, ok bool) {
	i := o.Isolator
	if side == reference && m != sides.Alone {
		i = o.ReferenceIsolator
	}
	if i == nil {
		return nil, false
	}
	return i.AssumedPositions(pass)
}

// positions checks position_ids against the number of token ids: the first token has position 0, and each pass
// continues after the previous pass. It returns a sentence about other positions, or "". The ids themselves are taken as given, since no tensor
// predicts them. Of a single trace that is certified, the isolator knows a wrong number of positions.
func (f *facts) positions(p *pair, l capture.Record) (misplaced string, err error) {
	pl := f.plan
	_, argument := p.entry.Op.(op.Given)
	if !argument || l.Name != order.PositionIDs || l.Firing > 0 || p.seen.what != SeenWithin || !pl.Tokens.Known(l.Pass) {
		return "", nil
	}
	got, ok, err := sides.Integers(pl.Sides[local].Trace, l.Pass, order.PositionIDs)
	if err != nil || !ok {
		return "", err
	}
	var want []int64
	for _, row := range pl.Scopes.Of[local].Rows(pl.Tokens.Past[l.Pass], pl.Tokens.In[l.Pass]) {
		want = append(want, int64(pl.Tokens.Past[l.Pass]+row))
	}
	misplaced = fmt.Sprintf("the positions of %s do not match its tokens in the sequence", capture.Key(l.Pass, order.InputIDs, 0))
	switch {
	case slices.Equal(got, want):
		return "", nil
	case len(got) == len(want):
		at := 0
		for got[at] == want[at] {
			at++
		}
		misplaced += fmt.Sprintf(": token %d is at %d, not %d", at, got[at], want[at])
	case pl.Mode == sides.Alone && f.by.Isolator != nil:
		return "", nil
	}
	return misplaced, nil
}
