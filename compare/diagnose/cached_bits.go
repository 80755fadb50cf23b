package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// packing is how what is kept in a cache may be stored in a few bits: as whole numbers of a step, which some elements share.
type packing struct {
	most  float64 // the largest whole number
	step  float64 // the same for all; 0 for one that follows from the largest number
	apart func(axis, tokens, last int) bool
	// from is the kind that says from which token's numbers the step follows, where it is not each its own: the newest, or the first of the cache.
	from   Kind
	ranged bool // from the least number to the greatest, not around 0
	inside bool // what is computed on the way is not rounded to the model's dtype
}

// The kinds of caches in a few bits that have a scale of one token, and those with a scale from the least number to the greatest.
const (
	roundedLikeNewest Kind = "cache.rounded-as-the-newest"
	roundedLikeFirst  Kind = "cache.rounded-as-the-first"
	roundedBetween    Kind = "cache.rounded-between"
)

// scaleSharing says of each kind of scales whether two elements at other indexes of an axis have scales of their own, where tokens lie along one axis and
// channels along the last.
var scaleSharing = map[TermKind]func(axis, tokens, last int) bool{
	ScalesOfTokensAndHeads: func(axis, _, last int) bool { return axis != last },
	ScalesOfTokens:         func(axis, tokens, _ int) bool { return axis == tokens },
	ScalesOfHeads:          func(axis, tokens, last int) bool { return axis != last && axis != tokens },
	ScalesOfChannels:       func(axis, tokens, _ int) bool { return axis != tokens },
	OneScale:               func(int, int, int) bool { return false },
}

// packingOf is the packing of a mistake.
func packingOf(m Mistake) packing {
	p := packing{most: math.Ldexp(1, m.N-1) - 1, apart: scaleSharing[m.By.Kind], from: m.Kind, ranged: m.Kind == roundedBetween, inside: m.Rounding.has(InFloat32)}
	switch {
	case m.X.Has:
		p.most, p.step, p.apart = 127, m.X.Value, scaleSharing[OneScale]
	case p.ranged:
		p.most = 2*p.most + 1
	}
	return p
}

// usualSteps are fixed scales that are tried where the numbers of a cache are not to be seen.
var usualSteps = []float64{0.05, 0.1, 0.01, 0.02, 0.5, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 127}

// cachedBits yields caches that are kept in a few bits. What was captured when it was new has all of them.
func cachedBits(s *search) iter.Seq[Mistake] {
	var all []Mistake
	for _, role := range cachedRoles(s.subject, s.first) {
		add := func(m Mistake) {
			m.Place, m.Of = cacheSite, cachedTerm(role)
			for _, way := range []Rounding{"", InFloat32, NewestToo, NewestToo + "," + InFloat32} {
				if way.has(NewestToo) && (m.Kind == roundedLikeNewest || m.Kind == roundedLikeFirst) || way.has(InFloat32) && s.first.Call.DType == hooks.F32 {
					continue
				}
				m.Rounding = way
				all = append(all, m)
			}
		}
		for _, scales := range []TermKind{ScalesOfTokensAndHeads, ScalesOfTokens, ScalesOfHeads, ScalesOfChannels, OneScale} {
			for _, bits := range []int{8, 4} {
				kinds := []Kind{"cache.rounded", roundedBetween, roundedLikeNewest, roundedLikeFirst}
				if scales == ScalesOfTokensAndHeads || scales == ScalesOfTokens { // that of each token is its own
					kinds = kinds[:2]
				}
				for _, kind := range kinds {
					add(Mistake{Kind: kind, By: Term{Kind: scales}, N: bits})
				}
			}
		}
		for _, n := range fixedSteps(s) {
			add(Mistake{Kind: "cache.rounded-to-multiples", X: some(n.value)})
		}
	}
	return slices.Values(all)
}

// fixedSteps are the steps of which what is left may be multiples: those that are solved where the entry is a cache, else the usual ones.
func fixedSteps(s *search) (all []number) {
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
func packedCache(s *subject, e *Entry, m Mistake) *program.Edited {
	return inCaches(s, e, m.Of.Name, func(ed *program.Editor, i int) (program.Var, bool) {
		st := &e.Program.Steps[i]
		kept, whole := st.Args[0], m.Rounding.has(NewestToo)
		if whole {
			kept = e.Program.Result(i)
		}
		old, ok := s.valueAt(e, kept)
		fresh, has := s.valueAt(e, st.Args[1])
		if !ok || !has || len(kept.Shape()) < 2 || product(kept.Shape()) != len(old) {
			return ed.Fail("shapes"), true
		}
		v := program.Value{Shape: kept.Shape(), Data: slices.Clone(old), Bound: make([]float64, len(old))}
		if !packingOf(m).store(v, st.Axis, fresh, st.Args[1].Shape(), e.Call.DType) {
			return ed.Fail("shapes"), true
		}
		if whole {
			return ed.Other(v), true
		}
		return ed.Cat(st.Axis, ed.Other(v), st.Args[1]), true
	})
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
	case roundedLikeNewest:
		seen(freshShape, fresh, freshShape[tokens]-1)
	case roundedLikeFirst:
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
