package isolate

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
)

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
