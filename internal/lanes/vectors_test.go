package lanes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/internal/lanes"
)

// TestVectors holds the functions of numbers to what they return without vectors, in every bit: all lengths up to 200, and some up to
// a strip, of numbers of every size.
func TestVectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	draw := func(n, kind int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
			switch kind {
			case 1:
				x[i] = math.Ldexp(x[i], rng.IntN(600)-300)
			case 2:
				x[i] = math.Copysign(math.Float64frombits(rng.Uint64N(3)), x[i])
			}
		}
		return x
	}
	lengths := []int{1024, 2047, lanes.Strip}
	for n := 1; n <= 200; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for kind := range 3 {
			l, r, diff, ref := draw(n+1, kind)[1:], draw(n, kind), draw(n, 0), draw(n, 0)
			measure := func() string {
				d, s := append([]float64{}, diff...), append([]float64{}, ref...)
				lanes.AddColumns(d, s, l, r)
				v := lanes.SurveyOf(l)
				m := lanes.MomentsOf(append([]float64{}, l...), nil, v)
				v.Least, v.Most, m.Min, m.Max = v.Least+0, v.Most+0, m.Min+0, m.Max+0 // any zero may be either
				return fmt.Sprintf("%#v\n%#v\n%#v\n%#v\n%#v\n%#v", lanes.Products(l, r), d, s, v, m, lanes.Largest(l, r))
			}
			got := measure()
			undo := lanes.SetVectors(false)
			want := measure()
			undo()
			if got != want {
				t.Fatalf("%d numbers of kind %d:\n%s\nwithout vectors:\n%s", n, kind, got, want)
			}
		}
	}
}
