package health_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/health"
)

// matrix is a weight of rows × 64.
func matrix(rows int, value func(row, col int) float64) health.Weight {
	const cols = 64
	w := weight("w", health.Matrix, rows*cols, func(i int) float64 { return value(i/cols, i%cols) })
	w.Shape = []int{rows, cols}
	return w
}

// What looks as it does before training is told from what training leaves: another size, rows of several sizes, heavier
// tails, a mean. All of it is drawn again and again: a mark that is missed or raised once in a hundred would be seen.
func TestBeforeTraining(t *testing.T) {
	const spread, bound = 0.02, 0.125 // 1/√64
	for _, c := range []struct {
		name string
		want string // in the warning; empty for none
		draw func(r *rand.Rand, row, col int) float64
	}{
		{"as transformers fills it", "transformers'", func(r *rand.Rand, _, _ int) float64 { return spread * r.NormFloat64() }},
		{"with the row of a padding token", "transformers'", func(r *rand.Rand, row, _ int) float64 {
			if row < 32 { // a whole block, as at any real width
				return 0
			}
			return spread * r.NormFloat64()
		}},
		{"as torch fills it", "torch's", func(r *rand.Rand, _, _ int) float64 { return bound * (2*r.Float64() - 1) }},
		{"even, but not within the bound of its inputs", "", func(r *rand.Rand, _, _ int) float64 { return 1.2 * bound * (2*r.Float64() - 1) }},
		{"a deviation of its own", "", func(r *rand.Rand, _, _ int) float64 { return 1.05 * spread * r.NormFloat64() }},
		{"heavier tails", "", func(r *rand.Rand, _, _ int) float64 {
			return spread / math.Sqrt(1.5) * r.NormFloat64() * math.Sqrt(r.ExpFloat64()/2+1)
		}},
		{"parts of several sizes", "", func(r *rand.Rand, row, _ int) float64 {
			return spread * r.NormFloat64() * (1 + 0.1*math.Sin(float64(row)/40))
		}},
		{"a mean", "", func(r *rand.Rand, _, _ int) float64 { return spread * (0.05 + r.NormFloat64()) }},
		{"the fixtures' sums of four numbers", "", func(r *rand.Rand, _, _ int) float64 {
			return spread * math.Sqrt(3) * (r.Float64() + r.Float64() + r.Float64() + r.Float64() - 2)
		}},
	} {
		missed := 0
		const draws = 100
		for seed := range uint64(draws) {
			r := rand.New(rand.NewPCG(seed, 7))
			var s health.Section
			w := matrix(512, func(row, col int) float64 { return c.draw(r, row, col) })
			health.Values(t.Context(), &s, []health.Weight{w, matrix(512, func(_, col int) float64 { return float64(col) })}, spread, false)
			got := strings.Join(texts(s), "\n")
			if raised := strings.Contains(got, "untrained"); raised != (c.want != "") || !strings.Contains(got, c.want) {
				missed++
			}
		}
		if missed > 1 {
			t.Errorf("%s: %d of %d draws are judged otherwise", c.name, missed, draws)
		}
	}
}

// A matrix that is too small to tell is not judged, and nor are vectors.
func TestTooSmallToTell(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(int) float64 { return 0.02 * r.NormFloat64() }
	small, vector := weight("small", health.Matrix, 1024, draw), weight("vector", health.Matrix, 4096, draw)
	small.Shape = []int{16, 64}
	var s health.Section
	health.Values(t.Context(), &s, []health.Weight{small, vector}, 0.02, false)
	if got := texts(s); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestLeftOver(t *testing.T) {
	norm := func(name string, v float64) health.Weight { return weight(name, health.Gain, 8, always(v)) }
	trained := weight("t", health.Gain, 8, wave(1, 0.3))
	for _, c := range []struct {
		name    string
		weights []health.Weight
		want    string
	}{
		{"one norm", []health.Weight{norm("a", 1), trained}, "warning: 1 norm weight of 2 at the initial value in every element: a"},
		{"a norm of another constant", []health.Weight{norm("a", 2), trained}, "ok: "},
		{"1+w", []health.Weight{weight("a", health.OneGain, 8, always(0)), weight("b", health.OneGain, 8, wave(0, 1))}, "warning: 1 norm weight of 2 at the initial value in every element: a"},
		{"memory", []health.Weight{weight("a", health.Matrix, 8, always(-1e20))}, "warning: 1 weight beyond ±1e+06: a"},
	} {
		var s health.Section
		health.Values(t.Context(), &s, c.weights, 0.02, false)
		if got := texts(s)[0]; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Ids without a tokenizer are shown alone, the end of a long input too, and every one of them once where all are asked for.
func TestTokensShowsAll(t *testing.T) {
	for _, n := range []int{1, 8, 9, 64, 65, 1000} {
		for _, all := range []bool{false, true} {
			var ids []int
			for i := range n {
				ids = append(ids, 10_000+i)
			}
			var s health.Section
			health.Tokens(&s, health.Input{Passes: [][]int{ids}, Vocabulary: health.Vocabulary{BOS: -1}, All: all})
			text := strings.Join(texts(s), "\n")
			for i, id := range ids {
				cut := !all && n > 64 && i >= 48 && i < n-16
				if got := strings.Count(text, fmt.Sprint(id)); got != map[bool]int{false: 1, true: 0}[cut] {
					t.Errorf("%d ids, all %v: id %d is there %d times", n, all, i, got)
				}
			}
			if said := strings.Contains(text, "are not shown; --full shows all"); said != (!all && n > 64) {
				t.Errorf("%d ids, all %v: the cut is said: %v", n, all, said)
			}
		}
	}
}
