package diagnose_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	query = "layers.1.self_attn.q_proj"
	wq    = "layers.*.self_attn.q_proj.weight"
)

// f32 is a number in float32.
func f32(x float64) float64 { return float64(float32(x)) }

// hadamard is an element of Sylvester's Hadamard matrix: the sign of the bits that two indexes share.
func hadamard(i, j int) float64 { return 1 - 2*float64(bits.OnesCount(uint(i&j))%2) }

// number is the term of a number.
func number(x float64) diagnose.Term { return diagnose.Term{Kind: diagnose.Literal, X: x} }

// wrongWeights are mistakes of the weight of a query projection, with its 24 rows and columns as they are then.
var wrongWeights = []struct {
	diagnose.Mistake
	wrong func(w grid) grid
}{
	{diagnose.Mistake{Kind: "weight.zero"}, by(func(float64) float64 { return 0 })},
	{diagnose.Mistake{Kind: "weight.one"}, by(func(float64) float64 { return 1 })},
	{diagnose.Mistake{Kind: "weight.plus-one"}, by(func(x float64) float64 { return x + 1 })},
	{diagnose.Mistake{Kind: "weight.stored-plus-one"}, by(func(x float64) float64 { return x + 1 })},
	{diagnose.Mistake{Kind: "weight.minus-one"}, by(func(x float64) float64 { return x - 1 })},
	{diagnose.Mistake{Kind: "weight.negated"}, by(func(x float64) float64 { return -x })},
	{diagnose.Mistake{Kind: "weight.inverted"}, by(func(x float64) float64 { return 1 / x })},
	{diagnose.Mistake{Kind: "weight.clipped-at-zero"}, by(func(x float64) float64 { return max(x, 0) })},
	{diagnose.Mistake{Kind: "weight.unsigned"}, by(math.Abs)},
	{diagnose.Mistake{Kind: "weight.multiplied", By: number(0.25)}, by(func(x float64) float64 { return x / 4 })},
	{diagnose.Mistake{Kind: "weight.cut-off", DType: hooks.BF16}, by(func(x float64) float64 {
		return math.Trunc(x*math.Exp2(7-math.Floor(math.Log2(math.Abs(x))))) / math.Exp2(7-math.Floor(math.Log2(math.Abs(x))))
	})},
	{diagnose.Mistake{Kind: "weight.rounded-dtype", DType: hooks.F16}, by(func(x float64) float64 {
		return math.RoundToEven(x*math.Exp2(10-math.Floor(math.Log2(math.Abs(x))))) / math.Exp2(10-math.Floor(math.Log2(math.Abs(x))))
	})},
	{diagnose.Mistake{Kind: "weight.bits-misread", DType: hooks.BF16, By: diagnose.Term{Kind: diagnose.AName, Name: hooks.F16.String()}}, by(func(x float64) float64 {
		bits := math.Float32bits(float32(x))
		bits = (bits + 0x7fff + bits>>16&1) >> 16
		return (1 + float64(bits&0x3ff)/0x400) * math.Exp2(float64(bits>>10&0x1f)-15) * math.Copysign(1, x)
	})},

	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.Int8}}, inGroups(24, func(g []float64, top float64) { steps(g, top/127, math.RoundToEven) })},
	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.Int4, Scales: 8}}, inGroups(8, func(g []float64, top float64) { steps(g, top/7, math.RoundToEven) })},
	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.Int8, Scales: diagnose.OfAll}}, func(w grid) grid {
		top := largest(w)
		return inGroups(24, func(g []float64, _ float64) { steps(g, top/127, math.RoundToEven) })(w)
	}},
	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.Int4, Scales: diagnose.ByColumn}}, func(w grid) grid {
		return turn(inGroups(24, func(g []float64, top float64) { steps(g, top/7, math.RoundToEven) })(turn(w)))
	}},
	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.Float4E2M1}}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/6, nearest(-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6))
	})},
	{diagnose.Mistake{Kind: "weight.cut-to-codes", Coding: diagnose.Coding{Numbers: diagnose.Int4}}, inGroups(24, func(g []float64, top float64) { steps(g, top/7, math.Trunc) })},
	{diagnose.Mistake{Kind: "weight.codes-with-offset", Coding: diagnose.Coding{Numbers: diagnose.Int4}}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/7, func(x float64) float64 { return math.Mod(math.RoundToEven(x)+16, 16) - 8 })
	})},
	{diagnose.Mistake{Kind: "weight.codes-unsigned", Coding: diagnose.Coding{Numbers: diagnose.Int8}}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/127, func(x float64) float64 { return math.Mod(math.RoundToEven(x)+256, 256) })
	})},
	{diagnose.Mistake{Kind: "weight.codes-without-sign", Coding: diagnose.Coding{Numbers: diagnose.Int4}}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/7, func(x float64) float64 { return math.Abs(math.RoundToEven(x)) })
	})},
	{diagnose.Mistake{Kind: "weight.codes-saturated", Coding: diagnose.Coding{Numbers: diagnose.Int8}}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/127, func(x float64) float64 { return min(math.RoundToEven(x)+128, 127) - 128 })
	})},
	{diagnose.Mistake{Kind: "weight.codes-unsigned", Coding: diagnose.Coding{Numbers: diagnose.Int4Kept, Scales: diagnose.OfAll}}, func(w grid) grid {
		step := f32(largest(w) / 7)
		return by(func(x float64) float64 {
			if x < 0 {
				return f32(x + 16*step)
			}
			return x
		})(w)
	}},
	{diagnose.Mistake{Kind: "weight.codes-with-offset", Coding: diagnose.Coding{Numbers: diagnose.Int8Kept}}, inGroups(24, func(g []float64, top float64) {
		for i, x := range g {
			g[i] = f32(x - math.Copysign(128*f32(top/127), x))
		}
	})},
	{diagnose.Mistake{Kind: "weight.codes-borrowed", N: 4, Coding: diagnose.Coding{Numbers: diagnose.Int4}}, inGroups(24, packedInWords(4, 4, 7))},
	{diagnose.Mistake{Kind: "weight.codes-borrowed", N: 2, Coding: diagnose.Coding{Numbers: diagnose.Int8, Scales: diagnose.OfAll}}, func(w grid) grid {
		top := largest(w)
		return inGroups(24, func(g []float64, _ float64) { packedInWords(2, 8, 127)(g, top) })(w)
	}},
	{diagnose.Mistake{Kind: "weight.codes-borrowed", N: 8, Coding: diagnose.Coding{Numbers: diagnose.Int4Kept}}, inGroups(24, func(g []float64, top float64) {
		for i := len(g) - 1; i > 0; i-- {
			if i%8 > 0 && g[i-1] < 0 {
				g[i] = f32(g[i] - f32(top/7))
			}
		}
	})},
	{diagnose.Mistake{Kind: "weight.rounded-with-low-scales", Coding: diagnose.Coding{Numbers: diagnose.Float4E2M1Kept, Scales: diagnose.ByHalfRow}}, inGroups(12, func(g []float64, top float64) {
		end := 6 * math.Exp2(math.Floor(math.Log2(top/6)))
		for i, x := range g {
			g[i] = min(max(x, -end), end)
		}
	})},
	{diagnose.Mistake{Kind: "weight.rounded-with-low-scales", Coding: diagnose.Coding{Numbers: diagnose.Int4, Scales: 8}}, inGroups(8, func(g []float64, top float64) {
		steps(g, math.Exp2(math.Floor(math.Log2(top/7))), func(x float64) float64 { return min(max(math.RoundToEven(x), -7), 7) })
	})},
	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.NormalFloat4Short, Scales: 8}}, inGroups(8, func(g []float64, top float64) {
		steps(g, top, nearest(-1, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0, 0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.723, 1))
	})},
	{diagnose.Mistake{Kind: "weight.rounded", Coding: diagnose.Coding{Numbers: diagnose.Float4E2M1, Scales: diagnose.ByQuarterRow}}, inGroups(6, func(g []float64, top float64) {
		steps(g, top/6, nearest(-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6))
	})},
	{diagnose.Mistake{Kind: "weight.rounded-with-one-step-more", Coding: diagnose.Coding{Numbers: diagnose.Int4}}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/8, func(x float64) float64 { return min(math.RoundToEven(x), 7) })
	})},
	{diagnose.Mistake{Kind: "weight.rounded-with-other-steps", Coding: diagnose.Coding{Numbers: diagnose.Int4}, By: number(7. / 8), Rounding: diagnose.EachStep}, inGroups(24, func(g []float64, top float64) {
		steps(g, top/7, math.RoundToEven)
		for i := range g {
			g[i] = f32(g[i] * 7 / 8)
		}
	})},
	{diagnose.Mistake{Kind: "weight.rounded-with-narrow-scales", DType: hooks.BF16, Coding: diagnose.Coding{Numbers: diagnose.Int8}}, inGroups(24, func(g []float64, top float64) {
		narrow := math.Exp2(7 - math.Floor(math.Log2(top/127)))
		steps(g, math.RoundToEven(f32(top/127)*narrow)/narrow, func(x float64) float64 { return min(max(math.RoundToEven(x), -127), 127) })
	})},
	{diagnose.Mistake{Kind: "weight.rounded-q4-0", Coding: diagnose.Coding{Numbers: diagnose.Int4}}, inGroups(24, func(g []float64, top float64) {
		if !slices.Contains(g, top) {
			top = -top
		}
		steps(g, top/-8, func(x float64) float64 { return min(math.Floor(x+8.5), 15) - 8 })
	})},
	{diagnose.Mistake{Kind: "weight.rounded-between", Coding: diagnose.Coding{Numbers: diagnose.Int4, Scales: 8}}, inGroups(8, between(0))},
	{diagnose.Mistake{Kind: "weight.zero-point-off", N: -1, Coding: diagnose.Coding{Numbers: diagnose.Int4, Scales: 8}}, inGroups(8, between(-1))},
	{diagnose.Mistake{Kind: "weight.zero-point-off", N: 1, Coding: diagnose.Coding{Numbers: diagnose.Int4Kept, Scales: 8}}, inGroups(8, func(g []float64, _ float64) {
		step := f32(f32(slices.Max(g)-slices.Min(g)) / 15)
		for i, x := range g {
			g[i] = f32(x - step)
		}
	})},
	{diagnose.Mistake{Kind: "weight.scales-of-blocks", Runs: "0-7=8;16-23=16@scaled-twice"}, func(w grid) grid {
		first, second, third := largest(w[:8]), largest(w[8:16]), largest(w[16:])
		return newGrid(24, 24, func(i, j int) float64 {
			return w[i][j] * []float64{second / first, 1, third}[i/8]
		})
	}},

	{diagnose.Mistake{Kind: "weight.transposed"}, turn},
	{diagnose.Mistake{Kind: "weight.rope-rows", N: 6, M: 2, K: 3}, func(w grid) grid {
		var all grid
		for h := range 4 {
			for _, k := range []int{0, 3, 1, 4, 2, 5} {
				all = append(all, w[6*h+k])
			}
		}
		return all
	}},
	{diagnose.Mistake{Kind: "weight.tiles-by-columns", N: 2, M: 4}, tiled(2, 4, true)},
	{diagnose.Mistake{Kind: "weight.tiles-by-rows", N: 2, M: 4}, tiled(2, 4, false)},
	{diagnose.Mistake{Kind: "weight.panels-as-rows", N: 4, M: 8}, func(w grid) grid {
		var memory []float64
		for p := 0; p < 24; p += 4 {
			for c := 0; c < 24; c += 8 {
				for r := range 4 {
					memory = append(memory, w[p+r][c:c+8]...)
				}
			}
		}
		return newGrid(24, 24, func(i, j int) float64 { return memory[i*24+j] })
	}},
	{diagnose.Mistake{Kind: "weight.rows-as-panels", N: 8, M: 4}, func(w grid) grid {
		all, memory := newGrid(24, 24, func(int, int) float64 { return 0 }), slices.Concat(w...)
		for p := 0; p < 24; p += 8 {
			for c := 0; c < 24; c += 4 {
				for r := range 8 {
					copy(all[p+r][c:c+4], memory)
					memory = memory[4:]
				}
			}
		}
		return all
	}},
	{diagnose.Mistake{Kind: "weight.hadamard-inputs", N: 8}, func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 {
			sum := 0.0
			for k := range 8 {
				sum += hadamard(k, j%8) * w[i][j/8*8+k]
			}
			return f32(sum / math.Sqrt(8))
		})
	}},
	{diagnose.Mistake{Kind: "weight.hadamard-outputs", N: 8}, func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 {
			sum := 0.0
			for k := range 8 {
				sum += hadamard(i%8, k) * w[i/8*8+k][j]
			}
			return f32(sum / math.Sqrt(8))
		})
	}},
	{diagnose.Mistake{Kind: "weight.rows-read-apart", N: 32, M: 24}, func(w grid) grid {
		memory := append(slices.Concat(w...), make([]float64, 24*24)...)
		return newGrid(24, 24, func(i, j int) float64 { return memory[i*32+j] })
	}},
	{diagnose.Mistake{Kind: "weight.rows-read-apart", N: 24, M: 28}, func(w grid) grid {
		var memory []float64
		for _, row := range w {
			memory = append(append(memory, row...), 0, 0, 0, 0)
		}
		return newGrid(24, 24, func(i, j int) float64 { return memory[i*24+j] })
	}},
	{diagnose.Mistake{Kind: "weight.columns-read-later", N: 12, K: 12}, func(w grid) grid {
		memory := append(slices.Concat(w...), make([]float64, 24)...)
		return newGrid(24, 24, func(i, j int) float64 { return memory[i*24+j+j/12*12] })
	}},
	{diagnose.Mistake{Kind: "weight.columns-read-later", N: -3}, func(w grid) grid {
		memory := append(make([]float64, 3), slices.Concat(w...)...)
		return newGrid(24, 24, func(i, j int) float64 { return memory[i*24+j] })
	}},
	{diagnose.Mistake{Kind: "weight.one-shard", N: 1, M: 4}, func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 {
			if j < 6 || j >= 12 {
				return 0
			}
			return w[i][j]
		})
	}},
	{diagnose.Mistake{Kind: "weight.shard-missing", N: 1, M: 4}, func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 {
			if j >= 6 && j < 12 {
				return 0
			}
			return w[i][j]
		})
	}},
	{diagnose.Mistake{Kind: "weight.columns-cut", N: 3, M: 24}, func(w grid) grid {
		for i := range w {
			w[i][21], w[i][22], w[i][23] = 0, 0, 0
		}
		return w
	}},
	{diagnose.Mistake{Kind: "weight.first-shard-everywhere", N: 2}, func(w grid) grid { return append(slices.Clone(w[:12]), w[:12]...) }},
	{diagnose.Mistake{Kind: "weight.one-number", N: 5, M: 7, By: number(3)}, func(w grid) grid { w[5][7] = 3; return w }},
	{diagnose.Mistake{Kind: "weight.rows-mean", Runs: "20-23"}, func(w grid) grid {
		mean := meanOf(w)
		return append(slices.Clone(w[:20]), mean, mean, mean, mean)
	}},
	{diagnose.Mistake{Kind: "weight.rows-mean-of-others", Runs: "3;20-22"}, func(w grid) grid {
		mean, all := meanOf(slices.Concat(w[:3], w[4:20], w[23:])), slices.Clone(w)
		all[3], all[20], all[21], all[22] = mean, mean, mean, mean
		return all
	}},
	{diagnose.Mistake{Kind: "weight.rows-others", Runs: "0-1=4;3=-;5-6=2@layers.*.self_attn.k_proj.weight"}, func(w grid) grid {
		key := gridOf(order.Weight{Name: "layers.1.self_attn.k_proj.weight", Shape: []int{12, 24}})
		all := slices.Clone(w)
		all[0], all[1], all[3], all[5], all[6] = w[4], w[5], make([]float64, 24), key[2], key[3]
		return all
	}},
	{diagnose.Mistake{Kind: "weight.rows-reordered-in-blocks", N: 3, Runs: "0=2;1=0;2=1"}, func(w grid) grid {
		var all grid
		for at := 0; at < 24; at += 3 {
			all = append(all, w[at+2], w[at], w[at+1])
		}
		return all
	}},
	{diagnose.Mistake{Kind: "weight.other", Source: "layers.0.self_attn.o_proj.weight"}, func(grid) grid {
		return gridOf(order.Weight{Name: "layers.1.self_attn.o_proj.weight", Shape: []int{24, 24}})
	}},
	{diagnose.Mistake{Kind: "weight.other-transposed", Source: "layers.0.self_attn.o_proj.weight"}, func(grid) grid {
		return turn(gridOf(order.Weight{Name: "layers.1.self_attn.o_proj.weight", Shape: []int{24, 24}}))
	}},
	{diagnose.Mistake{Kind: "weight.folded", Source: "layers.0.input_layernorm.weight", By: diagnose.Term{Kind: diagnose.OnePlus}}, func(w grid) grid {
		v := gridOf(order.Weight{Name: "layers.1.input_layernorm.weight", Shape: []int{24}})[0]
		return newGrid(24, 24, func(i, j int) float64 { return w[i][j] * (1 + v[j]) })
	}},
	{diagnose.Mistake{Kind: "weight.cut-elsewhere", Runs: "12-23=12@layers.*.self_attn.q_proj;0-11=0@layers.*.self_attn.k_proj[:]"}, func(w grid) grid {
		return append(slices.Clone(w[12:]), gridOf(order.Weight{Name: "layers.1.self_attn.k_proj.weight", Shape: []int{12, 24}})...)
	}},
}

// A mistake of a weight makes of it what plain loops make, in the layer of the entry. It makes the same of some rows of the weight.
func TestMistakesOfWeightsAreApplied(t *testing.T) {
	for _, c := range wrongWeights {
		m := weighted(t)
		e := rightEntry(t, m, query)
		bias := gridOf(e.Weights[1])[0]
		own := gridOf(e.Weights[0])
		right, want := linear(e.Call.In[0].Data, own, bias), linear(e.Call.In[0].Data, c.wrong(gridOf(e.Weights[0])), bias)
		if c.Place = wq; !alike(appliedTo(t, m, e, c.Mistake), want) {
			t.Errorf("%s: other values than those of plain loops", c.Kind)
		}
		if alike(right, want) {
			t.Errorf("%s: the values of the right weight", c.Kind)
		}
		m = weighted(t)
		e = rightEntry(t, m, query)
		keep := []int{23, 0, 5, 6, 3, 1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 4, 2}
		e.Call.W[0] = someRows{e.Call.W[0], keep}
		some := newGrid(tokens, 24, func(i, j int) float64 { return want[i*24+keep[j]] - bias[keep[j]] + bias[j] })
		if !alike(appliedTo(t, m, e, c.Mistake), slices.Concat(some...)) {
			t.Errorf("%s: other values in some rows", c.Kind)
		}
	}
}

// meanOf is the mean of the rows of a matrix.
func meanOf(w grid) []float64 {
	mean := make([]float64, len(w[0]))
	for j := range mean {
		for _, row := range w {
			mean[j] += row[j]
		}
		mean[j] = f32(mean[j] / float64(len(w)))
	}
	return mean
}

// Rows that are nearly the mean of the others have no such name.
func TestRowsThatAreNoMeanAreNotNamed(t *testing.T) {
	m := weighted(t)
	e := rightEntry(t, m, query)
	w := gridOf(e.Weights[0])
	mean := meanOf(w)
	mean[5] += 0.01
	wrong := append(slices.Clone(w[:20]), mean, mean, mean, mean)
	if m := found(t, m, e, linear(e.Call.In[0].Data, wrong, gridOf(e.Weights[1])[0])); m.Kind != "" {
		t.Errorf("%s is found", m.Key())
	}
}

// found is the mistake that a search finds in an entry that gives some numbers.
func found(t *testing.T, m *diagnose.Model, e *diagnose.Entry, y []float64) diagnose.Mistake {
	t.Helper()
	h := &honest{e: e}
	for _, v := range y {
		h.y = append(h.y, f32(v))
	}
	e.Judge = h
	x, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	e.Left, _ = h.Leaves(x, len(y))
	return named(t, m, e).Mistake
}

// A mistake that a search finds in an entry gives the numbers of the entry when it is applied to it again.
func TestFoundMistakesOfWeightsGiveTheEntry(t *testing.T) {
	for _, c := range wrongWeights {
		m := weighted(t)
		e := rightEntry(t, m, query)
		want := linear(e.Call.In[0].Data, c.wrong(gridOf(e.Weights[0])), gridOf(e.Weights[1])[0])
		switch mistake, kind := found(t, m, e, want), c.Kind; {
		case kind == "weight.one-number": // in three tokens it does not show enough
			if mistake.Kind != "" {
				t.Errorf("%s is found", mistake.Key())
			}
		case mistake.Kind == "":
			t.Errorf("%s is not found", kind)
		case !alike(appliedTo(t, m, e, mistake), want):
			t.Errorf("%s: the mistake that was found, %s, gives other numbers", kind, mistake.Key())
		case mistake.Kind != kind && kind != "weight.stored-plus-one": // in float32 it is 1+w
			t.Errorf("%s: found %s", kind, mistake.Key())
		}
	}
}

// What depends on more than one operation: mistakes of parts of one matrix, of vectors of the layer, of the rows of a table and of the channels of a result.
func TestMistakesOfSeveralWeightsAreApplied(t *testing.T) {
	m := weighted(t)
	w := func(name string, shape ...int) grid {
		return gridOf(order.Weight{Name: "layers.1." + name, Shape: shape})
	}
	q, k, v := w("self_attn.q_proj.weight", 24, 24), w("self_attn.k_proj.weight", 12, 24), w("self_attn.v_proj.weight", 12, 24)
	bq, bk, bv := w("self_attn.q_proj.bias", 24)[0], w("self_attn.k_proj.bias", 12)[0], w("self_attn.v_proj.bias", 12)[0]
	x := rightEntry(t, m, query).Call.In[0].Data
	right := linear(x, q, bq)
	all, biases := slices.Concat(q, k, v), slices.Concat(bq, bk, bv)
	// The file has queries, keys and values one behind the other, and the port reads two groups with parts of each.
	grouped := slices.Concat(all[:12], all[24:36])
	groupedBias := slices.Concat(biases[:12], biases[24:36])
	// The file has two groups, and the port reads its first rows for the queries.
	split := slices.Concat(q[:12], k[:6], v[:6])
	splitBias := slices.Concat(bq[:12], bk[:6], bv[:6])
	gain := w("input_layernorm.weight", 24)[0]
	table := gridOf(order.Weight{Name: "embed_tokens.weight", Shape: []int{190, 24}})
	for _, c := range []struct {
		entry   string
		mistake diagnose.Mistake
		want    []float64
	}{
		{query, diagnose.Mistake{Kind: "weight.packed-read-as-groups", N: 2, Place: wq}, linear(x, grouped, groupedBias)},
		{query, diagnose.Mistake{Kind: "weight.groups-read-as-packed", N: 2, Place: wq}, linear(x, split, splitBias)},
		{query, diagnose.Mistake{Kind: "bias.cut-elsewhere", Place: wq, Runs: "0-11=0@layers.*.self_attn.v_proj[:];12-23=12@layers.*.self_attn.q_proj"}, linear(x, q, slices.Concat(bv, bq[12:]))},
		{query, diagnose.Mistake{Kind: "weight.cut-elsewhere-with-bias", Place: wq, Runs: "0-11=0@layers.*.self_attn.v_proj[:];12-23=12@layers.*.self_attn.q_proj"}, linear(x, slices.Concat(v, q[12:]), slices.Concat(bv, bq[12:]))},
		{query, diagnose.Mistake{Kind: "channels.others", Runs: "0-1=4;5=-"}, channels(right, func(y []float64) { y[0], y[1], y[5] = y[4], y[5], 0 })},
		{query, diagnose.Mistake{Kind: "vector.inserted", Source: "layers.0.input_layernorm.weight", Edit: edit.Edit{At: []edit.Place{{Arg: -2}}}.Text()}, channels(right, func(y []float64) {
			for i := range y {
				y[i] *= gain[i]
			}
		})},
		{"embed_tokens.lookup", diagnose.Mistake{Kind: "weight.rows-mean", Runs: "4", Place: "embed_tokens.weight"}, slices.Concat(table[1], meanOf(table), table[7])},
		{"embed_tokens.lookup", diagnose.Mistake{Kind: "lookup.other-rows", Runs: "1=7;4=-"}, slices.Concat(table[7], make([]float64, 24), table[7])},
	} {
		if got := appliedTo(t, m, rightEntry(t, m, c.entry), c.mistake); !alike(got, c.want) {
			t.Errorf("%s: %v, want %v", c.mistake.Kind, got, c.want)
		}
	}
}

// Ids that have the rows of other ids are named by a rule if three of them and all right ids keep to one, else one by one.
func TestRulesOfRowsAreFound(t *testing.T) {
	few := []int{5, 60, 99, 113, 129, 180}
	for _, c := range []struct {
		key string
		ids []int
		row func(id int) int
	}{
		{"ids.limited(place=embed_tokens.weight,of=weight:embed_tokens.weight,n=100)", few, func(id int) int { return min(id, 100) }},
		{"ids.shifted(place=embed_tokens.weight,of=weight:embed_tokens.weight,n=99,k=-1)", few, func(id int) int { return id - id/99 }},
		{"ids.shifted(place=embed_tokens.weight,of=weight:embed_tokens.weight,n=60,k=4)", few, func(id int) int {
			if id < 60 {
				return id
			}
			return id + 4
		}},
		{"ids.modulo(place=embed_tokens.weight,of=weight:embed_tokens.weight,n=64)", few, func(id int) int { return id & 63 }},
		{"lookup.other-rows(place=lookup.ids,runs=130=2;131=3;133=5)", []int{1, 60, 130, 131, 133}, func(id int) int { return id % 128 % 64 }},
		{"lookup.other-rows(place=lookup.ids,runs=113=100;129=100;180=100)", []int{5, 60, 120, 113, 129, 180}, func(id int) int {
			if id == 120 {
				return id
			}
			return min(id, 100)
		}},
		{"lookup.other-rows(place=lookup.ids,runs=113=112;129=128)", []int{5, 60, 99, 113, 129}, func(id int) int { return id - id/113 }},
		{"lookup.other-rows(place=lookup.ids,runs=113=39;129=10;180=38)", few, func(id int) int {
			if id < 113 {
				return id
			}
			return id * 7 % 47 % 41
		}},
	} {
		m := weighted(t)
		m.Passes[0].Tokens = len(c.ids)
		reading := m.Read
		m.Read = func(n order.Node) (program.Value, error) {
			v, err := reading(n)
			if m.List.Entries[n.Entry].Name == order.InputIDs {
				for i, id := range c.ids {
					v.Data[i] = float64(id)
				}
			}
			return v, err
		}
		e := rightEntry(t, m, "embed_tokens.lookup")
		table := gridOf(e.Weights[0])
		var want []float64
		for _, id := range c.ids {
			want = append(want, table[c.row(id)]...)
		}
		mistake := found(t, m, e, want)
		if mistake.Key() != c.key {
			t.Errorf("found %s, want %s", mistake.Key(), c.key)
		}
		if !alike(appliedTo(t, m, e, mistake), want) {
			t.Errorf("%s gives other rows", mistake.Key())
		}
	}
}

// channels is a result of 24 channels with each row changed.
func channels(y []float64, f func(row []float64)) []float64 {
	y = slices.Clone(y)
	for at := 0; at < len(y); at += 24 {
		f(y[at:][:24])
	}
	return y
}

// The weights of a recorded model have longer names than its entries. A vector of the entry's layer is found that is added, and no vector of another layer.
func TestVectorOfTheLayerOfARecordedModelIsAdded(t *testing.T) {
	m := weighted(t)
	for k := range m.List.Entries {
		e := &m.List.Entries[k]
		e.Weights = slices.Clone(e.Weights)
		for i := range e.Weights {
			e.Weights[i].Name = "model." + e.Weights[i].Name
		}
	}
	e := rightEntry(t, m, query)
	added := gridOf(order.Weight{Name: "model.layers.1.post_attention_layernorm.weight", Shape: []int{24}})[0]
	want := linear(e.Call.In[0].Data, gridOf(e.Weights[0]), gridOf(e.Weights[1])[0])
	for i := range want {
		want[i] = f32(f32(want[i]) + added[i%24])
	}
	mistake := found(t, m, e, want)
	if mistake.Kind != "vector.added" || mistake.Of.Name != "model.layers.*.post_attention_layernorm.weight" {
		t.Errorf("found %s", mistake.Key())
	}
	if mistake.Kind != "" && !alike(appliedTo(t, m, e, mistake), want) {
		t.Error("the mistake that was found gives other numbers")
	}
}

// A vector is added to what an operation computes, before that is rounded, or to what the operation has stored.
func TestAddedVectorIsAddedBeforeOrAfterStoring(t *testing.T) {
	m := weighted(t)
	e := rightEntry(t, m, query)
	vector := "layers.1.post_attention_layernorm.weight"
	added := gridOf(order.Weight{Name: vector, Shape: []int{24}})[0]
	right := linear(e.Call.In[0].Data, gridOf(e.Weights[0]), gridOf(e.Weights[1])[0])
	bf16 := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	unstored, stored := make([]float64, len(right)), make([]float64, len(right))
	for i, x := range right {
		unstored[i], stored[i] = bf16(x+added[i%24]), bf16(bf16(x)+added[i%24])
	}
	exact := make([]float64, len(right))
	for i, x := range right {
		exact[i] = f32(f32(x) + added[i%24])
	}
	mistake := found(t, m, e, exact)
	if mistake.Kind != "vector.added" {
		t.Fatalf("found %s", mistake.Key())
	}
	if slices.Equal(unstored, stored) {
		t.Fatal("the numbers do not tell one from the other")
	}
	for _, c := range []struct {
		rounding diagnose.Rounding
		want     []float64
	}{{diagnose.Unstored, unstored}, {"", stored}} {
		e = rightEntry(t, m, query)
		e.Call.DType, mistake.Rounding = hooks.BF16, c.rounding
		got := appliedTo(t, m, e, mistake)
		if !alike(got, c.want) {
			t.Errorf("rounding %q: %v, want %v", c.rounding, got[:4], c.want[:4])
		}
	}
}
