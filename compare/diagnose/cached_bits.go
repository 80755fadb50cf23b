package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Kinds of caches in few bits: scales that come from one token, and scales from the minimum to the maximum.
const (
	roundedLikeNewest = "cache.rounded-as-the-newest"
	roundedLikeFirst  = "cache.rounded-as-the-first"
	roundedBetween    = "cache.rounded-between"
	cacheMisread      = "cache.bits-misread"
)

// misreadPairs are types of one size: numbers are written in the first and read as the second.
var misreadPairs = [][2]hooks.DType{{hooks.F8E4M3, hooks.F8E5M2}, {hooks.F8E5M2, hooks.F8E4M3}, {hooks.BF16, hooks.F16}, {hooks.F16, hooks.BF16}}

// scaleSharing has a function for each kind of scales. The function reports whether elements with different indexes along an axis have different scales.
// tokens is the axis of the tokens, and last is the axis of the channels.
var scaleSharing = map[TermKind]func(axis, tokens, last int) bool{
	ScalesOfTokensAndHeads: func(axis, _, last int) bool { return axis != last },
	ScalesOfTokens:         func(axis, tokens, _ int) bool { return axis == tokens },
	ScalesOfHeads:          func(axis, tokens, last int) bool { return axis != last && axis != tokens },
	ScalesOfChannels:       func(axis, tokens, _ int) bool { return axis != tokens },
	OneScale:               func(int, int, int) bool { return false },
}

// tieFactors move a number from the middle between two numbers of a narrow type.
var tieFactors = map[Rounding]float64{"": 1, NewestToo: 1, HalfUp: 1 + 0x1p-20, HalfDown: 1 - 0x1p-20}

// newestToo and inFloat32 report how a mistake rounds.
func newestToo(m Mistake) bool { return m.Rounding == NewestToo || m.Rounding == NewestInFloat32 }
func inFloat32(m Mistake) bool { return m.Rounding == InFloat32 || m.Rounding == NewestInFloat32 }

// usualSteps are fixed scales that are tried where the entry is not the cache: no scale can be solved there.
var usualSteps = []float64{0.05, 0.1, 0.01, 0.02, 0.5, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 127}

// cachedBits yields caches that hold numbers in few bits. A tensor that is captured before the write to the cache keeps all bits.
func cachedBits(s *search) iter.Seq[Mistake] {
	var all []Mistake
	for _, role := range cachedRoles(s.subject, s.first) {
		add := func(m Mistake) {
			m.Place, m.Of = cacheSite, cachedTerm(role)
			for _, way := range []Rounding{"", InFloat32, NewestToo, NewestInFloat32} {
				oneToken := m.Kind == roundedLikeNewest || m.Kind == roundedLikeFirst
				if m.Rounding = way; oneToken && newestToo(m) || inFloat32(m) && s.first.Call.DType == hooks.F32 {
					continue
				}
				all = append(all, m)
			}
		}
		for _, scales := range []TermKind{ScalesOfTokensAndHeads, ScalesOfTokens, ScalesOfHeads, ScalesOfChannels, OneScale} {
			for _, bits := range []int{8, 4} {
				kinds := []Kind{"cache.rounded", roundedBetween, roundedLikeNewest, roundedLikeFirst}
				if scales == ScalesOfTokensAndHeads || scales == ScalesOfTokens { // each token has its own scale
					kinds = kinds[:2]
				}
				for _, kind := range kinds {
					add(Mistake{Kind: kind, By: Term{Kind: scales}, N: bits})
				}
			}
		}
		for _, pair := range misreadPairs {
			m := Mistake{Kind: cacheMisread, Place: cacheSite, Of: cachedTerm(role), DType: pair[0], By: dtypeTerm(pair[1])}
			for _, m.Rounding = range []Rounding{"", NewestToo, HalfUp, HalfDown} {
				all = append(all, m)
			}
		}
		for _, n := range fixedSteps(s) {
			add(Mistake{Kind: "cache.rounded-to-multiples", X: some(n.value)})
		}
	}
	return slices.Values(all)
}

// fixedSteps are the fixed scales to try. Where the entry is the cache, the scale is solved: all unexplained elements are multiples of it. Elsewhere the
// scales are usualSteps.
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
	for part := 1.0; part <= 16; part++ { // the smallest element is a few steps
		about, low, high, good := least/part, 0.0, math.Inf(1), true
		for round := 0; good && round < 2; round++ { // larger elements give the step more exactly
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

// packedCache puts the content of the caches of a role in few bits.
func packedCache(s *subject, e *Entry, m Mistake) *program.Edited {
	return inCaches(s, e, m.Of.Name, func(ed *edit.Editor, i int) (program.Var, bool) {
		st := &e.Program.Steps[i]
		kept, whole := st.Args[0], newestToo(m)
		if whole {
			kept = e.Program.Result(i)
		}
		old, ok := s.valueAt(e, kept)
		fresh, has := []float64(nil), true
		if m.Kind == roundedLikeNewest { // no other kind reads it
			fresh, has = s.valueAt(e, st.Args[1])
		}
		if !ok || !has || len(kept.Shape) < 2 || program.Size(kept.Shape) != len(old) {
			return ed.Fail("shapes"), true
		}
		v := program.Value{Shape: kept.Shape, Data: slices.Clone(old), Bound: make([]float64, len(old))}
		if !pack(m, v, st.Axis(), program.Value{Shape: st.Args[1].Shape, Data: fresh}, e.Call.DType) {
			return ed.Fail("shapes"), true
		}
		if whole {
			return ed.Other(v), true
		}
		return ed.Cat(st.Axis(), ed.Other(v), st.Args[1]), true
	})
}

// pack rounds a value in place to whole multiples of a step, as a mistake says. tokens is the axis of the value's tokens, and fresh is the new part of the
// cache. pack reports false for shapes without a token axis before the last axis, and for a mistake without a kind of scales.
func pack(m Mistake, v program.Value, tokens int, fresh program.Value, model hooks.DType) bool {
	if m.Kind == cacheMisread {
		read, by := misread(m), tieFactors[m.Rounding]
		for i, x := range v.Data {
			v.Data[i] = floats.Round(model, read(x*by))
		}
		return true
	}
	last := len(v.Shape) - 1
	if tokens >= last || len(fresh.Shape) != len(v.Shape) || !m.X.Has && scaleSharing[m.By.Kind] == nil {
		return false
	}
	round := func(x float64) float64 { return floats.Round(model, float64(float32(x))) }
	if inFloat32(m) {
		round = func(x float64) float64 { return float64(float32(x)) }
	}
	most, apart := math.Ldexp(1, m.N-1)-1, scaleSharing[m.By.Kind]
	switch {
	case m.X.Has:
		most, apart = 127, scaleSharing[OneScale]
	case m.Kind == roundedBetween:
		most = 2*most + 1
	}
	// group returns the number of the scale of an element, and the token of the element.
	group := func(shape []int, i int) (g, token int) {
		n := 1
		for a := last; a >= 0; a-- {
			at := i % shape[a]
			if i /= shape[a]; a == tokens {
				token = at
			}
			if apart(a, tokens, last) {
				g, n = g+n*at, n*shape[a]
			}
		}
		return g, token
	}
	low, high := map[int]float64{}, map[int]float64{}
	seen := func(of program.Value, only int) {
		for i, x := range of.Data {
			g, token := group(of.Shape, i)
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
	switch m.Kind {
	case roundedLikeNewest:
		seen(fresh, fresh.Shape[tokens]-1)
	case roundedLikeFirst:
		seen(v, 0)
	default:
		seen(v, -1)
	}
	for i, x := range v.Data {
		g, _ := group(v.Shape, i)
		step, zero, least := float64(float32(m.X.Value)), 0.0, -most
		switch {
		case step > 0:
		case m.Kind == roundedBetween:
			if step = round((high[g] - low[g]) / most); step > 0 {
				zero, least = math.RoundToEven(round(-low[g]/step)), 0
			}
		default:
			step = round(max(high[g], -low[g]) / most)
		}
		if !(step > 0) {
			continue
		}
		n := min(max(math.RoundToEven(round(x/step))+zero, least), most)
		v.Data[i] = floats.Round(model, float64(float32(round(n-zero)*step)))
	}
	return true
}
