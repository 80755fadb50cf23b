package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostMoved is the largest error of a token's position that is looked for.
const mostMoved = 128

// movedPositions describes angles that are right for other positions of the tokens: for each token, the angles of a single position give
// all channels.
func movedPositions(x *difference) *Description {
	if len(edit.StepsOf(x.first.Program, program.Angle)) == 0 {
		return nil
	}
	d, wrong, elements := &Description{Kind: "described.positions", Of: theResult}, map[int]int{}, 0
	for n := range x.results {
		moved, ok := x.movedTokens(&x.results[n])
		if !ok {
			return nil
		}
		first := firstIndex(x.search, &x.results[n], order.AxisToken)
		for t, by := range moved {
			at := first + t
			if was, seen := wrong[at]; seen && was != by {
				return nil
			}
			wrong[at] = by
			if d.Numbers++; by != 0 {
				d.Wrong++
				d.Cases = oneMore(d.Cases, positionWords(at, at+by))
			}
		}
		elements += len(x.results[n].want)
	}
	if d.Wrong == 0 {
		return nil
	}
	d.Explained, d.Elements = elements, elements
	if m, ok := offsetFrom(wrong); ok {
		x.draft(d).proposes = []Mistake{m}
	}
	return d
}

// movedTokens is the error of each token's position. It is not ok if no position gives all elements of a token.
func (x *difference) movedTokens(o *observed) (moved []int, ok bool) {
	axis := strings.IndexByte(o.axes, order.AxisToken)
	if axis < 0 || o.e.Few != nil {
		return nil, false
	}
	kept, err := x.m.values(o.e)
	if x.failed(err) {
		return nil, false
	}
	token := o.along(axis)
	moved, found := make([]int, o.shape[axis]), make([]bool, o.shape[axis])
	for k := 0; k <= 2*mostMoved && slices.Contains(found, false); k++ {
		by := (k + 1) / 2 // 0, 1, −1, 2, −2, ...
		if k%2 == 0 {
			by = -by
		}
		edited := x.apply(Mistake{Kind: "position.offset", Place: positionsSite, N: by}, o.e)
		if edited == nil {
			return nil, false
		}
		v, err := kept.Eval(edited)
		if x.failed(outside(err)) || len(v.Data) != len(o.want) {
			return nil, false
		}
		x.m.work += len(v.Data)
		gives := slices.Repeat([]bool{true}, len(found))
		for i, y := range v.Data {
			if !(math.Abs(y-o.want[i]) <= off(o, i)) {
				gives[token(i)] = false
			}
		}
		for t := range found {
			if gives[t] && !found[t] {
				moved[t], found[t] = by, true
			}
		}
	}
	return moved, !slices.Contains(found, false)
}

// offsetFrom returns the mistake of positions that are off by the same number from some token on. ok is false for positions that follow a
// different rule.
func offsetFrom(wrong map[int]int) (m Mistake, ok bool) {
	from, by := math.MaxInt, 0
	for at, k := range wrong {
		if k != 0 && at < from {
			from, by = at, k
		}
	}
	for at, k := range wrong {
		if at >= from && k != by || at < from && k != 0 {
			return m, false
		}
	}
	return Mistake{Kind: "position.offset-from", Place: positionsSite, N: by, M: from}, true
}
