package diagnose_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// A mistake whose first mistake has a first mistake is no mistake.
func TestThreeMistakesAreRefused(t *testing.T) {
	for text, want := range map[string]bool{
		`{"kind":"norm.eps"}`:                                      true,
		`{"kind":"norm.eps","first":{"kind":"a"}}`:                 true,
		`{"kind":"norm.eps","first":{"kind":"a", "first" : {}}}`:   false,
		`{"kind":"norm.eps","first":[]}`:                           false,
		`{"kind":"norm.eps","first":{"kind":"a","x":"no number"}}`: false,
	} {
		var m diagnose.Mistake
		if err := json.Unmarshal([]byte(text), &m); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Two mistakes of a projection have one name, which says both. One mistake is never said to be two, and with a third there is no name.
func TestTwoMistakesMadeInLoopsAreNamed(t *testing.T) {
	each := func(w grid, of func(x float64) float64) grid {
		all := make(grid, len(w))
		for i := range w {
			for _, x := range w[i] {
				all[i] = append(all[i], of(x))
			}
		}
		return all
	}
	turned := func(w grid) grid { // heads of 6 rows in the layout of neighbours
		all := make(grid, len(w))
		for i := range w {
			all[i] = w[i/6*6+i%6%2*3+i%6/2]
		}
		return all
	}
	short := func(w grid) grid { return each(w, func(x float64) float64 { return floats.Round(hooks.BF16, x) }) }
	noisy := func(w grid) grid { return each(w, func(x float64) float64 { return x + 0.01*math.Sin(1e4*x) }) }
	same := func(w grid) grid { return w }
	for _, c := range []struct {
		name   string
		weight func(grid) grid
		biased bool
		want   string
	}{
		{"no bias, rows of another layout", turned, false, "the bias is not added; and layers.*.self_attn.q_proj.weight has the rows of each head of 6 in the other RoPE layout (2 × 3)"},
		{"no bias, weights in bfloat16", short, false, "the bias is not added; and layers.*.self_attn.q_proj.weight is rounded to bfloat16"},
		{"no bias, another scale", func(w grid) grid { return each(w, func(x float64) float64 { return f32(1.37 * x) }) }, false, "the bias is not added; and the result is multiplied by 1.37"},
		{"no bias", same, false, "the bias is not added"},
		{"rows of another layout", turned, true, "layers.*.self_attn.q_proj.weight has the rows of each head of 6 in the other RoPE layout (2 × 3)"},
		{"no bias, rows of another layout, noise", func(w grid) grid { return noisy(turned(w)) }, false, ""},
	} {
		m := weighted(t)
		e := rightEntry(t, m, query)
		bias := append([]float64{}, gridOf(e.Weights[1])[0]...)
		if !c.biased {
			clear(bias)
		}
		is := found(t, m, e, linear(e.Call.In[0].Data, c.weight(gridOf(e.Weights[0])), bias))
		if two, err := diagnose.FindTwo(m); err != nil {
			t.Fatal(err)
		} else if two.Named() {
			is = two.Mistake
		}
		if is.Kind == "" && c.want == "" {
			continue
		} else if is.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, is.String(), c.want)
		}
		text, err := json.Marshal(is)
		if err != nil {
			t.Fatal(err)
		}
		var again diagnose.Mistake
		if err := json.Unmarshal(text, &again); err != nil || again != is {
			t.Errorf("%s: %v, %+v is read as %+v", c.name, err, is, again)
		}
	}
}

// A result with one number everywhere does not show where its channels are from, neither as one mistake nor as the second of two.
func TestOneNumberEverywhereIsNoOrderOfChannels(t *testing.T) {
	m := model(t)
	m.Without = "recognised" // positions that restart in each pass
	m.Passes = []order.Pass{{Tokens: 10}, {Tokens: 1, Past: 10}, {Tokens: 1, Past: 11}}
	at := m.List.Index("rotary.cos")
	var entries []*diagnose.Entry
	for pass, position := range []float64{10, 11} {
		in := []program.Value{{Shape: []int{1, 1}, Data: []float64{position}}}
		of := operation{"rotary.cos", op.Rotary{Theta: 1e6, Dim: 12, Scaling: "default"}, "btc", []int{1, 1, 12}, in, nil, nil}
		e := of.made(t, m, func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] = 1
			}
		})
		e.Node = order.Node{Entry: at, Pass: 1 + pass}
		entries = append(entries, e)
	}
	if one := named(t, m, entries...); one.Named() {
		t.Fatalf("one mistake is said to be %s", one)
	}
	if two, err := diagnose.FindTwo(m); err != nil || two.Named() {
		t.Errorf("two mistakes are said to be %v, error %v", two, err)
	}
}

// The second mistake may replace the first. Newton's method does not find the number from the right one, with which all values are 0, and finds it from
// another number: that is one mistake, not two.
func TestTwoNumbersOfOneStepAreOneMistake(t *testing.T) {
	cut := &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
		c := b.Scalar("cutoff", 100)
		return b.Max(b.Literal(0), b.Mul("product", c, b.Sub("difference", in[0], b.Mul("square", c, c))))
	}}
	m, e := computed(t, cut, func(x float64) float64 { return max(0, f32(f32(1.13)*f32(x-f32(f32(1.13)*f32(1.13))))) })
	f := named(t, m, e)
	if !f.Named() {
		var err error
		if f, err = diagnose.FindTwo(m); err != nil {
			t.Fatal(err)
		}
	}
	if is := f.Mistake.String(); is != "the factor is 1.13" || f.Mistake.Right.Value != 100 {
		t.Errorf("%q, in place of %g", is, f.Mistake.Right.Value)
	}
}
