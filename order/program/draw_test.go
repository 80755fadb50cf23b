package program_test

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// drawer draws operations with inputs that a model of a dtype could have.
type drawer struct {
	*rapid.T
	round func(float64) float64
}

func newDrawer(t *rapid.T, d hooks.DType) drawer {
	if d == hooks.BF16 {
		return drawer{t, bf16}
	}
	return drawer{t, f32}
}

func (d drawer) upTo(n int, label string) int { return rapid.IntRange(1, n).Draw(d.T, label) }

// tensor draws numbers: Gaussian ones of some size, with ties, zeros and outliers among them.
func (d drawer) tensor(shape ...int) program.Value {
	scale := math.Exp2(float64(rapid.IntRange(-4, 4).Draw(d.T, "scale")))
	x := numbers(size(shape), rapid.Uint64().Draw(d.T, "seed"), func(v float64) float64 { return d.round(v * scale) })
	if len(x) > 2 && rapid.Bool().Draw(d.T, "special") {
		x[0], x[len(x)/2] = 0, d.round(x[1]*32)
	}
	return tensor(x, shape...)
}

func (d drawer) weight(rows, cols int) program.Rows {
	return matrix{rows, cols, d.tensor(rows, cols).Data}
}

func (d drawer) constant() op.Const {
	return op.Const{Value: rapid.SampledFrom([]float64{0.7071067811865476, 0.3, 2, 45.254833995939045, -1.7, 1e-3}).Draw(d.T, "constant"), Cast: rapid.Bool().Draw(d.T, "cast")}
}

// operation draws an operation that computes, and a call of it.
func (d drawer) operation() (op.Op, program.Call) {
	b, tokens, h := 1, d.upTo(3, "tokens"), d.upTo(9, "width")
	row := []int{b, tokens, h}
	one := []int{b, tokens, 1}
	call := func(shape []int, w []program.Rows, in ...program.Value) program.Call {
		return program.Call{In: in, W: w, Shape: shape}
	}
	x := func() program.Value { return d.tensor(row...) }
	heads, groups, keys, dim := d.upTo(2, "heads"), d.upTo(2, "groups"), d.upTo(5, "keys"), 2*d.upTo(3, "half")
	streams := d.upTo(3, "streams")
	stack := []int{streams, b, tokens, h}
	switch kind := rapid.SampledFrom([]string{
		"add", "sub", "mul", "add_scale", "scale", "scale_channels", "rms_norm", "linear", "gelu", "gelu_tanh", "silu", "tanh", "softcap", "softmax",
		"scores", "context", "rope", "magnitude", "mean", "std", "rescale", "cutoff", "shifted_relu", "stream_mean", "altup_predict", "altup_correct",
		"altup_init", "add_to_others",
	}).Draw(d.T, "kind"); kind {
	case "add":
		return op.Add{}, call(row, nil, x(), x())
	case "sub":
		return op.Sub{}, call(row, nil, x(), x())
	case "mul":
		return op.Mul{}, call(row, nil, x(), x())
	case "add_scale":
		return op.AddScale{By: d.constant(), Divide: rapid.Bool().Draw(d.T, "divide")}, call(row, nil, x(), x())
	case "scale":
		return op.Scale{By: d.constant()}, call(row, nil, x())
	case "scale_channels":
		return op.ScaleChannels{}, call(row, []program.Rows{d.weight(1, h)}, x())
	case "rms_norm":
		gain := rapid.SampledFrom([]op.Gain{op.Plain, op.NoScale, op.OnePlus, op.After}).Draw(d.T, "gain")
		return op.RMSNorm{Eps: rapid.SampledFrom([]float64{1e-6, 1e-5, 0.1}).Draw(d.T, "eps"), Gain: gain}, call(row, []program.Rows{d.weight(1, h)}, x())
	case "linear":
		outs, w := d.upTo(5, "outs"), []program.Rows(nil)
		bias := rapid.Bool().Draw(d.T, "bias")
		if w = append(w, d.weight(outs, h)); bias {
			w = append(w, d.weight(1, outs))
		}
		return op.Linear{Bias: bias}, call([]int{b, tokens, outs}, w, x())
	case "gelu":
		return op.GELU{}, call(row, nil, x())
	case "gelu_tanh":
		return op.GELUTanh{}, call(row, nil, x())
	case "silu":
		return op.SiLU{}, call(row, nil, x())
	case "tanh":
		return op.Tanh{}, call(row, nil, x())
	case "softcap":
		return op.Softcap{Cap: 30}, call(row, nil, x())
	case "softmax":
		return op.Softmax{}, call(row, nil, x())
	case "scores":
		return op.Scores{Scale: 0.0883883}, call([]int{b, heads * groups, tokens, keys}, nil, d.tensor(b, heads*groups, tokens, dim), d.tensor(b, heads, keys, dim))
	case "context":
		return op.Context{}, call([]int{b, tokens, heads * groups * dim}, nil, d.tensor(b, heads*groups, tokens, keys), d.tensor(b, heads, keys, dim))
	case "rope":
		return op.RoPE{}, call([]int{b, heads, tokens, dim}, nil, d.tensor(b, tokens, heads, dim), d.tensor(b, tokens, dim), d.tensor(b, tokens, dim))
	case "magnitude":
		return op.Magnitude{Floor: rapid.SampledFrom([]float64{0, 1e-5}).Draw(d.T, "floor")}, call(one, nil, x())
	case "mean":
		return op.Mean{}, call(one, nil, x())
	case "std":
		return op.Std{}, call(one, nil, x())
	case "rescale":
		return op.Rescale{}, call(row, nil, x(), d.tensor(one...), d.tensor(one...))
	case "cutoff":
		return op.Cutoff{Multiplier: d.constant()}, call(one, nil, d.tensor(one...), d.tensor(one...))
	case "shifted_relu":
		return op.ShiftedReLU{}, call(row, nil, x(), d.tensor(one...))
	case "stream_mean":
		return op.StreamMean{}, call(row, nil, x(), x(), x())
	case "altup_predict":
		return op.AltUpPredict{Streams: streams}, call(stack, nil, d.tensor(b, tokens, streams*streams), d.tensor(stack...))
	case "altup_correct":
		return op.AltUpCorrect{Streams: streams}, call(stack, nil, x(), d.tensor(b, tokens, streams), d.tensor(stack...))
	case "altup_init":
		return op.AltUpInit{}, call([]int{2, b, tokens, h}, nil, x(), d.tensor(one...), x(), d.tensor(one...))
	}
	return op.AddToOthers{}, call([]int{streams + 1, b, tokens, h}, nil, d.tensor(streams+1, b, tokens, h), x())
}

// mixture draws a formula of its own: primitives on what is there, one after the other.
func (d drawer) mixture() (op.Op, program.Call) {
	rows, n := d.upTo(3, "rows"), d.upTo(6, "width")
	type line struct{ prim, x, y int }
	lines := make([]line, d.upTo(7, "lines"))
	for i := range lines {
		lines[i] = line{rapid.IntRange(0, 11).Draw(d.T, "primitive"), rapid.IntRange(0, i+1).Draw(d.T, "x"), rapid.IntRange(0, i+1).Draw(d.T, "y")}
	}
	rounds := rapid.SliceOfN(rapid.Bool(), len(lines), len(lines)).Draw(d.T, "rounds")
	o := of(func(b *program.Builder, in []program.Var) program.Var {
		vars := slices.Clone(in)
		abs := func(v program.Var) program.Var { return b.Max(v, b.Neg(v)) }
		for i, l := range lines {
			x, y := vars[l.x], vars[l.y]
			var v program.Var
			switch l.prim {
			case 0:
				v = b.Add("add", x, y)
			case 1:
				v = b.Sub("sub", x, y)
			case 2:
				v = b.Mul("mul", x, y)
			case 3:
				v = b.Div("div", x, b.Add("apart", abs(y), b.Scalar("least", 0.01)))
			case 4:
				v = b.Sqrt("sqrt", abs(x))
			case 5:
				v = b.Rsqrt("rsqrt", b.Add("+eps", b.Mul("square", x, x), b.Scalar("eps", 1e-3)))
			case 6:
				v = b.Exp("exp", b.Tanh("tanh", x))
			case 7:
				v = b.Erf("erf", x)
			case 8:
				v = b.Mul("scaled", x, b.Tensor("by", 0.3))
			case 9:
				v = b.Add("mixed", x, b.Mean("mean", y))
			case 10:
				v = b.Mul("times", x, b.Permute(b.Dot("dot", "rk,rk->r", x, y), 0, -1))
			case 11:
				v = b.Max(b.Cos("cos", x), b.Sin("sin", y))
			}
			if rounds[i] {
				v = b.R(v)
			}
			vars = append(vars, v)
		}
		return vars[len(vars)-1]
	})
	return o, program.Call{In: []program.Value{d.tensor(rows, n), d.tensor(rows, n)}, Shape: []int{rows, n}}
}

// choices draws what an engine does at the sites of a program.
func (d drawer) choices(p *program.Program, roundings []program.Rounding, way func(s *program.Step) int) []program.Choice {
	c := p.Own()
	sites, steps := p.Sites()
	for _, at := range sites {
		for _, i := range steps[at] {
			if rapid.IntRange(0, 2).Draw(d.T, "own") == 0 {
				continue
			}
			s := &p.Steps[i]
			c[i] = program.Choice{Way: uint8(rapid.IntRange(0, way(s)-1).Draw(d.T, "way")), Round: rapid.SampledFrom(roundings).Draw(d.T, "rounding")}
		}
	}
	return c
}
