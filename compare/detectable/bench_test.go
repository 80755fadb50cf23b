package detectable_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

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
		ck, list, c := testengine.E2B(b)
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
		if _, err := compare.Alone(b.Context(), trace, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: i}, Workers: 1}); err != nil {
			b.Fatal(err)
		}
		certified += time.Since(start)
		start = time.Now()
		s, err := detectable.Find(b.Context(), i.Forms, 0, nil)
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
