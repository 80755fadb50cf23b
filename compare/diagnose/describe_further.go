package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	leastTurn = 1e-3 // radians of the smallest rotation
	sameTurn  = 0.02 // of the rotation: how far the angles of one pair may differ
)

// turnedFurther describes results whose pairs of channels have the right length and a wrong angle. The extra angle is the same at all positions, or grows
// with the position. A pair has one channel of each half, or two neighbours.
func turnedFurther(x *difference) *Description {
	o := &x.results[0]
	last := len(o.shape) - 1
	at := strings.IndexByte(o.axes, order.AxisToken)
	if at < 0 {
		at = strings.IndexByte(o.axes, order.AxisKey)
	}
	if last < 1 || at < 0 || at == last || o.axes[last] != order.AxisChannel || o.shape[last]%2 != 0 || o.shape[last] < 4 {
		return nil
	}
	for _, halves := range []bool{true, false} {
		for _, grows := range []bool{false, true} {
			if d := x.furtherBy(at, halves, grows); d != nil {
				return d
			}
		}
	}
	return nil
}

// furtherBy describes extra rotations of one kind.
func (x *difference) furtherBy(at int, halves, grows bool) *Description {
	last := len(x.results[0].shape) - 1
	size := x.results[0].shape[last]
	d := &Description{Kind: "described.rotated", Of: theResult}
	if grows {
		d.Kind = "described.rotated-more"
	}
	turned, left := 0, 0 // left counts wrong pairs of elements without a measured angle
	for pair := range size / 2 {
		a, b := 2*pair, 2*pair+1
		if halves {
			a, b = pair, pair+size/2
		}
		angle, told, n, ok := x.turnOf(at, a, b, grows)
		if !ok {
			return nil
		}
		if math.Abs(angle) < leastTurn || 4*told < n {
			angle = 0
			for r := range x.results {
				o := &x.results[r]
				for row := 0; row < len(o.want); row += size {
					if wrongElement(o, row+a) || wrongElement(o, row+b) {
						left++
					}
				}
			}
		}
		turned += told
		d.Elements += n
		d.Values = append(d.Values, angle)
	}
	if turned < leastOfFormula || left > turned || !slices.ContainsFunc(d.Values, func(v float64) bool { return v != 0 }) {
		return nil
	}
	d.Explained, d.Numbers, d.Wrong = d.Elements, len(d.Values), len(d.Values)
	d.Values = d.Values[:min(len(d.Values), mostValues)]
	return d
}

// turnOf is the extra angle of a pair of channels. told counts the pairs of elements with an angle that is clearly not 0, and n all pairs of elements. It
// is not ok if lengths or angles do not agree.
func (x *difference) turnOf(at, a, b int, grows bool) (angle float64, told, n int, ok bool) {
	first := true // a growing angle is measured at position 1, a constant angle at any position
	tokens := map[int]bool{}
	each := func(use func(position int, by, slack float64) bool) bool {
		for r := range x.results {
			o := &x.results[r]
			size := o.shape[len(o.shape)-1]
			for row := 0; row < len(o.want); row += size {
				position := firstIndex(x.search, o, o.axes[at]) + row/program.Size(o.shape[at+1:])%o.shape[at]
				u, v, p, q := o.value[row+a], o.value[row+b], o.want[row+a], o.want[row+b]
				e := off(o, row+a) + off(o, row+b)
				right := math.Hypot(u, v)
				if math.Abs(math.Hypot(p, q)-right) > 2*e {
					return false
				}
				if right <= 32*e { // too short to tell an angle
					continue
				}
				if !use(position, math.Atan2(u*q-v*p, u*p+v*q), 4*e/right) {
					return false
				}
			}
		}
		return true
	}
	ok = each(func(position int, by, _ float64) bool {
		if first && (!grows || position == 1) {
			angle, first = by, false
		}
		return true
	})
	if !ok || first {
		return 0, 0, 0, ok && !grows
	}
	ok = each(func(position int, by, slack float64) bool {
		want, turns := angle, 1.0
		if grows {
			turns = float64(position)
			want *= turns
		}
		n++
		tokens[position] = true
		if math.Abs(by) > 2*slack {
			told++
		}
		return math.Abs(math.Remainder(by-want, 2*math.Pi)) <= slack+turns*(slack+sameTurn/10*math.Abs(angle))
	})
	return angle, told, n, ok && len(tokens) >= leastTurned
}
