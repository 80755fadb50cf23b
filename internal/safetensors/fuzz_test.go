package safetensors_test

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/safetensors"
)

// FuzzHeader looks for a header that Parse accepts and should not: one that is not JSON, or has another number of
// keys for encoding/json, or lists a tensor whose range, shape and dtype disagree.
func FuzzHeader(f *testing.F) {
	for _, c := range good {
		f.Add([]byte(c.text))
	}
	for _, c := range bad {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := safetensors.Parse(text)
		for _, s := range h.Tensors {
			n, ok := hooks.Elements(s.Shape)
			known := s.DType.Valid() && s.End-s.Begin == int64(n*s.DType.Size())
			if !ok || s.Begin < 0 || s.End < s.Begin || known != (s.Readable() == nil) || !known && s.DType.Valid() || !utf8.ValidString(s.Name) {
				t.Fatalf("impossible tensor %+v", s)
			}
		}
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) && json.Valid(text) {
				t.Fatalf("complete JSON is said to end early: %v", err)
			}
			return
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(text, &keys); err != nil {
			t.Fatalf("accepted what is no JSON: %v", err)
		}
		listed := len(h.Tensors)
		if _, has := keys[safetensors.MetadataKey]; has {
			listed++
		}
		if len(keys) != listed {
			t.Fatalf("%d tensors of %d keys", len(h.Tensors), len(keys))
		}
		sum := int64(0)
		for _, s := range h.Tensors {
			sum += s.End - s.Begin
		}
		if end, err := h.Layout(); err == nil && end != sum {
			t.Fatalf("%d bytes of tensors lie in %d bytes of data", sum, end)
		}
	})
}
