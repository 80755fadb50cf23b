package compare_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

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

// BenchmarkIsolate is `compare --isolate` of one trace: every entry of every pass from its own inputs. The trace is the
// golden of transformers with the most passes, which has to take less than a second; beside it one of the local model and 16
// tokens, if TRACEDIFF_E2B names a checkpoint of full size that fixtures/e2b.py made.
func BenchmarkIsolate(b *testing.B) {
	b.Run("tiny", func(b *testing.B) {
		ck, list := ordertest.Embedded(b, "gemma3n-tiny")
		benchmarkIsolate(b, testengine.OpenGolden(b, "golden/gemma3n-tiny/decode.bfloat16.safetensors"), ck, list)
		if each := b.Elapsed() / time.Duration(b.N); each > time.Second {
			b.Errorf("%v for a trace of the tiny model", each)
		}
	})
	b.Run("E2B", func(b *testing.B) {
		ck, list, c := e2b(b)
		benchmarkIsolate(b, testengine.LocalModel(b, c, hooks.BF16), ck, list)
	})
}

// e2b is the checkpoint of TRACEDIFF_E2B, and a prompt of 16 tokens.
func e2b(b *testing.B) (*checkpoint.Checkpoint, *order.List, ordertest.Case) {
	dir := os.Getenv("TRACEDIFF_E2B")
	if dir == "" {
		b.Skip("needs TRACEDIFF_E2B: the checkpoint that python fixtures/e2b.py makes")
	}
	ck, err := checkpoint.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ck.Close() })
	list := orderOf(b, ck)
	return ck, list, ordertest.Case{Checkpoint: ck, List: list, Passes: [][]int{{2, 4050, 651, 17, 1024, 3999, 4000, 90, 333, 2048, 5, 777, 1500, 64, 2900, 8}}}
}

func benchmarkIsolate(b *testing.B, trace *capture.Trace, ck *checkpoint.Checkpoint, list *order.List) {
	entries := 0
	b.ReportAllocs()
	for b.Loop() {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		r := run(b, trace, nil, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: i}})
		if entries = r.Isolation.Certified; r.ExitCode() != 0 {
			b.Fatalf("%d bugs, %v", r.Isolation.Bugs, r.Incomplete)
		}
	}
	b.ReportMetric(float64(entries), "entries")
}

// BenchmarkSight is what the question costs which usual mistakes a run would have shown, beside certifying it: "of-run" is the part of
// the time that certifying takes, on one core. Goldens are those of the tiny model in 16 bits, where it takes longest.
func BenchmarkSight(b *testing.B) {
	for _, golden := range []string{"gemma3n-tiny/decode.float32", "gemma3n-tiny/decode.bfloat16", "gemma3n-variant/decode.bfloat16", "gemma3n-odd/decode.bfloat16"} {
		b.Run(golden, func(b *testing.B) {
			ck, list := ordertest.Embedded(b, filepath.Dir(golden))
			benchmarkSight(b, testengine.OpenGolden(b, "golden/"+golden+".safetensors"), ck, list)
		})
	}
	b.Run("E2B", func(b *testing.B) {
		ck, list, c := e2b(b)
		benchmarkSight(b, testengine.LocalModel(b, c, hooks.BF16), ck, list)
	})
}

func benchmarkSight(b *testing.B, trace *capture.Trace, ck *checkpoint.Checkpoint, list *order.List) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var certified, asked time.Duration
	skipped := 0
	for b.Loop() {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		run(b, trace, nil, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: i}, Workers: 1})
		certified += time.Since(start)
		start = time.Now()
		s, err := i.Sight(b.Context(), 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		asked += time.Since(start)
		skipped = len(s.Skipped)
	}
	b.ReportMetric(float64(asked.Milliseconds())/float64(b.N), "ms")
	b.ReportMetric(float64(asked)/float64(certified), "of-run")
	b.ReportMetric(float64(skipped), "skipped")
}

// BenchmarkSearch is what another engine's arithmetic costs: isolation of its trace as it is, and strictly. Tiny is keras-hub's of
// Gemma 3n, wide a layer of E2B's widths by an engine whose MLP is one kernel: nothing is captured between gate_proj and
// down_proj, and every step of the activation is rounded. The search is the difference.
func BenchmarkSearch(b *testing.B) {
	b.Run("tiny", func(b *testing.B) {
		ck, list := ordertest.Embedded(b, "gemma3n-tiny")
		benchmarkSearch(b, open(b, "../fixtures/wild/keras/gemma3n-tiny.bfloat16.safetensors"), ck, list)
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
