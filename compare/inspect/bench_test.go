package inspect_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/hooks"
)

// BenchmarkRun looks at one tensor of 4 Mi elements in full, and lists it.
func BenchmarkRun(b *testing.B) {
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16} {
		rng := rand.New(rand.NewPCG(1, 2))
		values := make([]float64, 1<<22)
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		t := open(b, file(tensor("w", d, []int{1 << 11, 1 << 11}, values...)))
		for name, o := range map[string]inspect.Options{"list": {}, "one": {Name: "w"}} {
			b.Run(d.String()+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(values) * d.Size()))
				for b.Loop() {
					if _, err := inspect.Run(context.Background(), t, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
