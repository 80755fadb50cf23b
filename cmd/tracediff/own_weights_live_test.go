package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Transformers with the dequantised weights of a port is the reference of its arithmetic: a right port is within its limits, and a wrong one
// is not. Where the port's file is another one, the reference is made again. TRACEDIFF_PYTHON names the interpreter.
func TestLiveReferenceWithThePortsWeights(t *testing.T) {
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and transformers")
	}
	const fixtures = "../../fixtures/weights/"
	dir := t.TempDir()
	weights := filepath.Join(t.TempDir(), "port.gguf")
	write := func(name string) {
		t.Helper()
		data, err := os.ReadFile(fixtures + name)
		must(t, err)
		must(t, os.WriteFile(weights, data, 0o666))
	}
	tracediff := func(want int, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(append([]string{"tracediff"}, args...), nil, &out, &errOut); code != want {
			t.Fatalf("%v: exit %d, want %d\n%s%s", args, code, want, out.String(), errOut.String())
		}
		return out.String() + errOut.String()
	}
	has := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	model := []string{"--model", fixtures + "wide", "--tokens", "5,17,2,44,9,31;12;60", "--dtype", "float32", "--dir", dir, "--python", interpreter}
	capture := append([]string{"capture", "--side", "reference", "--reference", "hf", "--level", "3", "--weights-from", weights}, model...)
	compare := func(local string) []string {
		return []string{"compare", "--local", fixtures + "port/" + local + ".safetensors", "--dir", dir, "--level", "2", "--all", "--format", "json"}
	}

	write("wide.Q8_0.gguf")
	has(tracediff(exitMatch, capture...), "reference: transformers", "captured, with the weights of "+weights)
	trace, err := os.ReadFile(filepath.Join(dir, "reference.safetensors"))
	must(t, err)
	has(string(trace[:min(len(trace), 1<<14)]), `"tracediff.port":"{\"file\":\"port.gguf\"}"`)
	has(tracediff(exitMatch, compare("Q8_0")...), `"label": "stored, with the weights of `+weights)
	has(tracediff(exitMatch, compare("Q8_0.rounded")...), "the port rounds the inputs of products")
	has(tracediff(exitMismatch, compare("Q8_0.gelu")...), "the activation is gelu_tanh")

	write("wide.Q4_K.gguf")
	has(tracediff(exitMatch, capture...), "is not used: it is of other weights", "captured, with the weights of")
	has(tracediff(exitMatch, compare("Q4_K")...), `"label": "stored, with the weights of `)
	has(tracediff(exitMismatch, compare("Q4_K.epsilon")...), "epsilon is 0.0001")
}
