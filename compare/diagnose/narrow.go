package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// The numbers of a family that give all elements are an interval. An element that a number misses says whether the number is too small or too large, with all
// roundings of the program. Thus the interval is found by halving. The elements that the right number gives count, too: they keep a wrong number from being too far
// from the right one.

const (
	mostDoubled = 40      // doublings of a step
	mostHalved  = 48      // halvings until a number gives all elements
	endHalved   = 6       // halvings of the last step at an end of the interval
	firstStep   = 0x1p-30 // the first step towards an end, as a part of the number
)

// poll asks the elements of some entries about numbers of a family.
type poll struct {
	s       *search
	f       family
	entries []polled
}

// polled is an entry with what a larger number does to its elements.
type polled struct {
	e      *Entry
	some   *program.Some
	leaves func(x program.Value, limit int) ([]int, error)
	y      []float64
	slope  []float64
}

// votes are the elements that a number misses: elements for a larger number, elements for a smaller number, and others.
type votes struct{ larger, smaller, others int }

func (v votes) none() bool { return v == votes{} }

// divided reports whether no number of the family can give all elements.
func (v votes) divided() bool { return v.others > 0 || v.larger > 0 && v.smaller > 0 }

// narrow returns the interval of the numbers that give all elements of some entries, from a number near it. ok is false if the search does not find such a number.
func narrow(s *search, entries []*Entry, f family, x float64) (low, high float64, ok bool, err error) {
	p, err := pollOf(s, entries, f, x)
	if err != nil || len(p.entries) == 0 {
		return 0, 0, false, err
	}
	size := math.Abs(x)
	if size == 0 {
		size = max(math.Abs(f.old), 1)
	}
	inside, ok, err := p.inside(x, size/16)
	if !ok || err != nil {
		return 0, 0, false, err
	}
	if low, err = p.end(inside, -firstStep*size); err != nil {
		return 0, 0, false, err
	}
	high, err = p.end(inside, firstStep*size)
	return low, high, err == nil && !s.stopped, err
}

// pollOf prepares entries for numbers near x.
func pollOf(s *search, entries []*Entry, f family, x float64) (*poll, error) {
	p := &poll{s: s, f: f}
	h := newtonMoves * math.Abs(x)
	if h == 0 {
		h = newtonMoves
	}
	for _, e := range entries {
		e = e.Small()
		of := polled{e: e, leaves: e.Leaves}
		call := e.Call
		call.Emulated, call.Bounds = false, false
		if few := e.Few; few != nil && len(few.Left) > 0 {
			of.some, of.leaves, call.Some = &few.Some, few.Leaves, &few.Some
			of.y, _ = few.Target()
		} else {
			of.y, _ = e.Target()
		}
		var values [2][]float64
		for k, at := range []float64{x, x + h} {
			d := editWith(s, f, e, at)
			if d == nil || s.spent() {
				return &poll{}, s.err
			}
			var err error
			if values[k], err = valueIn(s, d, solving{call: call, y: of.y}); err != nil {
				return &poll{}, outside(err)
			}
		}
		for i, v := range values[0] {
			of.slope = append(of.slope, values[1][i]-v)
		}
		p.entries = append(p.entries, of)
	}
	return p, nil
}

// votes asks about a number. It stops once the elements are divided.
func (p *poll) votes(x float64) (v votes, err error) {
	for _, of := range p.entries {
		d := editWith(p.s, p.f, of.e, x)
		if d == nil || p.s.spent() {
			return votes{others: 1}, p.s.err
		}
		p.s.tried++
		k, err := p.s.m.values(of.e)
		if err != nil {
			return v, err
		}
		got, err := k.EvalSome(d, of.some)
		if err != nil {
			return votes{others: 1}, outside(err)
		}
		left, err := of.leaves(got, len(of.y)+1)
		if err != nil {
			return v, err
		}
		for _, i := range left {
			switch toward := of.slope[i] * (of.y[i] - got.Data[i]); {
			case toward > 0:
				v.larger++
			case toward < 0:
				v.smaller++
			default:
				v.others++
			}
		}
		if v.divided() {
			break
		}
	}
	return v, nil
}

// inside finds a number that gives all elements. A step from x is doubled until the elements vote for the other direction, then halved.
func (p *poll) inside(x, step float64) (float64, bool, error) {
	at, err := p.votes(x)
	if at.none() || at.divided() || err != nil {
		return x, at.none() && err == nil, err
	}
	if at.smaller > 0 {
		step = -step
	}
	from, to := x, x
	for range mostDoubled {
		to = from + step
		v, err := p.votes(to)
		if v.none() || v.divided() || err != nil {
			return to, v.none() && err == nil, err
		}
		if (v.smaller > 0) != (at.smaller > 0) {
			break
		}
		from, step = to, 2*step
	}
	for range mostHalved {
		middle := from/2 + to/2
		v, err := p.votes(middle)
		if v.none() || v.divided() || err != nil {
			return middle, v.none() && err == nil, err
		}
		if (v.smaller > 0) == (at.smaller > 0) {
			from = middle
		} else {
			to = middle
		}
	}
	return 0, false, nil
}

// end returns the last number that was found to give all elements, in the direction of a step from such a number.
func (p *poll) end(inside, step float64) (float64, error) {
	beyond := inside
	for range mostDoubled {
		beyond = inside + step
		v, err := p.votes(beyond)
		if err != nil {
			return inside, err
		}
		if !v.none() {
			break
		}
		inside, step = beyond, 2*step
	}
	for range endHalved {
		middle := inside/2 + beyond/2
		v, err := p.votes(middle)
		if err != nil {
			return inside, err
		}
		if v.none() {
			inside = middle
		} else {
			beyond = middle
		}
	}
	return inside, nil
}
