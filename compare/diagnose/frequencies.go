package diagnose

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// geometric is whether a vector is s·b^(−j/n), with its base b.
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

// powersOf are scale·base^(−j/n), as transformers computes them.
func powersOf(v []float64, base, scale float64) []float64 {
	for j := range v {
		v[j] = float64(float32(scale / float64(float32(math.Pow(base, float64(j)/float64(len(v)))))))
	}
	return v
}

// powers are scale·base^(−j/n) where the frequencies are not 0.
func (r *rotary) powers(v []float64, base, scale float64) []float64 {
	clear(powersOf(v, base, scale)[r.turns:])
	return v
}

// round6 is a number with six digits: bases are whole numbers, and are known to about that.
func round6(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return v
}

const frequencySite = "inv_freq"

// rotary is what is known of the frequencies that positions are multiplied by: scale·base^(−j/n) where pure, of which only the first
// `turns` are not 0 where a part of the head alone is rotated.
type rotary struct {
	*search
	values      []float64
	base, scale float64
	pure        bool
	turns       int

	entry *order.Entry   // whose operation makes the frequencies; nil where there is none
	made  map[string]any // with these settings
}

// frequencies tries other bases, with the scaling and without, other scalings, and rounded frequencies.
func (s *search) frequencies() error {
	all := s.first.Program.Turning()
	if len(all) == 0 {
		return nil
	}
	r := &rotary{search: s, values: s.first.Program.Steps[all[0]].Values}
	r.base, r.scale, r.pure = geometric(r.values)
	r.turns = len(r.values)
	if k := slices.Index(r.values, 0); k > 1 && !slices.ContainsFunc(r.values[k:], func(x float64) bool { return x != 0 }) {
		if base, scale, ok := geometric(r.values[:k]); ok {
			r.base, r.scale, r.pure, r.turns = math.Pow(base, float64(len(r.values))/float64(k)), scale, true, k
		}
	}
	r.entry, r.made = r.operation()
	for _, look := range []func() error{r.bases, r.whole, r.blends, r.settings, r.kinds, r.partial, r.turned, r.factors, r.narrowed, r.solvedBase} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// try judges other frequencies.
func (r *rotary) try(n Name, weak bool, change func(v []float64) []float64) error {
	n.Site, n.Mistake.Place = frequencySite, frequencySite
	return r.search.try(hypothesis{
		class: program.Known, weak: weak, say: func(*Entry) Name { return n },
		make: func(e *Entry) *program.Edited { return e.Program.Frequencies(change) },
	})
}

// thetas are the mistakes of the base that are tried, in this order. X is the base.
func (r *rotary) thetas() []Mistake {
	var all []Mistake
	has := func(b float64) bool {
		return slices.ContainsFunc(all, func(o Mistake) bool { return math.Abs(o.X.Value/b-1) < 1e-5 })
	}
	for _, f := range r.numbers {
		if f.plain && f.value > 1 && !has(f.value) {
			all = append(all, otherBase(f.value))
		}
	}
	for _, f := range r.numbers { // linear scaling that is taken for one of theta
		if b := round6(r.base * f.value); f.plain && f.value > 1 && strings.Contains(f.field, fieldWords[Scaling]) && !has(b) {
			all = append(all, Mistake{Kind: "rope.theta-scaled", X: some(b)})
		}
	}
	if d := 2 * len(r.values); d > 2 && r.base > 1 {
		for _, by := range []int{2, 4, 8, 16, 32} {
			if b := r.base * math.Pow(float64(by), float64(d)/float64(d-2)); !has(b) && !typed(round6(b)) { // 10000 says nothing
				all = append(all, Mistake{Kind: "rope.theta-ntk", X: some(b), N: by})
			}
		}
		c := r.m.List.Config
		for _, size := range []int{c.HiddenSize / max(c.NumHeads, 1), c.HeadDim, d / 2, 2 * d, c.HiddenSize} {
			if b := math.Pow(r.base, float64(d)/float64(max(size, 1))); size > 0 && size != d && !math.IsInf(b, 0) && !has(b) && !typed(round6(b)) {
				all = append(all, Mistake{Kind: "rope.theta-of-head", X: some(b), N: size, M: d})
			}
		}
	}
	for _, b := range []float64{1e4, 1e6, 5e5, 1e5, 1e7, 1e3, 1e2, 10, 2 * r.base, 4 * r.base, 8 * r.base, r.base / 2, r.base / 4, r.base / 8} {
		if b = round6(b); b > 1 && !has(b) {
			all = append(all, otherBase(b))
		}
	}
	return all
}

// otherBase is the mistake of a wrong base, if only its value is known.
func otherBase(x float64) Mistake { return Mistake{Kind: "rope.theta", X: some(x)} }

// bases tries other bases, scaled as they should be and not.
func (r *rotary) bases() error {
	scales := []float64{1}
	if r.pure && r.scale != 1 {
		scales = append(scales, r.scale)
	}
	for _, b := range r.thetas() {
		for _, by := range scales {
			n, ok := r.based(b, by)
			if !ok {
				continue
			}
			if err := r.try(n, false, func(v []float64) []float64 { return r.powers(v, b.X.Value, by) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// based is the name of a mistake of the base. The engine then multiplies all frequencies by a number. ok is false if both are right.
func (r *rotary) based(m Mistake, by float64) (n Name, ok bool) {
	value := m.X.Value
	var equal, fields []Field
	if called := r.called(value, r.base, Theta); called != "" {
		m = otherBase(value)
		m.Called = called
		for _, name := range fieldNames(called) {
			equal = append(equal, Field{name, value})
		}
	}
	switch {
	case r.pure && math.Abs(r.base/value-1) < 1e-4:
		return Mistake{Kind: "rope.factor-left-out", By: literal(1 / r.scale)}.name(), by != r.scale
	case r.pure:
		right := r.base
		for _, f := range r.numbers { // as the configuration has it
			if f.plain && math.Abs(f.value/r.base-1) < 1e-4 {
				right = f.value
			}
		}
		m.Right, fields = some(right), r.fields(right, Theta)
		if by == 1 && r.scale != 1 {
			m.By = literal(1 / r.scale)
		}
	case r.unscaled(value):
		m, equal = Mistake{Kind: "rope.scaling-left-out"}, nil
		if right := r.setting("factor"); right > 0 {
			m.Right, fields = some(right), r.fields(right, Scaling)
		}
	default:
		m.Kind = "rope.theta-unscaled"
	}
	n = m.name()
	n.Equal, n.Fields = equal, fields
	return n, true
}

// unscaled reports whether the frequencies are those of a base that some of them keep, and others are scaled.
func (r *rotary) unscaled(base float64) bool {
	if base == r.setting("theta") {
		return true
	}
	own := powersOf(slices.Clone(r.values), base, 1)
	for j := 1; j < len(own); j++ {
		if math.Abs(r.values[j]/own[j]-1) < 1e-6 {
			return true
		}
	}
	return false
}

// scalings are factors by which frequencies are divided.
func (r *rotary) scalings() []number {
	var all []number
	for _, f := range r.numbers {
		if f.plain && strings.Contains(f.field, "factor") && f.value > 1 {
			all = append(all, f)
		}
	}
	for _, v := range []float64{2, 4, 8, 16, 32, 64} {
		if !slices.ContainsFunc(all, func(o number) bool { return o.value == v }) {
			all = append(all, number{value: v})
		}
	}
	return all
}

// factors tries all frequencies times a number. A factor of scaling is what frequencies are multiplied by; that another number is the
// same means nothing.
func (r *rotary) factors() error {
	for _, f := range r.others(r.first.signed(r.m), 1, "") {
		if f.value <= 0 || f.value == 1 || r.scale != 1 && r.pure && math.Abs(f.value*r.scale-1) < 1e-5 { // named above
			continue
		}
		by := f.value
		m := Mistake{Kind: "rope.frequencies-multiplied", X: some(by)}
		if r.pure && r.scale != 1 { // they are scaled, and by another number
			if m.X = some(by * r.scale); same(by*r.scale*r.scale, 1) {
				m.Kind = "rope.frequencies-multiplied-not-divided"
			}
		} else {
			m.Called = listed(slices.DeleteFunc(fieldNames(f.words), func(w string) bool { return !strings.Contains(w, "factor") }))
		}
		if err := r.scaledBy(m, by, m.Called == ""); err != nil {
			return err
		}
	}
	return nil
}

// narrowed tries frequencies that were rounded.
func (r *rotary) narrowed() error {
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		if err := r.try(Mistake{Kind: "rope.frequencies-rounded", DType: d}.name(), false, func(v []float64) []float64 {
			for j := range v {
				v[j] = floats.Round(d, v[j])
			}
			return v
		}); err != nil {
			return err
		}
	}
	return nil
}
