package diagnose_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

const (
	tokensOf48 = 8
	rowsOf48   = 64
	colsOf48   = 48
)

// similar48 is a product of 8 tokens that are similar to each other with a random matrix of standard deviation 0.3.
func similar48(seed uint64) operation {
	r := rand.New(rand.NewPCG(seed, 1))
	o := operation{"layers.0.self_attn.o_proj", op.Linear{}, "btc", []int{1, tokensOf48, rowsOf48}, []program.Value{{Shape: []int{1, tokensOf48, colsOf48}}}, nil, nil}
	o.in[0].Data = similarRows(r)
	o.matrix = randomRows(r, rowsOf48, colsOf48, 0.3)
	return o
}

// wide is similar48 with operands and a matrix of other sizes. Half of each operand is the same in all tokens if they are similar.
func wide(seed uint64, rows, cols int, similar float64) operation {
	o := similar48(seed)
	r := rand.New(rand.NewPCG(seed, 5))
	common, x := randomRows(r, 1, cols, similar)[0], randomRows(r, tokensOf48, cols, 1)
	for _, token := range x {
		for c := range token {
			token[c] = float64(float32(token[c] + common[c]))
		}
	}
	o.in[0], o.shape = program.Value{Shape: []int{1, tokensOf48, cols}, Data: slices.Concat(x...)}, []int{1, tokensOf48, rows}
	o.matrix = randomRows(r, rows, cols, 0.3)
	return o
}

// apart512 has operands that are not similar.
func apart512(seed uint64) operation { return wide(seed, rowsOf48, 512, 0) }

// tall256 has a matrix with so many rows that the operand follows from the results.
func tall256(seed uint64) operation { return wide(seed, 384, 256, 1) }

// biased48 has a bias with a standard deviation of 2.
func biased48(seed uint64) operation {
	o := similar48(seed)
	o.op = biasedProduct{}
	o.in = append(o.in, program.Value{Shape: []int{rowsOf48}, Data: randomRows(rand.New(rand.NewPCG(seed, 7)), 1, rowsOf48, 2)[0]})
	return o
}

// biasedProduct is a product with a bias, its second input.
type biasedProduct struct{ op.Linear }

func (biasedProduct) Kind() string { return "biased_product" }

func (biasedProduct) Steps(b *program.Builder, in, w []program.Var) program.Var {
	return b.Affine("product", in[0], w[0], in[1])
}

// similarRows are operands of 8 tokens: half of each is the same in all tokens.
func similarRows(r *rand.Rand) []float64 {
	common := make([]float64, colsOf48)
	for c := range common {
		common[c] = r.NormFloat64()
	}
	x := make([]float64, tokensOf48*colsOf48)
	for i := range x {
		x[i] = float64(float32(common[i%colsOf48] + r.NormFloat64()))
	}
	return x
}

// randomRows is a matrix of normal numbers.
func randomRows(r *rand.Rand, rows, cols int, deviation float64) [][]float64 {
	all := make([][]float64, rows)
	for k := range all {
		all[k] = make([]float64, cols)
		for c := range all[k] {
			all[k][c] = float64(float32(deviation * r.NormFloat64()))
		}
	}
	return all
}

// timesRows puts the product of an operand and a matrix in place of y.
func timesRows(x []float64, w [][]float64, y []float64) {
	for i := range y {
		sum := 0.0
		for c, v := range w[i%len(w)] {
			sum += v * x[i/len(w)*len(w[0])+c]
		}
		y[i] = sum
	}
	rounded(y)
}

// A product with random numbers in place of a weight is one whose weight was not loaded. The same numbers in another order, another operand, noise, and
// numbers of different deviations are not.
func TestRandomWeightsAreNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		dtype hooks.DType
		of    func(seed uint64) operation
		wrong func(r *rand.Rand, w [][]float64, x, y []float64)
		is    float64 // the standard deviation that is said; 0 for another name
	}{
		{"random", hooks.F32, similar48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			timesRows(x, randomRows(r, rowsOf48, colsOf48, 0.02), y)
		}, 0.02},
		{"random in bfloat16", hooks.BF16, similar48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			timesRows(x, randomRows(r, rowsOf48, colsOf48, 0.02), y)
		}, 0.02},
		{"uniform", hooks.F32, similar48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			w := randomRows(r, rowsOf48, colsOf48, 0)
			for _, row := range w {
				for c := range row {
					row[c] = (2*r.Float64() - 1) / math.Sqrt(colsOf48)
				}
			}
			timesRows(x, w, y)
		}, 1 / math.Sqrt(3*colsOf48)},
		{"random without the bias", hooks.F32, biased48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			timesRows(x, randomRows(r, rowsOf48, colsOf48, 0.02), y)
		}, 0.02},
		{"rows of two deviations", hooks.F32, similar48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			other := randomRows(r, rowsOf48, colsOf48, 0.02)
			for k := range other {
				for c := range other[k] {
					other[k][c] *= 1 + 1.6*float64(k%2)
				}
			}
			timesRows(x, other, y)
		}, 0},
		{"one direction of the operands", hooks.F32, similar48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			other := randomRows(r, rowsOf48, colsOf48, 0.02)
			first, size := x[:colsOf48], 0.0
			for _, v := range first {
				size += v * v
			}
			for k := range other { // the results along the first operand are a twentieth
				by := 0.0
				for c, v := range first {
					by -= 0.95 * v * other[k][c] / size
				}
				for c, v := range first {
					other[k][c] += by * v
				}
			}
			timesRows(x, other, y)
		}, 0},
		{"other operands, where none are similar", hooks.F32, apart512, func(r *rand.Rand, w [][]float64, x, y []float64) {
			other := make([]float64, len(x))
			for i := range x {
				other[i] = 2 * r.NormFloat64()
			}
			timesRows(other, w, y)
		}, 0},
		{"an operand in another order, of a matrix that tells it", hooks.F32, tall256, func(r *rand.Rand, w [][]float64, x, y []float64) {
			cols := len(w[0])
			order, other := r.Perm(cols), make([]float64, len(x))
			for i := range x {
				other[i] = 1.7 * x[i/cols*cols+order[i%cols]]
			}
			timesRows(other, w, y)
		}, 0},
		{"in another order", hooks.F32, similar48, func(r *rand.Rand, w [][]float64, x, y []float64) {
			all := make([]float64, 0, rowsOf48*colsOf48)
			for _, row := range w {
				all = append(all, row...)
			}
			r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			other := make([][]float64, rowsOf48)
			for k := range other {
				other[k] = all[k*colsOf48:][:colsOf48]
			}
			timesRows(x, other, y)
		}, 0},
		{"another operand, twice as large", hooks.F32, similar48, func(r *rand.Rand, w [][]float64, _, y []float64) {
			x := make([]float64, tokensOf48*colsOf48)
			for i := range x {
				x[i] = 2 * r.NormFloat64()
			}
			timesRows(x, w, y)
		}, 0},
		{"noise", hooks.F32, similar48, func(r *rand.Rand, _ [][]float64, _, y []float64) {
			for i := range y {
				y[i] = 0.1 * r.NormFloat64()
			}
			rounded(y)
		}, 0},
		{"noise in the weight", hooks.F32, similar48, func(r *rand.Rand, w [][]float64, x, y []float64) {
			other := randomRows(r, rowsOf48, colsOf48, 0.3)
			for k := range other {
				for c := range other[k] {
					other[k][c] += w[k][c]
				}
			}
			timesRows(x, other, y)
		}, 0},
		{"large rows", hooks.F32, similar48, func(r *rand.Rand, _ [][]float64, x, y []float64) {
			other := randomRows(r, rowsOf48, colsOf48, 0.02)
			for k := range other {
				for c := range other[k] {
					other[k][c] *= math.Exp(r.NormFloat64())
				}
				by := math.Exp(1.5 * r.NormFloat64())
				for c := range other[k] {
					other[k][c] *= by
				}
			}
			timesRows(x, other, y)
		}, 0},
		{"tokens mixed", hooks.F32, similar48, func(r *rand.Rand, w [][]float64, x, y []float64) {
			other := make([]float64, len(x))
			for i := range other {
				for t := range tokensOf48 {
					other[i] += math.Sin(float64(7*t+3*(i/colsOf48)*(t+1))) * x[t*colsOf48+i%colsOf48]
				}
			}
			timesRows(other, w, y)
		}, 0},
	} {
		for seed := range uint64(2) {
			m := model(t)
			m.Passes[0].Tokens = tokensOf48
			o := c.of(seed)
			e := o.made(t, m, func(in [][]float64, y []float64) {
				c.wrong(rand.New(rand.NewPCG(seed, 2)), o.matrix, in[0], y)
			})
			e.Call.DType = c.dtype
			f := named(t, m, e)
			got := 0.0
			if f.Relation.Kind == "weight.random" {
				got = f.Relation.X.Value
			}
			if !(math.Abs(got-c.is) <= 0.1*c.is) {
				t.Errorf("%s, seed %d: %q", c.name, seed, f.What)
			}
		}
	}
}

// Random results may be those of another weight of the layer, in some shape, if that has the same standard deviation.
func TestRandomWeightsAreNoOtherWeights(t *testing.T) {
	for _, c := range []struct{ deviation, is float64 }{{0.02, 0}, {0.05, 0.02}} {
		m := model(t)
		m.Passes[0].Tokens = tokensOf48
		o := similar48(1)
		e := o.made(t, m, func(in [][]float64, y []float64) {
			timesRows(in[0], randomRows(rand.New(rand.NewPCG(1, 2)), rowsOf48, colsOf48, 0.02), y)
		})
		other := &m.List.Entries[m.List.Index("layers.0.self_attn.q_proj")]
		other.Weights = []order.Weight{{Name: other.Name + ".weight", Shape: []int{colsOf48, rowsOf48}}}
		weights := m.Weights
		m.Weights = func(w order.Weight) (program.Rows, error) {
			if w.Name == other.Weights[0].Name {
				return matrix(randomRows(rand.New(rand.NewPCG(3, 4)), colsOf48, rowsOf48, c.deviation)), nil
			}
			return weights(w)
		}
		f := named(t, m, e)
		if got := f.Relation.X.Value; !(math.Abs(got-c.is) <= 0.1*c.is) {
			t.Errorf("beside a weight of deviation %g: %q", c.deviation, f.What)
		}
	}
}
