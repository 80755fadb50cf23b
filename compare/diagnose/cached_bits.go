package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// packing is how what is kept in a cache may be stored in a few bits: as whole numbers of a step, which some elements share.
type packing struct {
	kind  Kind
	bits  int
	scale Term    // what shares a step
	most  float64 // the largest whole number
	step  float64 // the same for all; 0 for one that follows from the largest number
	apart func(axis, tokens, last int) bool
	// from is the token whose numbers the step follows from, where it is not each its own: the newest, or the first of the cache.
	from   int
	ranged bool // from the least number to the greatest, not around 0
	whole  bool // the newest token too
	inside bool // what is computed on the way is not rounded to the model's dtype
}

const (
	eachToken = iota
	newestToken
	firstToken
)

// packings are those that are tried.
func packings() []packing {
	var all []packing
	for _, g := range []struct {
		scale TermKind
		token bool
		apart func(axis, tokens, last int) bool
	}{
		{ScalesOfTokensAndHeads, true, func(axis, _, last int) bool { return axis != last }},
		{ScalesOfTokens, true, func(axis, tokens, _ int) bool { return axis == tokens }},
		{ScalesOfHeads, false, func(axis, tokens, last int) bool { return axis != last && axis != tokens }},
		{ScalesOfChannels, false, func(axis, tokens, _ int) bool { return axis != tokens }},
		{OneScale, false, func(int, int, int) bool { return false }},
	} {
		for _, bits := range []int{8, 4} {
			p := packing{kind: "cache.rounded", bits: bits, scale: Term{Kind: g.scale}, most: math.Ldexp(1, bits-1) - 1, apart: g.apart}
			all = append(all, p)
			ranged := p
			ranged.kind, ranged.ranged, ranged.most = "cache.rounded-between", true, 2*p.most+1
			all = append(all, ranged)
			if g.token {
				continue
			}
			p.kind, p.from = "cache.rounded-as-the-newest", newestToken
			all = append(all, p)
			p.kind, p.from = "cache.rounded-as-the-first", firstToken
			all = append(all, p)
		}
	}
	return all
}

// usualSteps are fixed scales that are tried where the numbers of a cache are not to be seen.
var usualSteps = []float64{0.05, 0.1, 0.01, 0.02, 0.5, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 127}

// cachedBits tries caches that are kept in a few bits. What was captured when it was new has all of them.
func (s *search) cachedBits() error {
	for _, role := range s.cachedRoles(s.first) {
		all := packings()
		for _, n := range s.fixedSteps() {
			all = append(all, packing{kind: "cache.rounded-to-multiples", most: 127, step: n.value, apart: func(int, int, int) bool { return false }})
		}
		for _, p := range all {
			for _, whole := range []bool{false, true} {
				for _, inside := range []bool{false, true} {
					if whole && p.from != eachToken || inside && s.first.Call.DType == hooks.F32 {
						continue
					}
					p := p // the edit is made again after the search has gone on
					p.whole, p.inside = whole, inside
					m := Mistake{Kind: p.kind, Place: cacheSite, Of: cachedTerm(role), By: p.scale, N: p.bits}
					h := hypothesis{
						class: program.Inserted, of: fmt.Sprint(p.kind, role, p.scale.Kind, p.bits, short(p.step)), make: func(e *Entry) *program.Edited { return s.packedCache(e, role, p) },
						say: func(*Entry) Name { return m.name() },
					}
					if p.step > 0 {
						h.solved, m.X = 1, some(p.step)
					}
					if err := s.try(h); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// fixedSteps are the steps of which what is left may be multiples: those that are solved where the entry is a cache, else the usual ones.
func (s *search) fixedSteps() (all []number) {
	if _, _, ok := cache(s.first.Program); !ok {
		for _, v := range usualSteps {
			all = append(all, number{value: v})
		}
		return all
	}
	least := math.Inf(1)
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, i := range e.Left {
			if v := math.Abs(y[i]); v > 0 {
				least = min(least, v)
			}
		}
	}
	for part := 1.0; part <= 16; part++ { // the least of them is a few steps
		about, low, high, good := least/part, 0.0, math.Inf(1), true
		for round := 0; good && round < 2; round++ { // the larger ones say it more exactly
			for _, e := range s.entries {
				y, half := e.Target()
				for _, i := range e.Left {
					n := math.Round(math.Abs(y[i]) / about)
					if n == 0 || round == 0 && n > 8 {
						continue
					}
					low, high = max(low, (math.Abs(y[i])-half[i])/n), min(high, (math.Abs(y[i])+half[i])/n)
				}
			}
			good = low <= high
			about = low/2 + high/2
		}
		if good && !math.IsInf(high, 1) {
			return s.candidates(about, low, high)
		}
	}
	return nil
}

// packedCache has what is kept in the caches of a role in a few bits.
func (s *subject) packedCache(e *Entry, role string, p packing) *program.Edited {
	ed, some := e.Program.Edit(), false
	for _, i := range s.caches(e, role) {
		st := &e.Program.Steps[i]
		old, ok := s.valueAt(e, st.Args[0])
		fresh, has := s.valueAt(e, st.Args[1])
		shape := st.Args[0].Shape()
		if !ok || !has || len(shape) < 2 || product(shape) != len(old) {
			return nil
		}
		if p.whole {
			own, ok := s.valueAt(e, e.Program.Result(i))
			if !ok {
				return nil
			}
			shape, old = st.Shape, own
		}
		v := program.Value{Shape: shape, Data: slices.Clone(old), Bound: make([]float64, len(old))}
		if !p.store(v, st.Axis, fresh, st.Args[1].Shape(), e.Call.DType) {
			return nil
		}
		some = true
		if p.whole {
			ed.Pass(i, ed.Other(v))
		} else {
			ed.Pass(i, ed.Cat(st.Axis, ed.Other(v), st.Args[1]))
		}
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// store rounds a value in its place, whose tokens are along an axis. Fresh is what is new in the cache.
func (p packing) store(v program.Value, tokens int, fresh []float64, freshShape []int, model hooks.DType) bool {
	round := func(x float64) float64 { return floats.Round(model, float64(float32(x))) }
	if p.inside {
		round = func(x float64) float64 { return float64(float32(x)) }
	}
	last := len(v.Shape) - 1
	if tokens >= last || len(freshShape) != len(v.Shape) {
		return false
	}
	// group numbers the elements that share a scale, and token is the token of an element.
	group := func(shape []int, i int) (g, token int) {
		n := 1
		for a := last; a >= 0; a-- {
			at := i % shape[a]
			if i /= shape[a]; a == tokens {
				token = at
			}
			if p.apart(a, tokens, last) {
				g, n = g+n*at, n*shape[a]
			}
		}
		return g, token
	}
	low, high := map[int]float64{}, map[int]float64{}
	seen := func(shape []int, data []float64, only int) {
		for i, x := range data {
			g, token := group(shape, i)
			if only >= 0 && token != only {
				continue
			}
			if old, ok := low[g]; !ok || x < old {
				low[g] = x
			}
			if old, ok := high[g]; !ok || x > old {
				high[g] = x
			}
		}
	}
	switch p.from {
	case newestToken:
		seen(freshShape, fresh, freshShape[tokens]-1)
	case firstToken:
		seen(v.Shape, v.Data, 0)
	default:
		seen(v.Shape, v.Data, -1)
	}
	for i, x := range v.Data {
		g, _ := group(v.Shape, i)
		step, zero, least := float64(float32(p.step)), 0.0, -p.most
		switch {
		case step > 0:
		case p.ranged:
			if step = round((high[g] - low[g]) / p.most); step > 0 {
				zero, least = math.RoundToEven(round(-low[g]/step)), 0
			}
		default:
			step = round(max(high[g], -low[g]) / p.most)
		}
		if !(step > 0) {
			continue
		}
		n := min(max(math.RoundToEven(round(x/step))+zero, least), p.most)
		v.Data[i] = floats.Round(model, float64(float32(round(n-zero)*step)))
	}
	return true
}
