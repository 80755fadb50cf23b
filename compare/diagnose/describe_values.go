package diagnose

import (
	"math"
	"slices"
)

// term of two values, or of one: what a value would have to be.
type formula struct {
	f, g   int // indexes of values
	unary  int // of functionsOfOne, of the first
	binary int // of functionsOfTwo; −1 for the first alone
}

// named functions of one number. The first hands the number on.
var functionsOfOne = []struct {
	name string
	of   func(x float64) float64
}{
	{"", func(x float64) float64 { return x }},
	{"negative", func(x float64) float64 { return -x }},
	{"absolute", math.Abs},
	{"square", func(x float64) float64 { return x * x }},
	{"root", math.Sqrt},
	{"reciprocal", func(x float64) float64 { return 1 / x }},
	{"exp", math.Exp},
	{"expm1", math.Expm1},
	{"log", math.Log},
	{"log1p", math.Log1p},
	{"sigmoid", func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"tanh", math.Tanh},
	{"silu", func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
	{"softplus", func(x float64) float64 { return math.Log1p(math.Exp(x)) }},
	{"relu", func(x float64) float64 { return max(x, 0) }},
	{"gelu", func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }},
	{"1+", func(x float64) float64 { return 1 + x }},
	{"1-", func(x float64) float64 { return 1 - x }},
}

var functionsOfTwo = []struct {
	sign string
	of   func(x, y float64) float64
}{
	{"+", func(x, y float64) float64 { return x + y }},
	{"-", func(x, y float64) float64 { return x - y }},
	{"*", func(x, y float64) float64 { return x * y }},
	{"/", func(x, y float64) float64 { return x / y }},
	{"max", func(x, y float64) float64 { return max(x, y) }},
	{"min", func(x, y float64) float64 { return min(x, y) }},
}

const (
	mostTermsOf    = 24 // values that functions are taken of
	leastOfFormula = 16 // wrong elements that a formula gives
)

// ofTwoValues describes the result, or a value within the operation, that would have to be a function of one or two other values: of steps of the program, and of captured tensors.
func ofTwoValues(x *difference) *Description {
	s, results := x.search, x.results
	bases := slices.Clone(x.bases()[1:])
	for _, name := range s.offered() {
		if b, ok := s.capturedBase(name, results); ok && len(bases) < mostTermsOf {
			bases = append(bases, b)
		}
	}
	if s.err != nil || len(bases) > mostTermsOf {
		return nil
	}
	if d := formulaOf(results, theResult, bases); d != nil {
		return d
	}
	for _, inner := range x.inners() {
		if len(inner.all[0].want) != len(results[0].want) {
			continue
		}
		if d := formulaOf(inner.all, inner.of, bases); d != nil {
			return d
		}
	}
	return nil
}

// capturedBase is a captured tensor of the layer of each entry, that has as many elements.
func (s *search) capturedBase(name string, results []observed) (b base, ok bool) {
	b.of = tensorTerm(name)
	for n := range results {
		o := &results[n]
		v, ok := s.tensor(o.e, source{name: s.here(name, o.e)})
		if !ok || len(v.Data) != len(o.want) {
			return b, false
		}
		b.values = append(b.values, v.Data)
	}
	return b, true
}

// formulaOf is the simplest function of bases that gives the values.
func formulaOf(all []observed, of Term, bases []base) *Description {
	for binary := -1; binary < len(functionsOfTwo); binary++ {
		for f := range bases {
			for unary := range functionsOfOne {
				if binary < 0 && unary == 0 { // a value by itself is a captured tensor or a step left out
					if d := (formula{f, f, 0, -1}).explains(all, of, bases); d != nil {
						return d
					}
					continue
				}
				if binary < 0 {
					if d := (formula{f, f, unary, -1}).explains(all, of, bases); d != nil {
						return d
					}
					continue
				}
				for g := range bases {
					if d := (formula{f, g, unary, binary}).explains(all, of, bases); d != nil {
						return d
					}
				}
			}
		}
	}
	return nil
}

// explains is the description of a formula that gives nearly all elements, and nearly all wrong ones.
func (x formula) explains(all []observed, of Term, bases []base) *Description {
	one := functionsOfOne[x.unary].of
	wrong, given, total, explained := 0, 0, 0, 0
	for n := range all {
		o := &all[n]
		a, b := bases[x.f].values[n], bases[x.g].values[n]
		if len(a) != len(o.want) || len(b) != len(o.want) {
			return nil
		}
		for i := range o.want {
			if silent(o, i) {
				continue
			}
			v := one(a[i])
			if x.binary >= 0 {
				v = functionsOfTwo[x.binary].of(v, b[i])
			}
			e := off(o, i)
			has := math.Abs(o.want[i]-v) <= e
			if total++; has {
				explained++
			} else if total-explained > 8 && float64(explained) < leastShare*float64(total) {
				return nil
			}
			if math.Abs(o.want[i]-o.value[i]) > 4*e {
				if wrong++; has {
					given++
				}
			}
		}
	}
	if wrong < leastOfFormula || float64(given) < leastShare*float64(wrong) || float64(explained) < leastShare*float64(total) {
		return nil
	}
	d := &Description{Kind: "described.formula", Of: of, Explained: explained, Elements: total, Wrong: 1}
	sign := ""
	if x.binary >= 0 {
		sign = functionsOfTwo[x.binary].sign
	}
	d.Cases = []string{formulaWords(functionsOfOne[x.unary].name, bases[x.f].of, sign, bases[x.g].of)}
	return d
}
