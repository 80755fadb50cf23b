package reference_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// benchFolder names a checkpoint to walk through beside the two that the benchmark has: fixtures/e2b.py makes one of full
// size, on which the goal is 5 seconds a token on two cores.
const benchFolder = "TRACEDIFF_E2B"

// Two layers of the published E2B width, one of each kind. A layer of these is a thirtieth of E2B; tables are small.
const twoWideLayers = `{"model_type": "gemma3n_text", "vocab_size": 512, "vocab_size_per_layer_input": 512, "num_hidden_layers": 2,
	"intermediate_size": 8192, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"],
	"activation_sparsity_pattern": [0.95, 0.0]}`

// BenchmarkWalk times the reference walk of one pass with everything captured, and looks at the heap after every entry.
// Weights are read from mapped files: what of them lies in memory is the page cache's, and not counted.
func BenchmarkWalk(b *testing.B) {
	type model struct {
		name string
		open func(testing.TB) *checkpoint.Checkpoint
	}
	models := []model{
		{"tiny", func(t testing.TB) *checkpoint.Checkpoint { ck, _ := ordertest.Embedded(t, "gemma3n-tiny"); return ck }},
		{"two-wide-layers", randomModel},
		{"E2B", largeModel},
	}
	for _, m := range models {
		b.Run(m.name, func(b *testing.B) {
			ck := m.open(b)
			defer ck.Close()
			for _, tokens := range []int{1, 16} {
				for _, level := range []int{2, 3} {
					b.Run(fmt.Sprintf("tokens=%d/level=%d", tokens, level), func(b *testing.B) { benchmarkWalk(b, ck, tokens, level) })
				}
			}
		})
	}
}

func benchmarkWalk(b *testing.B, ck *checkpoint.Checkpoint, tokens, level int) {
	list := must(order.New(must(order.ReadConfig(ck.Config()))(b)))(b)
	ids := make([]int, tokens)
	for i := range ids {
		ids[i] = 2 + 31*i // spread over the table, and below 512
	}
	var peak uint64
	job := reference.Job{
		Checkpoint: ck, List: list, DType: hooks.BF16, Passes: [][]int{ids}, Path: filepath.Join(b.TempDir(), "walk.safetensors"),
		Manifest: capture.Manifest{Scope: capture.Scope{Level: level}},
		Watch: reference.Watch{Progress: func(int, int, int, int) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}},
	}
	runtime.GC() // what other benchmarks left is not this one's
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reference.Walk(context.Background(), job); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*tokens), "s/token")
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
}

// largeModel is the checkpoint that [benchFolder] names.
func largeModel(t testing.TB) *checkpoint.Checkpoint {
	dir := os.Getenv(benchFolder)
	if dir == "" {
		t.Skipf("needs %s: the checkpoint that python fixtures/e2b.py makes", benchFolder)
	}
	return must(checkpoint.Open(dir))(t)
}

// randomModel makes a checkpoint of [twoWideLayers] with random weights: 0.3 GB in the folder for temporary files.
func randomModel(t testing.TB) *checkpoint.Checkpoint {
	list := must(order.New(must(order.ReadConfig([]byte(twoWideLayers)))(t)))(t)
	var wants []checkpoint.Want
	seen := map[string]bool{}
	for i := range list.Entries {
		for _, w := range list.Entries[i].Weights {
			if !seen[w.Name] {
				seen[w.Name] = true
				wants = append(wants, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
			}
		}
	}
	weights := checkpointtest.Random(wants, hooks.BF16, "model.", 1)
	return must(checkpoint.Open(checkpointtest.Write(t, t.TempDir(), []byte(twoWideLayers), weights, 2)))(t)
}
