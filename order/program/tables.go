package program

import (
	"math"
	"slices"
)

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

// turned says of each step whether it is an angle: nothing but a rounding and a move is between it and a cosine or a sine.
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

// Turning are the vectors of constants from which cosines and sines are computed: the inverse frequencies of a rotary embedding. Other
// constants of a program, such as a mask or indexes, are none, and positions that follow each other.
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
