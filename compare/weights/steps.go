package weights

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
)

// minScaled is how many elements have to agree on a factor.
const minScaled = 8

// factors are those that mistakes have: the sizes of the model, and powers of two.
type factors struct {
	list []factor
	unit float64 // how far a measured factor may be from the true factor, as a relative error
}

type factor struct {
	value float64
	name  phrase
}

func (a *pair) factors() factors {
	all := factors{unit: floats.Unit(a.local.DType) / 2}
	switch {
	case a.moves():
		all.unit = 0.06
	case a.coded():
		all.unit = 0.02
	}
	add := func(value float64, name string) {
		all.list = append(all.list, factor{value, say("", "%s%s", number(value), name)})
	}
	for _, size := range []struct {
		n    int
		name string
	}{{a.c.o.Hidden, "hidden_size"}, {a.c.o.HeadDim, "head_dim"}, {2, "2"}} {
		if size.n < 2 {
			continue
		}
		n := float64(size.n)
		add(math.Sqrt(n), " = sqrt("+size.name+")")
		add(1/math.Sqrt(n), " = 1/sqrt("+size.name+")")
		if size.n > 2 {
			add(n, " = "+size.name)
			add(1/n, " = 1/"+size.name)
		}
	}
	for e := -16; e <= 16; e++ {
		if e != 0 {
			add(math.Ldexp(1, e), "")
		}
	}
	return all
}

// near returns the usual factor that x may be, else x.
func (all *factors) near(x float64) float64 {
	for _, f := range all.list {
		if math.Abs(x-f.value) <= all.unit*math.Abs(f.value) {
			return f.value
		}
	}
	return x
}

// called is a factor for people: a number, and what of the model is as large.
func (all *factors) called(x float64) phrase {
	for _, f := range all.list {
		if f.value == x {
			return f.name
		}
	}
	n := 6
	if number(x) == "1" { // so near that six digits do not tell
		n = -1
	}
	return say("", "%s", digits(x, 'g', n))
}

// exponent says that a factor is a power of two, as when an exponent is wrong.
func exponent(x float64) phrase {
	f, e := math.Frexp(x)
	if e--; f != 0.5 {
		return phrase{}
	}
	return say("", ": an exponent is off by %s", either(e*e == 1, "one", strconv.Itoa(max(e, -e))))
}

// minCut is the number of codes, not the nearest, from which cutOff names truncation. Among nearest codes, half lie further from zero than
// their numbers, so fewer codes would be enough.
const minCut = 32

// cutOff looks for truncated codes: each code is the next toward zero, or each is the next lower, and not the nearest.
func cutOff(ctx context.Context, a *pair) (bool, error) {
	inward, downward, beside, n := true, true, 0, 0
	err := a.blocks(ctx, func(b *block) bool {
		for i, l := range b.local {
			x := b.Within(i, a.q.makes(b.original[i]))
			d, most, step := x-l, b.Slack[i]+0x1p-12*b.Step[i], b.Step[i]
			within := math.Abs(d) <= step+most
			downward = downward && within && d >= -most
			inward = inward && within && (math.Abs(d) <= most || math.Signbit(d) == math.Signbit(x))
			if n++; math.Abs(d) > 0.5*step+most {
				beside++
			}
		}
		return inward || downward
	})
	if err != nil || !inward && !downward {
		return false, err
	}
	if e := (quant.Sums{N: n, Beside: beside}); beside < minCut || !e.Often() {
		return false, nil
	}
	where := either(inward, "toward zero", "down")
	a.row.wrong(Mistake, CutOff, "codes are rounded %s: %d of %d are not the nearest, and each is the next code on that side", where, beside, n)
	a.row.Unequal = beside
	return true, nil
}

// minRows is how many rows zero points need.
const minRows = 16

// zeroPoints looks for codes that are all some whole steps too large or too small, as where zero points are stored less one and read as they
// are, or the other way round. The errors of a row have a mean of zero, whatever moved them: each of minRows rows or more has to have one that is
// nearer to the number of steps.
func zeroPoints(ctx context.Context, a *pair) (bool, error) {
	const near = 0.25
	rows, columns := a.local.flat()
	mean := a.t.codes.Mean()
	steps := math.Round(mean)
	if steps == 0 || !(math.Abs(mean-steps) <= near) {
		return false, nil
	}
	for r := range rows {
		b, err := a.read(ctx, part{r, r + 1, 0, columns})
		if err != nil {
			return false, err
		}
		sum, n := 0.0, 0
		for i, l := range b.local {
			if d := (l - a.q.makes(b.original[i])) / b.Step[i]; d-d == 0 {
				sum, n = sum+d, n+1
			}
		}
		if !(math.Abs(sum/float64(n)-steps) < math.Abs(sum/float64(n))) {
			return false, nil
		}
	}
	a.row.wrong(Mistake, ZeroPoint, "every zero point is %s too %s", number(math.Abs(steps)), either(steps > 0, "low", "high"))
	return true, nil
}

// stepOff looks for codes whose step, or the number that code 0 stands for, is the right one times a power of two, while the other is right:
// formats store the two apart. Code 0 stands for the least number of a group, or for the largest where the step is negative.
func (a parts) stepOff(b *block, from, to int) (finding, bool) {
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
func (a parts) mended(b *block, zero []float64, kind Kind, factor float64) bool {
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
	if b.moves() {
		var e evidence
		for i, x := range b.original {
			d, r := a.q.makes(x)-b.local[i], a.q.makes(x)-m.local[i]
			e.own, e.other = e.own+float64(d*d), e.other+float64(r*r)
		}
		if e.moves = true; len(bad) < quant.MinMean || !e.enough() {
			return false
		}
	}
	return !slices.Contains(bad, true)
}
