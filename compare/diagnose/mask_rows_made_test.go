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

// lowest is what a mask adds to scores that a query does not see.
const lowest = -math.MaxFloat32

// Masks by which the queries of the last pass see other keys are named.
func TestMasksOfStepsMadeInLoopsAreNamed(t *testing.T) {
	for _, c := range []struct {
		key             string
		passes          []order.Pass
		sees, neighbour func(row, key int) bool // by the number of the query in its pass
	}{
		{"mask.top-left(place=mask)", []order.Pass{{Tokens: 5}, {Tokens: 3, Past: 5}}, func(row, key int) bool { return key <= row }, func(row, key int) bool { return key <= row+3 }},
		{"mask.keys-masked(place=mask,n=2,m=3)", []order.Pass{{Tokens: 5}, {Tokens: 3, Past: 5}}, func(row, key int) bool { return key <= row+5 && (key < 2 || key > 3) }, func(row, key int) bool { return key <= row+5 && key != 1 && key != 4 }},
		{"mask.prompt-masked(place=mask)", []order.Pass{{Tokens: 9}, {Tokens: 8, Past: 9}, {Tokens: 3, Past: 17}}, func(row, key int) bool { return key >= 9 && key <= 17+row }, func(row, key int) bool { return key >= 10 && key <= 17+row }},
	} {
		find := func(sees func(row, key int) bool) *diagnose.Finding {
			m := model(t)
			m.Passes = c.passes
			last := len(c.passes) - 1
			pass := c.passes[last]
			at := program.Value{Shape: []int{1, pass.Tokens}}
			for k := range pass.Tokens {
				at.Data = append(at.Data, float64(pass.Past+k))
			}
			keys := pass.Past + pass.Tokens
			o := operation{"mask.full", op.Mask{}, "11ts", []int{1, 1, pass.Tokens, keys}, []program.Value{at}, nil, nil}
			e := o.made(t, m, func(_ [][]float64, y []float64) {
				for i := range y {
					if y[i] = lowest; sees(i/keys, i%keys) {
						y[i] = 0
					}
				}
			})
			e.Node.Pass, e.Inputs[0].Pass = last, last
			return named(t, m, e)
		}
		if f := find(c.sees); f.Key() != c.key {
			t.Errorf("%q: %s %v, want %s", f.What, f.Key(), f.Description, c.key)
		}
		if f := find(c.neighbour); strings.HasPrefix(c.key, string(f.Mistake.Kind)+"(") || f.Relation.Kind != "" { // a mask has no values of another request
			t.Errorf("the neighbour of %s is %q", c.key, f.What)
		}
	}
}

// Scores that are masked by other numbers, and a mask that comes after the softmax, are named.
func TestMaskedScoresMadeInLoopsAreNamed(t *testing.T) {
	shape := []int{1, 2, 8, 8}
	of := func(name string, steps func(b *program.Builder, x program.Var) program.Var) operation {
		in := append([]program.Value{{Shape: shape, Data: wave(128, 1)}}, firstPositions(8)...)
		return operation{name, &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
			return steps(b, b.Add("masked", in[0], b.MaskOf(in[1], 0, []int{1, 1, 8, 8})))
		}}, "bhts", shape, in, nil, nil}
	}
	sum := of("layers.0.self_attn.scores_masked", func(_ *program.Builder, x program.Var) program.Var { return x })
	probs := of("layers.0.self_attn.probs_f32", func(b *program.Builder, x program.Var) program.Var {
		exp := b.Exp("exp", b.Sub("difference", x, b.RowMax(x)))
		return b.Div("quotient", exp, b.Sum("sum", exp))
	})
	hidden := func(i int) bool { return i%8 > i/8%8 }
	masked := func(f func(x float64) float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				if hidden(i) {
					y[i] = f(in[0][i])
				}
			}
		}
	}
	boolean := func(seen float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for at := 0; at < len(y); at += 8 {
				total := 0.0
				for i := at; i < at+8; i++ {
					if y[i] = math.Exp(in[0][i]); !hidden(i) {
						y[i] *= math.Exp(seen)
					}
					total += y[i]
				}
				for i := at; i < at+8; i++ {
					y[i] /= total
				}
			}
		}
	}
	late := func(least float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for at := 0; at < len(y); at += 8 {
				total := 0.0
				for i := at; i < at+8; i++ {
					total += math.Exp(in[0][i])
				}
				for i := at; i < at+8; i++ {
					if y[i] = math.Exp(in[0][i]) / total; hidden(i) {
						y[i] = least
					}
				}
			}
		}
	}
	for _, c := range []rowPlant{
		{"mask.value(place=mask,x=-10000)", sum, masked(func(float64) float64 { return -1e4 }), masked(func(x float64) float64 { return x - 3 })},
		{"mask.multiplied(place=mask,x=0)", sum, masked(func(float64) float64 { return 0 }), masked(func(x float64) float64 { return -1 })},
		{"mask.value-small(place=mask,x=10)", sum, masked(func(x float64) float64 { return x - 10 }), masked(func(x float64) float64 { return -x - 10 })},
		{"mask.boolean(place=mask)", probs, boolean(1), boolean(2)},
		{"mask.after-softmax(place=made.quotient)", probs, late(0), late(0.01)},
	} {
		c.look(t)
	}
}
