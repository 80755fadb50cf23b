package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	leastTurned  = 4  // tokens in which two channels turn together, at least
	mostChannels = 96 // of a token, among which pairs are searched for
)

// turnedPairs describes rotations of wrong pairs of channels: channels of two heads, or neighbours instead of halves. Two channels turn together if their
// length is the same before and after the rotation, at all tokens.
func turnedPairs(x *difference) *Description {
	s, results := x.search, x.results
	if !slices.ContainsFunc(s.first.Program.Steps, func(st program.Step) bool { return st.Prim == program.Neg || st.Prim == program.Sub }) {
		return nil
	}
	head, token := slices.Index([]byte(results[0].axes), order.AxisHead), slices.Index([]byte(results[0].axes), order.AxisToken)
	if token < 0 || head < 0 || !strings.HasSuffix(results[0].axes, string(order.AxisChannel)) {
		return nil
	}
	for _, b := range x.bases()[1:] {
		p := pairing{results: results, values: b.values, head: head, token: token}
		if d := p.description(b.of); d != nil {
			return d
		}
	}
	return nil
}

// pairing looks for channels that turn together.
type pairing struct {
	results     []observed
	values      [][]float64
	head, token int
}

// description is nil if too few pairs of channels keep their length, or if all pairs are pairs of the formula.
func (p *pairing) description(of Term) *Description {
	o := &p.results[0]
	last := len(o.shape) - 1
	heads, size := o.shape[p.head], o.shape[last]
	channels := heads * size
	if channels > mostChannels || channels < 4 {
		return nil
	}
	d := &Description{Kind: "described.turned", Of: of}
	other, unknown := 0, 0
	for a := range channels {
		now, right := p.partner(a, channels, false), p.partner(a, channels, true)
		if now < 0 || right < 0 {
			unknown++
			continue
		}
		if d.Elements++; now == right {
			continue
		}
		d.Explained++
		if other++; now > a && len(d.Cases) <= mostValues {
			d.Cases = append(d.Cases, pairWords(a/size, a%size, now/size, now%size, heads > 1))
		}
	}
	if other == 0 || 2*unknown > channels {
		return nil
	}
	d.Wrong, d.Numbers = other/2, channels/2
	return d
}

// partner is the only channel that turns together with channel a at all tokens, in the trace's tensor or in the right result; −1 for no channel or
// several.
func (p *pairing) partner(a, channels int, right bool) int {
	found := -1
	for b := range channels {
		if b == a || !p.turn(a, b, right) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = b
	}
	return found
}

// turn reports whether two channels keep their length at all tokens, and change at several of them.
func (p *pairing) turn(a, b int, right bool) bool {
	changed := 0
	for r := range p.results {
		o := &p.results[r]
		x, y := p.values[r], o.want
		if right {
			y = o.value
		}
		for t := range o.shape[p.token] {
			i, k := p.index(o, a, t), p.index(o, b, t)
			e := off(o, i)*(1+math.Abs(y[i])) + off(o, k)*(1+math.Abs(y[k]))
			before, after := x[i]*x[i]+x[k]*x[k], y[i]*y[i]+y[k]*y[k]
			if math.Abs(after-before) > 4*e {
				return false
			}
			if math.Abs(y[i]-x[i]) > off(o, i)+math.Abs(x[i])/64 {
				changed++
			}
		}
	}
	return changed >= leastTurned
}

// index is the element of a channel at a token. Channels are numbered over all heads.
func (p *pairing) index(o *observed, channel, token int) int {
	last := len(o.shape) - 1
	i := channel % o.shape[last]
	i += channel / o.shape[last] * program.Size(o.shape[p.head+1:])
	return i + token*program.Size(o.shape[p.token+1:])
}
