package compare_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
)

// BenchmarkRun is the whole comparison of one large tensor, both sides in the page cache; MB/s are those of both.
func BenchmarkRun(b *testing.B) {
	const tokens, channels = 256, 4096
	rng := rand.New(rand.NewPCG(1, 2))
	l, r := make([]float64, tokens*channels), make([]float64, tokens*channels)
	for i := range l {
		r[i] = rng.NormFloat64()
		l[i] = r[i] * (1 + 1e-4*rng.NormFloat64())
	}
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16} {
		b.Run(fmt.Sprint(d), func(b *testing.B) {
			list := names(b, "x")
			lt := build(b, manifest("local", d), fire("x", d, []int{1, tokens, channels}, l...))
			rt := build(b, manifest("reference", d), fire("x", d, []int{1, tokens, channels}, r...))
			b.SetBytes(int64(2 * len(l) * d.Size()))
			b.ReportAllocs()
			for b.Loop() {
				res, err := compare.Run(context.Background(), lt, rt, compare.Options{Order: list})
				if err != nil || res.Coverage.Compared != 1 {
					b.Fatal(err, res)
				}
			}
		})
	}
}
