package plan

import (
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// Tokens are how many tokens the passes have, as far as their input ids are known.
type Tokens struct {
	Past []int // tokens before each pass
	In   []int // tokens of each of those passes
}

// Known reports whether the tokens of a pass are known.
func (t *Tokens) Known(pass int) bool { return pass < len(t.Past) }

// countTokens learns from the input ids, which are never cut, where in the sequence each pass starts.
func countTokens(pair *sides.Pair, passes int) (t Tokens) {
	past := 0
	for pass := range passes {
		rec, ok := pair.Sides[sides.Reference].Trace.Lookup(pass, order.InputIDs)
		if !ok {
			rec, ok = pair.Sides[sides.Local].Trace.Lookup(pass, order.InputIDs)
		}
		n := measure.Elements(rec.Shape)
		if !ok || n > sides.MaxIDs {
			return t
		}
		t.Past, t.In = append(t.Past, past), append(t.In, n)
		past += n
	}
	return t
}

// Shorter returns the length of the longest prefix of passes whose later passes have, in sum, no more tokens than
// the first pass.
func (t *Tokens) Shorter(passes []int) int {
	tokens := 0
	for n, pass := range passes[1:] {
		if !t.Known(pass) || !t.Known(passes[0]) {
			return n + 1
		}
		if tokens += t.In[pass]; tokens > t.In[passes[0]] {
			return n + 1
		}
	}
	return len(passes)
}

// RowPositions returns the place in the sequence of each of the n rows that a side has on the token axis of a pass: what
// the input ids and its scope say, else position_ids. nil when it is not known.
func (p *Plan) RowPositions(side, pass int, rec capture.Record, n int) ([]int64, error) {
	if rec.LastRow && p.Tokens.Known(pass) {
		return []int64{int64(p.Tokens.Past[pass] + p.Tokens.In[pass] - 1)}, nil
	}
	if p.Tokens.Known(pass) {
		rows := p.Scopes.Of[side].Rows(p.Tokens.Past[pass], p.Tokens.In[pass])
		if len(rows) == n {
			at := make([]int64, n)
			for i, row := range rows {
				at[i] = int64(p.Tokens.Past[pass] + row)
			}
			return at, nil
		}
	}
	at, ok, err := sides.Integers(p.Sides[side].Trace, pass, order.PositionIDs)
	if !ok || len(at) != n {
		return nil, err
	}
	return at, nil
}

// CommonRows returns the wanted rows common to both sides, for a tensor narrowed along the token axis: to different
// positions on the two sides, or by this comparison. Both cuts are nil if the rows are unknown. narrowed is false
// if all rows are compared as they lie. The input ids are never narrowed.
func (p *Plan) CommonRows(axes string, pass int, l, r capture.Record) (cuts [2]*measure.Cut, narrowed bool, err error) {
	axis := strings.IndexRune(axes, order.AxisToken)
	wanted := p.Scopes.Of[request].Positions
	if axis < 0 || l.Name == order.InputIDs || !l.LastRow && !r.LastRow && len(wanted) == 0 && p.Scopes.Of[sides.Local].Positions.String() == p.Scopes.Of[sides.Reference].Positions.String() {
		return cuts, false, nil
	}
	posL, err := p.RowPositions(sides.Local, pass, l, l.Shape[axis])
	if err != nil {
		return cuts, true, err
	}
	posR, err := p.RowPositions(sides.Reference, pass, r, r.Shape[axis])
	if err != nil || posL == nil || posR == nil {
		return cuts, true, err
	}
	at := make(map[int64]int, len(posR))
	for i, to := range posR {
		at[to] = i
	}
	cutL, cutR := &measure.Cut{Axis: axis}, &measure.Cut{Axis: axis}
	for i, to := range posL {
		if j, both := at[to]; both && wanted.Has(int(to)) {
			cutL.Rows, cutR.Rows = append(cutL.Rows, i), append(cutR.Rows, j)
		}
	}
	return [2]*measure.Cut{cutL, cutR}, true, nil
}
