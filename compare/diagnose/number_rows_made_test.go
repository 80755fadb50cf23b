package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Numbers of a formula that are the same function of the right ones in two layers, and numbers that are others, are named.
func TestNumbersMadeInLoopsAreNamed(t *testing.T) {
	scale := func(layer string, by float64) operation {
		o := sumOf8()
		o.name = layer + o.name[len("layers.0"):]
		o.op = &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
			return b.Add("sum", b.Mul("product", in[0], b.Scalar("scale", by)), in[1])
		}}
		return o
	}
	times := func(x float64) func(in [][]float64, y []float64) {
		return by2(func(a, b float64) float64 { return float64(float32(a*x)) + b })
	}
	caps := func(layer string, by float64) operation {
		o := scale(layer, by)
		o.op = &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
			cap := b.Scalar("cap", by)
			return b.Add("sum", b.Mul("product", b.Tanh("tanh", b.Div("quotient", in[0], cap)), cap), in[1])
		}}
		return o
	}
	shift := func(layer string, by float64) operation {
		o := scale(layer, by)
		o.op = &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
			c := b.Scalar("shift", by)
			return b.Add("sum", b.Mul("product", b.Tanh("tanh", b.Add("shifted", in[0], c)), in[1]), c)
		}}
		return o
	}
	cutoff := func(layer string, by float64) operation {
		o := scale(layer, by)
		o.op = op.Cutoff{Multiplier: op.Const{Value: by}}
		return o
	}
	capped := func(x float64) func(in [][]float64, y []float64) {
		return by2(func(a, b float64) float64 { return math.Tanh(a/x)*x + b })
	}
	shifted := func(x float64) func(in [][]float64, y []float64) {
		return by2(func(a, b float64) float64 { return math.Tanh(a+x)*b + x })
	}
	cut := func(x float64) func(in [][]float64, y []float64) {
		return by2(func(a, b float64) float64 { return a + x*b })
	}
	const first, second = 1.7, 0.6
	for _, c := range []struct {
		key   string
		right func(layer string, by float64) operation
		wrong func(x float64) func(in [][]float64, y []float64)
		of    func(x float64) float64
	}{
		{"number.doubled(place=made.cap,of=soft-cap,by=number:3.4,for=number:1.7)", caps, capped, func(x float64) float64 { return 2 * x }},
		{"number.halved(place=made.cap,of=soft-cap,by=number:0.85,for=number:1.7)", caps, capped, func(x float64) float64 { return x / 2 }},
		{"number.times-root-2(place=made.cap,of=soft-cap,by=number:2.40416,for=number:1.7)", caps, capped, func(x float64) float64 { return x * math.Sqrt2 }},
		{"number.over-root-2(place=made.cap,of=soft-cap,by=number:1.20208,for=number:1.7)", caps, capped, func(x float64) float64 { return x / math.Sqrt2 }},
		{"number.negated(place=made.shift,of=name:shift,by=number:-1.7,for=number:1.7)", shift, shifted, func(x float64) float64 { return -x }},
		{"number.squared(place=made.cap,of=soft-cap,by=number:2.89,for=number:1.7)", caps, capped, func(x float64) float64 { return x * x }},
		{"number.rooted(place=made.cap,of=soft-cap,by=number:1.30384,for=number:1.7)", caps, capped, math.Sqrt},
		{"number.inverted(place=made.cap,of=soft-cap,by=number:0.588235,for=number:1.7)", caps, capped, func(x float64) float64 { return 1 / x }},
		{"number.two-sided-quantile(place=cutoff.multiplier,of=a-factor,by=number:2.00873,for=number:1.7)", cutoff, cut, func(x float64) float64 { return math.Sqrt2 * math.Erfinv((1+math.Erf(x/math.Sqrt2))/2) }},
	} {
		find := func(a, b float64) *diagnose.Finding {
			m := model(t)
			m.Passes[0].Tokens = 8
			return named(t, m, c.right("layers.0", first).made(t, m, c.wrong(a)), c.right("layers.2", second).made(t, m, c.wrong(b)))
		}
		a, b := c.of(first), c.of(second)
		if f := find(float64(float32(a)), float64(float32(b))); f.Key() != c.key {
			t.Errorf("%q: %s %v, want %s", f.What, f.Key(), f.Description, c.key)
		}
		if f := find(a, 1.1*b); strings.HasPrefix(c.key, string(f.Mistake.Kind)+"(") {
			t.Errorf("the neighbour of %s is %q", c.key, f.What)
		}
	}

	least := sumOf8()
	least.op = &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Mul("product", b.Tanh("tanh", b.Max(in[0], b.Scalar("least", 0.3))), in[1])
	}}
	above := func(x float64) func(in [][]float64, y []float64) {
		return by2(func(a, b float64) float64 { return math.Tanh(max(a, x)) * b })
	}
	eps := func(x float64) operation {
		o := normOf8()
		o.op = op.RMSNorm{Eps: x, Gain: op.Plain}
		return o
	}
	norm := func(right, x float64) func(in [][]float64, y []float64) {
		return normedAs(func(ms float64) float64 { return 1 / math.Sqrt(ms-1e-6+x) }, func(x, by, w float64) float64 { return x * by * w })
	}
	for _, c := range []rowPlant{
		{"number.zero(place=made.least,of=name:least,x=0)", least, above(0), above(-0.1)},
		{"number.machine-epsilon(place=rms_norm.eps,of=epsilon,x=0.0078125,dtype=bfloat16)", eps(0.25), norm(0.25, 0x1p-7), norm(0.25, 0x1p-6)},
		{"number.rounded(place=made.scale,of=a-factor,x=0.300781,dtype=bfloat16)", scale("layers.0", 0.3), times(floats.Round(hooks.BF16, 0.3)), times(0.3003)},
		{"soft-cap.inserted(of=the-result,x=5)", sumOf8(), by2(func(a, b float64) float64 { return 5 * math.Tanh((a+b)/5) }), by2(func(a, b float64) float64 { return 5 * math.Atan((a+b)/5) })},
	} {
		c.look(t)
	}
}

// A soft cap with another function than tanh, and what is done to other parts of a tensor, is named.
func TestCapsAndPartsMadeInLoopsAreNamed(t *testing.T) {
	capped := operation{"layers.0.attn_residual", op.Softcap{Cap: 2}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8, 16}, Data: wave(128, 1)}}, nil, nil}
	caps := func(f func(v float64) float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 2 * f(in[0][i]/2)
			}
		}
	}
	capped.in[0].Data = each(capped.in[0].Data, func(v float64) float64 { return 2 * v })
	m := model(t) // a result with one number everywhere is not clipped
	m.Passes[0].Tokens = 8
	one := named(t, m, capped.made(t, m, caps(func(float64) float64 { return 1.25 })))
	if strings.HasPrefix(string(one.Mistake.Kind), "result.clip") {
		t.Errorf("a result with one number everywhere is %q", one.What)
	}
	soft := func(power float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for at := 0; at < len(y); at += 16 {
				sum := 0.0
				for i := range 16 {
					y[at+i] = math.Exp(in[0][at+i] / 2 * power)
					sum += y[at+i]
				}
				for i := range 16 {
					y[at+i] *= 2 / sum
				}
			}
		}
	}
	streams := func(n int) operation {
		return operation{"layers.0.attn_residual", op.AddToOthers{}, "abtc", []int{n, 1, 8, 8}, []program.Value{{Shape: []int{n, 1, 8, 8}, Data: wave(n*64, 1)}, {Shape: []int{1, 8, 8}, Data: wave(64, 9)}}, nil, nil}
	}
	added := func(factors ...float64) func(in [][]float64, y []float64) { // of each stream
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = in[0][i] + factors[i/64]*in[1][i%64]
			}
		}
	}
	for _, c := range []rowPlant{
		{"tanh.clip(place=softcap.tanh)", capped, caps(func(v float64) float64 { return max(min(v, 1), -1) }), caps(func(v float64) float64 { return max(min(v, 1.2), -1.2) })},
		{"tanh.sigmoid(place=softcap.tanh)", capped, caps(func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }), caps(func(v float64) float64 { return 1 / (1 + math.Exp(-1.3*v)) })},
		{"tanh.softmax(place=softcap.tanh)", capped, soft(1), soft(1.3)},
		{"part.all(place=add_to_others.cat,of=tensor:layers.*.self_attn.o_proj)", streams(2), added(1, 1), added(0.5, 1)},
		{"part.other(place=add_to_others.cat,of=tensor:layers.*.self_attn.o_proj)", streams(2), added(1, 0), added(0.5, 0)},
		{"operand.at-other-indexes(place=add_to_others.sum,of=tensor:layers.*.self_attn.o_proj,axis=streams,runs=0=0;1=-)", streams(3), added(1, 0, 1), added(1, 0, 0.5)},
	} {
		c.look(t)
	}
}

// A tensor that is captured and is added to the result, or taken off it, is named.
func TestTensorsThatAreAddedInLoopsAreNamed(t *testing.T) {
	other := wave(128, 40)
	for _, c := range []struct {
		key string
		by  float64
	}{
		{"tensor.added(place=layers.*.input_layernorm,of=the-result,by=tensor:layers.*.input_layernorm)", 1},
		{"tensor.taken-off(place=layers.*.input_layernorm,of=the-result,by=tensor:layers.*.input_layernorm)", -1},
	} {
		find := func(by float64) *diagnose.Finding {
			m := model(t)
			m.Passes[0].Tokens = 8
			at := m.List.Index("layers.0.input_layernorm")
			read := m.Read
			m.Has = func(n order.Node) bool { return n.Entry == at }
			m.Read = func(n order.Node) (program.Value, error) {
				if n.Entry == at {
					return program.Value{Shape: []int{1, 8, 16}, Data: other}, nil
				}
				return read(n)
			}
			return named(t, m, sumOf8().made(t, m, func(_ [][]float64, y []float64) {
				for i := range y {
					y[i] += by * other[i]
				}
			}))
		}
		if f := find(c.by); f.Key() != c.key {
			t.Errorf("%q: %s %v, want %s", f.What, f.Key(), f.Description, c.key)
		}
		if f := find(0.6 * c.by); strings.HasPrefix(c.key, string(f.Mistake.Kind)+"(") {
			t.Errorf("the neighbour of %s is %q", c.key, f.What)
		}
	}
}
