package testengine

import "math"

// Turner makes the angles of a rotary embedding in the way of one kind of engine: plain float32 loops, with
// functions of a library that has the largest errors allowed by docs/results/functions.md.
type Turner struct {
	Name string
	// Angles are those of all frequencies at a position.
	Angles func(l Library, r Rope, position float64) []float64
}

// Rope are the numbers of a rotary embedding.
type Rope struct {
	Theta   float64
	Dim     int
	Scaling func(inv float64) float64 // of a frequency; nil for none
}

// Scaled is a frequency after the scaling.
func (r Rope) Scaled(inv float64) float64 {
	if r.Scaling == nil {
		return inv
	}
	return r.Scaling(inv)
}

// Library is a library of functions. The error of each value is a share of the permitted error, and depends on the
// argument.
type Library struct {
	Share float64 // 0 for one that rounds correctly
	Seed  uint64
}

// of returns f(x) with an error of at most units of float32; the final rounding counts as one unit.
func (l Library) of(units float64, f func(x float64) float64, x float64) float64 {
	y := f(x)
	if x == 0 { // every library has the power of 0, its exponential and its cosine exactly
		return single32(y)
	}
	h := (math.Float64bits(x) + l.Seed) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	off := float64(h>>11)/0x1p52 - 1
	return single32(y * (1 + off*l.Share*(units-1)*0x1p-24))
}

func single32(x float64) float64 { return float64(float32(x)) }

// byFrequency multiplies frequencies with a position.
func byFrequency(inv func(l Library, r Rope, j int) float64) func(l Library, r Rope, p float64) []float64 {
	return func(l Library, r Rope, p float64) []float64 {
		all := make([]float64, r.Dim/2)
		for j := range all {
			all[j] = single32(r.Scaled(inv(l, r, j)) * p)
		}
		return all
	}
}

// factorOf is base^(−2/D).
func factorOf(l Library, r Rope) float64 {
	return l.of(2, func(x float64) float64 { return math.Pow(single32(r.Theta), x) }, single32(-2/float64(r.Dim)))
}

// Turners are the ways of engines to make rotary tables; the first is transformers'.
var Turners = []Turner{
	{"power and reciprocal", byFrequency(func(l Library, r Rope, j int) float64 {
		power := l.of(2, func(x float64) float64 { return math.Pow(single32(r.Theta), x) }, single32(float64(2*j)/float64(r.Dim)))
		return single32(1 / power)
	})},
	{"float64, rounded once", byFrequency(func(_ Library, r Rope, j int) float64 {
		return single32(math.Pow(r.Theta, -float64(2*j)/float64(r.Dim)))
	})},
	{"one power, on a GPU", byFrequency(func(l Library, r Rope, j int) float64 {
		return l.of(8, func(x float64) float64 { return math.Pow(single32(r.Theta), x) }, single32(-float64(2*j)/float64(r.Dim)))
	})},
	{"exponential of a product", byFrequency(func(l Library, r Rope, j int) float64 {
		by := single32(l.of(2, math.Log, single32(r.Theta)) / float64(r.Dim/2))
		return l.of(4, math.Exp, single32(-float64(j)*by))
	})},
	{"running product", func(l Library, r Rope, p float64) []float64 {
		all, theta := make([]float64, r.Dim/2), p
		for j := range all {
			scale := 1.0
			if exact := math.Pow(r.Theta, -float64(2*j)/float64(r.Dim)); r.Scaling != nil {
				scale = single32(r.Scaling(exact) / exact)
			}
			all[j] = single32(theta * scale)
			theta = single32(theta * factorOf(l, r))
		}
		return all
	}},
	{"powers of a factor", byFrequency(func(l Library, r Rope, j int) float64 {
		return l.of(8, func(x float64) float64 { return math.Pow(factorOf(l, r), x) }, float64(j))
	})},
}

// Table is one of the two tables at some positions, dim/2 frequencies twice in a row.
func (k Turner) Table(l Library, r Rope, positions []float32, sin bool) []float32 {
	function := math.Cos
	if sin {
		function = math.Sin
	}
	var all []float32
	for _, p := range positions {
		var row []float32
		for _, angle := range k.Angles(l, r, float64(p)) {
			row = append(row, float32(l.of(4, function, angle)))
		}
		all = append(append(all, row...), row...)
	}
	return all
}

// Llama3Scaling is the scaling of Llama 3 in float64.
func Llama3Scaling(factor, low, high, length float64) func(float64) float64 {
	return func(inv float64) float64 {
		smooth := min(max((length*inv/(2*math.Pi)-low)/(high-low), 0), 1)
		return single32(inv * ((1-smooth)/factor + smooth))
	}
}

// LinearScaling divides every frequency by a factor.
func LinearScaling(factor float64) func(float64) float64 {
	return func(inv float64) float64 { return single32(inv / factor) }
}
