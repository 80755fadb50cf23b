package redflag_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// Losses that fall, with noise that is smaller than the fall, are healthy; the same ones backwards rise; those of a large
// noise around one number oscillate, and those that stand still are flat. Of fewer than 16 losses with a noise above 3 % of the
// fall, up to 3 in 100 that rise are told as losses that do not fall.
func TestCoursesOfLosses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(8, 120).Draw(rt, "steps")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		from := rapid.Float64Range(0.01, 20).Draw(rt, "from")
		to := from * rapid.Float64Range(0.01, 0.7).Draw(rt, "to")
		most := 0.06
		if n < 16 {
			most = 0.03
		}
		noise := rapid.Float64Range(0, most).Draw(rt, "noise") * (from - to)
		falls, rises, still, shakes, leaps := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range n {
			at := float64(i) / float64(n-1)
			falls[i] = to + (from-to)*math.Exp(-3*at) + noise*random.NormFloat64()
			rises[n-1-i] = falls[i]
			still[i] = from
			shakes[i] = from * (1 + 0.5*float64(i%2)) // the lower ones alike
		}
		copy(leaps, falls)
		leaps[n-1] = 3 * from
		for _, c := range []struct {
			what   string
			losses []float64
			want   redflag.Kind
		}{{"falls", falls, ""}, {"rises", rises, redflag.LossRising}, {"stands still", still, redflag.LossPlateau}, {"shakes", shakes, redflag.LossOscillating}, {"leaps at the end", leaps, redflag.LossRising}} {
			tensors := map[string]hooks.Tensor{}
			for i, x := range c.losses {
				tensors[capture.Key(i, "loss", 0)] = tensor(hooks.F32, nil, []float64{x})
			}
			var got []string
			for _, f := range check(t, foreign(t, tensors), redflag.Options{}).Flags {
				got = append(got, string(f.Kind))
			}
			if strings.Join(got, " ") != string(c.want) {
				rt.Fatalf("a loss that %s: %v, want %q: %v", c.what, got, c.want, c.losses)
			}
		}
	})
}
