package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
)

// leastAlong is the size of an axis along which a slope is told.
const leastAlong = 4

// slopes describes results to which something is added that grows by the same number from one token or key to the next: one number, or one a head or a layer.
func slopes(x *difference) *Description {
	first := &x.results[0]
	for _, letter := range []byte{order.AxisKey, order.AxisToken} {
		at := strings.IndexByte(first.axes, letter)
		if at < 0 {
			continue
		}
		var steps []observed
		for n := range x.results {
			if o, ok := along(&x.results[n], at); ok {
				steps = append(steps, o)
			}
		}
		if len(steps) == 0 {
			continue
		}
		axes := slices.DeleteFunc(axesIn(x.search, steps), func(a axis) bool { return a.made || a.counts == oneOf(letter) })
		for _, set := range append([][]int{nil}, append(single(len(axes)), pairsOf(len(axes))...)...) {
			f := fit{kind: "described.slope"}
			if f.of(steps, axes, set); f.explains() {
				d := descriptionOf(x.search, &f, axes, set, theResult)
				d.Called, d.Like = oneOf(letter), Term{}
				return d
			}
		}
	}
	return nil
}

// pairsOf are sets of two of n axes.
func pairsOf(n int) (all [][]int) {
	for a := range n {
		for b := range a {
			all = append(all, []int{b, a})
		}
	}
	return all
}

// along has the differences of a value from one index of an axis to the next. It is not ok for a short axis.
func along(o *observed, at int) (observed, bool) {
	if len(o.shape) <= at || o.shape[at] < leastAlong {
		return observed{}, false
	}
	stride := product(o.shape[at+1:])
	d := observed{shape: slices.Clone(o.shape), axes: o.axes, e: o.e}
	d.shape[at]--
	for i := range o.want {
		if i/stride%o.shape[at] == o.shape[at]-1 {
			continue
		}
		k := i + stride
		e := o.half[i] + o.half[k]
		if silent(o, i) || silent(o, k) {
			e = anyNumber
		}
		d.value, d.off = append(d.value, o.value[k]-o.value[i]), append(d.off, o.off[i]+o.off[k])
		d.want, d.half = append(d.want, o.want[k]-o.want[i]), append(d.half, e)
	}
	return d, true
}
