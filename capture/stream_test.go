package capture_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// streamed begins a trace without room in its header, and a tensor x of 1,000 numbers in it.
func streamed(t *testing.T) (path string, w *capture.Writer, s *capture.Stream) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "trace.safetensors")
	w, err := capture.Create(path, capture.Manifest{Side: "local", DType: hooks.F32, Scope: capture.Scope{Level: 3}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = w.Stream(hooks.Event{Name: "x", Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{10, 100}}}); err != nil {
		t.Fatal(err)
	}
	return path, w, s
}

// A tensor that is written in pieces has all of its bytes, also where the header grows after the last piece.
func TestStream(t *testing.T) {
	path, w, s := streamed(t)
	want := make([]byte, 4000)
	for i := range want {
		want[i] = byte(i * 7 >> 3 & 0x3f)
	}
	for from := 0; from < len(want); from += 1500 {
		if _, err := s.Write(want[from:min(from+1500, len(want))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for k := range 200 { // each a copy of the header at some time, with pieces that are no tensor yet
		s, err := w.Stream(hooks.Event{Name: fmt.Sprintf("%s.%d", strings.Repeat("y", 200), k), Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{10, 100}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, half := range [][]byte{want[:2000], want[2000:]} {
			if _, err := s.Write(half); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	if n := len(trace.Records()); n != 201 {
		t.Fatalf("%d tensors", n)
	}
	for _, r := range trace.Records() {
		got := make([]byte, len(want))
		if _, err := trace.ReadAt(r, got, 0); err != nil || !bytes.Equal(got, want) || !slices.Equal(r.Shape, []int{10, 100}) {
			t.Fatalf("%s: %v, other bytes", r.Key, err)
		}
	}
}

// A tensor with too few bytes is an error that sticks, and no tensor of the trace.
func TestStreamThatEndsEarly(t *testing.T) {
	path, w, s := streamed(t)
	if _, err := s.Write(make([]byte, 3999)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "needs 4000 bytes, has 3999") {
		t.Errorf("the error is %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("the trace is complete")
	}
	trace, err := capture.Open(path + capture.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	if n := len(trace.Records()); n != 0 {
		t.Errorf("%d tensors", n)
	}
}
