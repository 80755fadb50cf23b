package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// restOfZeros describes results with wrong zeros by the other elements. An example is a softmax that leaves out some keys: the other elements of each row
// have a common factor.
func restOfZeros(x *difference) *Description {
	s, results := x.search, x.results
	zero := func(o *observed, i int) bool { return o.want[i] == 0 && wrongElement(o, i) }
	zeros := 0
	rest := make([]observed, len(results))
	for n := range results {
		o := results[n]
		o.half = slices.Clone(o.half)
		for i := range o.want {
			if zero(&results[n], i) {
				zeros++
				o.half[i] = math.Inf(1)
			}
		}
		rest[n] = o
	}
	if zeros < shownElements {
		return nil
	}
	d := byAxes(s, rest, theResult, edit.Place{Arg: result})
	if d == nil {
		return nil
	}
	s.draft(d).proposes = nil // no proposal has the zeros
	d.Zeros, d.ZerosAt = zeros, within(axesIn(s, results), results, zero)
	return d
}
