package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// table is an entry with cosines of the second pass of a model: pairs of them turn by frequencies of an operation, at the positions 5 to 12.
func table(t *testing.T, o op.Op, width int) (*diagnose.Model, *diagnose.Entry) {
	t.Helper()
	m := model(t)
	m.Passes = []order.Pass{{Tokens: 5}, {Tokens: 8, Past: 5}}
	at := m.List.Index("rotary.cos")
	m.List.Entries[at].Op, m.List.Entries[at].Shape = o, []order.Dim{1, order.T, order.Dim(width)}
	positions := program.Value{Shape: []int{1, 8}, Data: []float64{5, 6, 7, 8, 9, 10, 11, 12}}
	shape := []int{1, 8, width}
	if _, mul := o.(turned); mul { // its angles are products of a column and a row
		positions.Shape, shape = []int{8, 1}, shape[1:]
	}
	e := &diagnose.Entry{Node: order.Node{Entry: at, Pass: 1}, Inputs: []order.Node{{Pass: 1}}, Items: []*int{nil}}
	e.Call = program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{positions}, Shape: shape}
	var err error
	if e.Program, err = program.Of(o, func(o program.Op) string { return o.Kind() }, 0, shape, [][]int{positions.Shape}, nil); err != nil {
		t.Fatal(err)
	}
	e.Judge = &honest{e: e, y: make([]float64, 8*width)}
	return m, e
}

// off is how far the cosines of a program are from those of frequencies and positions.
func off(t *testing.T, p *program.Program, c program.Call, frequency func(j int) float64, position func(p float64) float64) (far float64) {
	t.Helper()
	x, err := p.Eval(c)
	if err != nil {
		t.Fatal(err)
	}
	width := x.Shape[len(x.Shape)-1]
	for i, v := range x.Data {
		angle := frequency(i%width%8) * position(float64(5+i/width))
		far = max(far, math.Abs(v-math.Cos(angle))-3e-7*math.Abs(angle)) // frequencies and angles are those of float32
	}
	return far
}

// A mistake of the frequencies or positions makes of a table what plain loops make of it.
func TestRotaryMistakesAreApplied(t *testing.T) {
	power := func(base float64, j int) float64 { return math.Pow(base, -float64(j)/8) }
	// bands are frequencies of the base 10000 that are divided by a factor below one number of turns in 64 positions, kept above another, and blended between.
	bands := func(factor, low, high, turn float64) func(j int) float64 {
		return func(j int) float64 {
			f := power(1e4, j)
			share := min(max((64*f/turn-low)/(high-low), 0), 1)
			return share*f + (1-share)*f/factor
		}
	}
	part := func(k int, base func(j int) float64) func(j int) float64 {
		return func(j int) float64 {
			if j < k {
				return base(j)
			}
			return 0
		}
	}
	whole := func(base, by float64) func(j int) float64 {
		return func(j int) float64 { return by * power(base, j) }
	}
	same := func(p float64) float64 { return p }
	plain := op.Rotary{Theta: 1e4, Dim: 16, Scaling: "default"}
	linear := op.Rotary{Theta: 1e4, Dim: 16, Scaling: "linear", Factor: 4}
	llama3 := op.Rotary{Theta: 1e4, Dim: 16, Scaling: "llama3", Factor: 8, LowFreq: 1, HighFreq: 4, Positions: 64}
	parted := inverse(1e4, 8, 3)
	number := func(x float64) diagnose.Number { return diagnose.Number{Value: x, Has: true} }
	term := func(x float64) diagnose.Term { return diagnose.Term{Kind: diagnose.Literal, X: x} }
	own, ownBands := whole(1e4, 1), bands(8, 1, 4, 2*math.Pi)
	for _, c := range []struct {
		of        op.Op
		m         diagnose.Mistake
		frequency func(j int) float64
		position  func(p float64) float64
	}{
		{plain, diagnose.Mistake{Kind: "rope.theta", X: number(500)}, whole(500, 1), same},
		{linear, diagnose.Mistake{Kind: "rope.theta", X: number(500)}, whole(500, 1./4), same},
		{linear, diagnose.Mistake{Kind: "rope.theta", X: number(500), By: term(4)}, whole(500, 1), same},
		{linear, diagnose.Mistake{Kind: "rope.theta-scaled", X: number(4e4)}, whole(4e4, 1./4), same},
		{plain, diagnose.Mistake{Kind: "rope.theta-ntk", X: number(5e4), N: 4}, whole(5e4, 1), same},
		{plain, diagnose.Mistake{Kind: "rope.theta-of-head", X: number(100), N: 32, M: 16}, whole(100, 1), same},
		{llama3, diagnose.Mistake{Kind: "rope.theta-unscaled", X: number(500)}, whole(500, 1), same},
		{linear, diagnose.Mistake{Kind: "rope.factor-left-out", By: term(4)}, own, same},
		{llama3, diagnose.Mistake{Kind: "rope.scaling-left-out"}, own, same},
		{llama3, diagnose.Mistake{Kind: "rope.scaling-factor", X: number(2)}, bands(2, 1, 4, 2*math.Pi), same},
		{llama3, diagnose.Mistake{Kind: "rope.scaling-of-all", X: number(8)}, whole(1e4, 1./8), same},
		{llama3, diagnose.Mistake{Kind: "rope.scaling-of-some", N: 8, By: term(8), Runs: "0=0@scaled;2-3=2@unscaled"}, func(j int) float64 {
			return [8]float64{1. / 8, ownBands(1), own(2), own(3), ownBands(4), ownBands(5), ownBands(6), ownBands(7)}[j]
		}, same},
		{llama3, diagnose.Mistake{Kind: "rope.scaling-of-some", N: 8, By: term(8), Runs: "0-7=0@ends-exchanged"}, func(j int) float64 { return own(j) + own(j)/8 - ownBands(j) }, same},
		{llama3, diagnose.Mistake{Kind: "rope.bands-exchanged"}, func(j int) float64 { // the operation asks for the long waves first
			f := own(j)
			switch turns := 64 * f / (2 * math.Pi); {
			case turns < 4:
				return f / 8
			default:
				return f
			}
		}, same},
		{llama3, diagnose.Mistake{Kind: "rope.bands-without-2pi"}, bands(8, 1/(2*math.Pi), 4/(2*math.Pi), 2*math.Pi), same},
		{llama3, diagnose.Mistake{Kind: "rope.bands-2pi-twice"}, bands(8, 2*math.Pi, 8*math.Pi, 2*math.Pi), same},
		{llama3, diagnose.Mistake{Kind: "rope.setting", Of: diagnose.Term{Kind: diagnose.AName, Name: "high_freq_factor"}, X: number(8)}, bands(8, 1, 8, 2*math.Pi), same},
		{plain, diagnose.Mistake{Kind: "rope.llama3", By: term(8), For: term(64)}, ownBands, same},
		{plain, diagnose.Mistake{Kind: "rope.yarn", By: term(4), For: term(2048)}, func(j int) float64 {
			share := min(max((float64(j)-2)/4, 0), 1) // 32 turns in 2048 positions are those of the pair 2.02, and one turn of the pair 5.03
			return own(j) * (1 - share + share/4)
		}, same},
		{parted, diagnose.Mistake{Kind: "rope.whole-head", N: 8, M: 3, K: 8}, own, same},
		{parted, diagnose.Mistake{Kind: "rope.whole-head", N: 8, M: 3, K: 8, By: term(31.6228)}, whole(math.Pow(1e4, 3./8), 1), same},
		{parted, diagnose.Mistake{Kind: "rope.larger-part", N: 8, M: 3, K: 5}, part(5, own), same},
		{parted, diagnose.Mistake{Kind: "rope.exponents-of-part", N: 8, M: 3}, part(3, func(j int) float64 { return math.Pow(1e4, -float64(j)/3) }), same},
		{plain, diagnose.Mistake{Kind: "rope.smaller-part", N: 8, K: 2}, part(2, own), same},
		{plain, diagnose.Mistake{Kind: "rope.frequencies-inverted"}, func(j int) float64 { return 1 / own(j) }, same},
		{plain, diagnose.Mistake{Kind: "rope.frequencies-reversed"}, func(j int) float64 { return own(7 - j) }, same},
		{plain, diagnose.Mistake{Kind: "rope.frequencies-rounded", DType: hooks.BF16}, func(j int) float64 { return floats.Round(hooks.BF16, own(j)) }, same},
		{parted, diagnose.Mistake{Kind: "rope.exponents-zero"}, part(3, func(int) float64 { return 1 }), same},
		{linear, diagnose.Mistake{Kind: "rope.frequencies-multiplied", X: number(0.5)}, whole(1e4, 0.5), same},
		{plain, diagnose.Mistake{Kind: "rope.frequencies-multiplied", X: number(0.5)}, whole(1e4, 0.5), same},
		{linear, diagnose.Mistake{Kind: "rope.frequencies-multiplied-not-divided", X: number(4)}, whole(1e4, 4), same},
		{plain, diagnose.Mistake{Kind: "rope.exponents-from-one", X: number(math.Sqrt(10))}, func(j int) float64 { return own(j + 1) }, same},
		{plain, diagnose.Mistake{Kind: "rope.exponents-from-minus-one", X: number(math.Sqrt(10))}, func(j int) float64 { return own(j - 1) }, same},
		{plain, diagnose.Mistake{Kind: "rope.angles-in-turns", X: number(2 * math.Pi)}, whole(1e4, 2*math.Pi), same},
		{plain, diagnose.Mistake{Kind: "rope.angles-in-half-turns", X: number(1 / math.Pi)}, whole(1e4, 1/math.Pi), same},
		{plain, diagnose.Mistake{Kind: "position.first-at", N: 2}, own, func(p float64) float64 { return p + 2 }},
		{plain, diagnose.Mistake{Kind: "position.behind-pass", N: -1}, own, func(p float64) float64 { return p - 1 }},
		{plain, diagnose.Mistake{Kind: "position.all-zero"}, own, func(float64) float64 { return 0 }},
		{plain, diagnose.Mistake{Kind: "position.from-zero"}, own, func(p float64) float64 { return p - 5 }},
		{plain, diagnose.Mistake{Kind: "position.advanced"}, own, func(p float64) float64 { return p + 8 }},
		{plain, diagnose.Mistake{Kind: "position.multiplied", By: term(0.5)}, own, func(p float64) float64 { return p / 2 }},
		{plain, diagnose.Mistake{Kind: "position.multiples", By: term(4)}, own, func(p float64) float64 { return float64(int(p) / 4 * 4) }},
		{plain, diagnose.Mistake{Kind: "position.chunks", N: 7}, own, func(p float64) float64 { return float64(int(p) % 7) }},
		{plain, diagnose.Mistake{Kind: "position.still", N: 3}, own, func(float64) float64 { return 3 }},
		{plain, diagnose.Mistake{Kind: "position.offset", N: -4}, own, func(p float64) float64 { return p - 4 }},
		{plain, diagnose.Mistake{Kind: "position.offset-from", N: 1, M: 9}, own, func(p float64) float64 { return p + float64(int(p)/9) }},
		{plain, diagnose.Mistake{Kind: "position.last", N: 7}, own, func(p float64) float64 { return min(p, 7) }},
		{plain, diagnose.Mistake{Kind: "position.padding", N: 6}, own, func(p float64) float64 { return max(p-6, 0) }},
		{plain, diagnose.Mistake{Kind: "position.reversed"}, own, func(p float64) float64 { return 4 - p }},
		{plain, diagnose.Mistake{Kind: "position.ahead", X: number(30)}, own, func(float64) float64 { return 30 }},
		{plain, diagnose.Mistake{Kind: "position.behind", X: number(3)}, own, func(float64) float64 { return 3 }},
	} {
		width := 16
		if _, half := c.of.(turned); half {
			width = 8
		}
		m, e := table(t, c.of, width)
		d, err := m.Apply(c.m, e)
		if err != nil || d == nil {
			t.Errorf("%v: no edit, error %v", c.m, err)
			continue
		}
		p, call := d.Whole(e.Call)
		if far := off(t, p, call, c.frequency, c.position); far > 2e-5 {
			t.Errorf("%v, %s: %g off", c.m, c.m.Kind, far)
		}
		if far := off(t, e.Program, e.Call, c.frequency, c.position); far < 1e-3 {
			t.Errorf("%v, %s: the right table is %g off", c.m, c.m.Kind, far)
		}
	}
}

// A table with a rounded angle is that of the angle, and one of YaRN is multiplied by its factor of attention.
func TestRotaryMistakesOfAnglesAreApplied(t *testing.T) {
	m, e := table(t, op.Rotary{Theta: 1e4, Dim: 16, Scaling: "default"}, 16)
	own := func(j int) float64 { return math.Pow(1e4, -float64(j)/8) }
	eval := func(mistake diagnose.Mistake) []float64 {
		t.Helper()
		d, err := m.Apply(mistake, e)
		if err != nil || d == nil {
			t.Fatal(mistake, err)
		}
		p, c := d.Whole(e.Call)
		x, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
		return x.Data
	}
	by, length := diagnose.Term{Kind: diagnose.Literal, X: 4}, diagnose.Term{Kind: diagnose.Literal, X: 2048}
	scaled, multiplied := eval(diagnose.Mistake{Kind: "rope.yarn", By: by, For: length}), eval(diagnose.Mistake{Kind: "rope.yarn-multiplied", By: by, For: length})
	angles, positions := eval(diagnose.Mistake{Kind: "rope.angles-rounded", DType: hooks.BF16}), eval(diagnose.Mistake{Kind: "position.rounded", DType: hooks.BF16})
	for i := range scaled {
		p := float64(5 + i/16)
		if want := scaled[i] * (1 + 0.1*math.Log(4)); math.Abs(multiplied[i]-want) > 1e-6 {
			t.Errorf("element %d of YaRN is %g, want %g", i, multiplied[i], want)
		}
		if want := math.Cos(floats.Round(hooks.BF16, own(i%8)*p)); math.Abs(angles[i]-want) > 1e-6 {
			t.Errorf("element %d of a rounded angle is %g, want %g", i, angles[i], want)
		}
		if want := math.Cos(own(i%8) * p); math.Abs(positions[i]-want) > 1e-6 { // bfloat16 has these positions
			t.Errorf("element %d of a rounded position is %g, want %g", i, positions[i], want)
		}
	}
	if slices.Equal(angles, positions) {
		t.Error("rounded angles change nothing")
	}
}

// The frequencies of the entry count to which a mistake is applied, whatever entry it was found in.
func TestFrequenciesOfTheEntryCount(t *testing.T) {
	for _, theta := range []float64{1e4, 1e6} {
		m, e := table(t, op.Rotary{Theta: theta, Dim: 16, Scaling: "linear", Factor: 8}, 16)
		d, err := m.Apply(diagnose.Mistake{Kind: "rope.factor-left-out", By: diagnose.Term{Kind: diagnose.Literal, X: 8}}, e)
		if err != nil || d == nil {
			t.Fatal(err)
		}
		p, c := d.Whole(e.Call)
		if far := off(t, p, c, func(j int) float64 { return math.Pow(theta, -float64(j)/8) }, func(p float64) float64 { return p }); far > 1e-5 {
			t.Errorf("theta %g: %g off", theta, far)
		}
	}
}

// Layers of two kinds have bases of their own: what is wrong with both is one mistake. A base that is wrong in one kind alone is none of both.
func TestBasesOfKindsOfLayers(t *testing.T) {
	rotary := func(theta float64) op.Op { return op.Rotary{Theta: theta, Dim: 16, Scaling: "default"} }
	for _, c := range []struct {
		local, full float64 // the port's bases, in place of 10000 and 1000000
		want        string
	}{
		{2e4, 2e6, "theta is 2 times the right value, in layers of each kind"},
		{3e4, 3e6, "theta is 3 times the right value, in layers of each kind"},
		{1e6, 1e4, "theta of sliding and full layers is exchanged: 10000 and 1e+06"},
		{3e4, 5e6, ""},
		{1e6, 5e6, ""},
	} {
		var m *diagnose.Model
		var entries []*diagnose.Entry
		for _, own := range [][2]float64{{1e4, c.local}, {1e6, c.full}} {
			var e *diagnose.Entry
			m, e = table(t, rotary(own[0]), 16)
			p, err := program.Of(rotary(own[1]), func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, [][]int{e.Call.In[0].Shape}, nil)
			if err != nil {
				t.Fatal(err)
			}
			x, err := p.Eval(e.Call)
			if err != nil {
				t.Fatal(err)
			}
			h := e.Judge.(*honest)
			for i, v := range x.Data {
				h.y[i] = float64(float32(v))
			}
			right, err := e.Program.Eval(e.Call)
			if err != nil {
				t.Fatal(err)
			}
			e.Left, _ = h.Leaves(right, len(h.y))
			entries = append(entries, e)
		}
		if f := named(t, m, entries...); f.What != c.want {
			t.Errorf("theta %g and %g: %q, want %q", c.local, c.full, f.What, c.want)
		}
	}
}
