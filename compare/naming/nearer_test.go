package naming_test

import (
	"math"
	"testing"
)

// A mistake that changes each row by little more than the usual errors has a name. Errors without a rule have none, and neither has a change as small as
// the usual errors.
func TestSmallMistakesOfRows(t *testing.T) {
	const eps = 1.4e-6
	norm := func(other float64, by func(row int) float64) func(p *wrongPort) []float64 {
		right := rmsOf(other, 0, plainWeight)
		return func(p *wrongPort) []float64 {
			y := right(p)
			for i := range y {
				y[i] *= by(i / p.In[0].Last())
			}
			return y
		}
	}
	one := func(int) float64 { return 1 }
	for _, c := range []struct {
		name  string
		wrong func(p *wrongPort) []float64
		want  string
	}{
		{"another epsilon", norm(1e-6, one), "epsilon is 1e-06"},
		{"another epsilon by a hair", norm(eps+1e-8, one), ""},
		{"errors without a rule", norm(eps, func(row int) float64 { return 1 + 1e-6*math.Sin(float64(row*row)) }), ""},
	} {
		f := plantedName{model: "fine", at: "post_attention_layernorm", wrong: c.wrong}.named(t)
		var name string
		if f.Named() {
			name = f.What
		}
		if name != c.want {
			t.Errorf("%s: %q, want %q; %v", c.name, name, c.want, f)
		}
	}
}
