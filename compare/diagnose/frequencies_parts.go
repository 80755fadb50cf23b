package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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
			what := fmt.Sprintf("%d of %d rotary frequencies are not 0, where %d are to be", k, n, r.turns)
			if k == n {
				what = fmt.Sprintf("none of the %d rotary frequencies is 0, where the last %d are to be: the whole head is rotated, not a part of it", n, n-r.turns)
			}
			if base == part {
				what += fmt.Sprintf("; theta is %s for the whole head", short(round6(base)))
			}
			if err := r.try(Name{What: what}, false, func(v []float64) []float64 {
				clear(powersOf(v, base, r.scale)[k:])
				return v
			}); err != nil {
				return err
			}
		}
	}
	what := fmt.Sprintf("the exponents of the rotary frequencies count the %d that are not 0, not all %d", r.turns, n)
	return r.try(Name{What: what}, false, func(v []float64) []float64 {
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
		whole := powersOf(slices.Clone(r.values), b.value, 1)
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
				n := Name{Value: &f.value, Right: &right, What: "the rotary frequencies are scaled by " + short(f.value), Fields: r.fields(right, Scaling)}
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
			n := Name{Value: &f.value, What: fmt.Sprintf("all rotary frequencies are scaled by %s, not those of long waves alone", short(f.value))}
			if err := r.try(n, false, func(v []float64) []float64 { return powersOf(v, b.value, 1/f.value) }); err != nil {
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
		what := fmt.Sprintf("the last %d of %d rotary frequencies are 0: a part of the head alone is rotated", n-k, n)
		if err := r.try(Name{What: what}, false, func(v []float64) []float64 {
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
		words string
		value func(j int) float64
	}{
		{"", func(j int) float64 { return r.values[j] }},
		{"not scaled", func(j int) float64 { return whole[j] }},
		{"divided by " + short(factor), func(j int) float64 { return float64(float32(whole[j] / factor)) }},
		{"between the bands with its ends exchanged (1-smooth for smooth)", func(j int) float64 {
			return float64(float32(float64(float32(whole[j]+float64(float32(whole[j]/factor)))) - r.values[j]))
		}},
		{"between the bands by its wavelength, not by its frequency", func(j int) float64 {
			if !r.within(whole[j]) {
				return r.values[j]
			}
			return r.blended(r.values[j], whole[j], factor, true)
		}},
		{"blended by its wavelength, and beyond the bands", func(j int) float64 { return r.blended(r.values[j], whole[j], factor, true) }},
		{"blended beyond the bands", func(j int) float64 { return r.blended(r.values[j], whole[j], factor, false) }},
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
	chosen, said := make([]float64, n), map[string][]string{}
	solved := 0
	var order []string
	for j := range chosen {
		k := slices.IndexFunc(good, func(of []bool) bool { return of[j] })
		if k < 0 {
			return nil
		}
		if chosen[j] = ways[k].value(j); k > 0 {
			if solved++; said[ways[k].words] == nil {
				order = append(order, ways[k].words)
			}
			said[ways[k].words] = append(said[ways[k].words], strconv.Itoa(j))
		}
	}
	if solved == 0 {
		return nil
	}
	var words []string
	for _, w := range order {
		words = append(words, fmt.Sprintf("%s of %d is %s", strings.Join(said[w], ", "), n, w))
	}
	name := Name{Site: frequencySite, What: "the scaling is another for some rotary frequencies: " + strings.Join(words, "; ")}
	r.rank++
	return r.search.try(hypothesis{
		class: program.Known, rank: r.rank, solved: solved, weak: true, say: func(*Entry) Name { return name },
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
