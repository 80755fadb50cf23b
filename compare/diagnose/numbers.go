package diagnose

import (
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// number is one that a configuration has, or a function of it.
type number struct {
	value float64
	words string // "1/√head_dim"
	field string // "head_dim"
	plain bool   // it is the field's own value
	own   bool   // its words are of no field: they are said as they are
	// rounded is the type that the right number was rounded to, and unit the type whose distance from 1 to the next number this is; 0 for neither.
	rounded, unit hooks.DType
}

// numbersOf are the numbers of a configuration, and of each its root, its reciprocal and that of its root.
func numbersOf(c *order.Config) []number {
	var all []number
	fields := Fields(c)
	if c.NumHeads > 0 && c.HiddenSize/c.NumHeads != c.HeadDim { // the size of a head, where there is no other
		fields = append(fields, Field{widthOfHeads, float64(c.HiddenSize / c.NumHeads)})
	}
	for _, f := range fields {
		v := f.Value
		for k, n := range []number{{value: v, words: f.Name, field: f.Name, plain: f.Name != widthOfHeads}, {value: math.Sqrt(v), words: "√(" + f.Name + ")", field: f.Name}, {value: 1 / v, words: "1/(" + f.Name + ")", field: f.Name}, {value: 1 / math.Sqrt(v), words: "1/√(" + f.Name + ")", field: f.Name}} {
			if f.Name != widthOfHeads {
				n.words = strings.NewReplacer("(", "", ")", "").Replace(n.words)
			}
			if v > 0 && v != 1 && (k == 0 || v >= 2 && isWidth(f.Name)) {
				all = append(all, n)
			}
		}
	}
	return all
}

// widthOfHeads is what the size of a head is taken for that has one of its own.
const widthOfHeads = "hidden_size/num_attention_heads"

// usualCaps are the soft caps of published models.
var usualCaps = []float64{50, 30, 20, 15}

// isWidth reports whether a field is one of which a scale may be a function: a width, or a scalar that is meant for it.
func isWidth(name string) bool {
	return !strings.Contains(name, "vocab") && slices.ContainsFunc([]string{"size", "dim", "scalar"}, func(w string) bool { return strings.Contains(name, w) })
}

// Fields are the numbers of a configuration by name, those of layers each once.
func Fields(c *order.Config) []Field {
	var m map[string]any
	if c == nil || json.Unmarshal(c.Canonical(), &m) != nil {
		return nil
	}
	var all []Field
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case float64:
			f := Field{c.Key(strings.TrimPrefix(path, "gemma3n.")), v}
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		case map[string]any:
			var keys []string
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				walk(strings.TrimPrefix(path+"."+k, "."), v[k])
			}
		case []any:
			for _, x := range v {
				walk(path, x)
			}
		}
	}
	walk("", m)
	return all
}

// powers are those of ten by which a constant may be off.
const powers = 6

// others are the numbers that one may be in place of: of the program and the configuration, and functions of itself.
func (s *search) others(t *program.Parts, old float64, what TermKind) []number {
	var all []number
	add := func(n number) {
		same := func(o number) bool { return same(o.value, n.value) }
		if !same(number{value: old}) && !math.IsInf(n.value, 0) && n.value == n.value && !slices.ContainsFunc(all, same) {
			all = append(all, n)
		}
	}
	for _, n := range s.numbers {
		add(n)
		for k := range all { // one number, several names
			if o := &all[k]; same(o.value, n.value) && o.words != n.words && o.words != "" && n.words != "" && len(fieldNames(o.words)) <= 2 && !strings.Contains(o.words, n.words) {
				o.words, o.plain = listed([]string{o.words, n.words}), o.plain || n.plain
			}
		}
	}
	for _, i := range t.Numbers() {
		add(number{value: t.Steps[i].Value})
	}
	if what == SoftCap {
		for _, v := range usualCaps {
			add(number{value: v})
		}
	}
	for k := 1; k <= 2*powers; k++ {
		add(number{value: math.Pow10(-k)})
	}
	for k := 1; k <= powers; k++ {
		add(number{value: old * math.Pow10(k)})
		add(number{value: old * math.Pow10(-k)})
	}
	if what == Epsilon {
		for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
			add(number{value: 2 * floats.Unit(d), unit: d})
		}
	}
	for _, v := range []float64{-old, old * old, 1 / old, math.Sqrt(math.Abs(old)), 1 / (old * old), 1, -1, 2 * old, old / 2, old + 1, old - 1} {
		add(number{value: v})
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		if r := floats.Round(d, old); r != old {
			add(number{value: r, rounded: d})
		}
	}
	return append(all, number{})
}

// said reports whether something is known of a number beside its value.
func (n number) said() bool { return n.words != "" || n.rounded != 0 || n.unit != 0 }

// near reports whether a number is another one that was rounded: no mistake by itself in 16 bits, see the package's rule.
func (s *search) near(old, v float64) bool {
	if old == 0 {
		return false
	}
	off := math.Abs(v/old - 1)
	if s.first.Call.DType == hooks.F32 {
		return false
	}
	return off < 0x1p-9
}

// otherNumbers yields numbers of a formula in each other's place and others, those first that are plausible for any: equal ones together, then one by one.
func otherNumbers(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		numbers := t.Numbers()
		var others [][]number
		for _, i := range numbers {
			others = append(others, s.others(t, t.Steps[i].Value, s.numberWords(t.Program, i).Kind))
		}
		for more, rank := true, 0; more; rank++ {
			more = false
			for k, i := range numbers {
				if rank >= len(others[k]) {
					continue
				}
				more = true
				for _, at := range equalNumbers(t, numbers, i) {
					if !s.numberAt(t, i, at, others[k][rank], yield) {
						return
					}
				}
			}
		}
	}
}

// equalNumbers are the places in which a number is another one: all that have its value, where it is the first of these, and its own.
func equalNumbers(t *program.Parts, numbers []int, i int) [][]program.Place {
	var equal []program.Place
	first := true
	for _, k := range numbers {
		if t.Steps[k].Value == t.Steps[i].Value {
			first = first && k >= i
			equal = append(equal, t.Of(k))
		}
	}
	own := []program.Place{t.Of(i)}
	if !first || len(equal) == 1 {
		return [][]program.Place{own}
	}
	return [][]program.Place{equal, own}
}

// numberAt yields a number in place of that of a step: where the step's is a tensor of the model's dtype, rounded, and where that gives nothing not rounded.
func (s *search) numberAt(t *program.Parts, i int, at []program.Place, n number, yield func(Mistake) bool) bool {
	st, dtype := &t.Steps[i], s.first.Call.DType
	if s.near(st.Value, n.value) || s.cautious && (st.Round == program.Model || !powerOfTen(n.value/st.Value)) {
		return true
	}
	m, before := s.constant(s.first, i, n, at...), len(s.found)
	if !yield(m) {
		return false
	}
	if s.cautious || len(s.found) > before || dtype == hooks.F32 || st.Round != program.Model || !n.said() || floats.Round(dtype, n.value) == n.value {
		return true
	}
	m.Rounding = Unstored
	return yield(m)
}

// otherNumber has another number at places; where it is unstored the number is no tensor of the model's dtype.
func otherNumber(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	switch {
	case !ok:
		return nil
	case m.Rounding == "" && m.Kind != "number.not-rounded":
		return d.Apply(e.signed(s.m))
	}
	t, ed := e.signed(s.m), e.Program.Edit()
	for _, p := range d.At {
		for _, k := range t.Copies(p) {
			ed.SetNumber(k, d.Value)
			ed.Step(k).Round = program.Plain
		}
	}
	return ended(ed)
}

// unroundedNumbers yields constants that are tensors of the model's dtype and are kept as they were computed.
func unroundedNumbers(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range t.Numbers() {
			st := &t.Steps[i]
			if s.cautious || st.Round != program.Model || floats.Round(s.first.Call.DType, st.Value) == st.Value {
				continue
			}
			if !yield(Mistake{
				Kind: "number.not-rounded", Of: s.numberWords(t.Program, i), For: literal(st.Value), DType: s.first.Call.DType, Place: s.site(s.first, i),
				Edit: program.Edit{Class: program.Constant, At: []program.Place{t.Of(i)}, Value: st.Value}.Text(),
			}) {
				return
			}
		}
	}
}

// literals yields the numbers of a formula that no configuration gives, such as the 1 of 1+w, doubled, with the opposite sign and halved.
func literals(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		numbers := t.Numbers()
		for _, i := range t.Firsts() {
			st := &t.Steps[i]
			readers := readersOf(t.Program, i)
			if st.Prim != program.Number || slices.Contains(numbers, i) || len(readers) != 1 || t.Steps[readers[0]].Prim != program.Add && t.Steps[readers[0]].Prim != program.Mul {
				continue
			}
			for _, by := range []float64{2, -1, 0.5} {
				m := Mistake{Kind: "number.value", Place: s.site(s.first, readers[0]), Of: s.step(s.first, readers[0]), X: some(by * st.Value), Right: some(st.Value)}
				m.Edit = program.Edit{Class: program.Constant, At: []program.Place{t.Of(i)}, Value: by * st.Value}.Text()
				if !yield(m) {
					return
				}
			}
		}
	}
}

// powerOfTen reports whether a ratio is 0 or a power of ten, up to the largest that is tried.
func powerOfTen(x float64) bool {
	if x == 0 {
		return true
	}
	k := math.Round(math.Log10(x))
	return math.Abs(k) <= powers && math.Abs(x/math.Pow10(int(k))-1) < 1e-9
}

// called says which field of the configuration a number is, or is a function of, for a sentence; empty where it may be a coincidence: a
// number that people type, or that several fields have, is that of a field only if the field is the right number's, one of its kind, or
// one of which the number is what the right one is of its own.
func (s *subject) called(v, right float64, what TermKind) string {
	var own, kind, all []number
	for _, n := range s.numbers {
		if !same(n.value, v) {
			continue
		}
		all = append(all, n)
		alike := func(o number) bool {
			return !n.plain && !o.plain && same(o.value, right) && o.function() == n.function()
		}
		if w := fieldWords[what]; n.plain && w != "" && strings.Contains(n.field, w) || slices.ContainsFunc(s.numbers, alike) {
			kind = append(kind, n)
		}
		if slices.ContainsFunc(s.numbers, func(o number) bool { return o.field == n.field && same(o.value, right) }) {
			own = append(own, n)
		}
	}
	switch {
	case len(own) > 0:
		all = own
	case len(kind) > 0:
		all = kind
	case typed(v):
		return ""
	}
	var names []string
	for _, n := range all {
		if !slices.Contains(names, n.words) {
			names = append(names, n.words)
		}
	}
	if len(names) > maxAliases {
		return ""
	}
	return listed(names)
}

// function is what a number is of its field: "1/√".
func (n number) function() string {
	return strings.NewReplacer(n.field, "", "(", "", ")", "").Replace(n.words)
}

// typed reports whether a number is one that people type: a power of two, or one of at most two digits.
func typed(v float64) bool {
	if f, _ := math.Frexp(v); math.Abs(f) == 0.5 {
		return true
	}
	two, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 1, 64), 64)
	return err == nil && same(two, v)
}

// field is the last part of a field's path.
func field(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
