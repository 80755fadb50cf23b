package program

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// The ways to the angles of a rotary embedding, frequency · position. They are equal in exact arithmetic. Each multiplies the error of
// a function by another number, so that engines which are right may be far more apart than two roundings.
const (
	WayInverse   uint8 = iota // 1/base^(2j/D), or base^(−2j/D), or from float64: each frequency by one power of a CPU's library
	WayPower                  // the same by a power of a GPU's library, or of a rounded exponent
	WayExp                    // exp(−ln(base)·2j/D)
	WayRunning                // position·s·s· … ·s, s = base^(−2/D)
	WayPowers                 // position·sʲ
	WaysOfAngles              // how many there are
)

var angleWords = [WaysOfAngles]string{
	WayPower:   "by a power that is further off, as on a GPU",
	WayExp:     "by the exponential of a product, as MLX does",
	WayRunning: "by a running product, as llama.cpp does on a CPU",
	WayPowers:  "by powers of one rounded factor, as llama.cpp does on a GPU",
}

// TableWords says how a way makes rotary tables, such as "by a running product, ..."; empty for transformers' own.
func TableWords(way uint8) string {
	if way >= WaysOfAngles {
		return ""
	}
	return angleWords[way]
}

// Frequencies are what the pairs of a rotary embedding turn by, a position, by each way in which engines make them.
type Frequencies struct {
	Exact []float64 // of float64
	Ways  [WaysOfAngles]WayOfFrequencies
}

// WayOfFrequencies is one way to the frequencies. Its values have the roundings of float32 steps and functions that are rounded correctly.
// Units has the errors of real functions.
type WayOfFrequencies struct {
	// Values are the frequencies of float32. Of a running product they are what its terms are multiplied by, which is 1 where
	// frequencies are not scaled.
	Values []float64
	// Factor is that of a running product; 0 for no such.
	Factor float64
	// Units are what a frequency may be off by in a right engine, in units of 2⁻²⁴ of its exact value: of a running product with the
	// roundings on the way. 0 is a frequency that every engine has exactly.
	Units []float64
}

// Turned is the angle of each frequency at each position, rounded to float32 in every arithmetic: frequency · position. Which way the
// frequencies are made is the engine's.
func (b *Builder) Turned(name string, f *Frequencies, position Var) Var {
	v := b.element(Angle, name, b.Vector("inv_freq", f.Ways[WayInverse].Values), position)
	if b.err == nil {
		b.Steps[v.Step].Payload = f
	}
	return v
}

// unitsOfAngle is what an angle is off by where nothing is known of its frequency but its value: two units of the frequency and the
// rounding of the product.
const unitsOfAngle = 3

// angles computes some rows of a step of angles. The bound of an angle is how far its value is from the exact one, and what the frequency
// may be off by and the rounding of the product make of that: so every right engine of that way is within it.
func (r *run) angles(i int, out, x, y operand, from, rows int) {
	s := &r.p.Steps[i]
	if s.turns() == nil || out.e == nil && r.choice(i).Way == WayInverse {
		for k, v := range x.v {
			angle := f32(v * f32(y.v[k]))
			if out.v[k] = angle; out.e != nil {
				out.e[k] = unitsOfAngle * unit32 * math.Abs(angle)
			}
		}
		return
	}
	way := r.choice(i).Way
	at := frequenciesOf(s, from, rows)
	if !r.ownFrequencies(s) {
		s.turns().edited(way, r.a.Hull, at, out, x, y)
		return
	}
	s.turns().angles(way, at, out, y)
	if r.a.Hull && out.e != nil {
		s.turns().widen(at, out, y)
	}
}

// ownFrequencies reports whether a step reads the frequencies that it was made with.
func (r *run) ownFrequencies(s *Step) bool {
	v, own := r.p.Steps[s.Args[0].Step].Vector(), s.turns().Ways[WayInverse].Values
	return r.p.Steps[s.Args[0].Step].Prim == Vector && len(v) == len(own) && (len(v) == 0 || &v[0] == &own[0])
}

// frequenciesOf is the number of the frequency of each element of some rows; nil where it is not known.
func frequenciesOf(s *Step, from, rows int) []float64 {
	v, n := s.Args[0], len(s.turns().Exact)
	if !Within(n, v.Shape, v.Stride, v.Off) {
		return nil
	}
	numbers := make([]float64, n)
	for j := range numbers {
		numbers[j] = float64(j)
	}
	at := make([]float64, rows*v.Last())
	gather(at, numbers, nil, v, from, from+rows)
	return at
}

// angles are those of some frequencies by one way, with their bounds.
func (f *Frequencies) angles(way uint8, at []float64, out, y operand) {
	t := &f.Ways[way]
	var chain product
	for k, j := range at {
		j := int(j)
		p := f32(y.v[k])
		if t.Factor != 0 {
			out.v[k] = f32(chain.to(p, t.Factor, j) * t.Values[j])
		} else {
			out.v[k] = f32(t.Values[j] * p)
		}
		if out.e != nil {
			out.e[k] = f.bound(t, j, out.v[k], y.v[k])
		}
	}
}

// bound is how far a right engine's angle of frequency j may be from a value by some way.
func (f *Frequencies) bound(t *WayOfFrequencies, j int, value, position float64) float64 {
	exact := f.Exact[j] * position
	e := math.Abs(value - exact)
	if units := t.Units[j]; units > 0 && position != 0 { // at position 0 every engine has 0
		e += units*unit32*math.Abs(exact) + halfUnit(hooks.F32, math.Max(math.Abs(value), math.Abs(exact)))
	}
	return e
}

// widen makes the bounds of angles hold for all ways.
func (f *Frequencies) widen(at []float64, out, y operand) {
	other := operand{make([]float64, len(out.v)), make([]float64, len(out.v))}
	for way := range WaysOfAngles {
		f.angles(way, at, other, y)
		for k, v := range other.v {
			out.e[k] = max(out.e[k], math.Abs(v-out.v[k])+other.e[k])
		}
	}
}

// edited computes the angles of changed frequencies, for example of a different theta. The exact values are unknown:
// an engine's angles may be larger or smaller than the computed angles, by the error of the way's frequencies.
func (f *Frequencies) edited(way uint8, hull bool, at []float64, out, x, y operand) {
	for k, v := range x.v {
		angle := f32(v * f32(y.v[k]))
		if out.v[k] = angle; out.e == nil {
			continue
		}
		units := f.off(way, at, k)
		if hull {
			for w := range WaysOfAngles {
				units = max(units, f.off(w, at, k))
			}
		}
		out.e[k] = (units + unitsOfAngle) * unit32 * math.Abs(angle)
	}
}

// off is how many units the frequency of an element may be off by. Without the number of the frequency it is the most of all.
func (f *Frequencies) off(way uint8, at []float64, k int) float64 {
	if at != nil {
		return f.Ways[way].Units[int(at[k])]
	}
	most := 0.0
	for _, u := range f.Ways[way].Units {
		most = max(most, u)
	}
	return most
}

// product is a running product p·s·s … of float32 with n factors so far.
type product struct {
	first, value float64
	n            int
}

// to is the product after n factors.
func (c *product) to(first, factor float64, n int) float64 {
	if n < c.n || first != c.first || c.n == 0 {
		c.first, c.value, c.n = first, first, 0
	}
	for ; c.n < n; c.n++ {
		c.value = f32(c.value * factor)
	}
	return c.value
}

// Tables makes angles of the products from which cosines and sines are taken, of constants, the frequencies, with positions: so a rotary embedding
// that was recorded may be made by the ways in which engines make one. A product is one only where the reference rounds it to float32, which
// the model's own dtype is where wide. made are the frequencies of some constants; nil for none.
func (b *Builder) Tables(wide bool, made func(values []float64) *Frequencies) {
	if b.err != nil {
		return
	}
	p := &Program{Steps: b.Steps}
	turning := map[int]bool{}
	for _, i := range p.Turning() {
		turning[i] = true
	}
	if len(turning) == 0 {
		return
	}
	angle := b.turned()
	for i := range b.Steps {
		s := &b.Steps[i]
		if s.Prim != Mul || !angle[i] || s.Round != Single && !(wide && s.Round == Model) {
			continue
		}
		x, y := s.Args[0], s.Args[1]
		if turning[y.Step] {
			x, y = y, x
		}
		if turning[y.Step] || !turning[x.Step] {
			continue
		}
		if f := made(b.Steps[x.Step].Vector()); f != nil {
			s.Prim, s.Round, s.Payload, s.Args = Angle, Plain, f, []Var{x, y}
		}
	}
}

// turned reports, by step, whether the result is an angle: only roundings and moves lie between the step and a cosine
// or a sine.
func (b *Builder) turned() []bool {
	is := make([]bool, len(b.Steps))
	for i := len(b.Steps) - 1; i >= 0; i-- {
		switch s := &b.Steps[i]; {
		case s.Prim == Cos, s.Prim == Sin, is[i] && (s.Prim == Round || s.Prim == Copy || s.Prim == Cat):
			for _, a := range s.Args {
				is[a.Step] = true
			}
		}
	}
	return is
}

// unitsOfRecorded is what a frequency may be off by that was recorded: by a power, a reciprocal and, where it is scaled, a mixture of two
// with four roundings. An engine's is off by as much on its side.
const unitsOfRecorded = 7

// unitsOfMixture is what scaling adds to an engine's way to a frequency.
const unitsOfMixture = 4

// Recorded returns the frequencies of a recorded program, whose float32 values are known and whose formula is not: YaRN scales such frequencies. A frequency
// is at most 1/base^(2j/D). So −ln(frequency) is at least ln(base)·2j/D, the number that multiplies the errors of the ways; see op.Rotary. The result is nil
// if the values are no frequencies.
func Recorded(values []float64, errors func(way uint8, j int, x float64) float64) *Frequencies {
	f := &Frequencies{Exact: values}
	for way := range f.Ways {
		f.Ways[way] = WayOfFrequencies{Values: values, Units: make([]float64, len(values))}
	}
	for j, v := range values {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil
		}
		if v == 0 || v == 1 { // in every engine
			continue
		}
		for way := range f.Ways {
			f.Ways[way].Units[j] = unitsOfRecorded + unitsOfMixture + errors(uint8(way), j, math.Abs(math.Log(v)))
		}
	}
	return f
}

// Turning returns the steps of the constant vectors from which cosines and sines are computed: the inverse
// frequencies of a rotary embedding. Turning skips other constants, such as a mask or indexes, and vectors of
// consecutive positions.
func (p *Program) Turning() []int {
	from := make([]bool, len(p.Steps))
	var all []int
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := &p.Steps[i]
		if s.Prim == Vector && from[i] && len(s.Vector()) > 0 && !counts(s.Vector()) {
			all = append(all, i)
		}
		if from[i] || s.Prim == Cos || s.Prim == Sin {
			for _, a := range s.Args {
				from[a.Step] = true
			}
		}
	}
	slices.Reverse(all)
	return all
}

// counts reports whether numbers are whole and follow each other.
func counts(v []float64) bool {
	for k, x := range v {
		if x != math.Trunc(x) || x != v[0]+float64(k) {
			return false
		}
	}
	return len(v) > 1
}
