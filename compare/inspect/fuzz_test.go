package inspect_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
)

// A file that opens can be looked at, all of it and every tensor in full; what is not there to be seen is no panic.
func FuzzFile(f *testing.F) {
	official, err := os.ReadFile("../../fixtures/foreign/official.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(official)
	for _, header := range []string{
		`{"logits":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]}}`,
		`{"a":{"dtype":"F64","shape":[2,0,1099511627776],"data_offsets":[0,0]}}`,
		`{"__metadata__":{"tracediff.version":"1","tracediff.axes":"{\"input_ids\":\"h v\"}"},"input_ids":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}12345678`,
	} {
		n := bytes.LastIndexByte([]byte(header), '}') + 1
		f.Add(append([]byte{byte(n), 0, 0, 0, 0, 0, 0, 0}, header...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := capture.OpenReader("fuzzed", bytes.NewReader(data), int64(len(data)))
		if err != nil || len(tr.Records()) > 32 {
			return
		}
		o := inspect.Options{TokenText: func(int) string { return "" }}
		r, err := inspect.Run(context.Background(), tr, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.List {
			o.Name = l.Key
			if _, err := inspect.Run(context.Background(), tr, o); err != nil && l.Key != "" {
				t.Fatalf("%q: %v", l.Key, err)
			}
		}
	})
}
