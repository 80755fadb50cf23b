package proven

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
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// What a large stored trace of transformers clears of a described order is kept too, and is no answer for another order. A trace that
// contradicts one form is isolated each time.
func TestStoredTracesAreKept(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
	model := filepath.Join(dir, "gemma3-tiny")
	files, err := fs.Sub(ondisk.Files(), "gemma3-tiny")
	must(t, err)
	must(t, os.CopyFS(model, files))
	checkpointtest.Enlarge(t, filepath.Join(model, "model.safetensors"))
	ck, err := checkpoint.Open(model)
	must(t, err)
	defer ck.Close()
	config, err := order.ReadConfig(ck.Config())
	must(t, err)
	list, err := order.New(config)
	must(t, err)
	data, err := fs.ReadFile(ondisk.Files(), "golden/gemma3-tiny/prefill.bfloat16.safetensors")
	must(t, err)
	golden, err := capture.OpenReader("golden", bytes.NewReader(data), int64(len(data)))
	must(t, err)
	passes, err := golden.IDs()
	must(t, err)
	data = bytes.Replace(data, []byte(golden.Manifest().Weights), []byte(ck.Digest()), 1) // as long: the trace is of the larger checkpoint
	digest, err := reference.OrderDigest(list)
	must(t, err)
	w := reference.Wanted{
		Config: config.Canonical(), Model: golden.Manifest().Model, Weights: ck.Digest(), DType: hooks.BF16, Passes: passes, Order: digest,
		Scope: capture.Scope{Level: 3},
	}
	store := reference.NewStore(dir)
	key := reference.NewKey(w, w.Scope, reference.TransformersRunner())
	path := store.Place(key)
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, data, 0o666))
	_, err = store.Keep(path, w, key)
	must(t, err)

	process := settings.NewProcess()
	by := func(list *order.List) (isolate.Certified, string) {
		t.Helper()
		var said strings.Builder
		into := isolate.Certified{}
		must(t, ByStored(context.Background(), &settings.Env{Process: process, Dir: dir, Volume: settings.Volume{Verbose: true}, Errors: &said}, into, list, ck, hooks.BF16))
		return into, said.String()
	}
	first, said := by(list)
	if !strings.Contains(said, "which is remembered") || !first.Clears(list) {
		t.Errorf("the first time: %q, %v", said, first)
	}
	if second, said := by(list); !strings.Contains(said, "in an earlier run") || !second.Clears(list) {
		t.Errorf("the second time: %q, %v", said, second)
	}
	other, err := order.New(config)
	must(t, err)
	for i := range other.Entries {
		if o, is := other.Entries[i].Op.(op.RMSNorm); is {
			o.Gain = op.Plain
			other.Entries[i].Op = o
		}
	}
	for range 2 {
		if into, said := by(other); said != "" || into[op.Form(op.RMSNorm{Eps: 1, Gain: op.Plain})] {
			t.Errorf("an order that the trace contradicts: %q, %v", said, into)
		}
	}
}
