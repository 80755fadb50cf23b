package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// surroundings answers the questions of a chain about the comparison around it; see [chain.Walk].
type surroundings struct {
	*decided
	measurer *measurer
	by       *Certification
}

// Given reports whether both sides have the same argument of the model. One that is out of scope has no row, and is compared here.
func (s *surroundings) Given(name string, pass int) (bool, error) {
	if v, compared := s.verdicts[capture.Key(pass, name, 0)]; compared {
		return v == Match, nil
	}
	var values [2][]int64
	for side := range values {
		v, ok, err := sides.Integers(s.measurer.plan.Sides[side].Trace, pass, name)
		if !ok && err == nil && name == order.PositionIDs {
			v, ok = s.by.assumed(s.measurer.plan.Mode, side, pass)
		}
		if err != nil || !ok {
			return false, err
		}
		values[side] = v
	}
	return slices.Equal(values[local], values[reference]), nil
}

// Within reports whether an entry is present on both sides, and differs within its limit. For a single trace it is
// always true.
func (s *surroundings) Within(ctx context.Context, pass int, name string) (compared, within bool, err error) {
	pl := s.measurer.plan
	if pl.Mode == sides.Alone {
		return true, true, nil
	}
	i := pl.Index(name)
	if i < 0 || !slices.Contains(pl.Common(), pass) || !pl.Walked(i, pass) {
		return false, false, nil
	}
	l, r, both := pl.Lookup(pass, name)
	if !both {
		return false, false, nil
	}
	p, err := s.measurer.pair(i, pass, l, r)
	if err == nil && p.seen.what == SeenWithin {
		_, err = s.measurer.measure(ctx, p)
	}
	return true, err == nil && p.agrees(), err
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
// continues after the previous pass. The ids themselves are taken as given, since no tensor predicts them. In a
// single trace, other positions are a mistake. If two traces have the same unusual positions, the intended
// positions are unknown, and the tensors show nothing.
func positions(pl *plan.Plan, p *pair) error {
	if p.row.Name != order.PositionIDs || p.seen.what != SeenWithin || !pl.Tokens.Known(p.row.Pass) {
		return nil
	}
	got, ok, err := sides.Integers(pl.Sides[local].Trace, p.row.Pass, order.PositionIDs)
	if err != nil || !ok {
		return err
	}
	want := make([]int64, 0, pl.Tokens.In[p.row.Pass])
	for _, row := range pl.Scopes.Of[local].Rows(pl.Tokens.Past[p.row.Pass], pl.Tokens.In[p.row.Pass]) {
		want = append(want, int64(pl.Tokens.Past[p.row.Pass]+row))
	}
	if slices.Equal(got, want) {
		return nil
	}
	detail := fmt.Sprintf("the positions of %s do not match its tokens in the sequence", capture.Key(p.row.Pass, order.InputIDs, 0))
	if len(got) == len(want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		detail += fmt.Sprintf(": token %d is at %d, not %d", at, got[at], want[at])
	}
	if pl.Mode == sides.Alone {
		p.see(SeenNumbers, "%s", detail)
		return nil
	}
	p.shows = evidence{Untested, detail}
	return nil
}
