package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// rounded are numbers in float32.
func rounded(x []float64) {
	for i, v := range x {
		x[i] = float64(float32(v))
	}
}

// scoresOf4 are products of 4 heads of queries with 2 of keys.
func scoresOf4() operation {
	o := operation{"layers.0.self_attn.scores", op.Scores{}, "bhts", []int{1, 4, 8, 8}, []program.Value{{Shape: []int{1, 4, 8, 8}, Data: wave(256, 1)}, {Shape: []int{1, 2, 8, 8}, Data: wave(128, 7)}}, nil, nil}
	o.configure = func(c *order.Config) { c.NumHeads, c.NumKVHeads = 4, 2 }
	return o
}

// What a description says with all its numbers is a mistake if the program gives the elements with it. Noise, and numbers that differ from token to token, are none.
func TestDescriptionsAreConfirmed(t *testing.T) {
	scores := operation{"layers.0.self_attn.scores", op.Scores{Scale: 0.25}, "bhts", []int{1, 2, 8, 8}, []program.Value{{Shape: []int{1, 2, 8, 8}, Data: wave(128, 1)}, {Shape: []int{1, 1, 8, 8}, Data: wave(64, 7)}}, nil, nil}
	for _, c := range []struct {
		of    operation
		wrong func(in [][]float64, y []float64)
		kind  diagnose.Kind
		says  string
	}{
		{squareOf16(), func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] *= []float64{1, 1.25, 1, 0.8, 1.25}[i%16%5]
			}
		}, "factors.inserted", "the result is multiplied by 1.25 at channels 1, 4, 6, 9, 11, 14; 0.8 at channels 3, 8, 13"},
		{scores, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] *= []float64{1, 1.37}[i/64]
			}
		}, "factors.inserted", "the result is multiplied by 1.37 at head 1"},
		{scores, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] += []float64{0.3, 0}[i/64]
			}
		}, "addends.inserted", "constants are added to the result: 0.3 at head 0"},
		{scores, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] += []float64{0.5, 0.25}[i/64] * float64(i%8)
			}
		}, "slopes.inserted", "a bias that grows along the keys is added to the result, with its own slope for each of the heads: 0.5 at head 0; 0.25 at head 1 per step"},
		{scores, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] += []float64{0.5, 0.25}[i/64] * float64(i%8-i/8%8)
			}
		}, "slopes.inserted", "a bias that grows along the keys is added to the result, with its own slope for each of the heads: 0.5 at head 0; 0.25 at head 1 per step"},
		{sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = math.RoundToEven(in[0][i]) + in[1][i]
			}
		}, "input.whole", "layers.*.in is rounded to whole numbers: its quantisation has no scale, or a scale that is never below 1"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for c, w := range squareOf16().matrix[i%16] {
					y[i] += []float64{1, 1, 1.5, 1}[c/4] * w * in[0][i/16*16+c]
				}
			}
		}, "weight.input-factors", "the inputs of layers.*.self_attn.o_proj.weight are multiplied by a factor each: 1.5 at inputs 8 to 11"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for c, w := range squareOf16().matrix[i%16] {
					y[i] += [][]float64{{1, 0.75}, {2, 1}}[i%16/8][c/8] * w * in[0][i/16*16+c]
				}
			}
		}, "weight.factors", "blocks of 8 by 8 of layers.*.self_attn.o_proj.weight are multiplied by a factor each: 0.75 at block 1; 2 at block 2"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				for c := range 16 {
					y[i] += map[int]float64{3*4 + 1: 0.5, 9 * 4: -0.25, 9*4 + 2: 0.5, 14*4 + 3: -0.25}[i%16*4+c/4] * in[0][i/16*16+c]
				}
			}
		}, "weight.shifted-in-blocks", "blocks of 1 by 4 of layers.*.self_attn.o_proj.weight have a constant added each: 0.5 at blocks 13, 38; -0.25 at blocks 36, 59"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for c, w := range squareOf16().matrix[i%16] {
					factor, ok := map[int]float64{3*4 + 1: 2, 9 * 4: 0.75, 9*4 + 2: 2, 14*4 + 3: 0.75}[i%16*4+c/4]
					if !ok {
						factor = 1
					}
					y[i] += factor * w * in[0][i/16*16+c]
				}
			}
		}, "weight.factors", "blocks of 1 by 4 of layers.*.self_attn.o_proj.weight are multiplied by a factor each: 2 at blocks 13, 38; 0.75 at blocks 36, 59"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				for c := range 16 {
					y[i] += []float64{0.5, -0.25}[i%16/8] * in[0][i/16*16+c]
				}
			}
		}, "weight.shifted", "the weights of each output of layers.*.self_attn.o_proj.weight have a constant added: 0.5 at channels 0 to 7; -0.25 at channels 8 to 15"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				for c := range 16 {
					y[i] += 0.125 * in[0][i/16*16+c]
				}
			}
		}, "weight.shifted", "the weights of each output of layers.*.self_attn.o_proj.weight have a constant added: 0.125"},
		{scores, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] += []float64{0.5, 0.25}[i/64] * float64(i%8-7)
			}
		}, "slopes.inserted", "a bias that grows along the keys is added to the result, with its own slope for each of the heads: 0.5 at head 0; 0.25 at head 1 per step"},
		{sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = in[0][i] + math.Trunc(in[1][i])
			}
		}, "input.truncated", "layers.*.self_attn.o_proj is truncated to whole numbers"},
		{sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = math.Tanh(in[0][i]) * in[1][i]
			}
		}, "value.formula", "the result is the tanh of layers.*.in * layers.*.self_attn.o_proj"},
		{scoresOf4(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for c := range 8 { // the second head reads the key head of the next group
					y[i] += in[0][i/8*8+c] * in[1][([]int{0, 1, 1, 1}[i/64]*8+i%8)*8+c]
				}
			}
		}, "heads.others", "heads of the result read the wrong heads of layers.*.self_attn.keys: 0, 1, 1, 1, in this order"},
	} {
		m := model(t)
		if c.of.configure != nil {
			c.of.configure(m.List.Config)
		}
		m.Passes[0].Tokens = 8
		e := c.of.made(t, m, func(in [][]float64, y []float64) { c.wrong(in, y); rounded(y) })
		f := named(t, m, e)
		if f.Mistake.Kind != c.kind || f.What != c.says {
			t.Errorf("%s: %q %v, want %s: %q", f.Key(), f.What, f.Description, c.kind, c.says)
		}
		other := c.of.made(t, m, noisy)
		if f := named(t, m, other); f.Named() {
			t.Errorf("noise is %s", f.What)
		}
		byToken := c.of.made(t, m, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] *= 1 + float64(i/c.of.shape[len(c.of.shape)-1]%8)/7
			}
			rounded(y)
		})
		if f := named(t, m, byToken); slices.Contains([]diagnose.Kind{"factors.inserted", "addends.inserted", "slopes.inserted"}, f.Mistake.Kind) {
			t.Errorf("a factor a token is %s", f.What)
		}
	}
}

// Numbers of blocks are not named where blocks of other inputs give the elements as well: a port has any other matrix, and the tokens are sums of four.
func TestNumbersOfBlocksThatSayNothingAreNotNamed(t *testing.T) {
	o := squareOf16()
	for i := range o.in[0].Data {
		o.in[0].Data[i] = 0
		for k := range 4 {
			o.in[0].Data[i] += wave(8, 5)[(i/16+k)%8] * wave(16, 3*k+1)[i%16] / 2
		}
	}
	rounded(o.in[0].Data)
	m := model(t)
	m.Passes[0].Tokens = 8
	e := o.made(t, m, func(in [][]float64, y []float64) {
		for i := range y {
			y[i] = 0
			for c, w := range wave(16, 17*(i%16)+9) {
				y[i] += w * in[0][i/16*16+c]
			}
		}
		rounded(y)
	})
	f := named(t, m, e)
	if f.Named() || f.Description != nil && slices.Contains([]diagnose.Kind{"described.blocks", "described.block-shifts"}, f.Description.Kind) {
		t.Errorf("%s %v", f.Key(), f.Description)
	}
}

// A port that reads the matrix and the bias of another layer is told from one that reads the other matrix alone.
func TestAllWeightsOfAnotherLayer(t *testing.T) {
	m := weighted(t)
	e := rightEntry(t, m, query)
	of := func(layer string) (grid, []float64) {
		return gridOf(order.Weight{Name: layer + wq[len("layers.*"):], Shape: []int{24, 24}}), gridOf(order.Weight{Name: layer + ".self_attn.q_proj.bias", Shape: []int{24}})[0]
	}
	x := e.Call.In[0].Data
	w, bias := of("layers.0")
	_, own := of("layers.1")
	if mistake := found(t, m, e, linear(x, w, bias)); mistake.Kind != "weights.of-another-layer" || mistake.By.Name != "layers.0" {
		t.Errorf("found %s", mistake.Key())
	}
	if mistake := found(t, m, e, linear(x, w, own)); mistake.Kind == "weights.of-another-layer" || mistake.Kind == "" {
		t.Errorf("the matrix alone is found as %q", mistake.Key())
	}
}
