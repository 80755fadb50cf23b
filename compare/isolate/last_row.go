package isolate

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// lastRow reports whether the trace has the row of the last token alone of a node.
func (i *Isolator) lastRow(n order.Node) bool {
	rec, ok := i.trace.Lookup(n.Pass, i.list.Entries[n.Entry].Name)
	return ok && rec.LastRow
}

// TokenAxis is the axis of an entry's tokens; −1 where it has none.
func TokenAxis(e *order.Entry) int {
	return strings.IndexRune(strings.ReplaceAll(e.Axes, " ", ""), order.AxisToken)
}

// byRows reports whether each row of a cut is computed from the same row of everything else in it: all have a row a token, in one pass,
// and none has keys. Of a recorded program no part of the rows can be computed: each size in it is that of all.
func (i *Isolator) byRows(n order.Node, cut *order.Plan) bool {
	return !i.list.IsRecorded() && !slices.ContainsFunc(slices.Concat(cut.Steps, cut.Leaves), func(of order.Node) bool {
		axes := i.list.At(of).Axes
		return of.Pass != n.Pass || strings.Count(axes, string(order.AxisToken)) != 1 || strings.ContainsRune(axes, order.AxisKey)
	})
}

// keepRows leaves some rows of what a trial is computed from.
func (t *Trial) keepRows(keep []int) {
	for k, node := range t.Formula.Inputs {
		e := t.Isolator.list.At(node)
		axis := TokenAxis(e)
		if len(t.Call.In[k].Shape) != len(e.Shape) {
			axis-- // one stream of a stack
		}
		t.Call.In[k] = rowsOf(t.Call.In[k], axis, keep)
	}
	t.Tokens = len(keep)
}

// lastRows reads what a trial of the last row is computed from.
func (t *Trial) lastRows(read func(order.Node) (program.Value, error)) func(order.Node) (program.Value, error) {
	return func(n order.Node) (program.Value, error) {
		v, err := read(n)
		if err != nil || t.Isolator.lastRow(n) {
			return v, err
		}
		return rowsOf(v, TokenAxis(t.Isolator.list.At(n)), []int{t.Isolator.env.Passes[n.Pass].Tokens - 1}), nil
	}
}
