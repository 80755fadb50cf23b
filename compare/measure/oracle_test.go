package measure_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
)

// floatTypes are the types that have a tolerance, with the largest finite number of each.
var floatTypes = map[hooks.DType]float64{
	hooks.F64: math.MaxFloat64, hooks.F32: math.MaxFloat32, hooks.F16: 65504,
	hooks.BF16: 0x1.fep127, hooks.F8E4M3: 448, hooks.F8E5M2: 57344,
}

// precision is enough bits for the square of every float64 and for any sum of them: the oracle's sums are exact.
const precision = 4400

// oracle computes metrics from their definitions in exact arithmetic, of which only roots and quotients are rounded.
type oracle struct {
	shape  []int
	dl, dr hooks.DType
	l, r   []float64
}

func number(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func zero() *big.Float { return number(0) }

// masked reports whether both sides of a pair hold the same mask value.
func (o oracle) masked(i int) bool {
	return o.l[i] == o.r[i] && o.l[i] < -floatTypes[o.dl]/2 && o.r[i] < -floatTypes[o.dr]/2 && !math.IsInf(o.l[i], 0)
}

func wild(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

// counted are the elements that the sums are over.
func (o oracle) counted() (at []int) {
	for i := range o.l {
		if !wild(o.l[i]) && !wild(o.r[i]) && !o.masked(i) {
			at = append(at, i)
		}
	}
	return at
}

// squares are Σ(l−r)² and Σr² over some elements.
func (o oracle) squares(at []int) (dd, rr *big.Float) {
	dd, rr = zero(), zero()
	d, b := zero(), zero()
	for _, i := range at {
		b.SetFloat64(o.r[i])
		d.Sub(d.SetFloat64(o.l[i]), b)
		dd.Add(dd, d.Mul(d, d))
		rr.Add(rr, b.Mul(b, b))
	}
	return dd, rr
}

// products are Σl² and Σl·r, and Σ|l·r|.
func (o oracle) products(at []int) (ll, lr, size *big.Float) {
	ll, lr, size = zero(), zero(), zero()
	a, b := zero(), zero()
	for _, i := range at {
		b.Mul(a.SetFloat64(o.l[i]), b.SetFloat64(o.r[i]))
		ll.Add(ll, a.Mul(a, a))
		lr.Add(lr, b)
		size.Add(size, b.Abs(b))
	}
	return ll, lr, size
}

// over is the root of a quotient: 0 over anything is 0, anything else over 0 infinite.
func over(a, b *big.Float) float64 {
	switch {
	case a.Sign() == 0:
		return 0
	case b.Sign() == 0:
		return math.Inf(1)
	}
	q := zero().Quo(a, b)
	f, _ := q.Sqrt(q).Float64()
	return f
}

func root(a *big.Float) float64 { return over(a, number(1)) }

// sliceErrors is e(i) of every index of an axis.
func (o oracle) sliceErrors(axis int) (errors []float64) {
	inner := 1
	for _, s := range o.shape[axis+1:] {
		inner *= s
	}
	at := make([][]int, o.shape[axis])
	for _, i := range o.counted() {
		index := i / inner % o.shape[axis]
		at[index] = append(at[index], i)
	}
	var diffs, refs, some []*big.Float
	for _, elements := range at {
		dd, rr := o.squares(elements)
		diffs, refs = append(diffs, dd), append(refs, rr)
		if rr.Sign() > 0 {
			some = append(some, rr)
		}
	}
	median := zero() // the lower one, of the slices that are not zero
	if len(some) > 0 {
		slices.SortFunc(some, (*big.Float).Cmp)
		median = some[(len(some)-1)/2]
	}
	for i, rr := range refs {
		if rr.Cmp(median) < 0 {
			rr = median
		}
		errors = append(errors, over(diffs[i], rr))
	}
	return errors
}

// ladder has the finite numbers of a type of 8 or 16 bits from 0 upwards, each at the place that is its bits.
func ladder(d hooks.DType) (numbers []float64) {
	for bits := range 1 << (8*d.Size() - 1) {
		raw := binary.LittleEndian.AppendUint16(nil, uint16(bits))
		var x [1]float64
		if err := floats.Decode(x[:], d, raw); err != nil {
			panic(err)
		}
		if wild(x[0]) {
			break
		}
		numbers = append(numbers, x[0])
	}
	return numbers
}

var ladders = map[hooks.DType][]float64{
	hooks.F16: ladder(hooks.F16), hooks.BF16: ladder(hooks.BF16), hooks.F8E4M3: ladder(hooks.F8E4M3), hooks.F8E5M2: ladder(hooks.F8E5M2),
}

// rung is the place of the number of d that is nearest to x ≥ 0, of two the even one.
func rung(d hooks.DType, x float64) int64 {
	switch d {
	case hooks.F64:
		return int64(math.Float64bits(x))
	case hooks.F32:
		return int64(math.Float32bits(float32(x)))
	}
	l := ladders[d]
	i := sort.SearchFloat64s(l, x)
	switch {
	case i < len(l) && l[i] == x:
		return int64(i)
	case i == len(l) && d == hooks.F8E4M3: // has no infinity
		return int64(i - 1)
	}
	above := 2*l[len(l)-1] - l[len(l)-2] // infinity stands where the next number would
	if i < len(l) {
		above = l[i]
	}
	middle := zero().Add(number(l[i-1]), number(above))
	switch c := number(x).Cmp(middle.Quo(middle, number(2))); {
	case c < 0, c == 0 && i%2 == 1:
		return int64(i - 1)
	}
	return int64(i)
}

func (o oracle) unequal() (count int64, most uint64) {
	coarser := floats.Coarser(o.dl, o.dr)
	signed := func(x float64) int64 { return int64(math.Copysign(1, x)) * rung(coarser, math.Abs(x)) }
	for _, i := range o.counted() {
		a, b := signed(o.l[i]), signed(o.r[i])
		if steps := uint64(max(a, b)) - uint64(min(a, b)); steps > 0 {
			count++
			most = max(most, steps)
		}
	}
	return count, most
}

// near fails unless got is want up to a relative error, or an absolute one in units of size.
func near(t rapid.TB, what string, got measure.Number, want, size float64) {
	t.Helper()
	g := float64(got)
	same := g == want || math.IsNaN(g) && math.IsNaN(want)
	const subnormal = 0x1p-1073 // two steps of the smallest numbers, which have fewer digits
	if !same && !(math.Abs(g-want) <= 1e-13*(math.Abs(want)+size)+subnormal) {
		t.Fatalf("%s is %g, want %g", what, g, want)
	}
}

// check holds metrics to their definitions.
func (o oracle) check(t rapid.TB, m *measure.Metrics) {
	t.Helper()
	at := o.counted()
	if m.Elements != int64(len(o.l)) || m.Compared != int64(len(at)) {
		t.Fatalf("%d elements, %d compared, want %d and %d", m.Elements, m.Compared, len(o.l), len(at))
	}
	dd, rr := o.squares(at)
	ll, lr, size := o.products(at)
	near(t, "relative L2", m.RelL2, over(dd, rr), 0)
	near(t, "norm", m.Norm, root(rr), 0)
	rms, cosine, scale := math.NaN(), math.NaN(), math.NaN()
	if len(at) > 0 {
		rms = over(dd, number(float64(len(at))))
	}
	if rr.Sign() > 0 {
		scale, _ = zero().Quo(lr, rr).Float64()
		if ll.Sign() > 0 {
			length := zero().Mul(ll, rr)
			cosine, _ = zero().Quo(lr, length.Sqrt(length)).Float64()
		}
		terms, _ := zero().Quo(size, rr).Float64()
		near(t, "scale", m.Scale, scale, terms)
	} else {
		near(t, "scale", m.Scale, scale, 0)
	}
	near(t, "RMS", m.RMS, rms, 0)
	near(t, "cosine", m.Cosine, cosine, 1)
	o.checkCounts(t, m, at)
	o.checkAxes(t, m)
	o.checkStats(t, "local", m.Local, o.l, at)
	o.checkStats(t, "reference", m.Reference, o.r, at)
}

// checkCounts is what is counted and found: exactly as defined.
func (o oracle) checkCounts(t rapid.TB, m *measure.Metrics, counted []int) {
	t.Helper()
	most, at := zero(), -1
	for _, i := range counted {
		d := zero().Sub(number(o.l[i]), number(o.r[i]))
		if rounded, _ := d.Abs(d).Float64(); number(rounded).Cmp(most) > 0 {
			most, at = number(rounded), i
		}
	}
	if want, _ := most.Float64(); float64(m.MaxAbs) != want {
		t.Fatalf("max abs %g, want %g", m.MaxAbs, want)
	}
	if at < 0 && m.Worst != nil || at >= 0 && (place(m.Worst, o.shape) != at || float64(m.LocalAt) != o.l[at] || float64(m.ReferenceAt) != o.r[at]) {
		t.Fatalf("worst element %v with %g and %g, want number %d", m.Worst, m.LocalAt, m.ReferenceAt, at)
	}
	if count, steps := o.unequal(); m.Unequal != count || m.MaxULP != steps {
		t.Fatalf("%d unequal, %d steps at most; want %d and %d", m.Unequal, m.MaxULP, count, steps)
	}
	var differ, both, masked int64
	first := -1
	for i, a := range o.l {
		b := o.r[i]
		switch {
		case o.masked(i):
			masked++
		case math.IsNaN(a) && math.IsNaN(b), math.IsInf(a, 1) && math.IsInf(b, 1):
			both++
		case (wild(a) || wild(b)) && a != b:
			if differ++; first < 0 {
				first = i
			}
		}
	}
	if m.NonFinite != differ || m.NaNBoth != both || m.Masked != masked {
		t.Fatalf("%d not finite on one side, %d NaN on both, %d masked; want %d, %d and %d", m.NonFinite, m.NaNBoth, m.Masked, differ, both, masked)
	}
	if (first < 0) != (m.NonFiniteAt == nil) || first >= 0 && place(m.NonFiniteAt, o.shape) != first {
		t.Fatalf("the first that is not finite is %v, want number %d", m.NonFiniteAt, first)
	}
}

// place is the number of an element in row-major order.
func place(index, shape []int) int {
	at := 0
	for i, x := range index {
		at = at*shape[i] + x
	}
	return at
}

func (o oracle) checkAxes(t rapid.TB, m *measure.Metrics) {
	t.Helper()
	var want, got []int
	for axis, size := range o.shape {
		if size > 1 && len(o.l) > 0 {
			want = append(want, axis)
		}
	}
	for _, a := range m.Axes {
		got = append(got, a.Number)
		errors := o.sliceErrors(a.Number)
		worst := slices.Max(errors)
		near(t, fmt.Sprintf("worst of axis %d", a.Number), a.RelL2, worst, 0)
		// Two slices may be equally bad up to the last bit: the one named has to be as bad as the worst.
		near(t, fmt.Sprintf("error of index %d of axis %d", a.Worst, a.Number), measure.Number(errors[a.Worst]), worst, 0)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("axes %v, want %v", got, want)
	}
}

func (o oracle) mean(x []float64, at []int) *big.Float {
	sum := zero()
	for _, i := range at {
		sum.Add(sum, number(x[i]))
	}
	return sum.Quo(sum, number(float64(len(at))))
}

func (o oracle) std(x []float64, at []int) float64 {
	mean, squares := o.mean(x, at), zero()
	for _, i := range at {
		d := zero().Sub(number(x[i]), mean)
		squares.Add(squares, d.Mul(d, d))
	}
	return over(squares, number(float64(len(at))))
}

func (o oracle) checkStats(t rapid.TB, side string, s measure.Stats, x []float64, at []int) {
	t.Helper()
	var notANumber, inf, negInf int64
	for i, v := range x {
		switch {
		case o.masked(i):
		case math.IsNaN(v):
			notANumber++
		case math.IsInf(v, 1):
			inf++
		case math.IsInf(v, -1):
			negInf++
		}
	}
	if s.NaN != notANumber || s.Inf != inf || s.NInf != negInf {
		t.Fatalf("%s: %d NaN, %d +Inf, %d −Inf; want %d, %d, %d", side, s.NaN, s.Inf, s.NInf, notANumber, inf, negInf)
	}
	least, most, mean, std := math.NaN(), math.NaN(), math.NaN(), math.NaN()
	size := 0.0
	if len(at) > 0 {
		least, most = x[at[0]], x[at[0]]
		for _, i := range at {
			least, most = min(least, x[i]), max(most, x[i])
		}
		mean, _ = o.mean(x, at).Float64()
		std, size = o.std(x, at), max(-least, most)
	}
	near(t, side+" minimum", s.Min, least, 0)
	near(t, side+" maximum", s.Max, most, 0)
	near(t, side+" mean", s.Mean, mean, size)
	near(t, side+" standard deviation", s.Std, std, size/16)
	if b, err := json.Marshal([]measure.Number{s.Min, s.Max}); err != nil || bytes.Contains(b, []byte("-0,")) || bytes.Contains(b, []byte("-0]")) {
		t.Fatalf("%s: %s: a zero with a sign (%v)", side, b, err)
	}
}

func decoded(t testing.TB, d hooks.DType, raw []byte) []float64 {
	t.Helper()
	x := make([]float64, len(raw)/d.Size())
	if err := floats.Decode(x, d, raw); err != nil {
		t.Fatal(err)
	}
	return x
}

// bitsOf draws the bits of a number of d: mostly ordinary ones, but zeros of both signs, subnormal and huge numbers, NaN
// and infinities as often as any. A float64 stays within 2^±60 of a size that is drawn once, which may be any.
func bitsOf(t *rapid.T, d hooks.DType, size int) []byte {
	if d == hooks.F64 {
		x := math.Ldexp(float64(rapid.Uint64Range(1<<52, 1<<53-1).Draw(t, "significand")), -53)
		if rapid.Bool().Draw(t, "negative") {
			x = -x
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			x = rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "special")
		case 1:
			x = math.Ldexp(x, rapid.IntRange(-60, 0).Draw(t, "exponent"))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Ldexp(x, size)))
	}
	raw := binary.LittleEndian.AppendUint32(nil, uint32(rapid.Uint64().Draw(t, "bits")))[:d.Size()]
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0: // all ones in the exponent, or all but the last
		raw[d.Size()-1] |= 0x7f
	case 1: // none
		raw[d.Size()-1] &= 0x80
	}
	return raw
}

// TestMetricsAreTheirDefinitions holds the metrics of every pair of float types to exact arithmetic.
func TestMetricsAreTheirDefinitions(t *testing.T) {
	for dl := range floatTypes {
		for dr := range floatTypes {
			t.Run(fmt.Sprintf("%s-%s", dl, dr), func(outer *testing.T) {
				rapid.Check(outer, func(t *rapid.T) {
					o := oracle{shape: rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape"), dl: dl, dr: dr}
					n, _ := hooks.Elements(o.shape)
					size := rapid.IntRange(-1060, 1023).Draw(t, "size")
					if dl != dr {
						size = rapid.IntRange(-140, 120).Draw(t, "size beside a narrower type")
					}
					var l, r []byte
					for range n {
						bits := bitsOf(t, dr, size)
						r = append(r, bits...)
						if dl != dr || rapid.IntRange(0, 3).Draw(t, "same") > 0 {
							bits = bitsOf(t, dl, size)
						}
						l = append(l, bits...)
					}
					o.l, o.r = decoded(outer, dl, l), decoded(outer, dr, r)
					o.check(t, metricsOf(outer, testengine.OneTensor(outer, "local", dl, o.shape, l), testengine.OneTensor(outer, "reference", dr, o.shape, r)))
				})
			})
		}
	}
}
