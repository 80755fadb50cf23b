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
	if err := r.try(Name{What: "the rotary frequencies are in reverse order: the slowest pair is the first"}, false, func(v []float64) []float64 {
		slices.Reverse(v)
		return v
	}); err != nil {
		return err
	}
	for _, by := range []float64{math.Pi, 1 / math.Pi, 2 * math.Pi, 1 / (2 * math.Pi)} {
		value := by
		name := Name{What: "the angles are multiplied by " + short(by) + ": half turns are taken for radians, or radians for half turns", Value: &value}
		if by >= 2*math.Pi || by < 0.2 {
			name.What = "the angles are multiplied by " + short(by) + ": turns are taken for radians, or radians for turns"
		}
		if err := r.scaledBy(name, by, false); err != nil {
			return err
		}
	}
	if !r.pure || r.base <= 1 {
		return nil
	}
	for _, step := range []float64{1, -1} {
		by := math.Pow(r.base, -step/float64(n))
		value := 1 / by
		name := Name{What: "the exponents of the rotary frequencies are counted from 1: all are divided by " + short(value), Value: &value}
		if step < 0 {
			name.What, value = "the exponents of the rotary frequencies are counted from -1: all are multiplied by "+short(by), by
		}
		if err := r.scaledBy(name, by, false); err != nil {
			return err
		}
	}
	return nil
}

// scaledBy tries all frequencies times a number.
func (r *rotary) scaledBy(n Name, by float64, weak bool) error {
	return r.try(n, weak, func(v []float64) []float64 {
		for j := range v {
			v[j] = float64(float32(v[j] * by))
		}
		return v
	})
}
