package weights

import (
	"math"
	"slices"
)

// stepOff looks for codes whose step, or the number that code 0 stands for, is the right one times a power of two, while the other is right:
// formats store the two apart. Code 0 stands for the least number of a group, or for the largest where the step is negative.
func (a *attempt) stepOff(b *block, from, to int) (finding, bool) {
	f := finding{kind: Values, from: from, to: to}
	if b.coding == nil || a.q.add != 0 {
		return f, false
	}
	some := b.some(from, to+1)
	var e evidence
	e.add(&a.q, &some, &a.q, some.original, 0, to+1-from)
	if e.outside < minOutside {
		return f, false
	}
	for k := 1; k <= 4; k++ {
		for _, factor := range []float64{math.Ldexp(1, k), math.Ldexp(1, -k)} {
			for _, zero := range [][]float64{some.Low, some.High} {
				for _, kind := range []Kind{ScaledStep, ScaledOffset} {
					if a.mended(&some, zero, kind, factor) {
						f.kind, f.factor = kind, factor
						return f, true
					}
				}
			}
		}
	}
	return f, false
}

// mended reports whether codes are right when a factor is taken from their steps, or from what code 0 stands for.
func (a *attempt) mended(b *block, zero []float64, kind Kind, factor float64) bool {
	m := b.clone()
	for i, z := range zero {
		for _, x := range [][]float64{m.local, m.Low, m.High} {
			if kind == ScaledStep {
				x[i] = z + (x[i]-z)/factor
			} else {
				x[i] += z/factor - z
			}
		}
		if kind == ScaledStep {
			m.Step[i], m.Slack[i] = m.Step[i]/factor, m.Slack[i]/factor
		}
	}
	bad := make([]bool, len(zero))
	a.q.judge(&m, bad)
	if b.coding.Moves {
		var e evidence
		for i, x := range b.original {
			d, r := a.q.makes(x)-b.local[i], a.q.makes(x)-m.local[i]
			e.own, e.other = e.own+float64(d*d), e.other+float64(r*r)
		}
		if e.moves = true; len(bad) < minMean || !e.enough() {
			return false
		}
	}
	return !slices.Contains(bad, true)
}
