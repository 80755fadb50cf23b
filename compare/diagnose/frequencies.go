package diagnose

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
)

// frequencies is what is known of the n constants that positions are multiplied by. Pure frequencies are scale·base^(−j/n). If the model rotates a part of
// the head, the frequencies are 0 from the index `turns` on. Frequencies that a model scales by different numbers are not pure: base is then the base
// before the scaling, or 0 if not known, and scale is 1.
type frequencies struct {
	values      []float64
	base, scale float64
	pure        bool
	turns       int
	// op is the operation of the order that makes the frequencies, made has its settings, and in and size are the shapes of its input and result. If no
	// operation makes the frequencies, made is nil.
	op       program.Op
	made     map[string]any
	in, size []int
}

// frequenciesIn returns the first frequencies of an entry's own program, or nil.
func frequenciesIn(s *subject, e *Entry) *frequencies {
	all := e.Program.Turning()
	if len(all) == 0 {
		return nil
	}
	return frequenciesOf(s, e, e.Program.Steps[all[0]].Vector())
}

// frequenciesOf returns what is known of constants in the program of an entry.
func frequenciesOf(s *subject, e *Entry, values []float64) *frequencies {
	for _, f := range e.frequencies {
		if slices.Equal(f.values, values) {
			return f
		}
	}
	f := &frequencies{values: slices.Clone(values), turns: len(values)}
	f.find(s, e.Node.Pass)
	if k := slices.Index(values, 0); k > 1 && !slices.ContainsFunc(values[k:], func(x float64) bool { return x != 0 }) {
		f.turns = k
	}
	if f.base, f.scale, f.pure = geometric(values[:f.turns]); f.pure {
		f.base = math.Pow(f.base, float64(len(values))/float64(f.turns))
		for _, n := range s.numbers { // as the configuration has it
			if n.plain && math.Abs(n.value/f.base-1) < 1e-4 {
				f.base = n.value
			}
		}
	} else {
		f.turns, f.scale, f.base = len(values), 1, f.setting("theta")
		for _, b := range bigNumbers(s, usualBases...) {
			if f.base == 0 && f.keep(b) {
				f.base = b
			}
		}
	}
	e.frequencies = append(e.frequencies, f)
	return f
}

// usualBases are the bases of published models.
var usualBases = []float64{1e4, 1e6, 5e5, 1e5, 1e7, 1e3, 1e2, 10}

// bigNumbers lists the numbers above 1 in fields of the configuration, then other numbers.
func bigNumbers(s *subject, others ...float64) (all []float64) {
	for _, n := range s.numbers {
		if n.plain && n.value > 1 {
			all = append(all, n.value)
		}
	}
	return append(all, others...)
}

// geometric reports whether a vector is scale·base^(−j/n).
func geometric(v []float64) (base, scale float64, ok bool) {
	n := len(v)
	if n < 2 || v[0] <= 0 || v[n-1] <= 0 {
		return 0, 0, false
	}
	base = math.Pow(v[0]/v[n-1], float64(n)/float64(n-1))
	for j, x := range v {
		if math.Abs(x/(v[0]*math.Pow(base, -float64(j)/float64(n)))-1) > 1e-5 {
			return 0, 0, false
		}
	}
	return base, v[0], true
}

// powersOf are n frequencies scale·base^(−j/n), as transformers computes them.
func powersOf(n int, base, scale float64) []float64 {
	v := make([]float64, n)
	for j := range v {
		v[j] = float64(float32(scale / float64(float32(math.Pow(base, float64(j)/float64(n))))))
	}
	return v
}

// powers returns the frequencies of another base and scale for the same part of the head.
func (f *frequencies) powers(base, scale float64) []float64 {
	v := powersOf(len(f.values), base, scale)
	clear(v[f.turns:])
	return v
}

// each changes every frequency that is not 0, and returns the frequencies in float32.
func (f *frequencies) each(change func(x float64) float64) []float64 {
	v := slices.Clone(f.values)
	for j, x := range v {
		if x != 0 {
			v[j] = float64(float32(change(x)))
		}
	}
	return v
}

// keep reports whether some frequencies belong to a base without a scaling. The first frequency is 1 for every base.
func (f *frequencies) keep(base float64) bool {
	own := powersOf(len(f.values), base, 1)
	for j := 1; j < len(own); j++ {
		if math.Abs(f.values[j]/own[j]-1) < 1e-6 {
			return true
		}
	}
	return false
}

// least returns the smallest factor of the scaling. It is not ok unless some frequencies are scaled down and the first frequency is not scaled.
func (f *frequencies) least() (least float64, ok bool) {
	least = 1
	for j, whole := range powersOf(len(f.values), f.base, 1) {
		ratio := f.values[j] / whole
		if !(ratio > 0 && ratio < 1+1e-6) || j == 0 && ratio < 1-1e-6 {
			return 0, false
		}
		least = min(least, ratio)
	}
	return least, !f.pure && least <= 0.99
}

// find looks for the operation of the order that makes the frequencies.
func (f *frequencies) find(s *subject, pass int) {
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if e.Op == nil || len(e.Inputs) != 1 || len(e.Weights) > 0 {
			continue
		}
		f.op, f.in, f.size = e.Op, s.shapeOf(e.Inputs[0], pass), e.Size(s.m.Passes[pass], s.m.List.Config.SlidingWindow)
		if slices.Equal(f.madeBy(e.Op), f.values) {
			if data, err := json.Marshal(e.Op); err == nil && json.Unmarshal(data, &f.made) == nil {
				return
			}
		}
	}
}

// madeBy returns the constants by which an operation multiplies positions, or nil.
func (f *frequencies) madeBy(o program.Op) []float64 {
	b := program.NewBuilder()
	p, err := b.Program(b.Apply(o, "", f.size, []program.Var{b.Input(0, f.in)}, nil))
	if err != nil {
		return nil
	}
	all := p.Turning()
	if len(all) == 0 {
		return nil
	}
	return p.Steps[all[0]].Vector()
}

// with returns the frequencies that the operation makes with other values of some settings, or nil.
func (f *frequencies) with(settings map[string]any) []float64 {
	if f.made == nil {
		return nil
	}
	all := maps.Clone(f.made)
	maps.Copy(all, settings)
	data, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	o := reflect.New(reflect.TypeOf(f.op))
	if json.Unmarshal(data, o.Interface()) != nil { // not a whole number
		return nil
	}
	return f.madeBy(o.Elem().Interface().(program.Op))
}

// setting returns a number of the operation that makes the frequencies, or 0.
func (f *frequencies) setting(name string) float64 {
	x, _ := f.made[name].(float64)
	return x
}

// round6 rounds a number to six digits: bases are whole numbers, and are known to about six digits.
func round6(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return v
}
