package capture_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// BenchmarkObserve is the cost of one tensor, from the model's buffer into the page cache.
func BenchmarkObserve(b *testing.B) {
	for _, size := range []int{64, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			perFile := min(10_000, 256<<20/size) // so that the benchmark does not fill the disk, nor the header its room
			path := filepath.Join(b.TempDir(), "run.safetensors")
			e := event(0, "layers.3.self_attn.q_norm", tensor(0, hooks.BF16, 1, 4, size/8))
			w := create(b, path, capture.Manifest{}, 1<<20)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if e.Pass++; e.Pass%perFile == 0 {
					b.StopTimer()
					if err := w.Fail(nil); err != nil {
						b.Fatal(err)
					}
					w = create(b, path, capture.Manifest{}, 1<<20)
					b.StartTimer()
				}
				if err := w.Observe(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen is the cost of opening a trace of a whole prefill and some decode steps.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "run.safetensors")
	w := create(b, path, declared, 400_000)
	for i := range 3000 {
		fire(b, w, event(i/400, fmt.Sprintf("layers.%d.self_attn.q_norm.%d", i%30, i), tensor(i, hooks.BF16, 1, 4, 8)))
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		tr, err := capture.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		tr.Close()
	}
}
