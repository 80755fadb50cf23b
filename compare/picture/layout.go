package picture

import (
	"strings"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// layout maps an element of a tensor to its cell. Elements are counted as outer·down·across: the token axis goes down, else the second last
// axis; later axes go across, and earlier axes are pooled.
type layout struct {
	down, across         int // indexes
	rows, columns        int // cells
	downName, acrossName string
	heads                int     // 0: there is no axis of heads
	headStride           int     // elements of a head
	column               []int32 // the cell of each index across
}

func newLayout(shape []int, axes string) *layout {
	at := strings.IndexByte(axes, byte(order.AxisToken))
	if at < 0 || at >= len(shape) {
		at = len(shape) - 2
	}
	l := &layout{down: 1, across: 1, downName: "all", acrossName: "element"}
	if at >= 0 {
		l.down, l.downName = shape[at], measure.AxisName(axes, at)
	}
	if at+1 >= 0 && at+1 < len(shape) {
		l.across = measure.Elements(shape[at+1:])
		var names []string
		for i := at + 1; i < len(shape); i++ {
			if shape[i] > 1 {
				names = append(names, measure.AxisName(axes, i))
			}
		}
		if names != nil {
			l.acrossName = strings.Join(names, ", ")
		}
	}
	l.rows, l.columns = min(l.down, largeRows), min(l.across, largeColumns)
	l.column = make([]int32, l.across)
	for j := range l.column {
		l.column[j] = int32(j * l.columns / l.across)
	}
	if h := strings.IndexByte(axes, byte(order.AxisHead)); h >= 0 && h < len(shape) && shape[h] > 1 && shape[h] <= maxHeads {
		l.heads, l.headStride = shape[h], measure.Elements(shape[h+1:])
	}
	return l
}

// run is the place of element i, and how many elements from there on lie in the same row and head.
func (l *layout) run(i int) (row, across, head, n int) {
	across = i % l.across
	row = i / l.across % l.down * l.rows / l.down
	n = l.across - across
	if l.heads > 0 {
		head = i / l.headStride % l.heads
		n = min(n, l.headStride-i%l.headStride)
	}
	return row, across, head, n
}
