package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
)

// The kinds of data.
var kinds = []string{"Gaussian", "positive", "massive", "heavy-tailed", "constant", "few-valued"}

// draw takes n numbers of one kind, of a typical size.
func draw(rng *rand.Rand, kind string, n int, size float64) []float32 {
	x := make([]float32, n)
	few := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
	for i := range x {
		v := rng.NormFloat64()
		switch kind {
		case "positive":
			v = rng.Float64()
		case "massive":
			if rng.IntN(500) == 0 {
				v *= 1500
			}
		case "heavy-tailed": // Student's t with two degrees of freedom: its variance is infinite
			v /= math.Sqrt(-math.Log(1 - rng.Float64()))
		case "constant":
			v = few[0]
		case "few-valued":
			v = few[rng.IntN(3)]
		}
		x[i] = float32(v * size)
	}
	return x
}

// drawing is what a healthy operation is drawn from.
type drawing struct {
	*rand.Rand
	testengine.Kernels
	kind, weights string // of data
}

func (d drawing) array(kind string, size float64, shape ...int) array {
	n, _ := hooks.Elements(shape)
	return array{shape, d.Rounded(draw(d.Rand, kind, n, size))}
}

// length is log-uniform: short and long sums are as usual.
func (d drawing) length(most int) int {
	return int(math.Exp(d.Float64() * math.Log(float64(most)+0.999)))
}

const (
	longest = 16384   // terms of a sum
	work    = 1 << 20 // products of one operation
)

// rows applies f to each row of x and gives the result a last axis of its length.
func rows(x array, f func(row []float32) []float32) array {
	n := x.shape[len(x.shape)-1]
	var y []float32
	for i := 0; i < len(x.data); i += n {
		y = append(y, f(x.data[i:i+n])...)
	}
	shape := append([]int{}, x.shape...)
	shape[len(shape)-1] = len(y) / (len(x.data) / n)
	return array{shape, y}
}

func one(f func([]float32) float32) func([]float32) []float32 {
	return func(x []float32) []float32 { return []float32{f(x)} }
}

func each(f func(float32) float32) func([]float32) []float32 {
	return func(x []float32) []float32 {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = f(v)
		}
		return y
	}
}

// healthy draws one operation and computes it.
func (d drawing) healthy() single {
	var s single
	n := d.length(longest)
	tokens := 1 + d.IntN(4)
	x := d.array(d.kind, 1, 1, tokens, n)
	switch d.IntN(10) {
	case 0, 1, 2:
		s = d.linear(x)
	case 3:
		s = d.scores()
	case 4:
		s = d.context()
	case 5, 6:
		gain := []op.Gain{op.Plain, op.NoScale, op.OnePlus, op.After}[d.IntN(4)]
		s = single{op: op.RMSNorm{Eps: 1e-6, Gain: gain}, in: []array{x}}
		var w []float32
		if gain != op.NoScale {
			s.w = []array{d.array(d.weights, 1, n)}
			w = s.w[0].data
		}
		s.out = rows(x, func(row []float32) []float32 { return d.Norm(row, w, 1e-6, string(gain)) })
	case 7:
		s = single{op: op.Softmax{}, in: []array{x}, out: rows(x, d.Softmax), wide: true}
	case 8:
		s = d.statistic(x)
	case 9:
		s = d.activation(x)
	}
	if !s.wide {
		s.out.data = d.Rounded(s.out.data)
	}
	s.about = fmt.Sprintf("%s of %v, %s data, %s weights, %s, %s", op.Form(s.op), shapes(s.in), d.kind, d.weights, d.DType, d.Adder)
	return s
}

func shapes(in []array) (all [][]int) {
	for _, a := range in {
		all = append(all, a.shape)
	}
	return all
}

func (d drawing) linear(x array) single {
	n := x.shape[2]
	out := 1 + d.IntN(max(1, min(512, work/len(x.data))))
	s := single{op: op.Linear{Bias: d.IntN(3) == 0}, in: []array{x}, w: []array{d.array(d.weights, 1/math.Sqrt(float64(n)), out, n)}}
	var b []float32
	if s.op.(op.Linear).Bias {
		s.w = append(s.w, d.array(d.kind, 1, out))
		b = s.w[1].data
	}
	s.out = rows(x, func(row []float32) []float32 { return d.Kernels.Linear(row, s.w[0].data, b) })
	return s
}

// scores of two query heads a key head.
func (d drawing) scores() single {
	tokens, keys, n := 1+d.IntN(4), d.length(256), d.length(1024)
	q, k := d.array(d.kind, 1, 1, 2, tokens, n), d.array(d.weights, 1, 1, 1, keys, n)
	scale := float32(1 / math.Sqrt(float64(n)))
	s := single{op: op.Scores{Scale: float64(scale)}, in: []array{q, k}}
	s.out = rows(q, func(row []float32) []float32 {
		y := d.Kernels.Linear(row, k.data, nil)
		for i := range y {
			y[i] = d.Round(y[i]) * scale
		}
		return y
	})
	return s
}

// context of probabilities that are rounded, as the reference hands them on.
func (d drawing) context() single {
	tokens, keys, n := 1+d.IntN(4), d.length(longest), 1+d.IntN(16)
	p, v := rows(d.array(d.weights, 1, 1, 1, tokens, keys), d.Softmax), d.array(d.kind, 1, 1, 1, keys, n)
	d.Rounded(p.data)
	columns := make([]float32, len(v.data))
	for i, value := range v.data {
		columns[i%n*keys+i/n] = value
	}
	out := rows(p, func(row []float32) []float32 { return d.Kernels.Linear(row, columns, nil) })
	out.shape = []int{1, tokens, n}
	return single{op: op.Context{}, in: []array{p, v}, out: out}
}

func (d drawing) statistic(x array) single {
	switch d.IntN(3) {
	case 0:
		return single{op: op.Mean{}, in: []array{x}, out: rows(x, one(d.Mean))}
	case 1:
		return single{op: op.Std{}, in: []array{x}, out: rows(x, one(d.Deviation))}
	}
	return single{op: op.Magnitude{}, in: []array{x}, out: rows(x, one(d.Magnitude))}
}

func (d drawing) activation(x array) single {
	switch d.IntN(3) {
	case 0:
		return single{op: op.GELUTanh{}, in: []array{x}, out: rows(x, each(d.GELUTanh))}
	case 1:
		return single{op: op.SiLU{}, in: []array{x}, out: rows(x, each(d.SiLU))}
	}
	return single{op: op.Softcap{Cap: 30}, in: []array{x}, out: rows(x, each(func(v float32) float32 { return d.Softcap(v, 30) }))}
}

// batch is how many operations share a trace.
const batch = 50

// No healthy operation is a BUG, whatever order it adds in and whatever its data are like. TRACEDIFF_HONESTY sets how
// many are drawn; what 10,000 showed stands in docs/certificate.md.
func TestHonesty(t *testing.T) {
	n := pagetest.Samples(t, "TRACEDIFF_HONESTY", 600)
	outcomes, replayed, bugs := map[string]int{}, 0, 0
	for from := 0; from < n; from += batch {
		rng := rand.New(rand.NewPCG(uint64(from), 77))
		d := []hooks.DType{hooks.F32, hooks.BF16}[from/batch%2]
		var all []single
		for range min(batch, n-from) {
			g := drawing{rng, testengine.DrawKernels(rng, d), kinds[rng.IntN(len(kinds))], kinds[rng.IntN(len(kinds))]}
			all = append(all, g.healthy())
		}
		for k, c := range certifyAll(t, d, isolate.Options{}, all) {
			kind, _, _ := strings.Cut(c.Form, "(")
			outcomes[fmt.Sprintf("%s %s %s", d, kind, c.Outcome)]++
			if c.Summation != "" {
				replayed++
			}
			if !c.Good() {
				bugs++
				t.Errorf("%d: %s: %s, %d of %d outside by %.3g, scale %.9g ± %.2g, %s", from+k, all[k].about, c.Outcome, c.Outside, c.Elements,
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
		var all []single
		for k := range sums {
			all = append(all, adversarial(rng, n, testengine.Adder{Block: 1, Lanes: 1, Fused: k%2 == 0}))
		}
		for _, rigorous := range []bool{false, true} {
			for k, c := range certifyAll(t, hooks.F32, isolate.Options{Rigorous: rigorous}, all) {
				if c.Good() {
					continue
				}
				broken[rigorous]++
				if rigorous {
					t.Errorf("%s: %d elements outside the rigorous bound by %.3g", all[k].about, c.Outside, float64(c.Worst))
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
func adversarial(rng *rand.Rand, n int, a testengine.Adder) single {
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
	return single{
		op: op.Linear{}, in: []array{{[]int{1, 1, n}, x}}, w: []array{{[]int{1, n}, w}}, out: array{[]int{1, 1, 1}, []float32{out}},
		about: fmt.Sprintf("a sum of %d products, %s", n, a),
	}
}
