package capture_test

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/order"
)

// The estimate of a capture is the size of its data to the byte, decode steps and rings included.
func TestDataBytesIsWhatIsWritten(t *testing.T) {
	names, err := fs.Glob(ondisk.Files(), "golden/*/*.safetensors")
	if err != nil || len(names) < 15 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(ondisk.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		config, err := order.ParseCanonical(trace.Manifest().Config)
		if err != nil {
			t.Fatal(err)
		}
		list, err := order.New(config)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := trace.IDs()
		if err != nil {
			t.Fatal(err)
		}
		var tokens []int
		for _, pass := range ids {
			tokens = append(tokens, len(pass))
		}
		for _, scope := range []capture.Scope{{Level: 3}, {Level: 1, Layers: capture.Ranges{{From: 0, To: 0}}}, {Level: 2, Passes: capture.Ranges{{From: 1, To: capture.NoEnd}}}} {
			selected := map[string]bool{}
			for _, e := range scope.Select(list) {
				selected[e.Name] = true
			}
			var want int64
			for _, r := range trace.Records() {
				if selected[r.Name] && scope.Passes.Has(r.Pass) {
					want += r.Size
				}
			}
			if got := capture.DataBytes(list, scope, trace.Manifest().DType, tokens); got != float64(want) {
				t.Errorf("%s, %+v: %v bytes, want %d", name, scope, got, want)
			}
		}
	}
}
