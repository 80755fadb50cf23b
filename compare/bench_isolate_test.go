package compare_test

import (
	"os"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// BenchmarkIsolate is `compare --isolate` of one trace: every entry of every pass from its own inputs. The trace is the
// golden of transformers with the most passes, which has to take less than a second; beside it one of the local model and 16
// tokens, if TRACEDIFF_E2B names a checkpoint of full size that fixtures/e2b.py made.
func BenchmarkIsolate(b *testing.B) {
	b.Run("tiny", func(b *testing.B) {
		ck, list := openModel(b, "gemma3n-tiny")
		benchmarkIsolate(b, openGolden(b, "golden/gemma3n-tiny/decode.bfloat16.safetensors"), ck, list)
		if each := b.Elapsed() / time.Duration(b.N); each > time.Second {
			b.Errorf("%v for a trace of the tiny model", each)
		}
	})
	b.Run("E2B", func(b *testing.B) {
		dir := os.Getenv("TRACEDIFF_E2B")
		if dir == "" {
			b.Skip("needs TRACEDIFF_E2B: the checkpoint that python fixtures/e2b.py makes")
		}
		ck, err := checkpoint.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer ck.Close()
		list := orderOf(b, ck)
		c := ordertest.Case{Checkpoint: ck, List: list, Passes: [][]int{{2, 4050, 651, 17, 1024, 3999, 4000, 90, 333, 2048, 5, 777, 1500, 64, 2900, 8}}}
		benchmarkIsolate(b, localOf(b, c, hooks.BF16), ck, list)
	})
}

func benchmarkIsolate(b *testing.B, trace *capture.Trace, ck *checkpoint.Checkpoint, list *order.List) {
	entries := 0
	b.ReportAllocs()
	for b.Loop() {
		i, err := certify.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), certify.IsolateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		r := run(b, trace, trace, compare.Options{Order: list, All: true, Isolator: i, Alone: true})
		if entries = r.Isolation.Certified; r.ExitCode() != 0 {
			b.Fatalf("%d bugs, %v", r.Isolation.Bugs, r.Incomplete)
		}
	}
	b.ReportMetric(float64(entries), "entries")
}
