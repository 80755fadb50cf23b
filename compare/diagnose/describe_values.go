package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// formula is a function of one value or two that a value has to be.
type formula struct {
	f, g   int // indexes of bases
	unary  int // index in functionsOfOne, applied to the first value
	binary int // index in functionsOfTwo; −1 for a function of only the first value
}

// functionOfOne is a function of one number.
type functionOfOne struct {
	name string
	of   func(x float64) float64
}

// functionOfTwo is a function of two numbers.
type functionOfTwo struct {
	sign string
	of   func(x, y float64) float64
}

// functionsOfOne are functions with a name. The first function returns its argument.
var functionsOfOne = []functionOfOne{
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

var functionsOfTwo = []functionOfTwo{
	{"+", func(x, y float64) float64 { return x + y }},
	{"-", func(x, y float64) float64 { return x - y }},
	{"*", func(x, y float64) float64 { return x * y }},
	{"/", func(x, y float64) float64 { return x / y }},
	{"max", func(x, y float64) float64 { return max(x, y) }},
	{"min", func(x, y float64) float64 { return min(x, y) }},
}

const (
	mostTermsOf    = 24 // values that formulas are made of
	leastOfFormula = 16 // wrong elements that a formula gives, at least
)

// ofTwoValues describes the result, or a value within the operation, as a function of one or two other values: operands of the program's steps, and
// captured tensors.
func ofTwoValues(x *difference) *Description {
	s, results := x.search, x.results
	bases := slices.Clone(x.bases()[1:])
	for _, name := range offeredTensors(x.search) {
		if b, ok := capturedBase(s, name, results); ok && len(bases) < mostTermsOf {
			bases = append(bases, b)
		}
	}
	if s.err != nil || len(bases) > mostTermsOf {
		return nil
	}
	if d := formulaOf(s, results, theResult, edit.Place{Arg: result}, bases); d != nil {
		return d
	}
	for _, inner := range x.inners() {
		of := bases
		if len(inner.all[0].want) != len(results[0].want) {
			of = basesLike(s, &inner)
		}
		if d := formulaOf(s, inner.all, inner.of, inner.at, of); d != nil {
			return d
		}
	}
	return nil
}

// basesLike are the right value of a value within the operation, and the captured tensors of its size.
func basesLike(s *search, of *inner) []base {
	own := base{of: of.of, at: of.at}
	for n := range of.all {
		own.values = append(own.values, of.all[n].value)
	}
	all := []base{own}
	for _, name := range offeredTensors(s) {
		if b, ok := capturedBase(s, name, of.all); ok && len(all) < mostTermsOf {
			all = append(all, b)
		}
	}
	return all
}

// capturedBase is a captured tensor in the layer of each entry; ok is false if its size is not the size of the result.
func capturedBase(s *search, name string, results []observed) (b base, ok bool) {
	b.of, b.source = tensorTerm(name), name
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
func formulaOf(s *search, all []observed, of Term, at edit.Place, bases []base) *Description {
	for binary := -1; binary < len(functionsOfTwo); binary++ {
		for f := range bases {
			for unary := range functionsOfOne {
				if binary < 0 && unary == 0 { // a value without a function is a captured tensor, or a step is missing
					if d := (formula{f, f, 0, -1}).explains(s, all, of, at, bases); d != nil {
						return d
					}
					continue
				}
				if binary < 0 {
					if d := (formula{f, f, unary, -1}).explains(s, all, of, at, bases); d != nil {
						return d
					}
					continue
				}
				for g := range bases {
					if d := (formula{f, g, unary, binary}).explains(s, all, of, at, bases); d != nil {
						return d
					}
				}
			}
		}
	}
	return nil
}

// explains describes a formula if it gives nearly every element, and nearly every wrong element.
func (x formula) explains(s *search, all []observed, of Term, at edit.Place, bases []base) *Description {
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
	s.draft(d).proposes = []Mistake{x.mistake(of, sign, at, bases)}
	return d
}

// mistake is the mistake that a value is the formula.
func (x formula) mistake(of Term, sign string, at edit.Place, bases []base) Mistake {
	f, g := &bases[x.f], &bases[x.g]
	m := Mistake{Kind: "value.formula", Of: of, By: f.of, Other: withSign(functionsOfOne[x.unary].name, sign), Source: f.source + "," + g.source, Edit: placed(at, f.at, g.at)}
	if sign != "" {
		m.For = g.of
	}
	return m
}

// byFormula puts a function of one or two values in place of a value. The values are operands of steps, or captured tensors.
func byFormula(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	name, sign, two := signOf(m.Other)
	unary := slices.IndexFunc(functionsOfOne, func(f functionOfOne) bool { return f.name == name })
	binary := slices.IndexFunc(functionsOfTwo, func(f functionOfTwo) bool { return f.sign == sign })
	if !ok || len(d.At) != 3 || unary < 0 || binary < 0 && two {
		return nil
	}
	var values [2][]float64
	names := strings.SplitN(m.Source, ",", 2)
	for k := range values {
		if values[k], ok = operandAt(s, e, d.At[k+1], names[k]); !ok {
			return nil
		}
	}
	y := make([]float64, len(values[0]))
	for i, v := range values[0] {
		if y[i] = functionsOfOne[unary].of(v); binary >= 0 && i < len(values[1]) {
			y[i] = functionsOfTwo[binary].of(y[i], values[1][i])
		}
	}
	return s.at(e, d.At[0], func(ed *edit.Editor, v program.Var) program.Var {
		if program.Size(v.Shape) != len(y) || len(values[1]) != len(y) {
			return ed.Fail("shapes")
		}
		return ed.R(ed.Other(program.Value{Shape: v.Shape, Data: y}))
	})
}

// operandAt is the value of an operand of a step, or the captured tensor with a name in the entry's layer.
func operandAt(s *subject, e *Entry, at edit.Place, name string) ([]float64, bool) {
	if name != "" {
		v, ok := s.tensor(e, source{name: s.here(name, e)})
		return v.Data, ok
	}
	t := e.signed(s.m)
	all := t.Copies(at)
	if len(all) != 1 || at.Arg < 0 || at.Arg >= len(t.Steps[all[0]].Args) {
		return nil, false
	}
	return s.valueAt(e, t.Steps[all[0]].Args[at.Arg])
}
