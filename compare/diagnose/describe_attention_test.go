package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// firstPositions are those of the first n tokens.
func firstPositions(n int) []program.Value {
	v := program.Value{Shape: []int{1, n}}
	for p := range n {
		v.Data = append(v.Data, float64(p))
	}
	return []program.Value{v}
}

// tablesOf8 are cosines and sines of 8 tokens with 8 channels.
func tablesOf8(angle func(token, pair int) float64) (cos, sin program.Value) {
	cos.Shape, sin.Shape = []int{1, 8, 8}, []int{1, 8, 8}
	for i := range 64 {
		a := angle(i/8, i%4)
		cos.Data, sin.Data = append(cos.Data, float64(float32(math.Cos(a)))), append(sin.Data, float64(float32(math.Sin(a))))
	}
	return cos, sin
}

// rotation turns 2 heads of 8 channels.
func rotation() operation {
	cos, sin := tablesOf8(func(token, pair int) float64 { return float64(token) * math.Pow(0.3, float64(pair)) })
	return operation{"layers.0.self_attn.q_rope", op.RoPE{}, "bhtc", []int{1, 2, 8, 8}, []program.Value{{Shape: []int{1, 8, 16}, Data: wave(128, 3)}, cos, sin}, nil, nil}
}

// turnPairs turns the pairs of channels of a rotation's result further.
func turnPairs(y []float64, angle func(token, pair int) float64) {
	for row := 0; row < len(y); row += 8 {
		for p := range 4 {
			a, b := y[row+p], y[row+p+4]
			s, c := math.Sincos(angle(row/8%8, p))
			y[row+p], y[row+p+4] = a*c-b*s, b*c+a*s
		}
	}
}

// What attention computes wrongly is described: masks by their keys, scores by slopes and heads, probabilities by what is left of them, rotations by pairs and angles.
func TestDescriptionsOfAttention(t *testing.T) {
	probabilities := operation{"layers.0.self_attn.probs_f32", op.Softmax{}, "bhts", []int{1, 2, 8, 8}, []program.Value{{Shape: []int{1, 2, 8, 8}, Data: wave(128, 1)}}, nil, nil}
	scores := operation{"layers.0.self_attn.scores", op.Scores{Scale: 0.25}, "bhts", []int{1, 2, 8, 8}, []program.Value{{Shape: []int{1, 2, 8, 8}, Data: wave(128, 1)}, {Shape: []int{1, 1, 8, 8}, Data: wave(64, 7)}}, nil, nil}
	tables := operation{"rotary.cos", op.Rotary{Theta: 100, Dim: 8, Scaling: "default"}, "btc", []int{1, 8, 8}, firstPositions(8), nil, nil}
	for _, c := range []struct {
		name  string
		of    operation
		wrong func(in [][]float64, y []float64)
		want  string
	}{
		{"a mask", operation{"mask.full", op.Mask{}, "bhts", []int{1, 1, 8, 8}, firstPositions(8), nil, nil}, func(_ [][]float64, y []float64) {
			y[5*8+2], y[5*8+7], y[6*8+1] = math.Inf(-1), 0, math.Inf(-1)
		}, "queries attend to the wrong keys: query 5 attends to keys 7 instead of 2; query 6 does not attend to keys 1 and should"},
		{"probabilities without the last keys", probabilities, func(in [][]float64, y []float64) {
			for row := 0; row < len(y); row += 8 {
				sum := 0.0
				for k := range 8 {
					if y[row+k] = 0; k < 6 {
						y[row+k] = math.Exp(in[0][row+k])
					}
					sum += y[row+k]
				}
				for k := range 8 {
					y[row+k] /= sum
				}
			}
		}, "each head and each token of the result has its own factor, the same for each key and distance from query to key: "},
		{"slopes", scores, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] += []float64{0.5, 0.25}[i/64]*float64(i%8) + math.Sin(float64(i/8*5))
			}
		}, "a bias is added to the result that grows with each key, with its own slope for each head, the same for each token: 0.5, 0.25"},
		{"other pairs", rotation(), func(in [][]float64, y []float64) {
			for row := 0; row < len(y); row += 8 {
				head, token := row/64, row/8%8
				for p := range 4 {
					x := in[0][token*16+head*8+2*p:]
					s, c := math.Sincos(float64(token) * math.Pow(0.3, float64(p)))
					y[row+2*p], y[row+2*p+1] = x[0]*c-x[1]*s, x[1]*c+x[0]*s
				}
			}
		}, "the wrong channels of layers.*.self_attn.q_norm are rotated together: channel 0 of head 0 and channel 1 of head 0; channel 2 of head 0 and channel 3 of head 0"},
		{"turned by the same angle", rotation(), func(_ [][]float64, y []float64) {
			turnPairs(y, func(_, pair int) float64 { return math.Pow(0.5, float64(pair)) })
		}, "pairs of channels of the result are rotated by an extra angle, the same for each position: 1, 0.5, 0.25, 0.125"},
		{"turned twice", rotation(), func(_ [][]float64, y []float64) {
			turnPairs(y, func(token, pair int) float64 { return float64(token) * math.Pow(0.3, float64(pair)) })
		}, "pairs of channels of the result are rotated by an extra angle that grows with the position: 1, 0.3, 0.09, 0.027"},
		{"angles", tables, func(_ [][]float64, y []float64) {
			for i := range y {
				if i%4 == 1 {
					y[i] = math.Cos(0.25 * float64(i/8))
				}
			}
		}, "the angle per position is wrong: channel 1: 0.790569 times the right angle (0.25 instead of 0.316228); channel 5: 0.790569 times"},
	} {
		got := c.of.described(t, c.wrong)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if strings.HasSuffix(c.name, "last keys") && !strings.Contains(got, "; 32 other elements are 0, only at keys 6, 7") {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := c.of.described(t, noisy); c.name != "a mask" && !strings.Contains(got, "elements of the result differ, with a relative L2 of") {
			t.Errorf("%s: noise is described: %q", c.name, got)
		}
	}
}

// A product of other heads is none of the right result's rows: it is found by the operands.
func TestDescriptionsByOtherHeads(t *testing.T) {
	o := operation{"layers.0.self_attn.scores", op.Scores{}, "bhts", []int{1, 4, 8, 8}, []program.Value{{Shape: []int{1, 4, 8, 8}, Data: wave(256, 1)}, {Shape: []int{1, 2, 8, 8}, Data: wave(128, 7)}}, nil, nil}
	o.configure = func(c *order.Config) { c.NumHeads, c.NumKVHeads = 4, 2 }
	const want = "products use the wrong heads: head 1 is the product of head 1 of "
	if got := o.described(t, func(in [][]float64, y []float64) {
		for i := range 64 { // query head 1 reads key head 1
			y[64+i] = 0
			for c := range 8 {
				y[64+i] += in[0][(8+i/8)*8+c] * in[1][(8+i%8)*8+c]
			}
		}
	}); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := o.described(t, noisy); strings.Contains(got, "other heads") {
		t.Errorf("noise is described: %q", got)
	}
}

// Each head that is a sum of heads is said to be that, and heads with a factor that is no whole number are not.
func TestDescriptionsByMixtures(t *testing.T) {
	o := rotation()
	for factor, want := range map[float64]string{1: "each head of the result is a mix of heads of the result: head 0 is head 0 + head 1", 0.75: "each head of the result is made of"} {
		got := o.described(t, func(_ [][]float64, y []float64) {
			for i := range 64 {
				y[i] += factor * y[64+i]
			}
		})
		if has := strings.HasPrefix(got, want); has != (factor == 1) {
			t.Errorf("%g: %q, want %q", factor, got, want)
		}
	}
}

// Where exactly the elements beyond a number differ, the description says so.
func TestDescriptionsByACondition(t *testing.T) {
	for limit, want := range map[float64]bool{0.75: true, 0: false} {
		o := sumOf8()
		got := o.described(t, func(in [][]float64, y []float64) {
			for i := range y {
				if math.Abs(in[0][i]) > limit {
					y[i] *= 1 + math.Sin(float64(i*i+1))/3
				}
			}
		})
		if has := strings.Contains(got, "it differs only where |"); has != want {
			t.Errorf("%g: %q, want a condition: %t", limit, got, want)
		}
	}
}

// Layers may have other numbers of heads. Those of the first layer are described.
func TestDescriptionsOfLayersOfTwoShapes(t *testing.T) {
	m := model(t)
	m.Passes = []order.Pass{{Tokens: 8}}
	small := rotation()
	small.name, small.shape = "layers.1.self_attn.q_rope", []int{1, 1, 8, 8}
	small.in = append([]program.Value{{Shape: []int{1, 8, 8}, Data: wave(64, 3)}}, small.in[1:]...)
	further := func(_ [][]float64, y []float64) {
		turnPairs(y, func(_, pair int) float64 { return math.Pow(0.5, float64(pair)) })
	}
	few := func(_ [][]float64, y []float64) { // the search looks at this layer last
		for i := range 4 {
			y[i]++
		}
	}
	d, err := diagnose.Described(m, rotation().made(t, m, further), small.made(t, m, few))
	if err != nil {
		t.Fatal(err)
	}
	if want := "pairs of channels of the result are rotated by an extra angle"; d == nil || !strings.HasPrefix(d.String(), want) {
		t.Errorf("%v, not %q", d, want)
	}
}

// Passes have other numbers of keys.
func TestDescriptionsOfPassesWithOtherKeys(t *testing.T) {
	m := model(t)
	m.Passes = []order.Pass{{Tokens: 8}}
	of := func(name string, tokens, keys int) operation {
		x := program.Value{Shape: []int{1, 2, tokens, keys}, Data: wave(2*tokens*keys, 1)}
		for i := range x.Data {
			if i%keys > 2 { // probabilities of 0 keep their lengths
				x.Data[i] = -1e9
			}
		}
		return operation{name, op.Softmax{}, "bhts", x.Shape, []program.Value{x}, nil, nil}
	}
	step := of("layers.0.self_attn.probs_f32", 4, 9).made(t, m, noisy)
	prompt := of("layers.1.self_attn.probs_f32", 8, 8).made(t, m, noisy)
	d, err := diagnose.Described(m, step, prompt)
	if err != nil {
		t.Fatal(err)
	}
	if d == nil || d.Elements == 0 {
		t.Errorf("%+v", d)
	}
}
