package capture_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// declared is a manifest with every field set.
var declared = capture.Manifest{
	Side:     "reference",
	Producer: capture.Producer{Name: "transformers", Version: "5.23.0", Details: map[string]string{"torch": "2.15.0", "threads": "2"}},
	Model:    "google/gemma-3n-E2B-it",
	Config:   json.RawMessage(`{"hidden_size":64,"rope":{"theta":1e6},"note":"<ü>"}`),
	Weights:  "sha256:" + strings.Repeat("0f", 32),
	Scope: capture.Scope{
		Level: 2, Layers: capture.Ranges{{From: 0, To: 3}, {From: 7, To: 7}}, Tensors: []string{"*.mlp.*"},
		Passes: capture.Ranges{{From: 1, To: 1<<31 - 1}}, Positions: capture.Ranges{{From: 0, To: 15}},
	},
	Entries: []string{"input_ids", "embed_tokens"},
	Derived: []string{"rope.cos"},
	Prompt:  "Hello \"world\"\\\n\t\x00 <b>é木</b> \u2028",
	DType:   hooks.BF16,
	Device:  "cpu",
	Passes:  7,
	Axes:    map[string]string{"k_cache": "b h t d"},
}

func TestManifestRoundTrip(t *testing.T) {
	for _, m := range []capture.Manifest{
		{},
		declared,
		{Entries: []string{}, Scope: capture.Scope{Level: 1}}, // nothing in scope is declared, unlike no scope
	} {
		want := m
		m.Status = "what the caller says does not count"
		want.Status = capture.StatusComplete
		got := open(t, write(t, m, 0)).Manifest()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("written -, read +\n%s", diff)
		}
	}
}

// The metadata is the format: other writers have to make the same, so it is written out here.
func TestMetadataKeys(t *testing.T) {
	b, err := os.ReadFile(write(t, declared, 0))
	if err != nil {
		t.Fatal(err)
	}
	var header struct {
		Metadata map[string]string `json:"__metadata__"`
	}
	if err := json.NewDecoder(strings.NewReader(string(b[8:]))).Decode(&header); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"tracediff.version":  "1",
		"tracediff.status":   "complete" + strings.Repeat(" ", 232),
		"tracediff.sequence": "execution",
		"tracediff.side":     "reference",
		"tracediff.producer": `{"name":"transformers","version":"5.23.0","details":{"threads":"2","torch":"2.15.0"}}`,
		"tracediff.model":    "google/gemma-3n-E2B-it",
		"tracediff.config":   string(declared.Config),
		"tracediff.weights":  declared.Weights,
		"tracediff.scope":    `{"level":2,"layers":"0-3,7","tensors":["*.mlp.*"],"passes":"1-","positions":"0-15"}`,
		"tracediff.entries":  `["input_ids","embed_tokens"]`,
		"tracediff.derived":  `["rope.cos"]`,
		"tracediff.prompt":   declared.Prompt,
		"tracediff.dtype":    "bfloat16",
		"tracediff.device":   "cpu",
		"tracediff.passes":   "7",
		"tracediff.axes":     `{"k_cache":"b h t d"}`,
	}
	if diff := cmp.Diff(want, header.Metadata); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	const start = `{"__metadata__":{"tracediff.version":"1","tracediff.status":"complete `
	if !strings.HasPrefix(string(b[8:]), start) {
		t.Errorf("the header starts %q", b[8:100])
	}
}
