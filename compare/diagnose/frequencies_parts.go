package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// whole tries, where a part of the head alone is rotated, more of it and all of it, and exponents that count the part alone.
func (r *rotary) whole() error {
	n := len(r.values)
	if !r.pure || r.turns == n {
		return nil
	}
	part := math.Pow(r.base, float64(r.turns)/float64(n)) // of which the part has the exponents
	for k := n; k > r.turns; k-- {                        // all of the head first: slow frequencies are 0 in a short prompt
		for _, base := range []float64{r.base, part} {
			m := Mistake{Kind: "rope.larger-part", N: n, M: r.turns, K: k}
			if k == n {
				m.Kind = "rope.whole-head"
			}
			if base == part {
				m.By = literal(round6(base))
			}
			if err := r.try(m.name(), false, func(v []float64) []float64 {
				clear(powersOf(v, base, r.scale)[k:])
				return v
			}); err != nil {
				return err
			}
		}
	}
	return r.try(Mistake{Kind: "rope.exponents-of-part", N: n, M: r.turns}.name(), false, func(v []float64) []float64 {
		powersOf(v[:r.turns], r.base, r.scale)
		return v
	})
}

// blends tries, where some frequencies are scaled and others are not, another factor for those that are, and one factor for all.
func (r *rotary) blends() error {
	if r.pure {
		return nil
	}
	for _, b := range r.thetas() {
		whole := powersOf(slices.Clone(r.values), b.X.Value, 1)
		least := 1.0
		between := true
		for j, v := range r.values {
			ratio := v / whole[j]
			between = between && ratio > 0 && ratio < 1+1e-6
			least = min(least, ratio)
		}
		if !between || math.Abs(r.values[0]/whole[0]-1) > 1e-6 || least > 0.99 {
			continue
		}
		right := round6(1 / least)
		if err := r.mixed(whole, right); err != nil {
			return err
		}
		for _, f := range r.scalings() {
			if !same(f.value, right) {
				n := Mistake{Kind: "rope.scaling-factor", X: some(f.value), Right: some(right)}.name()
				n.Fields = r.fields(right, Scaling)
				if err := r.try(n, false, func(v []float64) []float64 {
					for j := range v {
						part := (1 - v[j]/whole[j]) / (1 - least) // how far it is scaled
						v[j] = float64(float32(whole[j] * (1 - part*(1-1/f.value))))
					}
					return v
				}); err != nil {
					return err
				}
			}
			n := Mistake{Kind: "rope.scaling-of-all", X: some(f.value)}.name()
			if err := r.try(n, false, func(v []float64) []float64 { return powersOf(v, b.X.Value, 1/f.value) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// partial tries a rotation by the first frequencies alone: the others are 0.
func (r *rotary) partial() error {
	n := len(r.values)
	for k := 1; k < n; k++ {
		if err := r.try(Mistake{Kind: "rope.smaller-part", N: n, K: k}.name(), false, func(v []float64) []float64 {
			clear(v[k:])
			return v
		}); err != nil {
			return err
		}
	}
	return nil
}

// mixed looks at each frequency by itself, where some are scaled and others not: it may be scaled, or not, or have the two ends of what
// is between exchanged.
func (r *rotary) mixed(whole []float64, factor float64) error {
	out := r.first.Program.Out.Shape()
	n := len(whole)
	if width := out[len(out)-1]; width != 2*n {
		return nil
	}
	ways := []struct {
		name  string // of scalingWords; empty for the right one
		value func(j int) float64
	}{
		{"", func(j int) float64 { return r.values[j] }},
		{"unscaled", func(j int) float64 { return whole[j] }},
		{"scaled", func(j int) float64 { return float64(float32(whole[j] / factor)) }},
		{"ends-exchanged", func(j int) float64 {
			return float64(float32(float64(float32(whole[j]+float64(float32(whole[j]/factor)))) - r.values[j]))
		}},
		{"by-wavelength", func(j int) float64 {
			if !r.within(whole[j]) {
				return r.values[j]
			}
			return r.blended(r.values[j], whole[j], factor, true)
		}},
		{"by-wavelength-everywhere", func(j int) float64 { return r.blended(r.values[j], whole[j], factor, true) }},
		{"by-frequency-everywhere", func(j int) float64 { return r.blended(r.values[j], whole[j], factor, false) }},
	}
	good := make([][]bool, len(ways))
	for k, w := range ways {
		good[k] = slices.Repeat([]bool{true}, n)
		for _, e := range r.entries {
			left, err := r.outside(e, func(v []float64) []float64 {
				for j := range v {
					v[j] = w.value(j)
				}
				return v
			})
			if err != nil {
				return err
			}
			for _, i := range left {
				good[k][i%n] = false
			}
		}
	}
	chosen := make([]float64, n)
	var others []Run
	for j := range chosen {
		k := slices.IndexFunc(good, func(of []bool) bool { return of[j] })
		if k < 0 {
			return nil
		}
		if chosen[j] = ways[k].value(j); k > 0 {
			others = append(others, Run{From: j, To: j + 1, Is: j, Of: ways[k].name})
		}
	}
	if len(others) == 0 {
		return nil
	}
	m := Mistake{Kind: "rope.scaling-of-some", Place: frequencySite, N: n, By: literal(factor), Runs: makeRuns(others...)}
	return r.search.try(hypothesis{
		class: program.Known, solved: len(others), weak: true, say: func(*Entry) Name { return m.name() },
		make: func(e *Entry) *program.Edited {
			return e.Program.Frequencies(func([]float64) []float64 { return slices.Clone(chosen) })
		},
	})
}

// outside are the elements that are left with other frequencies.
func (r *rotary) outside(e *Entry, change func(v []float64) []float64) ([]int, error) {
	k, err := r.search.m.values(e)
	if err != nil {
		return nil, err
	}
	d := e.Program.Frequencies(change)
	if d == nil {
		return nil, nil
	}
	x, err := k.Eval(d)
	if err != nil {
		return nil, err
	}
	return e.Leaves(x, len(x.Data))
}
