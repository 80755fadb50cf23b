package diagnose

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// number is a number of a configuration, or a function of one.
type number struct {
	value float64
	words string // "1/√head_dim"
	field string // "head_dim"
	plain bool   // the value of the field itself
	own   bool   // words name no field, and are said unchanged
	// rounded is the type that the right number was rounded to. unit is the type for which the number is the distance from 1 to the next number. Each is 0
	// if unset.
	rounded, unit hooks.DType
}

// numbers are the numbers of a configuration.
type numbers []number

// numbersOf lists the numbers of a configuration. Widths come with their roots, their reciprocals and the reciprocals of their roots.
func numbersOf(c *order.Config) numbers {
	var all numbers
	fields := fields(c)
	if c.NumHeads > 0 && c.HiddenSize/c.NumHeads != c.HeadDim { // head_dim as ports may compute it
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

// widthOfHeads is the size of a head that ports compute where the configuration has its own size, head_dim.
const widthOfHeads = "hidden_size/num_attention_heads"

// isWidth reports whether a scale may be a function of a field: a width, or a scalar for this purpose.
func isWidth(name string) bool {
	return !strings.Contains(name, "vocab") && slices.ContainsFunc([]string{"size", "dim", "scalar"}, func(w string) bool { return strings.Contains(name, w) })
}

// fields are the numbers of a configuration by name. A number of several layers is listed once.
func fields(c *order.Config) []Field {
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

// called names, for a sentence, the fields of the configuration that equal the number v, or functions of fields that do. Fields of the right number are
// preferred. Next are fields of the number's kind, functions of fields if the same function of another field is the right number, and products of the right
// number and the same function of another field. If the plain value of a field of the right number is v, the sentence has the first two of these as well.
// Other fields may be equal by chance, so they are named only if people do not often type the number. The result is empty for more than [maxAliases] names.
func (of numbers) called(v, right float64, what TermKind) string {
	var own, kind, products, all []string
	plain := false // the value of a field of the right number itself, without the function
	for _, n := range of {
		alike := func(o number) bool {
			return !n.plain && !o.plain && same(o.value, right) && o.function() == n.function()
		}
		if at := slices.IndexFunc(of, alike); at >= 0 && same(n.value*right, v) && n.field != of[at].field {
			products = append(products, productWords(of[at].words, n.words))
		}
		if !same(n.value, v) {
			continue
		}
		all = append(all, n.words)
		if w := fieldWords[what]; n.plain && w != "" && strings.Contains(n.field, w) || slices.ContainsFunc(of, alike) {
			kind = append(kind, n.words)
		}
		if slices.ContainsFunc(of, func(o number) bool { return o.field == n.field && same(o.value, right) }) {
			own, plain = append(own, n.words), plain || n.plain
		}
	}
	switch {
	case plain:
		all = append(own, kind...)
	case len(own) > 0:
		all = own
	case len(kind)+len(products) > 0:
		all = append(products, kind...)
	case typed(v):
		return ""
	case len(all) == 0 && right == 1 && !written(v, 4) && typed(1/v):
		return reciprocalWords(1 / v)
	}
	var names []string
	for _, n := range all {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) > maxAliases {
		return ""
	}
	return listed(names)
}

// function is the function of the field that gives a number: "1/√".
func (n number) function() string {
	return strings.NewReplacer(n.field, "", "(", "", ")", "").Replace(n.words)
}

// written reports whether a number has at most so many significant digits.
func written(v float64, most int) bool {
	x, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', most-1, 64), 64)
	return err == nil && same(x, v)
}

// typed reports whether people often type a number: a power of two, or a number of at most two digits.
func typed(v float64) bool {
	if f, _ := math.Frexp(v); math.Abs(f) == 0.5 {
		return true
	}
	return written(v, 2)
}

// field is the last part of a field's path.
func field(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// fieldWords are parts of the names of fields, by the part of a number in its formula.
var fieldWords = map[TermKind]string{Epsilon: "eps", SoftCap: "softcap", Window: "window", Theta: "theta", Scaling: ".factor"}

// having are the fields of the configuration that have a number.
func (of numbers) having(v float64) (all []Field) {
	for _, f := range of {
		if f.plain && same(f.value, v) {
			all = append(all, Field{f.field, f.value})
		}
	}
	return all
}

// fields lists the fields of the configuration that have a number. If some names say what the number is, only these fields are listed. A number that
// people often type gets no other fields, which may have it by chance.
func (of numbers) fields(v float64, what TermKind) []Field {
	var called []Field
	all := of.having(v)
	for _, f := range all {
		if w := fieldWords[what]; w != "" && strings.Contains(f.Name, w) {
			called = append(called, f)
		}
	}
	if len(called) > 0 {
		return called
	} else if typed(v) {
		return nil
	}
	return all
}

// fieldsOrFunctions are the fields of the configuration that have a number, or else a function of a field that gives the number.
func (of numbers) fieldsOrFunctions(right float64, what TermKind) []Field {
	if all := of.fields(right, what); len(all) > 0 {
		return all
	}
	for _, f := range of {
		if !f.plain && same(f.value, right) {
			return []Field{{f.words, right}}
		}
	}
	return nil
}
