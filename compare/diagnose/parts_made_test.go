package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// inParts is a function of two or three parts of a row, which lie in a row or by turns. With added they are added to the row.
type inParts struct {
	n            int
	turns, added bool
}

func (inParts) Kind() string { return "in_parts" }

func (o inParts) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	last, w := len(x.Shape)-1, x.Last()/o.n
	var parts []program.Var
	for k := range o.n {
		part := b.Slice(x, last, k*w, (k+1)*w)
		if o.turns {
			part = b.Take(b.Split(x, last, w), last+1, k)
		}
		parts = append(parts, part)
	}
	parts[0] = b.Tanh("tanh", parts[0])
	if o.added {
		return b.Add("sum", x, b.Cat(last, parts...))
	}
	y := b.Mul("product", parts[0], parts[1])
	if o.n == 3 {
		y = b.Add("sum", y, parts[2])
	}
	return y
}

// gathered is one of the rows of a tensor.
type gathered struct{ index int }

func (gathered) Kind() string { return "gathered" }

func (o gathered) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Gather(1, in[0], b.Expand(b.Literal(float64(o.index)), b.Shape))
}

// tanhOf is the tanh of some indexes of an axis, or of one.
type tanhOf struct{ axis, from, n int }

func (tanhOf) Kind() string { return "tanh_of" }

func (o tanhOf) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	if o.n == 1 {
		return b.Tanh("tanh", b.Take(in[0], o.axis, o.from))
	}
	return b.Tanh("tanh", b.Slice(in[0], o.axis, o.from, o.from+o.n))
}

// reading is an operation with some shape of tensors of some shapes.
func reading(o program.Op, shape []int, in ...[]int) operation {
	of := operation{[]string{"layers.0.self_attn.o_proj", "layers.0.attn_residual", "layers.0.self_attn.q_rope"}[len(in)-1], o, "btc", shape, nil, nil, nil}
	for k, s := range in {
		n := 1
		for _, d := range s {
			n *= d
		}
		of.in = append(of.in, program.Value{Shape: s, Data: wave(n, 1+8*k)})
	}
	return of
}

// Parts and indexes that are read in the place of others, heads in another order, numbers that are left out and elements that are not finite are named.
func TestPartsAreNamed(t *testing.T) {
	eight, wide, wider, one := []int{1, 8, 8}, []int{1, 8, 16}, []int{1, 8, 24}, []int{1, 8, 1}
	parts := func(turns bool, of ...int) wrongly { // in which order parts of 8 channels are read
		return func(in [][]float64, y []float64) {
			for i := range y {
				var at []float64
				for _, k := range of {
					if turns {
						at = append(at, in[0][i*len(of)+k])
					} else {
						at = append(at, in[0][(i/8*len(of)+k)*8+i%8])
					}
				}
				if y[i] = math.Tanh(at[0]) * at[1]; len(of) == 3 {
					y[i] += at[2]
				}
			}
		}
	}
	added := func(of ...int) wrongly {
		return func(in [][]float64, y []float64) {
			w := 8 * len(of)
			for i := range y {
				x := in[0][i/w*w+of[i%w/8]*8+i%8]
				if i%w < 8 {
					x = math.Tanh(x)
				}
				y[i] = in[0][i] + x
			}
		}
	}
	tanhs := func(at func(i int) int) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = math.Tanh(in[0][at(i)])
			}
		}
	}
	row := func(k int) wrongly {
		return func(in [][]float64, y []float64) { copy(y, in[0][k*16:]) }
	}
	heads := func(of ...int) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for c := range 8 {
					y[i] += in[0][i/8*8+c] * in[1][(of[i/64]*8+i%8)*8+c]
				}
			}
		}
	}
	roots := func(f func(ms float64) float64) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = math.Sqrt(f(meanSquare(in[0][i*16:], 16, 16)))
			}
		}
	}
	of2 := func(f func(x, by float64) float64) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = f(in[0][i], in[1][i/16])
			}
		}
	}
	first := func(all ...float64) wrongly { // the numbers of the first channels
		return func(_ [][]float64, y []float64) {
			for i := range y {
				if i%16 < len(all) {
					y[i] = all[i%16]
				}
			}
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	const context = "layers.*.self_attn.context"
	for _, c := range []looped{
		{"elements.as-halves", context + " is read as two halves; it is interleaved", reading(inParts{2, true, false}, eight, wide), parts(false, 0, 1), parts(false, 1, 0)},
		{"elements.as-parts", context + " is read as 3 contiguous parts; it is interleaved", reading(inParts{3, true, false}, eight, wider), parts(false, 0, 1, 2), parts(false, 2, 1, 0)},
		{"elements.by-turns-not-halves", context + " is read as interleaved; it is two halves", reading(inParts{2, false, false}, eight, wide), parts(true, 0, 1), parts(true, 1, 0)},
		{"elements.by-turns-not-parts", context + " is read as interleaved; it is 3 contiguous parts", reading(inParts{3, false, false}, eight, wider), parts(true, 0, 1, 2), parts(true, 2, 1, 0)},
		{"elements.halves-crossed", "the halves of " + context + " are swapped: a swap of halves is missing, or is one too many", reading(inParts{2, false, true}, wide, wide), added(1, 0), added(1, 1)},
		{"elements.parts-crossed", "the 3 parts of " + context + " are read in the wrong order: shifted by 1", reading(inParts{3, false, true}, wider, wider), added(1, 2, 0), added(1, 0, 2)},
		{"index.part", "takes part 5 of " + context + ", not part 2", reading(gathered{2}, []int{1, 1, 16}, wide), row(5), row(6)},
		{"index.run", "reads channels 8 to 11 of " + context + ", not 4 to 7", reading(tanhOf{2, 4, 4}, []int{1, 8, 4}, wide), tanhs(func(i int) int { return i/4*16 + 8 + i%4 }), tanhs(func(i int) int { return i/4*16 + 9 + i%4 })},
		{"index.one", "reads index 2 of " + context + ", not 4", reading(tanhOf{1, 4, 1}, eight, []int{1, 8, 8, 8}), tanhs(func(i int) int { return 2*64 + i }), tanhs(func(i int) int { return 3*64 + i })},
		{"heads.one", "every query head reads head 1 of layers.*.self_attn.keys", scoresOf4(), heads(1, 1, 1, 1), heads(0, 0, 0, 0)},
		{"heads.tiled-keys", "the heads of layers.*.self_attn.q_rope are tiled, not repeated: query head h reads KV head h mod n, not h / n", scoresOf4(), heads(0, 1, 0, 1), heads(1, 0, 1, 0)},
		{"floor.left-out", "a number, 0, is missing", reading(op.ShiftedReLU{}, wide, wide, one), of2(func(x, cut float64) float64 { return x - cut }), of2(func(x, cut float64) float64 { return max(-0.5, x-cut) })},
		{"epsilon.added", "the floor under the root is added under the root, and should be a minimum (max)", reading(op.Magnitude{Floor: 2}, one, wide), roots(func(ms float64) float64 { return ms + 2 }), roots(func(ms float64) float64 { return ms + 3 })},
		{"division.left-out", "the division by rotary.sin is missing", reading(op.Rescale{}, wide, wide, one, one), of2(func(x, by float64) float64 { return x * by }), of2(func(x, by float64) float64 { return x * by / 3 })},
		{"elements.nan", "channels 0 are NaN: uninitialised memory, or an undefined operation such as 0/0", normOf8(), first(nan), first(1e30)},
		{"elements.nan-or-infinite", "channels 0, 1 are NaN or infinite: overflow of the dtype", normOf8(), first(nan, inf), first(nan, 1)},
		{"elements.infinite", "channels 0, 1 are infinite: overflow of the dtype", normOf8(), first(inf, -inf), first(inf, 1e30)},
		{"elements.minus-infinity", "channels 0, 1 are -infinity: masked or suppressed, or overflow of the dtype", normOf8(), first(-inf, -inf), first(-inf, -1e30)},
	} {
		c.hold(t)
	}
}
