package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const frequencySite = "inv_freq" // the place of mistakes of frequencies

// frequencyRules compute the wrong frequencies of a mistake from the right frequencies. The result is nil if the mistake does not fit the right
// frequencies.
var frequencyRules = map[Kind]func(f *frequencies, m Mistake) []float64{
	"rope.theta":             otherBase,
	"rope.theta-scaled":      otherBase,
	"rope.theta-ntk":         otherBase,
	"rope.theta-of-head":     otherBase,
	"rope.theta-of-kinds":    func(f *frequencies, m Mistake) []float64 { return f.powers(f.base*m.Times.Value, f.scale) },
	"rope.theta-exchanged":   exchangedBase,
	"rope.theta-unscaled":    func(f *frequencies, m Mistake) []float64 { return f.powers(m.X.Value, 1) },
	"rope.factor-left-out":   func(f *frequencies, _ Mistake) []float64 { return f.powers(f.base, 1) },
	"rope.scaling-left-out":  func(f *frequencies, _ Mistake) []float64 { return f.powers(f.base, 1) },
	"rope.scaling-of-all":    func(f *frequencies, m Mistake) []float64 { return f.powers(f.base, 1/m.X.Value) },
	"rope.scaling-factor":    otherFactor,
	"rope.scaling-of-some":   otherScalings,
	"rope.yarn":              yarn,
	"rope.yarn-multiplied":   yarn,
	"rope.llama3":            bands,
	"rope.bands-exchanged":   bandsExchanged,
	"rope.bands-without-2pi": func(f *frequencies, _ Mistake) []float64 { return f.bandsTimes(1 / (2 * math.Pi)) },
	"rope.bands-2pi-twice":   func(f *frequencies, _ Mistake) []float64 { return f.bandsTimes(2 * math.Pi) },
	"rope.setting":           otherSetting,
	"rope.whole-head":        largerPart,
	"rope.larger-part":       largerPart,
	"rope.smaller-part":      smallerPart,
	"rope.exponents-of-part": exponentsOfPart,
	"rope.frequencies-rounded": func(f *frequencies, m Mistake) []float64 {
		return f.each(func(x float64) float64 { return floats.Round(m.DType, x) })
	},
	"rope.frequencies-inverted": func(f *frequencies, _ Mistake) []float64 { return f.each(func(x float64) float64 { return 1 / x }) },
	"rope.frequencies-reversed": func(f *frequencies, _ Mistake) []float64 {
		v := slices.Clone(f.values)
		slices.Reverse(v)
		return v
	},
	"rope.exponents-zero": func(f *frequencies, _ Mistake) []float64 {
		return append(slices.Repeat(f.values[:1], f.turns), f.values[f.turns:]...)
	},
	// X is the factor on frequencies without a scaling.
	"rope.frequencies-multiplied":             func(f *frequencies, m Mistake) []float64 { return f.times(m.X.Value / f.scale) },
	"rope.frequencies-multiplied-not-divided": func(f *frequencies, m Mistake) []float64 { return f.times(m.X.Value / f.scale) },
	"rope.frequencies-factors":                timesEach,
	"rope.exponents-from-one":                 func(f *frequencies, m Mistake) []float64 { return f.times(1 / m.X.Value) },
	"rope.exponents-from-minus-one":           func(f *frequencies, m Mistake) []float64 { return f.times(m.X.Value) },
	"rope.angles-in-turns":                    func(f *frequencies, m Mistake) []float64 { return f.times(m.X.Value) },
	"rope.angles-in-half-turns":               func(f *frequencies, m Mistake) []float64 { return f.times(m.X.Value) },
}

// timesEach multiplies each frequency by its number.
func timesEach(f *frequencies, m Mistake) []float64 {
	all := m.Numbers.list()
	if len(all) != len(f.values) {
		return nil
	}
	for j, x := range f.values {
		all[j] = float64(float32(all[j] * x))
	}
	return all
}

// otherFrequencies puts the frequencies of a mistake in place of the entry's frequencies.
func otherFrequencies(s *subject, e *Entry, m Mistake) *program.Edited {
	rule := frequencyRules[m.Kind]
	return edit.Frequencies(e.Program, func(v []float64) []float64 {
		other := rule(frequenciesOf(s, e, v), m)
		if len(other) != len(v) || slices.ContainsFunc(other, func(x float64) bool { return x-x != 0 }) {
			return nil
		}
		return slices.Clone(other)
	})
}

// yarnMultiplied has YaRN's frequencies, with cosines and sines multiplied by YaRN's attention factor.
func yarnMultiplied(s *subject, e *Entry, m Mistake) *program.Edited {
	d := otherFrequencies(s, e, m)
	if d == nil {
		return nil
	}
	v, ok := s.valueOf(e, d)
	if !ok {
		return nil
	}
	by := 0.1*math.Log(m.By.X) + 1
	for i := range v.Data {
		v.Data[i] *= by
		v.Bound[i] = v.Bound[i]*by + 0x1p-23*math.Abs(v.Data[i])
	}
	return given(e, v)
}

// times are all frequencies times a number.
func (f *frequencies) times(by float64) []float64 {
	return f.each(func(x float64) float64 { return x * by })
}

// otherBase has another base, and keeps the scale of the entry unless the mistake leaves the scale out.
func otherBase(f *frequencies, m Mistake) []float64 {
	if m.By != (Term{}) {
		return f.powers(m.X.Value, 1)
	}
	return f.powers(m.X.Value, f.scale)
}

// exchangedBase has the other base of two.
func exchangedBase(f *frequencies, m Mistake) []float64 {
	for _, two := range [][2]float64{{m.Of.X, m.For.X}, {m.For.X, m.Of.X}} {
		if math.Abs(f.base/two[0]-1) < 1e-4 {
			return f.powers(two[1], f.scale)
		}
	}
	return nil
}

// otherFactor has another factor for the scaled frequencies, if some frequencies are not scaled.
func otherFactor(f *frequencies, m Mistake) []float64 {
	least, ok := f.least()
	if !ok {
		return nil
	}
	v := powersOf(len(f.values), f.base, 1)
	for j, whole := range v {
		part := (1 - f.values[j]/whole) / (1 - least) // how far the frequency is scaled
		v[j] = float64(float32(whole * (1 - part*(1-1/m.X.Value))))
	}
	return v
}

// otherScalings scales each run of frequencies in the way that the run names.
func otherScalings(f *frequencies, m Mistake) []float64 {
	if len(f.values) != m.N || f.base == 0 {
		return nil
	}
	v := slices.Clone(f.values)
	for j, whole := range powersOf(m.N, f.base, 1) {
		for _, run := range m.Runs.list() {
			if run.From <= j && j < run.To {
				v[j] = f.scaled(run.Of, f.values[j], whole, m.By.X)
			}
		}
	}
	return v
}

// scalingWays are the ways in which one frequency may be scaled.
var scalingWays = []string{"unscaled", "scaled", "ends-exchanged", "by-wavelength", "by-wavelength-everywhere", "by-frequency-everywhere", "waves", "waves-ends-exchanged"}

// scaled is a frequency in one of the scalingWays. own is the right frequency, and whole is the frequency without a scaling.
func (f *frequencies) scaled(way string, own, whole, factor float64) float64 {
	scaled := float64(float32(whole / factor))
	switch way {
	case "unscaled":
		return whole
	case "scaled":
		return scaled
	case "ends-exchanged":
		return float64(float32(float64(float32(whole+scaled)) - own))
	case "by-wavelength":
		turns := f.setting("original_max_position_embeddings") * whole / (2 * math.Pi)
		if turns < f.setting("low_freq_factor") || turns > f.setting("high_freq_factor") { // outside of Llama 3's bands
			return own
		}
		return f.blended(own, whole, factor, true)
	case "by-wavelength-everywhere":
		return f.blended(own, whole, factor, true)
	case "waves", "waves-ends-exchanged":
		low, high := f.waves()
		share := (2*math.Pi/whole - high) / (low - high) // 1 at the longest wave
		if !(share > 0 && share < 1) {
			return own
		}
		if way == "waves" {
			share = 1 - share
		}
		return float64(float32(whole / (share + (1-share)*factor)))
	case "by-frequency-everywhere":
		return f.blended(own, whole, factor, false)
	}
	return own
}

// waves are the wavelengths between which Llama 3's scaling blends: the longest and the shortest. They are infinite without bands.
func (f *frequencies) waves() (low, high float64) {
	length := f.setting("original_max_position_embeddings")
	return length / f.setting("low_freq_factor"), length / f.setting("high_freq_factor")
}

// blended returns a frequency that is blended as between Llama 3's bands. The share depends on the frequency, or on the wavelength. Without bands it
// returns the operation's own frequency.
func (f *frequencies) blended(own, whole, factor float64, byWavelength bool) float64 {
	low, high, length := f.setting("low_freq_factor"), f.setting("high_freq_factor"), f.setting("original_max_position_embeddings")
	if low == 0 || high == 0 {
		return own
	}
	wave := 2 * math.Pi / whole
	share := (length/wave - low) / (high - low)
	if byWavelength {
		share = (length/low - wave) / (length/low - length/high)
	}
	share = float64(float32(share))
	return float64(float32(share*whole + (1-share)*whole/factor))
}

// YaRN's usual numbers of turns within the length. Frequencies between the two are blended.
const (
	yarnFast = 32
	yarnSlow = 1
)

// yarn scales frequencies as YaRN does. A frequency with more than yarnFast turns within a length is kept. A frequency with fewer than yarnSlow turns is
// divided by a factor. Between the two, the share depends on the number of the pair.
func yarn(f *frequencies, m Mistake) []float64 {
	factor, length := m.By.X, m.For.X
	v := powersOf(len(f.values), f.base, 1)
	n := float64(len(v))
	pair := func(turns float64) float64 { return n * math.Log(length/(turns*2*math.Pi)) / math.Log(f.base) }
	low, high := max(math.Floor(pair(yarnFast)), 0), min(math.Ceil(pair(yarnSlow)), 2*n-1)
	if low == high {
		high += 0.001
	}
	for j, x := range v {
		share := float64(float32(min(max((float64(j)-low)/(high-low), 0), 1)))
		v[j] = float64(float32(float64(float32(x/factor*share)) + float64(float32(x*(1-share)))))
	}
	return v
}

// bands are the frequencies of the operation with Llama 3's scaling by a factor for a length, and with the published bands.
func bands(f *frequencies, m Mistake) []float64 {
	return f.with(map[string]any{"scaling": "llama3", "factor": m.By.X, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": m.For.X})
}

// otherSetting changes one setting of the operation.
func otherSetting(f *frequencies, m Mistake) []float64 {
	if f.setting(m.Of.Name) == 0 {
		return nil
	}
	return f.with(map[string]any{m.Of.Name: m.X.Value})
}

// bandsExchanged exchanges the two bounds of Llama 3's bands.
func bandsExchanged(f *frequencies, _ Mistake) []float64 {
	if f.setting("low_freq_factor") == 0 || f.setting("high_freq_factor") == 0 {
		return nil
	}
	return f.with(map[string]any{"low_freq_factor": f.setting("high_freq_factor"), "high_freq_factor": f.setting("low_freq_factor")})
}

// bandsTimes multiplies all bounds of the bands by a number.
func (f *frequencies) bandsTimes(by float64) []float64 {
	other := map[string]any{}
	for name, x := range f.made {
		if v, ok := x.(float64); ok && strings.HasSuffix(name, "freq_factor") {
			other[name] = v * by
		}
	}
	if len(other) == 0 {
		return nil
	}
	return f.with(other)
}

// largerPart has K frequencies that are not 0, more than the model has. If the mistake has a base, it is the base of the part, used for the whole head.
func largerPart(f *frequencies, m Mistake) []float64 {
	base := f.base
	if m.By != (Term{}) {
		base = f.baseOfPart()
	}
	v := powersOf(len(f.values), base, f.scale)
	clear(v[min(m.K, len(v)):])
	return v
}

// baseOfPart is the base if exponents count only the rotated part of the head.
func (f *frequencies) baseOfPart() float64 {
	return math.Pow(f.base, float64(f.turns)/float64(len(f.values)))
}

// smallerPart has 0 for all frequencies but the first K.
func smallerPart(f *frequencies, m Mistake) []float64 {
	v := slices.Clone(f.values)
	clear(v[min(m.K, len(v)):])
	return v
}

// exponentsOfPart has exponents that count the rotated part, not the head.
func exponentsOfPart(f *frequencies, _ Mistake) []float64 {
	return append(powersOf(f.turns, f.base, f.scale), f.values[f.turns:]...)
}
