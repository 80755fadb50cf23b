package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// madeOf is an operation by the steps of a formula.
type madeOf struct {
	steps func(b *program.Builder, in, w []program.Var) program.Var
}

func (*madeOf) Kind() string { return "made" }

func (o *madeOf) Steps(b *program.Builder, in, w []program.Var) program.Var { return o.steps(b, in, w) }

// madeOf2 is a formula of two tensors of 8 tokens with 16 channels.
func madeOf2(steps func(b *program.Builder, in, w []program.Var) program.Var) operation {
	o := sumOf8()
	o.op = &madeOf{steps}
	return o
}

// normWith is a norm of 8 tokens with 16 channels that has its weight in some way.
func normWith(gain op.Gain) operation {
	o := normOf8()
	o.op = op.RMSNorm{Eps: 1e-6, Gain: gain}
	return o
}

// rowPlant is a tensor that plain loops make of an operation, with the key of the mistake, and a neighbour that has another name or none.
type rowPlant struct {
	key              string
	of               operation
	wrong, neighbour func(in [][]float64, y []float64)
}

// look holds the names of a plant and of its neighbour to the key.
func (p rowPlant) look(t *testing.T) {
	t.Helper()
	find := func(wrong func(in [][]float64, y []float64)) *diagnose.Finding {
		m := model(t)
		if p.of.configure != nil {
			p.of.configure(m.List.Config)
		}
		m.Passes[0].Tokens = 8
		return named(t, m, p.of.made(t, m, wrong))
	}
	if f := find(p.wrong); f.Key() != p.key {
		t.Errorf("%q: %s %v, want %s", f.What, f.Key(), f.Description, p.key)
	}
	kind, _, _ := strings.Cut(p.key, "(")
	if f := find(p.neighbour); string(f.Mistake.Kind) == kind || string(f.Relation.Kind) == kind {
		t.Errorf("the neighbour of %s is %q", p.key, f.What)
	}
}

// by2 is a function of the elements of two tensors.
func by2(f func(a, b float64) float64) func(in [][]float64, y []float64) {
	return func(in [][]float64, y []float64) {
		for i := range y {
			y[i] = f(in[0][i], in[1][i])
		}
	}
}

// normedAs is a norm of rows of 16 whose scale is a function of the mean square and whose weight is one of w.
func normedAs(scale func(ms float64) float64, of func(x, by, w float64) float64) func(in [][]float64, y []float64) {
	w := wave(16, 5)
	return func(in [][]float64, y []float64) {
		for i := range y {
			by := scale(meanSquare(in[0][i/16*16:][:16], 16, 16) + 1e-6)
			y[i] = of(in[0][i], by, w[i%16])
		}
	}
}

func inverseRoot(ms float64) float64 { return 1 / math.Sqrt(ms) }

// Steps that are left out, taken twice, or read another value are named; their neighbours are not.
func TestStepsMadeInLoopsAreNamed(t *testing.T) {
	type (
		v = program.Var
		b = *program.Builder
	)
	left := madeOf2(func(b b, in, _ []v) v {
		return b.Add("sum", b.Mul("product", b.Tanh("tanh", in[0]), b.Scalar("factor", 0.7)), in[1])
	})
	long := madeOf2(func(b b, in, _ []v) v {
		return b.Add("sum", b.Exp("exp", b.Add("shifted", b.Mul("product", b.Tanh("tanh", in[0]), b.Scalar("factor", 0.7)), b.Scalar("shift", 0.3))), in[1])
	})
	// A sigmoid: the minus and the division have no name of their own, exp and the +1 have.
	sigmoid := madeOf2(func(b b, in, _ []v) v {
		one := b.Scalar("1", 1)
		return b.Add("sum", b.Div("sigmoid", one, b.Add("plus-one", b.Exp("exp", b.Neg(in[0])), one)), in[1])
	})
	root := madeOf2(func(b b, in, _ []v) v {
		return b.Add("sum", b.Mul("product", in[0], b.Scalar("√(3)", math.Sqrt(3))), in[1])
	})
	gated := madeOf2(func(b b, in, _ []v) v { return b.Tanh("tanh", b.Mul("product", in[0], in[1])) })
	summed := madeOf2(func(b b, in, _ []v) v { return b.Tanh("tanh", b.Add("sum", in[0], in[1])) })
	outer := madeOf2(func(b b, in, _ []v) v { return b.Mul("product", b.Tanh("tanh", in[0]), in[1]) })
	quotient := madeOf2(func(b b, in, _ []v) v {
		return b.Div("quotient", b.Exp("exp", in[0]), b.Add("sum", in[1], b.Scalar("shift", 3)))
	})
	scaled := madeOf2(func(b b, in, _ []v) v { return b.Mul("product", b.Add("sum", in[0], in[1]), b.Scalar("factor", 0.7)) })
	shifted := madeOf2(func(b b, in, _ []v) v {
		return b.Mul("product", b.Tanh("tanh", in[0]), b.Add("shifted", in[1], b.Scalar("shift", 0.3)))
	})
	// The two operands are steps of one name.
	twins := sumOf8()
	twins.op = &madeOf{func(b b, in, _ []v) v {
		p, q := b.Mul("half", in[0], b.Tanh("tanh", in[0])), b.Mul("half", in[1], b.Tanh("tanh", in[1]))
		return b.Sub("difference", b.Exp("exp", p), q)
	}}
	of2 := func(f func(p, q float64) float64) func(in [][]float64, y []float64) {
		return by2(func(a, b float64) float64 { return f(a*math.Tanh(a), b*math.Tanh(b)) })
	}
	probs := operation{"layers.0.self_attn.probs_f32", op.Softmax{}, "bhts", []int{1, 2, 8, 8}, []program.Value{{Shape: []int{1, 2, 8, 8}, Data: wave(128, 1)}}, nil, nil}
	square := operation{"layers.0.self_attn.scores", &madeOf{func(b b, in, _ []v) v { return b.Dot("scores", "btc,bsc->bts", in[0], in[1]) }}, "bts", []int{1, 8, 8}, []program.Value{{Shape: []int{1, 8, 8}, Data: wave(64, 1)}, {Shape: []int{1, 8, 8}, Data: wave(64, 9)}}, nil, nil}
	dots := func(at func(s, c int) int) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for c := range 8 {
					y[i] += in[0][i/8*8+c] * in[1][at(i%8, c)]
				}
			}
		}
	}
	exps := func(power float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				top := math.Inf(-1)
				for _, v := range in[0][i/8*8:][:8] {
					top = max(top, v)
				}
				y[i] = math.Exp((in[0][i] - top) * power)
			}
		}
	}
	for _, c := range []rowPlant{
		{"steps.left-out(place=made.product,of=function:tanh,by=factor:0.7)", left, by2(func(a, b float64) float64 { return a + b }), by2(func(a, b float64) float64 { return math.Tanh(a) + b })},
		{"steps.run-left-out(place=made.exp,of=tensor:layers.*.in)", long, by2(func(a, b float64) float64 { return a + b }), by2(func(a, b float64) float64 { return math.Exp(math.Sin(a)) + b })},
		{"steps.run-left-out(place=made.sigmoid,of=tensor:layers.*.in)", sigmoid, by2(func(a, b float64) float64 { return a + b }), by2(func(a, b float64) float64 { return math.Exp(a) + b })},
		{"step.twice(place=made.tanh,of=function:tanh)", outer, by2(func(a, b float64) float64 { return math.Tanh(math.Tanh(a)) * b }), by2(func(a, b float64) float64 { return math.Tanh(a) * math.Tanh(b) })},
		{"step.twice-root(place=made.product,of=factor:1.73205,by=number:3)", root, by2(func(a, b float64) float64 { return 3*a + b }), by2(func(a, b float64) float64 { return 3.5*a + b })},
		{"product.left-out(place=made.product,of=tensor:layers.*.self_attn.o_proj)", gated, by2(func(a, _ float64) float64 { return math.Tanh(a) }), by2(func(a, b float64) float64 { return math.Tanh(a * a) })},
		{"root.left-out(place=rms_norm.rsqrt,of=step:rms_norm.+eps)", normWith(op.Plain), normedAs(func(ms float64) float64 { return 1 / ms }, func(x, by, w float64) float64 { return x * by * w }), normedAs(math.Sqrt, func(x, by, w float64) float64 { return x * by * w })},
		{"weight.left-out-plus-one(place=rms_norm.weight,of=product-weight:input_layernorm.weight)", normWith(op.OnePlus), normedAs(inverseRoot, func(x, by, _ float64) float64 { return x * by }), normedAs(inverseRoot, func(x, by, w float64) float64 { return x * by * w })},
		{"operation.left-out(place=rms_norm.weight,by=tensor:layers.*.in)", normWith(op.Plain), normedAs(inverseRoot, func(x, _, _ float64) float64 { return x }), normedAs(inverseRoot, func(x, _, w float64) float64 { return x * w })},
		{"order.product-last(place=made.product,of=tensor:layers.*.self_attn.o_proj)", gated, by2(func(a, b float64) float64 { return math.Tanh(a) * b }), by2(func(a, b float64) float64 { return math.Tanh(a) * b * b })},
		{"share.left-out(place=softmax.quotient,of=step:softmax.exp)", probs, exps(1), exps(0.5)},
		{"operands.exchanged(place=made.quotient,of=step:made.quotient)", quotient, by2(func(a, b float64) float64 { return (b + 3) / math.Exp(a) }), by2(func(a, b float64) float64 { return math.Exp(a) * (b + 3) })},
		{"operand.other(place=rms_norm.product,of=step:rms_norm.product,by=step:rms_norm.square,for=tensor:layers.*.in)", normWith(op.Plain), normedAs(inverseRoot, func(x, by, w float64) float64 { return x * x * by * w }), normedAs(inverseRoot, func(x, by, w float64) float64 { return math.Abs(x) * by * w })},
		{"operand.other-part(place=made.difference,of=step:made.difference,by=step:made.half)", twins, of2(func(p, _ float64) float64 { return math.Exp(p) - p }), of2(func(p, q float64) float64 { return math.Exp(q) - p })},
		{"operand.transposed(place=made.scores,of=tensor:layers.*.self_attn.keys,by=step:made.scores)", square, dots(func(s, c int) int { return c*8 + s }), dots(func(s, c int) int { return (7-s)*8 + c })},
		{"order.later(place=made.tanh,of=function:tanh,by=step:made.product,for=tensor:layers.*.in)", outer, by2(func(a, b float64) float64 { return math.Tanh(a * b) }), by2(func(a, b float64) float64 { return math.Tanh(a + b) })},
		{"order.earlier(place=made.tanh,of=function:tanh,by=tensor:layers.*.in,for=step:made.sum)", summed, by2(func(a, b float64) float64 { return math.Tanh(a) + b }), by2(func(a, b float64) float64 { return math.Tanh(a) - b })},
		{"order.term-alone(place=made.product,of=factor:0.7,by=tensor:layers.*.in,for=tensor:layers.*.self_attn.o_proj)", scaled, by2(func(a, b float64) float64 { return 0.7*a + b }), by2(func(a, b float64) float64 { return 0.6*a + b })},
		{"value.unused(of=tensor:layers.*.self_attn.o_proj)", shifted, by2(func(a, _ float64) float64 { return math.Tanh(a) * 0.3 }), by2(func(a, _ float64) float64 { return math.Tanh(a) * 0.4 })},
	} {
		c.look(t)
	}
}
