package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/functions"
)

// made are the frequencies of a table by the ways of engines, each with what it may be off by. Write u for 2⁻²⁴ and x(j) for
// ln(Theta)·2j/Dim; a power or an exponential changes by δ, relatively, where its exponent changes by δ.
//
//	inverse  a power, by its own ulp, and a reciprocal
//	power    the same with a worse library; where Dim is no power of two the exponent is rounded once or twice: 2·x(j)
//	exp      the logarithm, its product with j and its division by Dim/2 are off by LogOfBase+2 units together: times x(j), and Exp
//	running  s is off by a power, by its own ulp, and by x(1) where 2/Dim is rounded: times j; each of j products is rounded
//	powers   s as before, times j; then a power of s, also by a fast logarithm: j·FastLog2·ln 2 and the rounding of its product, x(j)
//
// What scaling adds is in [Rotary.scalingUnits].
func (o Rotary) made() *program.Frequencies {
	n := o.Dim / 2
	f := &program.Frequencies{Exact: make([]float64, n)}
	for way := range f.Ways {
		f.Ways[way] = program.WayOfFrequencies{Values: make([]float64, n), Units: make([]float64, n)}
	}
	f.Ways[program.WayInverse].Values = o.frequencies()
	rounded := 1.0 // roundings of an exponent
	if o.Dim&(o.Dim-1) == 0 {
		rounded = 0
	}
	step := f32(math.Pow(f32(o.Theta), f32(-2/float64(o.Dim))))
	slope := math.Log(o.Theta) * 2 / float64(o.Dim) // x(1)
	f.Ways[program.WayRunning].Factor = step
	for j := range n {
		turns, x := float64(j), slope*float64(j)
		whole := math.Pow(o.Theta, -float64(2*j)/float64(o.Dim))
		f.Exact[j] = o.scaledExactly(whole)
		set := func(way uint8, inv, units float64) {
			f.Ways[way].Values[j] = o.scaled(inv)
			if j > 0 { // whatever is raised to the power of 0 is 1
				f.Ways[way].Units[j] = units
			}
			f.Ways[way].Units[j] += o.scalingUnits(whole, f.Ways[program.WayInverse].Units[j])
		}
		ofStep := turns * (functions.PowerOfBase*roundingOf(step) + rounded*slope)
		set(program.WayInverse, o.inverse(j), functions.PowerOfBase*roundingOf(1/whole)+roundingOf(whole))
		set(program.WayPower, o.inverse(j), functions.PowerOnGPU+1+2*rounded*x)
		set(program.WayExp, f32(math.Exp(f32(-turns*f32(math.Log(o.Theta)/float64(n))))), functions.Exp+(functions.LogOfBase+2)*x)
		set(program.WayRunning, f32(math.Pow(step, turns)), ofStep+turns)
		set(program.WayPowers, f32(math.Pow(step, turns)), ofStep+functions.PowerOnGPU+turns*functions.FastLog2*math.Ln2+x)
		f.Ways[program.WayRunning].Values[j] = f32(f.Exact[j] / whole)
	}
	return f
}

// roundingOf is the largest relative change by which float32 rounds a number of that size, in units of 2⁻²⁴: between 1/2 and 1. An ulp is
// twice as much.
func roundingOf(x float64) float64 {
	fraction, _ := math.Frexp(x)
	return 0.5 / fraction
}

// inverse is frequency j before it is scaled, every step rounded to float32.
func (o Rotary) inverse(j int) float64 {
	return f32(1 / f32(math.Pow(f32(o.Theta), f32(float64(2*j)/float64(o.Dim)))))
}

// scaled is a frequency as Scaling says, every step rounded to float32.
func (o Rotary) scaled(inv float64) float64 {
	switch o.Scaling {
	case "linear":
		return f32(inv / f32(o.Factor))
	case "llama3":
		return o.llama3(inv)
	}
	return inv
}

// scaledExactly is scaled without any rounding.
func (o Rotary) scaledExactly(inv float64) float64 {
	switch o.Scaling {
	case "linear":
		return inv / o.Factor
	case "llama3":
		return inv * o.shareKept(o.smooth(inv))
	}
	return inv
}

// smooth is how far Llama 3's scaling keeps a frequency: 0 for long waves, 1 for short ones.
func (o Rotary) smooth(inv float64) float64 {
	return min(max((float64(o.Positions)*inv/(2*math.Pi)-o.LowFreq)/(o.HighFreq-o.LowFreq), 0), 1)
}

// shareKept is what a frequency is multiplied by.
func (o Rotary) shareKept(smooth float64) float64 { return (1-smooth)/o.Factor + smooth }

// scalingUnits is what scaling adds to what a frequency may be off by, in units of 2⁻²⁴; units is what the wavelengths are off by that
// Llama 3's bands are found by. A factor that is a power of two rounds nothing. Between the bands smooth is off by the error of
// position·frequency/2π, which has four roundings, then by those of a difference and a quotient; the mixture has four more.
func (o Rotary) scalingUnits(inv, units float64) float64 {
	divided := 2.0 // by a rounded reciprocal
	if fraction, _ := math.Frexp(o.Factor); fraction == 0.5 {
		divided = 0
	}
	switch o.Scaling {
	case "linear":
		return divided
	case "llama3":
		turns, smooth := float64(o.Positions)*inv/(2*math.Pi), o.smooth(inv)
		off := (turns*(units+5)/(o.HighFreq-o.LowFreq) + 2*smooth)
		if near := off * 0x1p-24; smooth <= 0 && turns < o.LowFreq*(1-near) {
			return divided
		} else if smooth >= 1 && turns > o.HighFreq*(1+near) {
			return 0
		}
		return divided + 4 + off*(1-1/o.Factor)/o.shareKept(smooth)
	}
	return 0
}
