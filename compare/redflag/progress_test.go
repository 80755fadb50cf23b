package redflag_test

import (
	"context"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/redflag"
)

// A check says before each of its looks which it is, and has read the trace when it comes to the last.
func TestCheckSaysHowFarItIs(t *testing.T) {
	trace, err := capture.Open("../../fixtures/golden/gemma3n-tiny/hello.bfloat16.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	next, of := 0, 0
	o := redflag.Options{Progress: func(look, looks int) {
		if look != next {
			t.Errorf("look %d, want %d", look, next)
		}
		next, of = look+1, looks
	}}
	if _, err := redflag.Check(context.Background(), trace, o); err != nil {
		t.Fatal(err)
	}
	if of < 10 || next != of || trace.BytesRead() < 1000 {
		t.Errorf("%d of %d looks, %d bytes", next, of, trace.BytesRead())
	}
}
