package diagnose

import (
	"math"
	"slices"
)

// turned tries the frequencies of other pairs: in reverse order, and with exponents that are counted from another number; and angles in
// turns and half turns, where radians are due.
func (r *rotary) turned() error {
	n := len(r.values)
	if n < 2 {
		return nil
	}
	if err := r.try(Mistake{Kind: "rope.frequencies-reversed"}.name(), false, func(v []float64) []float64 {
		slices.Reverse(v)
		return v
	}); err != nil {
		return err
	}
	for _, by := range []float64{math.Pi, 1 / math.Pi, 2 * math.Pi, 1 / (2 * math.Pi)} {
		m := Mistake{Kind: "rope.angles-in-half-turns", X: some(by)}
		if by >= 2*math.Pi || by < 0.2 {
			m.Kind = "rope.angles-in-turns"
		}
		if err := r.scaledBy(m, by, false); err != nil {
			return err
		}
	}
	if !r.pure || r.base <= 1 {
		return nil
	}
	for _, step := range []float64{1, -1} {
		by := math.Pow(r.base, -step/float64(n))
		m := Mistake{Kind: "rope.exponents-from-one", X: some(1 / by)}
		if step < 0 {
			m = Mistake{Kind: "rope.exponents-from-minus-one", X: some(by)}
		}
		if err := r.scaledBy(m, by, false); err != nil {
			return err
		}
	}
	return nil
}

// scaledBy tries all frequencies times a number.
func (r *rotary) scaledBy(m Mistake, by float64, weak bool) error {
	return r.try(m.name(), weak, func(v []float64) []float64 {
		for j := range v {
			v[j] = float64(float32(v[j] * by))
		}
		return v
	})
}
