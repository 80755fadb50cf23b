package diagnose

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// rotary yields other frequencies of a rotary embedding.
func rotary(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		f := frequenciesIn(s.subject, s.first)
		if f == nil {
			return
		}
		for _, look := range []func(s *search, f *frequencies) []Mistake{bases, basesOfKinds, largerParts, blends, settings, scalings, smallerParts, otherOrders, factors} {
			for _, m := range look(s, f) {
				if m.Place = frequencySite; !yield(m) {
					return
				}
			}
		}
	}
}

// thetas lists mistakes of the base, the most plausible first. X is the wrong base.
func thetas(s *search, f *frequencies) []Mistake {
	var all []Mistake
	add := func(x float64, m Mistake) {
		if x > 1 && !math.IsInf(x, 0) && !slices.ContainsFunc(all, func(o Mistake) bool { return math.Abs(o.X.Value/x-1) < 1e-5 }) {
			m.X = some(x)
			all = append(all, m)
		}
	}
	theta := Mistake{Kind: "rope.theta"}
	add(f.base, theta) // without the scaling
	for _, b := range bigNumbers(s.subject) {
		add(b, theta)
	}
	if d := 2 * len(f.values); f.pure {
		for _, n := range s.numbers { // linear scaling that is taken for a scaling of theta
			if n.plain && n.value > 1 && strings.Contains(n.field, fieldWords[Scaling]) {
				add(round6(f.base*n.value), Mistake{Kind: "rope.theta-scaled"})
			}
		}
		for _, by := range []int{2, 4, 8, 16, 32, 3, 5, 6, 40, 64, 128} {
			if b := f.base * math.Pow(float64(by), float64(d)/float64(d-2)); !slices.Contains(usualBases, round6(b)) { // a usual base is no sign of NTK scaling
				add(b, Mistake{Kind: "rope.theta-ntk", N: by})
			}
		}
		c := s.m.List.Config
		for _, size := range []int{c.HiddenSize / max(c.NumHeads, 1), c.HeadDim, d / 2, 2 * d, c.HiddenSize, d - 2, d + 2} { // with d - 2, the last exponent is 1
			if b := math.Pow(f.base, float64(d)/float64(max(size, 1))); size > 0 && size != d && !slices.Contains(usualBases, round6(b)) {
				add(b, Mistake{Kind: "rope.theta-of-head", N: size, M: d})
			}
		}
	}
	usual := usualBases
	if f.pure {
		usual = append(slices.Clone(usual), 2*f.base, 4*f.base, 8*f.base, f.base/2, f.base/4, f.base/8)
	}
	for _, b := range usual {
		add(round6(b), theta)
	}
	return all
}

// bases lists other bases, with the right scaling and without it.
func bases(s *search, f *frequencies) (all []Mistake) {
	for _, m := range thetas(s, f) {
		own := math.Abs(f.base/m.X.Value-1) < 1e-4
		switch {
		case own && !f.pure:
			m = Mistake{Kind: "rope.scaling-left-out"}
			if factor := f.setting("factor"); factor > 0 {
				m.Right = some(factor)
			}
		case own && f.scale != 1:
			m = Mistake{Kind: "rope.factor-left-out", By: literal(1 / f.scale)}
		case own:
			continue
		default:
			if m = baseOf(s, f, m); f.scale != 1 { // the engine then multiplies all frequencies by a number
				left := m
				left.By = literal(1 / f.scale)
				all = append(all, left)
			}
		}
		all = append(all, m)
	}
	return all
}

// baseOf completes a mistake of the base with the name of the wrong base in the configuration, and with the right base.
func baseOf(s *search, f *frequencies, m Mistake) Mistake {
	if called := s.numbers.called(m.X.Value, f.base, Theta); called != "" {
		m = Mistake{Kind: "rope.theta", Place: m.Place, X: m.X, Called: called}
	}
	if m.Right = some(f.base); !f.pure {
		m.Kind, m.Right = "rope.theta-unscaled", Number{}
	}
	return m
}

// mostBase limits how many times larger or smaller than the right base a base is looked for.
const mostBase = 1 << 12

// solvedBase yields a base that is solved from the elements, if the search has found nothing.
func solvedBase(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		r := frequenciesIn(s.subject, s.first)
		if r == nil || !r.pure || len(s.found) > 0 {
			return
		}
		f := family{old: r.base, of: func(n number) Mistake {
			return baseOf(s, r, Mistake{Kind: "rope.theta", Place: frequencySite, X: some(n.value)})
		}}
		for by := 1.0; by <= mostBase; by *= 4 {
			f.starts = append(f.starts, r.base*by)
			if r.base/by > 1 {
				f.starts = append(f.starts, r.base/by)
			}
		}
		solveFamily(s, f, yield)
	}
}

// ownBases lists the bases of the entries, each once. It is nil unless the frequencies of all entries are pure.
func ownBases(s *search) (all []float64) {
	for _, e := range s.entries {
		f := frequenciesIn(s.subject, e)
		if f == nil || !f.pure {
			return nil
		}
		if !slices.ContainsFunc(all, func(b float64) bool { return math.Abs(b/f.base-1) < 1e-4 }) {
			all = append(all, f.base)
		}
	}
	return all
}

// usualMultiples are usual ratios of a wrong base to the right base.
var usualMultiples = []float64{2, 4, 8, 10, 100, 1. / 2, 1. / 4, 1. / 8, 1. / 10, 1. / 100}

// basesOfKinds lists mistakes of models with two bases or more, one for each kind of layer: two bases are exchanged, or all bases are wrong by one
// factor.
func basesOfKinds(s *search, _ *frequencies) (all []Mistake) {
	own := ownBases(s)
	if len(own) < 2 {
		return nil
	}
	if len(own) == 2 {
		slices.Sort(own)
		all = append(all, Mistake{Kind: "rope.theta-exchanged", Of: literal(own[0]), For: literal(own[1])})
	}
	for _, x := range usualMultiples {
		all = append(all, Mistake{Kind: "rope.theta-of-kinds", Times: some(x)})
	}
	return all
}

// solvedBases yields a factor by which all bases are wrong, if layers have two bases or more. The factor is solved from the elements.
func solvedBases(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		if len(s.found) > 0 || len(ownBases(s)) < 2 {
			return
		}
		f := family{old: 1, of: func(n number) Mistake {
			return Mistake{Kind: "rope.theta-of-kinds", Place: frequencySite, Times: some(n.value)}
		}}
		for by := 1.0; by <= mostBase; by *= 4 {
			f.starts = append(f.starts, by, 1/by)
		}
		solveFamily(s, f, func(m Mistake) bool {
			before := len(s.found)
			if x := math.Round(m.Times.Value*1000) / 1000; math.Abs(x/m.Times.Value-1) < 1e-4 { // the precision of a solved base is about 1e-4
				few := m
				if few.Times = some(x); !yield(few) {
					return false
				}
				if len(s.found) > before {
					return true
				}
			}
			return yield(m)
		})
	}
}

// largerParts lists mistakes of a model that rotates a part of the head: the port rotates a larger part, or the whole head, or the exponents count
// the part.
func largerParts(_ *search, f *frequencies) (all []Mistake) {
	n := len(f.values)
	if f.turns == n {
		return nil
	}
	for k := n; k > f.turns; k-- { // all of the head first: slow frequencies are 0 in a short prompt
		m := Mistake{Kind: "rope.larger-part", N: n, M: f.turns, K: k}
		if k == n {
			m.Kind = "rope.whole-head"
		}
		all = append(all, m)
		m.By = literal(round6(f.baseOfPart()))
		all = append(all, m)
	}
	return append(all, Mistake{Kind: "rope.exponents-of-part", N: n, M: f.turns})
}

// smallerParts lists rotations of a smaller part of the head: the last frequencies are 0.
func smallerParts(_ *search, f *frequencies) (all []Mistake) {
	for k := 1; k < len(f.values); k++ {
		all = append(all, Mistake{Kind: "rope.smaller-part", N: len(f.values), K: k})
	}
	return all
}

// otherOrders lists frequencies in reverse order, exponents that are counted from another number, and angles in turns where radians are due.
func otherOrders(_ *search, f *frequencies) []Mistake {
	n := len(f.values)
	if n < 2 {
		return nil
	}
	all := []Mistake{
		{Kind: "rope.frequencies-reversed"},
		{Kind: "rope.angles-in-half-turns", X: some(math.Pi)},
		{Kind: "rope.angles-in-half-turns", X: some(1 / math.Pi)},
		{Kind: "rope.angles-in-turns", X: some(2 * math.Pi)},
		{Kind: "rope.angles-in-turns", X: some(1 / (2 * math.Pi))},
	}
	if by := math.Pow(f.base, 1/float64(n)); f.pure && f.base > 1 {
		all = append(all, Mistake{Kind: "rope.exponents-from-one", X: some(by)}, Mistake{Kind: "rope.exponents-from-minus-one", X: some(by)})
	}
	return all
}

// factors lists frequencies multiplied by a number, and rounded frequencies. If several fields of the configuration have the number, only the factors
// of a scaling are named: the other fields have the number by chance.
func factors(s *search, f *frequencies) (all []Mistake) {
	scaled := f.scale != 1
	for _, n := range othersFor(s, s.first.signed(s.m), 1, "") {
		x := n.value * f.scale
		if n.value <= 0 || n.value == 1 || scaled && math.Abs(x-1) < 1e-5 { // the factor is left out
			continue
		}
		m := Mistake{Kind: "rope.frequencies-multiplied", X: some(x)}
		if !scaled {
			m.Called = listed(slices.DeleteFunc(fieldNames(n.words), func(w string) bool { return !strings.Contains(w, "factor") }))
		} else if same(x*f.scale, 1) { // x is the reciprocal of the right factor
			m.Kind = "rope.frequencies-multiplied-not-divided"
		}
		all = append(all, m)
	}
	return append(all, Mistake{Kind: "rope.frequencies-rounded", DType: hooks.BF16}, Mistake{Kind: "rope.frequencies-rounded", DType: hooks.F16})
}

// blends lists mistakes of frequencies with a scaling of some frequencies: some frequencies are scaled in a wrong way, the factor is wrong, or all
// frequencies are scaled.
func blends(s *search, f *frequencies) []Mistake {
	least, ok := f.least()
	if !ok {
		return nil
	}
	right := round6(1 / least)
	all := mixed(s, f, right)
	factors := fieldsAbove(s, func(field string) bool { return strings.Contains(field, "factor") })
	for _, x := range []float64{2, 4, 8, 16, 32, 64} {
		if !slices.Contains(factors, x) {
			factors = append(factors, x)
		}
	}
	for _, x := range factors {
		if !same(x, right) {
			all = append(all, Mistake{Kind: "rope.scaling-factor", X: some(x), Right: some(right)})
		}
		all = append(all, Mistake{Kind: "rope.scaling-of-all", X: some(x)})
	}
	return all
}

// mixed finds the way in which each frequency is scaled, if some are scaled in a wrong way.
func mixed(s *search, f *frequencies, factor float64) []Mistake {
	n := len(f.values)
	if s.first.Program.Out.Last() != 2*n {
		return nil
	}
	m := Mistake{Kind: "rope.scaling-of-some", Place: frequencySite, N: n, By: literal(factor)}
	ways := append([]string{""}, scalingWays...) // the right one first
	good := make([][]bool, len(ways))
	for k, way := range ways {
		good[k] = slices.Repeat([]bool{true}, n)
		m.Runs = makeRuns(sourceRun{To: n, Of: way})
		for _, e := range s.entries {
			d := s.apply(m, e)
			if d == nil {
				continue
			}
			x, ok := s.valueOf(e, d)
			if !ok {
				return nil
			}
			left, err := e.Leaves(x, len(x.Data))
			if s.failed(err) {
				return nil
			}
			for _, i := range left {
				good[k][i%n] = false
			}
		}
	}
	var others []sourceRun
	for j := range n {
		k := slices.IndexFunc(good, func(of []bool) bool { return of[j] })
		if k < 0 {
			return nil
		}
		if k > 0 {
			others = append(others, sourceRun{From: j, To: j + 1, Is: j, Of: ways[k]})
		}
	}
	if len(others) == 0 {
		return nil
	}
	m.Runs = makeRuns(others...)
	return []Mistake{m}
}

// fieldsAbove lists numbers above 1 of the configuration, by the names of their fields.
func fieldsAbove(s *search, is func(field string) bool) (all []float64) {
	for _, n := range s.numbers {
		if n.plain && n.value > 1 && is(field(n.field)) && !slices.Contains(all, n.value) {
			all = append(all, n.value)
		}
	}
	return all
}

func isLength(field string) bool { return strings.Contains(field, "position_embeddings") }

// scalings lists inverted and equal frequencies, and other kinds of scaling with the factors and the lengths of the configuration.
func scalings(s *search, f *frequencies) []Mistake {
	all := []Mistake{{Kind: "rope.frequencies-inverted"}, {Kind: "rope.exponents-zero"}}
	if f.base <= 1 || f.turns != len(f.values) {
		return all
	}
	var llama3 []Mistake
	for _, factor := range fieldsAbove(s, func(field string) bool { return field == "factor" }) {
		for _, length := range fieldsAbove(s, isLength) {
			for _, kind := range []Kind{"rope.yarn-multiplied", "rope.yarn"} {
				all = append(all, Mistake{Kind: kind, By: literal(factor), For: literal(length)})
			}
			llama3 = append(llama3, Mistake{Kind: "rope.llama3", By: literal(factor), For: literal(length)})
		}
	}
	if f.setting("low_freq_factor") > 0 {
		return append(all, Mistake{Kind: "rope.bands-exchanged"})
	}
	return append(all, llama3...)
}

// usualSettings are the settings in the files of published models.
var usualSettings = map[string][]float64{
	"theta": {1e4, 5e5, 1e6, 1e5}, "factor": {8, 32, 4, 2}, "low_freq_factor": {1}, "high_freq_factor": {4}, "original_max_position_embeddings": {8192, 4096, 2048},
}

// settings lists other numbers for each setting of the operation that makes the frequencies: usual numbers, then multiples of the right one. The
// bounds of bands may also be off by 2π: a wavelength is taken for the inverse of a frequency.
func settings(s *search, f *frequencies) (all []Mistake) {
	for _, usual := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(f.made)) {
			old := f.setting(name)
			if old == 0 || name == "dim" {
				continue
			}
			tried := []float64{old}
			for _, x := range settingsLike(s, name, old, usual) {
				if slices.Contains(tried, x) {
					continue
				}
				tried = append(tried, x)
				all = append(all, Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: name}, X: some(x), Right: some(old), Called: s.numbers.called(x, old, TermKind(name))})
			}
		}
	}
	if f.setting("low_freq_factor") > 0 {
		all = append(all, Mistake{Kind: "rope.bands-without-2pi"}, Mistake{Kind: "rope.bands-2pi-twice"})
	}
	return all
}

// settingsLike lists numbers that a port may have for a setting: usual numbers, with other lengths of the configuration for a length; or multiples of
// the right number.
func settingsLike(s *search, name string, old float64, usual bool) []float64 {
	switch {
	case !usual:
		return []float64{1, 2 * old, old / 2, 4 * old, old / 4, 8 * old, old / 8, 10 * old, old / 10}
	case isLength(name):
		return append(fieldsAbove(s, func(field string) bool { return isLength(field) && field != name }), usualSettings[name]...)
	}
	return usualSettings[name]
}
