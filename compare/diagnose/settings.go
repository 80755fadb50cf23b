package diagnose

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// settings tries the rotary operation with other numbers in each of its settings, and takes the frequencies that it makes of them: of the
// configuration, those that are usual, and halves and doubles.
func (r *rotary) settings() error {
	if r.entry == nil {
		return nil
	}
	for _, usual := range []bool{true, false} {
		for _, name := range sortedKeys(r.made) {
			if err := r.othersIn(r.entry, r.made, name, usual); err != nil {
				return err
			}
		}
	}
	return r.bands(r.entry, r.made)
}

// operation is an entry whose operation makes the frequencies, and its settings; nil where there is none.
func (r *rotary) operation() (*order.Entry, map[string]any) {
	for k := range r.m.List.Entries {
		e := &r.m.List.Entries[k]
		if e.Op == nil || len(e.Inputs) != 1 || len(e.Weights) > 0 || !slices.Equal(r.frequenciesOf(e, e.Op), r.values) {
			continue
		}
		if fields, err := settingsOf(e.Op); err == nil {
			return e, fields
		}
	}
	return nil, nil
}

// setting is a number of the operation that makes the frequencies; 0 where it has none.
func (r *rotary) setting(name string) float64 {
	x, _ := r.made[name].(float64)
	return x
}

// usualSettings are what the published files of models have.
var usualSettings = map[string][]float64{
	"theta": {1e4, 5e5, 1e6, 1e5}, "factor": {8, 32, 4, 2}, "low_freq_factor": {1}, "high_freq_factor": {4}, "original_max_position_embeddings": {8192, 4096, 2048},
}

// related reports whether a field of the configuration is of the kind of a setting: lengths, which are confused.
func related(field, setting string) bool {
	return field != setting && strings.Contains(field, "position_embeddings") && strings.Contains(setting, "position_embeddings")
}

// othersIn tries other numbers in one setting.
func (r *rotary) othersIn(e *order.Entry, fields map[string]any, name string, usual bool) error {
	old, ok := fields[name].(float64)
	if !ok || name == "dim" {
		return nil
	}
	var all []float64
	add := func(v float64) {
		if v > 0 && v != old && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	if usual {
		for _, n := range r.numbers {
			if n.plain && related(field(n.field), name) {
				add(n.value)
			}
		}
		for _, v := range usualSettings[name] {
			add(v)
		}
	} else {
		for _, v := range []float64{1, 2 * old, old / 2, 4 * old, old / 4, 8 * old, old / 8, 10 * old, old / 10} {
			add(v)
		}
	}
	for _, v := range all {
		changed := maps.Clone(fields)
		changed[name] = v
		values := r.frequenciesWith(e, changed)
		if values == nil {
			continue
		}
		n := Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: name}, X: some(v), Right: some(old), Called: r.called(v, old, TermKind(name))}.name()
		for _, f := range r.numbers {
			if f.plain && f.value == old && field(f.field) == name {
				n.Fields = append(n.Fields, Field{f.field, f.value})
			}
		}
		if err := r.try(n, name == "theta", func([]float64) []float64 { return slices.Clone(values) }); err != nil {
			return err
		}
	}
	return nil
}

// bands tries bands of the scaling whose bounds are all off by 2π: a wavelength is taken for the inverse of a frequency.
func (r *rotary) bands(e *order.Entry, fields map[string]any) error {
	for _, by := range []float64{1 / (2 * math.Pi), 2 * math.Pi} {
		changed, some := maps.Clone(fields), false
		for name, x := range fields {
			if v, ok := x.(float64); ok && strings.HasSuffix(name, "freq_factor") {
				changed[name], some = v*by, true
			}
		}
		values := r.frequenciesWith(e, changed)
		if !some || values == nil {
			continue
		}
		m := Mistake{Kind: "rope.bands-without-2pi"}
		if by > 1 {
			m.Kind = "rope.bands-2pi-twice"
		}
		if err := r.try(m.name(), false, func([]float64) []float64 { return slices.Clone(values) }); err != nil {
			return err
		}
	}
	return nil
}

// frequenciesWith are those that the operation of an entry makes with other settings; nil where it has no such.
func (r *rotary) frequenciesWith(e *order.Entry, fields map[string]any) []float64 {
	other, err := withSettings(e.Op, fields)
	if err != nil {
		return nil // no whole number
	}
	values := r.frequenciesOf(e, other)
	if len(values) != len(r.values) || slices.ContainsFunc(values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return nil
	}
	return values
}

// frequenciesOf are the constants of an entry with an operation that positions are multiplied by; nil where it has none.
func (r *rotary) frequenciesOf(e *order.Entry, o program.Op) []float64 {
	pass := r.m.Passes[r.first.Node.Pass]
	b := program.NewBuilder()
	in := b.Input(0, r.shapeOf(e.Inputs[0], r.first.Node.Pass))
	p, err := b.Program(b.Apply(o, "", e.Size(pass, r.m.List.Config.SlidingWindow), []program.Var{in}, nil))
	if err != nil {
		return nil
	}
	all := p.Turning()
	if len(all) == 0 {
		return nil
	}
	return p.Steps[all[0]].Values
}

// solvedBase looks for a base that nothing suggests, where no other frequencies give everything.
func (r *rotary) solvedBase() error {
	if !r.pure || len(r.found) > 0 {
		return nil
	}
	edit := func(e *Entry, x float64) *program.Edited {
		return e.Program.Frequencies(func(v []float64) []float64 { return r.powers(v, x, r.scale) })
	}
	f := family{old: r.base, edit: edit, of: func(n number) Mistake { return Mistake{Kind: "rope.theta", X: some(n.value)} }}
	for by := 1.0; by <= mostBase; by *= 4 {
		f.starts = append(f.starts, r.base*by)
		if r.base/by > 1 {
			f.starts = append(f.starts, r.base/by)
		}
	}
	var err error
	r.solve(f, func(m Mistake) bool {
		err = r.search.try(hypothesis{
			class: program.Known, solved: 1, number: m.X.Value, make: func(e *Entry) *program.Edited { return edit(e, m.X.Value) },
			say: func(*Entry) Name {
				name, _ := r.based(otherBase(m.X.Value), r.scale)
				name.Site, name.Mistake.Place = frequencySite, frequencySite
				return name
			},
		})
		return err == nil
	})
	return cmp.Or(err, r.err)
}

// mostBase is how many times larger or smaller a base is looked for.
const mostBase = 1 << 12

// settingsOf are the fields of an operation.
func settingsOf(o program.Op) (m map[string]any, err error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, &m)
}

// withSettings is an operation with other fields.
func withSettings(o program.Op, m map[string]any) (program.Op, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	v := reflect.New(reflect.TypeOf(o))
	if err := json.Unmarshal(data, v.Interface()); err != nil {
		return nil, err
	}
	return v.Elem().Interface().(program.Op), nil
}

func sortedKeys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
