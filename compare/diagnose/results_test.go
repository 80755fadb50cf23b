package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// inBits are numbers with a significand of so many bits.
func inBits(bits int, x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		_, e := math.Frexp(v)
		unit := math.Ldexp(1, e-bits)
		y[i] = math.RoundToEven(v/unit) * unit
	}
	return y
}

// each is a function of each of some numbers.
func each(x []float64, f func(v float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

// rowsOf is a function of each row of a tensor.
func rowsOf(x []float64, width int, f func(row []float64) []float64) []float64 {
	var y []float64
	for row := range slices.Chunk(x, width) {
		y = append(y, f(row)...)
	}
	return y
}

// overScale are rows in units of a scale for each, so that the largest number of a row is as large as said.
func overScale(x []float64, width int, top float64, round func(v float64) float64) []float64 {
	return rowsOf(x, width, func(row []float64) []float64 {
		largest := max(slices.Max(row), -slices.Min(row))
		return each(row, func(v float64) float64 { return round(v/(largest/top)) * (largest / top) })
	})
}

// products has two sums of products, one of the other.
type products struct{}

func (products) Kind() string { return "products" }

func (products) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Dot("context", "bts,bsc->btc", b.Dot("scores", "btc,bsc->bts", in[0], in[1]), in[1])
}

// productsOf are those of two tensors of [tokens] rows. The operands and the results are rounded.
func productsOf(in [][]float64, round func(x []float64) []float64) []float64 {
	a, b := round(in[0]), round(in[1])
	width := len(a) / tokens
	scores, y := make([]float64, tokens*tokens), make([]float64, len(a))
	for t := range tokens {
		for s := range tokens {
			for c := range width {
				scores[t*tokens+s] += a[t*width+c] * b[s*width+c]
			}
		}
	}
	scores = round(round(scores))
	for i := range y {
		for s := range tokens {
			y[i] += scores[i/width*tokens+s] * b[s*width+i%width]
		}
	}
	return round(y)
}

// Mistakes in results and in types make of an entry what plain loops make of it: of the entry for which they are tried, and of one of its role in another layer
// and pass.
func TestMistakesOfResultsAndPrecisionAreApplied(t *testing.T) {
	const norm, logits, eps = "layers.*.input_layernorm", "logits", 1e-6
	width := listOf(t, "qwen3-tiny").Config.HiddenSize
	right := func(in, w [][]float64) []float64 { return normed(in[0], w[0], eps) }
	of := func(f func(v float64) float64) func(in, w [][]float64) []float64 {
		return func(in, w [][]float64) []float64 { return each(right(in, w), f) }
	}
	ofRows := func(f func(row []float64) []float64) func(in, w [][]float64) []float64 {
		return func(in, w [][]float64) []float64 { return rowsOf(right(in, w), width, f) }
	}
	by := func(row []float64, f func(sum, squares, n float64) func(v float64) float64) []float64 {
		sum, squares := 0.0, 0.0
		for _, v := range row {
			sum, squares = sum+v, squares+v*v
		}
		return each(row, f(sum, squares, float64(len(row))))
	}
	// stepwise is a norm whose steps have each a rounding: of the input of the square, the square, the mean, the sum with epsilon, the inverse root, the input of the
	// product, the product, the weight and the result. A further rounding is of the root before it is inverted.
	stepwise := func(round ...int) func(in, w [][]float64) []float64 {
		to := func(k int, x float64) float64 { return inBits(round[k], []float64{x})[0] }
		return func(in, w [][]float64) []float64 {
			return rowsOf(in[0], width, func(row []float64) []float64 {
				mean, y := 0.0, make([]float64, width)
				for _, v := range row {
					v = to(0, v)
					mean += to(1, v*v) / float64(width)
				}
				root := math.Sqrt(to(3, to(2, mean)+eps))
				if len(round) > 9 {
					root = to(9, root)
				}
				inverse := to(4, 1/root)
				for i, v := range row {
					y[i] = to(8, to(6, to(5, v)*inverse)*to(7, w[0][i]))
				}
				return y
			})
		}
	}
	narrowed := func(bits int, w [][]float64, in [][]float64) []float64 {
		return normed(inBits(bits, in[0]), inBits(bits, w[0]), eps)
	}
	cut := func(x []float64) []float64 {
		return each(x, func(v float64) float64 {
			return float64(math.Float32frombits(math.Float32bits(float32(v)) &^ (1<<13 - 1)))
		})
	}
	dropped := func(in, w [][]float64) []float64 {
		y := right(in, w)
		for i := range y {
			if y[i] /= 0.75; i%5 == 0 {
				y[i] = 0
			}
		}
		return y
	}
	ids := []float64{3, 8, 15}
	penalised := func(f func(v float64) float64) func(in, _ [][]float64) []float64 {
		return func(in, _ [][]float64) []float64 {
			y := slices.Clone(in[0])
			for i := range y {
				if slices.Contains(ids, float64(i%width)) {
					y[i] = f(y[i])
				}
			}
			return y
		}
	}
	for _, c := range []struct {
		role, key string
		rounding  diagnose.Rounding
		gives     func(in, w [][]float64) []float64
	}{
		{norm, "result.clamped(x=0.75)", "", of(func(v float64) float64 { return max(min(v, 0.75), -0.75) })},
		{norm, "result.clipped-below(x=-0.5)", "", of(func(v float64) float64 { return max(v, -0.5) })},
		{norm, "result.clipped-above(x=0.5)", "", of(func(v float64) float64 { return min(v, 0.5) })},
		{norm, "dropout.left-on(by=number:0.75,x=1.33333)", "", dropped},
		{logits, "logits.repetition-penalty(x=1.25)", "", penalised(func(v float64) float64 { return min(v*1.25, v/1.25) })},
		{logits, "logits.presence-penalty(x=0.5)", "", penalised(func(v float64) float64 { return v - 0.5 })},
		{norm, "result.log-softmax", diagnose.Unstored, ofRows(func(row []float64) []float64 {
			sum := 0.0
			for _, v := range row {
				sum += math.Exp(v)
			}
			return each(row, func(v float64) float64 { return v - math.Log(sum) })
		})},
		{norm, "row.maximum-subtracted(of=the-result)", "", ofRows(func(row []float64) []float64 {
			return each(row, func(v float64) float64 { return v - slices.Max(row) })
		})},
		{norm, "row.mean-subtracted(of=the-result)", "", ofRows(func(row []float64) []float64 {
			return by(row, func(sum, _, n float64) func(v float64) float64 { return func(v float64) float64 { return v - sum/n } })
		})},
		{norm, "row.over-length(of=the-result)", "", ofRows(func(row []float64) []float64 {
			return by(row, func(_, squares, _ float64) func(v float64) float64 {
				return func(v float64) float64 { return v / math.Sqrt(squares) }
			})
		})},
		{norm, "row.over-sum(of=the-result)", "", ofRows(func(row []float64) []float64 {
			return by(row, func(sum, _, _ float64) func(v float64) float64 { return func(v float64) float64 { return v / sum } })
		})},
		{norm, "row.over-root-mean-square(of=the-result)", "", ofRows(func(row []float64) []float64 {
			return by(row, func(_, squares, n float64) func(v float64) float64 {
				return func(v float64) float64 { return v / math.Sqrt(squares/n) }
			})
		})},
		{norm, "row.over-sum(of=tensor:layers.*.in)", "", func(in, w [][]float64) []float64 {
			return normed(rowsOf(in[0], width, func(row []float64) []float64 {
				return by(row, func(sum, _, _ float64) func(v float64) float64 { return func(v float64) float64 { return v / sum } })
			}), w[0], eps)
		}},

		{norm, "tensor.rounded-dtype(of=the-result,dtype=bfloat16)", "", func(in, w [][]float64) []float64 { return inBits(8, right(in, w)) }},
		{norm, "tensor.rounded-dtype(of=tensor:layers.*.in,dtype=float16)", "", func(in, w [][]float64) []float64 { return normed(inBits(11, in[0]), w[0], eps) }},
		{norm, "tensor.rounded(of=the-result,coding=int8:0)", "", func(in, w [][]float64) []float64 { return overScale(right(in, w), width, 127, math.RoundToEven) }},
		{norm, "tensor.rounded(of=the-result,coding=int4:-1)", "", func(in, w [][]float64) []float64 {
			return overScale(right(in, w), tokens*width, 7, math.RoundToEven)
		}},
		{norm, "tensor.rounded(of=tensor:layers.*.in,coding=int8:0)", "", func(in, w [][]float64) []float64 {
			return normed(overScale(in[0], width, 127, math.RoundToEven), w[0], eps)
		}},
		{norm, "tensor.rounded(of=the-result,coding=float8-e4m3:-1)", "", func(in, w [][]float64) []float64 {
			return overScale(right(in, w), tokens*width, 448, func(v float64) float64 {
				if math.Abs(v) < 1./64 { // below the normal numbers
					return math.RoundToEven(v*512) / 512
				}
				return inBits(4, []float64{v})[0]
			})
		}},

		{norm, "precision.narrow(by=name:bfloat16)", "", func(in, w [][]float64) []float64 { return inBits(8, narrowed(8, w, in)) }},
		{norm, "precision.narrow(by=name:float16)", "", func(in, w [][]float64) []float64 { return inBits(11, narrowed(11, w, in)) }},
		{norm, "precision.narrow-operands(by=name:bfloat16)", "", func(in, w [][]float64) []float64 { return narrowed(8, w, in) }},
		{norm, "precision.narrow(by=name:tf32)", "", func(in, w [][]float64) []float64 { return narrowed(11, w, in) }},
		{norm, "precision.narrow(by=name:tf32)", diagnose.TowardZero, func(in, w [][]float64) []float64 { return normed(cut(in[0]), cut(w[0]), eps) }},
		{norm, "precision.each-step(dtype=bfloat16)", "", stepwise(8, 8, 8, 8, 8, 8, 8, 8, 8)},
		{norm, "precision.up-to(of=root,dtype=bfloat16)", "", stepwise(8, 8, 8, 8, 8, 8, 53, 53, 53)},
		{norm, "precision.each-step(dtype=bfloat16)", diagnose.RoundedRoot, stepwise(8, 8, 8, 8, 8, 8, 8, 8, 8, 8)},
		{norm, "precision.one-step(of=root,dtype=float16)", diagnose.RoundedRoot, stepwise(53, 53, 53, 11, 11, 53, 53, 53, 53, 11)},
		{norm, "precision.one-step(of=root,dtype=bfloat16)", "", stepwise(53, 53, 53, 8, 8, 53, 53, 53, 53)},
		{norm, "precision.one-step(of=divisor:16,dtype=bfloat16)", "", stepwise(53, 8, 8, 53, 53, 53, 53, 53, 53)},
		{norm, "precision.from-step-on(of=root,dtype=float16)", "", stepwise(53, 53, 53, 11, 11, 11, 11, 11, 11)},
		{"layers.*.attn_residual", "precision.products(dtype=float16)", "", func(in, _ [][]float64) []float64 {
			return productsOf(in, func(x []float64) []float64 { return inBits(11, x) })
		}},
	} {
		var first diagnose.Mistake
		for k, at := range []string{"layers.0", "layers.2"} {
			m := model(t)
			own, list := m.Read, m.List.Index(order.InputIDs)
			m.Has = func(n order.Node) bool { return n.Entry == list }
			m.Read = func(n order.Node) (program.Value, error) {
				if n.Entry == list {
					return program.Value{Shape: []int{1, tokens}, Data: ids}, nil
				}
				return own(n)
			}
			m.Weights = func(w order.Weight) (program.Rows, error) {
				return vector(each(make(vector, w.Shape[0]), func(float64) float64 { return 1.3 })), nil
			}
			name := c.role
			if name != logits {
				name = at + name[len("layers.*"):]
			}
			m.List.Entries[m.List.Index("layers.0.attn_residual")].Op = products{}
			m.List.Entries[m.List.Index("layers.2.attn_residual")].Op = products{}
			e := planted(t, m, name, k, c.gives)
			if k == 0 {
				for _, p := range diagnose.Proposed(m, e) {
					if p.Key() == c.key && p.Rounding == c.rounding {
						first = p
						break
					}
				}
			}
			d, err := m.Apply(first, e)
			if first.Kind == "" || d == nil || err != nil {
				t.Errorf("%s %s of %s is not tried, or not applied: %v", c.key, c.rounding, name, err)
				break
			}
			x, err := e.Program.Eval(e.Call)
			if err != nil {
				t.Fatal(err)
			}
			y, err := func() (program.Value, error) { p, call := d.Whole(e.Call); return p.Eval(call) }()
			if err != nil {
				t.Fatal(err)
			}
			apart := 0
			want, _ := e.Target()
			for i, v := range y.Data {
				if !(math.Abs(v-want[i]) <= y.Bound[i]+1e-6*math.Abs(want[i])) {
					t.Fatalf("%s %s of %s: element %d is %v ± %v, not %v", c.key, c.rounding, name, i, v, y.Bound[i], want[i])
				}
				if math.Abs(v-x.Data[i]) > x.Bound[i]+y.Bound[i] {
					apart++
				}
			}
			if apart < 3 {
				t.Errorf("%s %s of %s: %d elements are others", c.key, c.rounding, name, apart)
			}
		}
	}
}
