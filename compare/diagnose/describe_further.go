package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
)

const (
	leastTurn = 1e-3 // radians that a pair is turned by
	sameTurn  = 0.02 // of the turn, by which angles of one pair may differ
)

// turnedFurther describes results whose pairs of channels have the right length and another angle: by the same angle at all positions, or by one that grows with the position. Pairs are
// halves of the channels, or neighbours.
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

// furtherBy is the description of turns of one kind.
func (x *difference) furtherBy(at int, halves, grows bool) *Description {
	last := len(x.results[0].shape) - 1
	size := x.results[0].shape[last]
	d := &Description{Kind: "described.rotated", Of: theResult}
	if grows {
		d.Kind = "described.rotated-more"
	}
	turned := 0
	for pair := range size / 2 {
		a, b := 2*pair, 2*pair+1
		if halves {
			a, b = pair, pair+size/2
		}
		angle, n, ok := x.turnOf(at, a, b, grows)
		if !ok {
			return nil
		}
		if n == 0 || math.Abs(angle) < leastTurn {
			angle = 0
		} else {
			turned += n
		}
		d.Elements += n
		d.Values = append(d.Values, angle)
	}
	if turned < leastOfFormula || !slices.ContainsFunc(d.Values, func(v float64) bool { return v != 0 }) {
		return nil
	}
	d.Explained, d.Numbers, d.Wrong = d.Elements, len(d.Values), len(d.Values)
	d.Values = d.Values[:min(len(d.Values), mostValues)]
	return d
}

// turnOf is the angle by which a pair is turned further, and how many pairs of elements say it. It is not ok where a length differs, or angles do.
func (x *difference) turnOf(at, a, b int, grows bool) (angle float64, n int, ok bool) {
	tokens := map[int]bool{}
	for r := range x.results {
		o := &x.results[r]
		size := o.shape[len(o.shape)-1]
		for row := 0; row < len(o.want); row += size {
			i, k := row+a, row+b
			u, v, p, q := o.value[i], o.value[k], o.want[i], o.want[k]
			e := off(o, i) + off(o, k)
			right, now := math.Hypot(u, v), math.Hypot(p, q)
			if math.Abs(now-right) > 2*e {
				return 0, 0, false
			}
			if right <= 32*e { // too short to tell an angle
				continue
			}
			position := float64(firstIndex(x.search, o, o.axes[at]) + row/product(o.shape[at+1:])%o.shape[at])
			by := math.Atan2(u*q-v*p, u*p+v*q)
			slack := 4*e/right + sameTurn*math.Abs(angle)
			switch {
			case !grows && n == 0:
				angle = by
			case !grows:
				if math.Abs(math.Remainder(by-angle, 2*math.Pi)) > slack {
					return 0, 0, false
				}
			case position == 0:
				if math.Abs(by) > slack {
					return 0, 0, false
				}
				continue
			case len(tokens) == 0:
				if position != 1 {
					return 0, 0, false
				}
				angle = by
			default:
				if math.Abs(math.Remainder(by-angle*position, 2*math.Pi)) > slack*position {
					return 0, 0, false
				}
			}
			n++
			tokens[int(position)] = true
		}
	}
	return angle, n, len(tokens) >= leastTurned || n == 0
}
