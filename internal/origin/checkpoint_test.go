package origin

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// A recorder that runs inside an engine writes no configuration. The checkpoint that such a trace names is the trace's if it has the trace's weights.
func TestATraceWithoutConfigurationIsKnownByItsWeights(t *testing.T) {
	dir, err := filepath.Abs("../../fixtures/qwen3-tiny")
	must(t, err)
	ck, err := checkpoint.Open(dir)
	must(t, err)
	t.Cleanup(func() { ck.Close() })
	for weights, known := range map[string]bool{ck.Digest(): true, "sha256:" + strings.Repeat("0", 64): false, "": false} {
		path := filepath.Join(t.TempDir(), "recorded.safetensors")
		w, err := capture.Create(path, capture.Manifest{Side: "local", Producer: capture.Producer{Name: "a port", Version: "1"}, Model: dir, Weights: weights, DType: hooks.BF16, Passes: 1}, 1<<16)
		must(t, err)
		must(t, w.Observe(hooks.Event{Name: order.InputIDs, Tensor: hooks.Tensor{DType: hooks.I64, Shape: []int{1, 1}, Data: make([]byte, 8)}}))
		must(t, w.Close())
		trace, err := capture.Open(path)
		must(t, err)
		found, err := Of(t.Context(), &settings.Env{}, "", "", trace)
		must(t, err)
		if (found != nil) != known {
			t.Errorf("weights %q: a checkpoint %v, want %v", weights, found != nil, known)
		}
		if found != nil {
			must(t, found.Close())
		}
		must(t, trace.Close())
	}
}
