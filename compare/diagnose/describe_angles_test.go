package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order/op"
)

// Wrong rotary frequencies without a rule are named with a factor for each pair of channels, read off the cosines and sines. Angles that do not grow with
// the position are no frequencies.
func TestFrequenciesOfATableAreNamed(t *testing.T) {
	table := func(name string, sin bool) operation {
		return operation{name, op.Rotary{Theta: 100, Dim: 8, Scaling: "default", Sin: sin}, "btc", []int{1, 8, 8}, firstPositions(8), nil, nil}
	}
	for _, c := range []struct {
		of    operation
		angle func(position float64, pair int) float64
		says  string
	}{
		{table("rotary.cos", false), func(p float64, pair int) float64 { return p * []float64{1, 0.25, 0.1, 0.05}[pair] }, "the rotary frequencies are multiplied by a factor each: 0.790569 at pair 1; 1.58114 at pair 3"},
		{table("rotary.sin", true), func(p float64, pair int) float64 { return p * []float64{1, 0.25, 0.1, 0.05}[pair] }, "the rotary frequencies are multiplied by a factor each: 0.790569 at pair 1; 1.58114 at pair 3"},
		{table("rotary.cos", false), func(p float64, pair int) float64 { return math.Sqrt(p) * []float64{1, 0.25, 0.1, 0.05}[pair] }, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, c.of.made(t, m, func(_ [][]float64, y []float64) {
			for i := range y {
				a := float64(float32(c.angle(float64(i/8), i%4)))
				if y[i] = math.Cos(a); c.of.name == "rotary.sin" {
					y[i] = math.Sin(a)
				}
			}
			rounded(y)
		}))
		if f.What != c.says || f.Named() != (f.Mistake.Kind == "rope.frequencies-factors") {
			t.Errorf("%s: %q %v, want %q", f.Key(), f.What, f.Description, c.says)
		}
	}
}

// parabola is a sine by a parabola between its zeros.
func parabola(x float64) float64 {
	x = math.Mod(x+math.Pi, 2*math.Pi) - math.Pi
	return 4/math.Pi*x - 4/(math.Pi*math.Pi)*x*math.Abs(x)
}

// cosineSeries are the first terms of a series, of the angle within half a period.
func cosineSeries(x float64) float64 {
	x -= 2 * math.Pi * math.Round(x/(2*math.Pi))
	sum, term := 1.0, 1.0
	for n := 2.0; n <= 10; n += 2 {
		term *= -x * x / (n * (n - 1))
		sum += term
	}
	return sum
}

// A cosine or a sine that a port approximates is named. The right one, a table of few angles, an angle of its own for each channel and noise are none of it.
func TestCosinesInPlainLoopsAreNamed(t *testing.T) {
	const name = "function.near-in-period"
	wrong := func(of func(angle float64, c int) float64) func(in [][]float64, y []float64) {
		return func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] = of(float64(float32(float64(float32(math.Pow(100, -float64(i%4)/4)))*float64(i/8))), i%4)
			}
			rounded(y)
		}
	}
	of := func(f func(x float64) float64) func(angle float64, c int) float64 {
		return func(angle float64, _ int) float64 { return f(angle) }
	}
	for _, c := range []struct {
		name string
		sin  bool
		of   func(angle float64, c int) float64
		says string // the beginning of the key; empty for none of these
	}{
		{"cosine by a parabola", false, of(func(x float64) float64 { return parabola(x + math.Pi/2) }), name + "(place=rotary.table,of=function:cosine,by=step:rotary.angle"},
		{"sine by a parabola", true, of(parabola), name + "(place=rotary.table,of=function:sine,by=step:rotary.angle"},
		{"cosine by a series", false, of(cosineSeries), name + "(place=rotary.table,of=function:cosine,by=step:rotary.angle"},
		{"right", false, of(math.Cos), ""},
		{"a table of angles", false, of(func(x float64) float64 { return math.Cos(math.Round(x*20) / 20) }), ""},
		{"a function for each channel", false, func(x float64, c int) float64 { return parabola(x+math.Pi/2) + float64(c)*0.01 }, ""},
		{"noise", true, of(func(x float64) float64 { return math.Sin(x) + 0.02*math.Sin(1e4*x) }), ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 32
		at := operation{map[bool]string{false: "rotary.cos", true: "rotary.sin"}[c.sin], op.Rotary{Theta: 100, Dim: 8, Scaling: "default", Sin: c.sin}, "btc", []int{1, 32, 8}, firstPositions(32), nil, nil}
		f := named(t, m, at.made(t, m, wrong(c.of)))
		if key := f.Key(); c.says != "" && !strings.HasPrefix(key, c.says) || c.says == "" && strings.HasPrefix(key, name) {
			t.Errorf("%s: %s %q %v", c.name, key, f.What, f.Description)
		}
	}
}
