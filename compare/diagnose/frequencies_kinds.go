package diagnose

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// kinds tries frequencies that are inverted, or all one, and those of another kind of scaling with the factors and the lengths of the
// configuration.
func (r *rotary) kinds() error {
	if err := r.try(Mistake{Kind: "rope.frequencies-inverted"}.name(), false, func(v []float64) []float64 {
		for j := range v {
			if v[j] != 0 {
				v[j] = float64(float32(1 / v[j]))
			}
		}
		return v
	}); err != nil {
		return err
	}
	first := r.values[0]
	if err := r.try(Mistake{Kind: "rope.exponents-zero"}.name(), false, func(v []float64) []float64 {
		for j := range v[:r.turns] {
			v[j] = first
		}
		return v
	}); err != nil {
		return err
	}
	base := r.setting("theta")
	if base == 0 && r.pure {
		base = r.base
	}
	if base <= 1 || r.turns != len(r.values) {
		return nil
	}
	for _, look := range []func(base float64) error{r.yarns, r.bandsFor} {
		if err := look(base); err != nil {
			return err
		}
	}
	return r.bandsExchanged()
}

// configured are the numbers of the configuration whose field is called so.
func (r *rotary) configured(is func(field string) bool, also ...float64) []float64 {
	all := also
	for _, f := range r.numbers {
		if f.plain && f.value > 1 && is(field(f.field)) && !slices.Contains(all, f.value) {
			all = append(all, f.value)
		}
	}
	return all
}

func (r *rotary) lengths() []float64 {
	return r.configured(func(f string) bool { return strings.Contains(f, "position_embeddings") })
}

func (r *rotary) scalingFactors() []float64 {
	return r.configured(func(f string) bool { return f == "factor" })
}

// YaRN's usual numbers of turns within the length, between which frequencies are blended.
const (
	yarnFast = 32
	yarnSlow = 1
)

// yarn are frequencies as YaRN scales them: those that turn more than yarnFast times within a length are kept, those that turn less than
// yarnSlow times are divided by a factor, and between them the share goes by the number of the pair.
func yarn(v []float64, base, factor, length float64) []float64 {
	n := float64(len(v))
	pair := func(turns float64) float64 { return n * math.Log(length/(turns*2*math.Pi)) / math.Log(base) }
	low, high := max(math.Floor(pair(yarnFast)), 0), min(math.Ceil(pair(yarnSlow)), 2*n-1)
	if low == high {
		high += 0.001
	}
	for j, x := range powersOf(v, base, 1) {
		share := float64(float32(min(max((float64(j)-low)/(high-low), 0), 1)))
		v[j] = float64(float32(float64(float32(x/factor*share)) + float64(float32(x*(1-share)))))
	}
	return v
}

// yarns tries YaRN in place of the frequencies' own scaling, with its factor of cosines and sines and without.
func (r *rotary) yarns(base float64) error {
	for _, factor := range r.scalingFactors() {
		for _, length := range r.lengths() {
			for _, scaled := range []bool{true, false} {
				by := 1.0
				m := Mistake{Kind: "rope.yarn", Place: frequencySite, By: literal(factor), For: literal(length)}
				if scaled {
					by = 0.1*math.Log(factor) + 1
					m.Kind = "rope.yarn-multiplied"
				}
				if err := r.search.try(hypothesis{
					class: program.Known, say: func(*Entry) Name { return m.name() },
					make: func(e *Entry) *program.Edited {
						d := e.Program.Frequencies(func(v []float64) []float64 { return yarn(v, base, factor, length) })
						if by == 1 || d == nil {
							return d
						}
						v, ok := r.valueOf(e, d)
						if !ok {
							return nil
						}
						for i := range v.Data {
							v.Data[i] *= by
							v.Bound[i] = v.Bound[i]*by + 0x1p-23*math.Abs(v.Data[i])
						}
						return given(e, v)
					},
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bandsFor tries Llama 3's bands, where the operation has none, with the factors and lengths of the configuration and the published bands.
func (r *rotary) bandsFor(base float64) error {
	if r.entry == nil || r.setting("low_freq_factor") > 0 {
		return nil
	}
	for _, factor := range r.scalingFactors() {
		for _, length := range r.lengths() {
			changed := maps.Clone(r.made)
			maps.Copy(changed, map[string]any{"scaling": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": length})
			values := r.frequenciesWith(r.entry, changed)
			if values == nil {
				continue
			}
			m := Mistake{Kind: "rope.llama3", By: literal(factor), For: literal(length)}
			if err := r.try(m.name(), false, func([]float64) []float64 { return slices.Clone(values) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// bandsExchanged tries the two bounds of Llama 3's bands in each other's place.
func (r *rotary) bandsExchanged() error {
	low, high := r.setting("low_freq_factor"), r.setting("high_freq_factor")
	if low == 0 || high == 0 {
		return nil
	}
	changed := maps.Clone(r.made)
	changed["low_freq_factor"], changed["high_freq_factor"] = high, low
	values := r.frequenciesWith(r.entry, changed)
	if values == nil {
		return nil
	}
	return r.try(Mistake{Kind: "rope.bands-exchanged"}.name(), false, func([]float64) []float64 { return slices.Clone(values) })
}

// blended is a frequency as Llama 3's bands blend its two ends, beyond the bands as well; by its wavelength the share goes by that, not by
// its inverse. The operation's own where it has no bands.
func (r *rotary) blended(own, whole, factor float64, byWavelength bool) float64 {
	low, high, length := r.setting("low_freq_factor"), r.setting("high_freq_factor"), r.setting("original_max_position_embeddings")
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

// within reports whether a frequency lies between Llama 3's bands.
func (r *rotary) within(whole float64) bool {
	turns := r.setting("original_max_position_embeddings") * whole / (2 * math.Pi)
	return turns >= r.setting("low_freq_factor") && turns <= r.setting("high_freq_factor")
}
