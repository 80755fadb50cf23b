package program_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// element is a primitive by element beside what it is in plain Go: in float64, and in float32, where Go has that.
type element struct {
	name  string
	steps func(b *program.Builder, in []program.Var) program.Var
	wide  func(x, y float64) float64
	slim  func(x, y float32) float32
}

var elements = []element{
	{
		"add", func(b *program.Builder, in []program.Var) program.Var { return b.Add("s", in[0], in[1]) },
		func(x, y float64) float64 { return x + y }, func(x, y float32) float32 { return x + y },
	},
	{
		"sub", func(b *program.Builder, in []program.Var) program.Var { return b.Sub("s", in[0], in[1]) },
		func(x, y float64) float64 { return x - y }, func(x, y float32) float32 { return x - y },
	},
	{
		"mul", func(b *program.Builder, in []program.Var) program.Var { return b.Mul("s", in[0], in[1]) },
		func(x, y float64) float64 { return x * y }, func(x, y float32) float32 { return x * y },
	},
	{
		"div", func(b *program.Builder, in []program.Var) program.Var { return b.Div("s", in[0], in[1]) },
		func(x, y float64) float64 { return x / y }, func(x, y float32) float32 { return x / y },
	},
	{
		"sqrt", func(b *program.Builder, in []program.Var) program.Var { return b.Sqrt("s", b.Mul("", in[0], in[0])) },
		func(x, _ float64) float64 { return math.Sqrt(x * x) }, func(x, _ float32) float32 { return float32(math.Sqrt(float64(x * x))) },
	},
	{
		"rsqrt", func(b *program.Builder, in []program.Var) program.Var {
			return b.Rsqrt("s", b.Max(in[0], b.Neg(in[0])))
		},
		func(x, _ float64) float64 { return 1 / math.Sqrt(math.Abs(x)) }, nil,
	},
	{
		"exp", func(b *program.Builder, in []program.Var) program.Var { return b.Exp("s", in[0]) },
		func(x, _ float64) float64 { return math.Exp(x) }, nil,
	},
	{
		"tanh", func(b *program.Builder, in []program.Var) program.Var { return b.Tanh("s", in[0]) },
		func(x, _ float64) float64 { return math.Tanh(x) }, nil,
	},
	{
		"erf", func(b *program.Builder, in []program.Var) program.Var { return b.Erf("s", in[0]) },
		func(x, _ float64) float64 { return math.Erf(x) }, nil,
	},
	{
		"cos", func(b *program.Builder, in []program.Var) program.Var { return b.Cos("s", in[0]) },
		func(x, _ float64) float64 { return math.Cos(x) }, nil,
	},
	{
		"sin", func(b *program.Builder, in []program.Var) program.Var { return b.Sin("s", in[0]) },
		func(x, _ float64) float64 { return math.Sin(x) }, nil,
	},
	{
		"log", func(b *program.Builder, in []program.Var) program.Var {
			return b.Log("s", b.Max(in[0], b.Neg(in[0])))
		},
		func(x, _ float64) float64 { return math.Log(math.Abs(x)) }, nil,
	},
	{
		"log1p", func(b *program.Builder, in []program.Var) program.Var {
			return b.Log1p("s", b.Max(in[0], b.Neg(in[0])))
		},
		func(x, _ float64) float64 { return math.Log1p(math.Abs(x)) }, nil,
	},
	{
		"expm1", func(b *program.Builder, in []program.Var) program.Var { return b.Expm1("s", in[0]) },
		func(x, _ float64) float64 { return math.Expm1(x) }, nil,
	},
	{
		"pow", func(b *program.Builder, in []program.Var) program.Var {
			return b.Pow("s", b.Max(in[0], b.Neg(in[0])), b.Mul("", in[1], b.Literal(1.0/16)))
		},
		func(x, y float64) float64 { return math.Pow(math.Abs(x), y/16) }, nil,
	},
	{
		"neg", func(b *program.Builder, in []program.Var) program.Var { return b.Neg(in[0]) },
		func(x, _ float64) float64 { return -x }, nil,
	},
	{
		"max", func(b *program.Builder, in []program.Var) program.Var { return b.Max(in[0], in[1]) },
		func(x, y float64) float64 { return math.Max(x, y) }, nil,
	},
	{
		"copy", func(b *program.Builder, in []program.Var) program.Var { return b.Site("s", in[0]) },
		func(x, _ float64) float64 { return x }, nil,
	},
}

// Primitives by element are what Go computes, exactly, in float32, and in float32 with a rounding point.
func TestElements(t *testing.T) {
	const n = 3000
	shape := []int{1, 3, n / 3}
	for _, e := range elements {
		x, y := numbers(n, 1, bf16), numbers(n, 2, bf16)
		c := program.Call{In: []program.Value{tensor(x, shape...), tensor(y, shape...)}, Shape: shape}
		want := make([]float64, n)
		for i := range want {
			want[i] = e.wide(x[i], y[i])
		}
		plain := of(e.steps)
		sameBits(t, e.name+", exact", eval(t, plain, c).Data, want)
		for i := range want {
			if want[i] = f32(want[i]); e.slim != nil {
				want[i] = float64(e.slim(float32(x[i]), float32(y[i])))
			}
		}
		for _, a := range []program.Arith{single, brain, bounded(single), bounded(brain)} {
			c.Arith = a
			sameBits(t, fmt.Sprintf("%s, %s", e.name, a.DType), eval(t, plain, c).Data, want)
			rounded := of(func(b *program.Builder, in []program.Var) program.Var { return b.R(e.steps(b, in)) })
			narrow := f32
			if a.DType == hooks.BF16 {
				narrow = bf16
			}
			sameBits(t, fmt.Sprintf("R of %s, %s", e.name, a.DType), eval(t, rounded, c).Data, mapped(want, narrow))
		}
	}
}

// within fails unless got is one rounding of an exact sum: to float32, where half is half a unit of that, or to float64.
func within(t *testing.T, what string, got float64, terms []*big.Float, emulated bool) {
	t.Helper()
	sum, size := new(big.Float).SetPrec(400), 0.0
	for _, x := range terms {
		sum.Add(sum, x)
		f, _ := x.Float64()
		size += math.Abs(f)
	}
	off := new(big.Float).SetPrec(400).SetFloat64(got)
	off.Sub(off, sum)
	far, _ := off.Abs(off).Float64()
	most := size * float64(len(terms)) * 0x1p-53
	if emulated {
		if got != f32(got) {
			t.Fatalf("%s: %v is no float32", what, got)
		}
		_, e := math.Frexp(got)
		most += math.Ldexp(1, e-25)
	}
	if !(far <= most) {
		t.Fatalf("%s: %v is %g from the sum, at most %g", what, got, far, most)
	}
}

func product(x, y float64) *big.Float {
	return new(big.Float).SetPrec(200).Mul(new(big.Float).SetFloat64(x), new(big.Float).SetFloat64(y))
}

// Sums are rounded once, whatever the number of terms.
func TestSums(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 17, 64, 1000, 1025, 2500} {
		const rows, outs = 5, 7
		x, w, bias := numbers(rows*n, 3, f32), numbers(outs*n, 4, f32), numbers(outs, 5, f32)
		in := []program.Value{tensor(x, rows, n), tensor(w, outs, n)}
		for _, a := range []program.Arith{exact, single, brain, bounded(single)} {
			sum := eval(t, of(func(b *program.Builder, in []program.Var) program.Var { return b.Sum("s", in[0]) }),
				program.Call{Arith: a, In: in[:1], Shape: []int{rows, 1}})
			dot := eval(t, of(func(b *program.Builder, in []program.Var) program.Var { return b.Dot("s", "tk,ok->ot", in[0], in[1]) }),
				program.Call{Arith: a, In: in, Shape: []int{outs, rows}})
			top := eval(t, of(func(b *program.Builder, in []program.Var) program.Var { return b.RowMax(in[0]) }),
				program.Call{Arith: a, In: in[:1], Shape: []int{rows, 1}})
			call := program.Call{Arith: a, In: in[:1], Shape: []int{rows, outs}, W: []program.Rows{matrix{outs, n, w}, matrix{1, outs, bias}}}
			biased := eval(t, programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var {
				return b.Affine("s", in[0], w[0], w[1])
			}), call)
			plain := eval(t, programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var { return b.Affine("s", in[0], w[0]) }), call)
			for r := range rows {
				row := x[r*n:][:n]
				var terms []*big.Float
				for _, v := range row {
					terms = append(terms, big.NewFloat(v))
				}
				within(t, fmt.Sprintf("sum of %d", n), sum.Data[r], terms, a.Emulated)
				if top.Data[r] != slices.Max(row) {
					t.Fatalf("the largest of %d is %v", n, top.Data[r])
				}
				for o := range outs {
					terms = terms[:0]
					for k, v := range row {
						terms = append(terms, product(v, w[o*n+k]))
					}
					within(t, fmt.Sprintf("dot of %d", n), dot.Data[o*rows+r], terms, a.Emulated)
					within(t, fmt.Sprintf("affine of %d", n), plain.Data[r*outs+o], terms, a.Emulated)
					within(t, fmt.Sprintf("affine of %d with a bias", n), biased.Data[r*outs+o], append(terms, big.NewFloat(bias[o])), a.Emulated)
				}
			}
		}
	}
}

// Each rounding does to a step what it says, whatever the program's own is.
func TestRoundings(t *testing.T) {
	x, y := numbers(999, 6, f32), numbers(999, 7, f32)
	for i := range 40 { // where float16 ends, and where a table does
		x[i], y[i] = math.Exp2(float64(i-20)), f32(1+float64(i)/64)
	}
	c := program.Call{In: []program.Value{tensor(x, 9, 111), tensor(y, 9, 111)}, Shape: []int{9, 111}}
	o := of(func(b *program.Builder, in []program.Var) program.Var { return b.Mul("product", in[0], in[1]) })
	p, err := programOf(o, c)
	if err != nil {
		t.Fatal(err)
	}
	for rounding, f := range map[program.Rounding]func(v float64) float64{
		program.Plain: f32, program.Single: f32, program.Half: f16,
		program.None:    func(v float64) float64 { return v },
		program.Welford: func(v float64) float64 { return v },
		program.Model:   bf16,
		program.Table: func(v float64) float64 {
			if math.Abs(f32(v)) < 10 {
				return f16(v)
			}
			return f32(v)
		},
	} {
		want := make([]float64, len(x))
		for i := range want {
			want[i] = f(x[i] * y[i])
		}
		c.Arith = brain
		c.Choices = p.Own()
		c.Choices[len(c.Choices)-1].Round = rounding
		for _, bounds := range []bool{false, true} {
			c.Bounds = bounds
			v, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, rounding.String(), v.Data, want)
		}
	}
}

// Ways are those of plain float32 arithmetic with a rounding to bfloat16 where they say so.
func TestWays(t *testing.T) {
	const rows, n = 7, 37
	x, y := numbers(rows*n, 8, bf16), numbers(rows*n, 9, bf16)
	in := []program.Value{tensor(x, rows, n), tensor(y, rows, n)}
	root := func(x float64) float64 { return f32(math.Sqrt(math.Abs(x))) }
	for _, c := range []struct {
		name  string
		steps func(b *program.Builder, in []program.Var) program.Var
		ways  []func(x, y float64) float64
	}{
		{"div", func(b *program.Builder, in []program.Var) program.Var { return b.Div("s", in[0], in[1]) }, []func(x, y float64) float64{
			func(x, y float64) float64 { return f32(x / y) },
			func(x, y float64) float64 { return f32(x * f32(1/y)) },
			func(x, y float64) float64 { return f32(x * bf16(1/y)) },
		}},
		{"div by a number", func(b *program.Builder, in []program.Var) program.Var { return b.Div("s", in[0], b.Scalar("n", 0.3)) }, []func(x, y float64) float64{
			func(x, _ float64) float64 { return f32(x / f32(0.3)) },
			func(x, _ float64) float64 { return f32(x * f32(1/0.3)) },
			func(x, _ float64) float64 { return f32(x * bf16(1/0.3)) },
		}},
		{"rsqrt", func(b *program.Builder, in []program.Var) program.Var {
			return b.Rsqrt("s", b.Max(in[0], b.Neg(in[0])))
		}, []func(x, y float64) float64{
			func(x, _ float64) float64 { return f32(1 / math.Sqrt(math.Abs(x))) },
			func(x, _ float64) float64 { return f32(1 / root(x)) },
			func(x, _ float64) float64 { return f32(1 / bf16(root(x))) },
		}},
	} {
		for way, f := range c.ways {
			want := make([]float64, len(x))
			for i := range want {
				want[i] = f(x[i], y[i])
			}
			sameBits(t, fmt.Sprintf("%s, way %d", c.name, way), choose(t, of(c.steps), program.Call{Arith: brain, In: in, Shape: []int{rows, n}}, uint8(way)).Data, want)
		}
	}
}

// choose evaluates an operation whose last step takes a way.
func choose(t *testing.T, o *formula, c program.Call, way uint8) program.Value {
	t.Helper()
	p, err := programOf(o, c)
	if err != nil {
		t.Fatal(err)
	}
	if last := &p.Steps[len(p.Steps)-1]; int(way) >= last.Ways() {
		t.Fatalf("%s has %d ways", last.Name, last.Ways())
	}
	c.Choices = p.Own()
	c.Choices[len(c.Choices)-1].Way = way
	v, err := p.Eval(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A sum in parts rounds each part to the model's dtype and adds them in float32, or in the model's dtype.
func TestParts(t *testing.T) {
	const rows = 3
	for _, n := range []int{1, 2, 5, 33, 200} {
		x, w := numbers(rows*n, 10, bf16), numbers(n, 11, bf16)
		for i, parts := range []int{2, 4, 8, 2, 4, 8} {
			narrow := i >= 3
			inParts := func(term func(k int) float64) float64 {
				size, sum := (n+parts-1)/parts, 0.0
				for from := 0; from < n; from += size {
					piece := 0.0
					for k := from; k < min(from+size, n); k++ {
						piece += term(k)
					}
					if n == 1 {
						return f32(piece)
					}
					if sum = f32(sum + bf16(f32(piece))); narrow {
						sum = bf16(sum)
					}
				}
				return sum
			}
			sums, dots := make([]float64, rows), make([]float64, rows)
			for r := range rows {
				sums[r] = inParts(func(k int) float64 { return x[r*n+k] })
				dots[r] = inParts(func(k int) float64 { return x[r*n+k] * w[k] })
			}
			what := fmt.Sprintf("%d terms in %d parts, narrow %t", n, parts, narrow)
			c := program.Call{Arith: brain, In: []program.Value{tensor(x, rows, n), tensor(w, 1, n)}, Shape: []int{rows, 1}, W: []program.Rows{matrix{1, n, w}}}
			for _, c.Bounds = range []bool{false, true} {
				sameBits(t, "sum: "+what, choose(t, of(func(b *program.Builder, in []program.Var) program.Var { return b.Sum("s", in[0]) }), c, uint8(i+1)).Data, sums)
				sameBits(t, "dot: "+what, choose(t, of(func(b *program.Builder, in []program.Var) program.Var {
					return b.Dot("s", "tk,ok->to", in[0], in[1])
				}), c, uint8(i+1)).Data, dots)
				sameBits(t, "affine: "+what, choose(t, programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var {
					return b.Affine("s", in[0], w[0])
				}), c, uint8(i+1)).Data, dots)
			}
		}
	}
}

// A bias is a term of the sum, or added to the sum, rounded or not.
func TestBias(t *testing.T) {
	const rows, outs, n = 6, 5, 41
	x, w, bias := numbers(rows*n, 12, bf16), numbers(outs*n, 13, bf16), numbers(outs, 14, bf16)
	c := program.Call{Arith: brain, In: []program.Value{tensor(x, rows, n)}, Shape: []int{rows, outs}, W: []program.Rows{matrix{outs, n, w}, matrix{1, outs, bias}}}
	o := programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var { return b.Affine("s", in[0], w[0], w[1]) })
	for way, f := range []func(sum, bias float64) float64{
		func(sum, bias float64) float64 { return f32(sum + bias) },
		func(sum, bias float64) float64 { return f32(f32(sum) + bias) },
		func(sum, bias float64) float64 { return f32(bf16(f32(sum)) + bias) },
	} {
		want := make([]float64, rows*outs)
		for i := range want {
			sum := 0.0
			for k := range n {
				sum += x[i/outs*n+k] * w[i%outs*n+k]
			}
			want[i] = f(sum, bias[i%outs])
		}
		for _, c.Bounds = range []bool{false, true} {
			sameBits(t, fmt.Sprintf("bias, way %d", way), choose(t, o, c, uint8(way)).Data, want)
		}
	}
}

// Constants of the formula are exact, those of Python float32, tensors of the model's dtype.
func TestNumbers(t *testing.T) {
	one := program.Call{In: []program.Value{tensor([]float64{1}, 1, 1)}, Shape: []int{1, 1}}
	for _, c := range []struct {
		number func(b *program.Builder) program.Var
		a      program.Arith
		want   float64
	}{
		{func(b *program.Builder) program.Var { return b.Literal(0.1) }, brain, f32(0.1)}, // the product is rounded
		{func(b *program.Builder) program.Var { return b.Scalar("n", 0.1) }, exact, 0.1},
		{func(b *program.Builder) program.Var { return b.Scalar("n", 0.1) }, brain, f32(0.1)},
		{func(b *program.Builder) program.Var { return b.Tensor("n", 0.1) }, exact, 0.1},
		{func(b *program.Builder) program.Var { return b.Tensor("n", 0.1) }, single, f32(0.1)},
		{func(b *program.Builder) program.Var { return b.Tensor("n", 0.1) }, brain, bf16(0.1)},
	} {
		one.Arith = c.a
		got := eval(t, of(func(b *program.Builder, in []program.Var) program.Var { return b.Mul("p", in[0], c.number(b)) }), one)
		sameBits(t, "number", got.Data, []float64{c.want})
	}
}

// What only moves: joins, rows of a table, masks, angles.
func TestMoves(t *testing.T) {
	x, y := numbers(24, 15, bf16), numbers(12, 16, bf16)
	got := eval(t, of(func(b *program.Builder, in []program.Var) program.Var { return b.Cat(1, in[0], in[1], b.Neg(in[1])) }),
		program.Call{Arith: bounded(brain), In: []program.Value{tensor(x, 2, 4, 3), tensor(y, 2, 2, 3)}, Shape: []int{2, 8, 3}})
	var want []float64
	for k := range 2 {
		half := y[k*6:][:6]
		want = slices.Concat(want, x[k*12:][:12], half, mapped(half, func(v float64) float64 { return -v }))
	}
	sameBits(t, "cat", got.Data, want)

	table := matrix{5, 3, numbers(15, 17, bf16)}
	for _, fallback := range []bool{false, true} {
		o := programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var { return b.Lookup(in[0], w[0], 4, fallback) })
		c := program.Call{Arith: brain, W: []program.Rows{table}, In: []program.Value{tensor([]float64{3, 0}, 1, 2)}, Shape: []int{1, 2, 3}}
		sameBits(t, "lookup", eval(t, o, c).Data, slices.Concat(table.data[9:12], table.data[:3]))
		for _, outside := range []float64{4, -1, 0.5, math.NaN(), math.Inf(1)} {
			c.In[0].Data[0] = outside
			v, err := program.Eval(o, c)
			if fallback != (err == nil) {
				t.Errorf("row %v of 4, fallback %t: %v", outside, fallback, err)
			} else if err == nil {
				sameBits(t, "fallback", v.Data, slices.Concat(table.data[:3], table.data[:3]))
			}
		}
	}

	chosen := of(func(b *program.Builder, in []program.Var) program.Var {
		return b.Choose(b.Constant("c", []float64{1, 0, 1}, []int{3}), in[0], b.Literal(0.5))
	})
	exact := program.Value{Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}, Bound: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}}
	v := eval(t, chosen, program.Call{Arith: bounded(brain), In: []program.Value{exact}, Shape: []int{2, 3}})
	sameBits(t, "choose", v.Data, []float64{1, 0.5, 3, 4, 0.5, 6})
	sameBits(t, "bounds of choose", v.Bound, []float64{0.1, 0, 0.3, 0.4, 0, 0.6})

	gathered := of(func(b *program.Builder, in []program.Var) program.Var { return b.Gather(1, in[0], in[1]) })
	index := program.Value{Shape: []int{2, 4}, Data: []float64{2, 0, 0, 1, 1, 1, 2, 0}, Bound: []float64{0, 0, 0, 0, 0, 0, 0, 1}}
	c := program.Call{Arith: bounded(brain), In: []program.Value{exact, index}, Shape: []int{2, 4}}
	v = eval(t, gathered, c)
	sameBits(t, "gather", v.Data, []float64{3, 1, 1, 2, 5, 5, 6, 4})
	sameBits(t, "bounds of gather", v.Bound, []float64{0.3, 0.1, 0.1, 0.2, 0.5, 0.5, 0.6, 2.6}) // 6 within 0.6 in place of 4
	for _, outside := range []float64{3, -1, 0.5, math.NaN()} {
		index.Data[2] = outside
		if _, err := program.Eval(gathered, c); !errors.Is(err, program.ErrIndex) {
			t.Errorf("index %v of 3: %v", outside, err)
		}
	}

	dense := programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var {
		return b.Dot("s", "rk,kc->rc", in[0], b.Whole(w[0]))
	})
	rows := tensor([]float64{1, 0, 0, 0, 0, 0, 0, 0, 1, 1}, 2, 5)
	sameBits(t, "dense", eval(t, dense, program.Call{In: []program.Value{rows}, W: []program.Rows{table}, Shape: []int{2, 3}}).Data,
		slices.Concat(table.data[:3], []float64{table.data[9] + table.data[12], table.data[10] + table.data[13], table.data[11] + table.data[14]}))

	mask := of(func(b *program.Builder, in []program.Var) program.Var { return b.Mask(in[0], 2) })
	c = program.Call{Arith: brain, In: []program.Value{tensor([]float64{6, 7}, 1, 2)}, Shape: []int{1, 1, 2, 4}} // keys 4 to 7
	const low = -0x1.fep127
	sameBits(t, "mask", eval(t, mask, c).Data, []float64{low, 0, 0, low, low, low, 0, 0})

	angle := of(func(b *program.Builder, in []program.Var) program.Var {
		return b.Angle(b.Vector("f", []float64{0.1, 3}), b.Permute(in[0], 0, -1))
	})
	c = program.Call{In: []program.Value{tensor([]float64{7, 30001}, 2)}, Shape: []int{2, 2}}
	at := func(f, p float32) float64 { return float64(f * p) }
	sameBits(t, "angle", eval(t, angle, c).Data, []float64{at(0.1, 7), at(3, 7), at(0.1, 30001), at(3, 30001)})
}
