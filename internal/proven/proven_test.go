package proven

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A stored trace of transformers of this very model certifies the forms that it shows, and takes the right to accuse from
// those that it contradicts, whatever goldens say.
func TestStoredTracesCertify(t *testing.T) {
	const dir = "gemma3-tiny"
	ck, list := ordertest.Embedded(t, dir)
	data, err := fs.ReadFile(ondisk.Files(), "golden/"+dir+"/prefill.bfloat16.safetensors")
	must(t, err)
	golden, err := capture.OpenReader("golden", bytes.NewReader(data), int64(len(data)))
	must(t, err)
	passes, err := golden.IDs()
	must(t, err)
	digest, err := reference.OrderDigest(list)
	must(t, err)
	w := reference.Wanted{
		Config: list.Config.Canonical(), Model: golden.Manifest().Model, Weights: ck.Digest(), DType: hooks.BF16, Passes: passes, Order: digest,
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
	must(t, ByStored(context.Background(), &settings.Env{Dir: traces}, into, list, ck, hooks.BF16))
	if !into["gelu_tanh"] || !into["tanh"] || !into.Knows(list) {
		t.Errorf("certified: %v", into)
	}
	for i := range list.Entries {
		if o, is := list.Entries[i].Op.(op.RMSNorm); is {
			o.Gain = op.Plain
			list.Entries[i].Op = o
		}
	}
	must(t, ByStored(context.Background(), &settings.Env{Dir: traces}, into, list, ck, hooks.BF16))
	if into[op.Form(op.RMSNorm{Eps: 1, Gain: op.Plain})] {
		t.Error("a norm that the stored trace contradicts may accuse")
	}
}
