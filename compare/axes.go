package compare

import (
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// axesOf returns the axis letters of an entry on one side, empty when they are not known: what the trace declares, else
// what the order says. Letters that do not fit the number of axes say nothing.
func (p *plan) axesOf(side int, e *order.Entry, rank int) string {
	axes := e.Axes
	if own, ok := p.sides[side].m.Axes[e.Name]; ok {
		axes = strings.ReplaceAll(own, " ", "")
	}
	if len(axes) != rank {
		return ""
	}
	return axes
}

// maxIDs bounds the token ids, or positions, of a pass that are read into memory: far more than any context has.
const maxIDs = 1 << 24

// integers reads a whole tensor as int64s; false when it is not one of integers, or too long.
func integers(t *capture.Trace, pass int, name string) ([]int64, bool, error) {
	rec, ok := t.Lookup(pass, name)
	if !ok || rec.DType.Float() || measure.Elements(rec.Shape) > maxIDs {
		return nil, false, nil
	}
	data, err := t.Read(rec)
	if err != nil {
		return nil, false, err
	}
	values := make([]float64, measure.Elements(rec.Shape))
	if err := floats.Decode(values, rec.DType, data.Data); err != nil {
		return nil, false, err
	}
	ids := make([]int64, len(values))
	for i, v := range values {
		// No id or position reaches 2^53, where float64 stops being exact; a wild one only has to differ.
		ids[i] = int64(max(-1<<53, min(v, 1<<53)))
	}
	return ids, true, nil
}

// rowPositions returns the place in the sequence of each of the n rows that a side has on the token axis of a pass: what
// the input ids and its scope say, else position_ids. nil when it is not known.
func (w *walker) rowPositions(side, pass int, rec capture.Record, n int) ([]int64, error) {
	if p := w.plan; rec.LastRow && pass < len(p.past) {
		return []int64{int64(p.past[pass] + p.tokens[pass] - 1)}, nil
	}
	if p := w.plan; pass < len(p.past) {
		rows := p.scopes[side].Rows(p.past[pass], p.tokens[pass])
		if len(rows) == n {
			at := make([]int64, n)
			for i, row := range rows {
				at[i] = int64(p.past[pass] + row)
			}
			return at, nil
		}
	}
	at, ok, err := integers(w.sides[side].trace, pass, order.PositionIDs)
	if !ok || len(at) != n {
		return nil, err
	}
	return at, nil
}

// common returns, for a tensor whose token axis was narrowed to different positions on the two sides, or is narrowed by
// this comparison, the rows that both have and that are wanted; for one with cached keys, their order. Both are nil where
// all rows are compared as they lie. The input ids are never narrowed.
func (w *walker) common(axes string, pass int, l, r capture.Record) (cutL, cutR *measure.Cut, err error) {
	axis := strings.IndexRune(axes, order.AxisToken)
	wanted := w.plan.scopes[2].Positions
	if axis < 0 || l.Name == order.InputIDs || !l.LastRow && !r.LastRow && len(wanted) == 0 && w.plan.scopes[local].Positions.String() == w.plan.scopes[reference].Positions.String() {
		return w.logical(pass, l, r)
	}
	posL, err := w.rowPositions(local, pass, l, l.Shape[axis])
	if err != nil {
		return nil, nil, err
	}
	posR, err := w.rowPositions(reference, pass, r, r.Shape[axis])
	if err != nil || posL == nil || posR == nil {
		return nil, nil, err
	}
	at := make(map[int64]int, len(posR))
	for i, p := range posR {
		at[p] = i
	}
	cutL, cutR = &measure.Cut{Axis: axis}, &measure.Cut{Axis: axis}
	for i, p := range posL {
		if j, both := at[p]; both && wanted.Has(int(p)) {
			cutL.Rows, cutR.Rows = append(cutL.Rows, i), append(cutR.Rows, j)
		}
	}
	return cutL, cutR, nil
}

// expected is the dtype that the order gives an entry in a trace of a model of some dtype; 0 when it is not known.
func expected(e *order.Entry, model hooks.DType) hooks.DType {
	if e.DType == "" {
		return model
	}
	d, err := hooks.ParseDType(e.DType)
	if err != nil {
		return 0
	}
	return d
}
