package compare_test

import (
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
// golden of transformers with the most passes, which has to take less than a second; beside it one of the built-in model and 16
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
		ck, list, c := testengine.E2B(b)
		benchmarkIsolate(b, testengine.LocalModel(b, c, hooks.BF16), ck, list)
	})
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
