package isolate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
)

const (
	longest = 16384   // terms of a sum
	work    = 1 << 20 // products of one operation
)

// drawing is what a healthy operation is drawn from.
type drawing struct{ singles.Drawing }

// healthy draws one operation and computes it.
func (d drawing) healthy() singles.Single {
	var s singles.Single
	n := d.Length(longest)
	tokens := 1 + d.IntN(4)
	x := d.Array(d.Kind, 1, 1, tokens, n)
	switch d.IntN(10) {
	case 0, 1, 2:
		s = d.linear(x)
	case 3:
		s = d.scores()
	case 4:
		s = d.context()
	case 5, 6:
		gain := []op.Gain{op.Plain, op.NoScale, op.OnePlus, op.After}[d.IntN(4)]
		s = singles.Single{Op: op.RMSNorm{Eps: 1e-6, Gain: gain}, In: []singles.Array{x}}
		var w []float32
		if gain != op.NoScale {
			s.W = []singles.Array{d.Array(d.Weights, 1, n)}
			w = s.W[0].Data
		}
		s.Out = singles.Rows(x, func(row []float32) []float32 { return d.Norm(row, w, 1e-6, string(gain)) })
	case 7:
		s = singles.Single{Op: op.Softmax{}, In: []singles.Array{x}, Out: singles.Rows(x, d.Softmax), Wide: true}
	case 8:
		s = d.statistic(x)
	case 9:
		s = d.activation(x)
	}
	if !s.Wide {
		s.Out.Data = d.Rounded(s.Out.Data)
	}
	s.About = fmt.Sprintf("%s of %v, %s data, %s weights, %s, %s", op.Form(s.Op), shapes(s.In), d.Kind, d.Weights, d.DType, d.Adder)
	return s
}

func shapes(in []singles.Array) (all [][]int) {
	for _, a := range in {
		all = append(all, a.Shape)
	}
	return all
}

func (d drawing) linear(x singles.Array) singles.Single {
	n := x.Shape[2]
	out := 1 + d.IntN(max(1, min(512, work/len(x.Data))))
	s := singles.Single{Op: op.Linear{Bias: d.IntN(3) == 0}, In: []singles.Array{x}, W: []singles.Array{d.Array(d.Weights, 1/math.Sqrt(float64(n)), out, n)}}
	var b []float32
	if s.Op.(op.Linear).Bias {
		s.W = append(s.W, d.Array(d.Kind, 1, out))
		b = s.W[1].Data
	}
	s.Out = singles.Rows(x, func(row []float32) []float32 { return d.Kernels.Linear(row, s.W[0].Data, b) })
	return s
}

// scores of two query heads a key head.
func (d drawing) scores() singles.Single {
	tokens, keys, n := 1+d.IntN(4), d.Length(256), d.Length(1024)
	q, k := d.Array(d.Kind, 1, 1, 2, tokens, n), d.Array(d.Weights, 1, 1, 1, keys, n)
	scale := float32(1 / math.Sqrt(float64(n)))
	s := singles.Single{Op: op.Scores{Scale: float64(scale)}, In: []singles.Array{q, k}}
	s.Out = singles.Rows(q, func(row []float32) []float32 {
		y := d.Kernels.Linear(row, k.Data, nil)
		for i := range y {
			y[i] = d.Round(y[i]) * scale
		}
		return y
	})
	return s
}

// context of probabilities that are rounded, as the reference hands them on.
func (d drawing) context() singles.Single {
	tokens, keys, n := 1+d.IntN(4), d.Length(longest), 1+d.IntN(16)
	p, v := singles.Rows(d.Array(d.Weights, 1, 1, 1, tokens, keys), d.Softmax), d.Array(d.Kind, 1, 1, 1, keys, n)
	d.Rounded(p.Data)
	columns := make([]float32, len(v.Data))
	for i, value := range v.Data {
		columns[i%n*keys+i/n] = value
	}
	out := singles.Rows(p, func(row []float32) []float32 { return d.Kernels.Linear(row, columns, nil) })
	out.Shape = []int{1, tokens, n}
	return singles.Single{Op: op.Context{}, In: []singles.Array{p, v}, Out: out}
}

func (d drawing) statistic(x singles.Array) singles.Single {
	switch d.IntN(3) {
	case 0:
		return singles.Single{Op: op.Mean{}, In: []singles.Array{x}, Out: singles.Rows(x, singles.One(d.Mean))}
	case 1:
		return singles.Single{Op: op.Std{}, In: []singles.Array{x}, Out: singles.Rows(x, singles.One(d.Deviation))}
	}
	return singles.Single{Op: op.Magnitude{}, In: []singles.Array{x}, Out: singles.Rows(x, singles.One(d.Magnitude))}
}

func (d drawing) activation(x singles.Array) singles.Single {
	switch d.IntN(3) {
	case 0:
		return singles.Single{Op: op.GELUTanh{}, In: []singles.Array{x}, Out: singles.Rows(x, singles.Each(d.GELUTanh))}
	case 1:
		return singles.Single{Op: op.SiLU{}, In: []singles.Array{x}, Out: singles.Rows(x, singles.Each(d.SiLU))}
	}
	return singles.Single{Op: op.Softcap{Cap: 30}, In: []singles.Array{x}, Out: singles.Rows(x, singles.Each(func(v float32) float32 { return d.Softcap(v, 30) }))}
}

// batch is how many operations share a trace.
const batch = 50

// No healthy operation is a BUG, whatever order it adds in and whatever its data are like. TRACEDIFF_HONESTY sets how
// many are drawn; what 10,000 showed stands in docs/results/certificate.md.
func TestHonesty(t *testing.T) {
	n := pagetest.Samples(t, "TRACEDIFF_HONESTY", 600)
	outcomes, replayed, bugs := map[string]int{}, 0, 0
	for from := 0; from < n; from += batch {
		rng := rand.New(rand.NewPCG(uint64(from), 77))
		d := []hooks.DType{hooks.F32, hooks.BF16}[from/batch%2]
		var all []singles.Single
		for range min(batch, n-from) {
			g := drawing{singles.Drawing{Rand: rng, Kernels: testengine.DrawKernels(rng, d), Kind: singles.Kinds[rng.IntN(len(singles.Kinds))], Weights: singles.Kinds[rng.IntN(len(singles.Kinds))]}}
			all = append(all, g.healthy())
		}
		for k, c := range singles.CertifyAll(t, d, isolate.Options{}, all) {
			kind, _, _ := strings.Cut(c.Form, "(")
			outcomes[fmt.Sprintf("%s %s %s", d, kind, c.Outcome)]++
			if c.Summation != "" {
				replayed++
			}
			if !c.Good() {
				bugs++
				t.Errorf("%d: %s: %s, %d of %d outside by %.3g, scale %.9g ± %.2g, %s", from+k, all[k].About, c.Outcome, c.Outside, c.Elements,
					float64(c.Worst), float64(c.Scale), float64(c.ScaleError), c.Arithmetic)
			}
		}
	}
	t.Logf("%d healthy operations, %d of them replayed, %d false BUGs: %v", n, replayed, bugs, outcomes)
}

// Sums that are made to break a random walk: each addition is rounded up by all but half a unit of a partial sum that a last
// term takes away again, in an order that nobody replays. The bound on nearly every order may break; the one on every
// order may not.
func TestAdversarialCancellation(t *testing.T) {
	const sums = 64
	broken := map[bool]int{}
	for _, n := range []int{64, 1024, longest} {
		rng := rand.New(rand.NewPCG(uint64(n), 5))
		var all []singles.Single
		for k := range sums {
			all = append(all, adversarial(rng, n, testengine.Adder{Block: 1, Lanes: 1, Fused: k%2 == 0}))
		}
		for _, rigorous := range []bool{false, true} {
			for k, c := range singles.CertifyAll(t, hooks.F32, isolate.Options{Rigorous: rigorous}, all) {
				if c.Good() {
					continue
				}
				broken[rigorous]++
				if rigorous {
					t.Errorf("%s: %d elements outside the rigorous bound by %.3g", all[k].About, c.Outside, float64(c.Worst))
				}
			}
		}
	}
	t.Logf("of %d sums the random-walk bound breaks in %d, the rigorous one in %d", 3*sums, broken[false], broken[true])
	if broken[false] == 0 {
		t.Error("the sums break no random walk: nothing was tested")
	}
}

// adversarial is one sum of n products. Added in the engine's order, all roundings go up: to 1 comes, time after time, a
// little more than half a unit in the last place, and at the end −1. The operation lists its terms in another order.
func adversarial(rng *rand.Rand, n int, a testengine.Adder) singles.Single {
	x, w := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], w[i] = 0x1p-12, float32(0x1.000002p-12*(1+rng.Float64()/4))
	}
	x[0], w[0], x[n-1], w[n-1] = 1, 1, -1, 1
	out := a.Dot(0, x, w)
	rng.Shuffle(n, func(i, j int) {
		x[i], x[j] = x[j], x[i]
		w[i], w[j] = w[j], w[i]
	})
	return singles.Single{
		Op: op.Linear{}, In: []singles.Array{{Shape: []int{1, 1, n}, Data: x}}, W: []singles.Array{{Shape: []int{1, n}, Data: w}}, Out: singles.Array{Shape: []int{1, 1, 1}, Data: []float32{out}},
		About: fmt.Sprintf("a sum of %d products, %s", n, a),
	}
}
