package session

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// A stored trace of transformers of this very model certifies the forms that it shows, and takes the right to accuse from
// those that it contradicts, whatever goldens say.
func TestStoredTracesCertify(t *testing.T) {
	const dir = "gemma3-tiny"
	files, err := fs.Sub(fixtures.Files, dir)
	must(t, err)
	ck, err := checkpoint.OpenFS(dir, files)
	must(t, err)
	config, err := order.ReadConfig(ck.Config())
	must(t, err)
	list, err := order.New(config)
	must(t, err)
	data, err := fs.ReadFile(fixtures.Files, "golden/"+dir+"/prefill.bfloat16.safetensors")
	must(t, err)
	golden, err := capture.OpenReader("golden", bytes.NewReader(data), int64(len(data)))
	must(t, err)
	passes, err := golden.IDs()
	must(t, err)
	digest, err := reference.OrderDigest(list)
	must(t, err)
	w := reference.Wanted{
		Config: config.Canonical(), Model: golden.Manifest().Model, Weights: ck.Digest(), DType: hooks.BF16, Passes: passes, Order: digest,
		Scope: capture.Scope{Level: 3},
	}
	traces := t.TempDir()
	store := reference.NewStore(traces)
	key := reference.NewKey(w, w.Scope, reference.TransformersRunner())
	path := store.Place(key)
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, data, 0o666))
	_, err = store.Keep(path, w, key)
	must(t, err)

	into := isolate.Certified{"tanh": true, "gelu_tanh": false}
	must(t, certifyByStored(context.Background(), &Env{Dir: traces}, into, list, ck, hooks.BF16))
	if !into["gelu_tanh"] || !into["tanh"] || !into.Knows(list) {
		t.Errorf("certified: %v", into)
	}
	for i := range list.Entries {
		if o, is := list.Entries[i].Op.(op.RMSNorm); is {
			o.Gain = op.Plain
			list.Entries[i].Op = o
		}
	}
	must(t, certifyByStored(context.Background(), &Env{Dir: traces}, into, list, ck, hooks.BF16))
	if into[op.Form(op.RMSNorm{Eps: 1, Gain: op.Plain})] {
		t.Error("a norm that the stored trace contradicts may accuse")
	}
}

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
		found, err := traceCheckpoint(t.Context(), &Env{}, "", "", trace)
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
