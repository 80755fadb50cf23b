package isolate

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// region is the part of an entry computed by a trial. A part is computed from the same numbers in the same order as
// the whole, with the same bits. A few attention queries need the whole inputs, all keys among them, and only the result is
// a part: [program.Some], which the call has.
type region struct {
	// rows are the computed tokens, with the same rows of all inputs; nil for all tokens.
	rows []int
	// columns are those that are computed of the linear operation at the end of the cut; nil for all.
	columns []int
}

// whole reports whether all tokens are computed.
func (r region) whole() bool { return r.rows == nil }

// passes returns the passes of a trace, with pass in reduced to the tokens of the region.
func (r region) passes(all []order.Pass, in int) []order.Pass {
	if r.whole() {
		return all
	}
	passes := slices.Clone(all)
	passes[in].Tokens = len(r.rows)
	return passes
}

// Whole reports whether the trial computes all tokens of its entry.
func (t *Trial) Whole() bool { return t.part.whole() }

// Rows returns the tokens computed by a trial; nil for all tokens of the pass or of the trace.
func (t *Trial) Rows() []int {
	if t.lastOnly {
		return nil
	}
	return t.part.rows
}

// Passes are those of the trace, with the tokens of the region in the entry's own.
func (t *Trial) Passes() []order.Pass { return t.part.passes(t.Isolator.env.Passes, t.Node.Pass) }

// readPart reads the rows of the region of what the entry is computed from. Read reads what was not captured, and all of a trial of the last row.
func (t *Trial) readPart(read func(order.Node) (program.Value, error)) func(order.Node) (program.Value, error) {
	i := t.Isolator
	return func(n order.Node) (program.Value, error) {
		if !t.lastOnly && i.Has(n) {
			v, err := readRowsOf(i, n, t.part.rows)
			return withLost(i, n, v), err
		}
		v, err := read(n)
		if err != nil || t.lastOnly && i.lastRow(n) {
			return v, err
		}
		return rowsOf(v, TokenAxis(i.list.At(n)), t.part.rows), nil
	}
}

// keepRows leaves some rows of what a prepared trial is computed from.
func keepRows(t *Trial, keep []int) {
	for k, node := range t.Formula.Inputs {
		e := t.Isolator.list.At(node)
		axis := TokenAxis(e)
		if len(t.Call.In[k].Shape) != len(e.Shape) {
			axis-- // one stream of a stack
		}
		t.Call.In[k] = rowsOf(t.Call.In[k], axis, keep)
	}
	t.part.rows = keep
}

// TokenAxis is the axis of an entry's tokens; −1 where it has none.
func TokenAxis(e *order.Entry) int {
	return strings.IndexRune(strings.ReplaceAll(e.Axes, " ", ""), order.AxisToken)
}

// byRows reports whether each row of a cut is computed from the same row of everything else in it: all have a row a token, in one pass,
// and none has keys. Of a recorded program no part of the rows can be computed: each size in it is that of all.
func byRows(i *Isolator, n order.Node, cut *order.Plan) bool {
	return !i.list.IsRecorded() && !slices.ContainsFunc(slices.Concat(cut.Steps, cut.Leaves), func(of order.Node) bool {
		axes := i.list.At(of).Axes
		return of.Pass != n.Pass || strings.Count(axes, string(order.AxisToken)) != 1 || strings.ContainsRune(axes, order.AxisKey)
	})
}
