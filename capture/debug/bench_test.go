package debug_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
)

// Two layers of the published E2B width, one of each kind; tables are small.
const wide = `{"model_type": "gemma3n_text", "vocab_size": 512, "vocab_size_per_layer_input": 512, "num_hidden_layers": 2,
	"intermediate_size": 8192, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"],
	"activation_sparsity_pattern": [0.95, 0.0]}`

// BenchmarkCapture is a capture with debug mode on and its lines in a file. What it reports in percent is the time that the
// log took of the rest, which is the model and the trace; off, there is no log to take any.
func BenchmarkCapture(b *testing.B) {
	ck, list := wideModel(b)
	defer ck.Close()
	for _, tokens := range []int{1, 16} {
		for _, level := range []int{1, 2, 3} {
			b.Run(fmt.Sprintf("tokens=%d/level=%d", tokens, level), func(b *testing.B) {
				benchmarkCapture(b, ck, list, tokens, capture.Scope{Level: level})
			})
		}
	}
}

func benchmarkCapture(b *testing.B, ck *checkpoint.Checkpoint, list *order.List, tokens int, scope capture.Scope) {
	dir := b.TempDir()
	out, err := os.Create(filepath.Join(dir, "lines.txt"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	ids := make([]int, tokens)
	for i := range ids {
		ids[i] = 2 + 31*i // spread over the table, and below 512
	}
	var spent time.Duration
	for b.Loop() {
		log, reg := debug.New(out, debug.Options{}), &hooks.Registry{}
		timed := func(e hooks.Event) error {
			started := time.Now()
			defer func() { spent += time.Since(started) }()
			return log.Observe(e)
		}
		if err := capture.Attach(reg, timed, list, scope, []int{tokens}); err != nil {
			b.Fatal(err)
		}
		_, err := gemma.Capture(context.Background(), gemma.Job{
			Checkpoint: ck, List: list, DType: hooks.BF16, Passes: [][]int{ids}, Registry: reg,
			Path: filepath.Join(dir, "run.safetensors"), Manifest: capture.Manifest{Scope: scope},
		})
		log.End()
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*spent.Seconds()/(b.Elapsed()-spent).Seconds(), "debug-%")
}

// wideModel makes a checkpoint with random weights: 0.3 GB in the folder for temporary files.
func wideModel(b *testing.B) (*checkpoint.Checkpoint, *order.List) {
	b.Helper()
	config, err := order.ReadConfig([]byte(wide))
	if err != nil {
		b.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		b.Fatal(err)
	}
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
	ck, err := checkpoint.Open(checkpointtest.Write(b, b.TempDir(), []byte(wide), weights, 2))
	if err != nil {
		b.Fatal(err)
	}
	return ck, list
}
