package arithmetic_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// BenchmarkSearch is what another engine's arithmetic costs: isolation of its trace as it is, and strictly. Tiny is keras-hub's of
// Gemma 3n, wide a layer of E2B's widths by an engine whose MLP is one kernel: nothing is captured between gate_proj and
// down_proj, and every step of the activation is rounded. The search is the difference.
func BenchmarkSearch(b *testing.B) {
	b.Run("tiny", func(b *testing.B) {
		ck, list := ordertest.Embedded(b, "gemma3n-tiny")
		benchmarkSearch(b, testengine.Open(b, "../../fixtures/wild/keras/gemma3n-tiny.bfloat16.safetensors"), ck, list)
	})
	b.Run("wide", func(b *testing.B) {
		c := ordertest.DrawWith(b, "gemma3_text", 1, func(config map[string]any) {
			ordertest.Acceptable(config)
			config["num_hidden_layers"], config["layer_types"] = 1, []string{"full_attention"}
			config["hidden_size"], config["intermediate_size"] = 2048, 8192
			config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"] = 8, 2, 256
			config["hidden_activation"], config["attention_bias"] = "gelu_pytorch_tanh", false
		})
		c.Passes = [][]int{make([]int, 16)}
		for k := range c.Passes[0] {
			c.Passes[0][k] = k * k % c.List.Config.VocabSize
		}
		rng := rand.New(rand.NewPCG(1, 1))
		own := testengine.Style("keras", testengine.DrawKernels(rng, hooks.BF16), rng)
		own.Reciprocal = false
		g := &testengine.Engine{Name: "wide", DType: hooks.BF16, Drop: []string{"act_fn", "mlp.gated"}, Choose: func(*order.Entry, int) testengine.Arithmetic { return own }}
		benchmarkSearch(b, g.Start(b, c, g.Choose, nil).Trace(), c.Checkpoint, c.List)
	})
}

func benchmarkSearch(b *testing.B, trace *capture.Trace, ck *checkpoint.Checkpoint, list *order.List) {
	for _, arithmetic := range []isolate.Engines{isolate.Auto, isolate.Strict} {
		b.Run(string(arithmetic), func(b *testing.B) {
			bugs := 0
			for b.Loop() {
				i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{Arithmetic: arithmetic})
				if err != nil {
					b.Fatal(err)
				}
				bugs = 0
				for _, r := range trace.Records() { // certificates alone: names of bugs, which strict has many of, cost more
					var bare *order.BareError
					z, err := i.Certify(b.Context(), r.Name, r.Pass)
					if errors.As(err, &bare) {
						continue
					} else if err != nil {
						b.Fatal(err)
					}
					if z.Outcome == isolate.Bug {
						bugs++
					}
				}
				if (bugs > 0) == (arithmetic == isolate.Auto) {
					b.Fatalf("%d bugs", bugs)
				}
			}
			b.ReportMetric(float64(bugs), "bugs")
		})
	}
}
