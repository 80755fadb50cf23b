package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Stock llama.cpp computes small random checkpoints: angles are a running product of float32, fused attention has queries, keys, values and its
// output in float16, and a sliding layer keeps all keys and masks them. None of that is a bug, so no entry is to be accused.
func TestCutTracesOfLlamaCpp(t *testing.T) {
	t.Parallel()
	root := filepath.Join(sources(t), "fixtures/wild/trained")
	for _, tt := range []struct {
		model, run, names string
	}{
		{"llama-64", "steps", "llamacpp-llama"},
		{"llama-64", "fused", "llamacpp-llama-flash"},
		{"llama-64", "rotary-200", "llamacpp-rotary"}, // the tables alone: INCOMPLETE
		{"llama-128", "steps", "llamacpp-llama"},
		{"llama-128", "fused", "llamacpp-llama-flash"},
		{"gemma3-window", "steps", "llamacpp-gemma3"},
		{"gemma3-window", "fused", "llamacpp-gemma3-flash"},
	} {
		report := filepath.Join(t.TempDir(), "report.json")
		var out, errOut bytes.Buffer
		code := run([]string{
			"tracediff", "compare", "--isolate", "--all", filepath.Join(root, "cut", tt.model+"."+tt.run+".safetensors"),
			"--model", filepath.Join(root, "cut", tt.model), "--map", filepath.Join(root, "maps", tt.names+".toml"), "--report", "json=" + report,
		}, nil, &out, &errOut)
		want := exitMatch
		if tt.run == "rotary-200" {
			want = exitMismatch
		}
		if code != want {
			t.Fatalf("%s.%s: exit %d, want %d\n%s%s", tt.model, tt.run, code, want, out.String(), errOut.String())
		}
		if accused := accusedIn(t, report); accused != 0 {
			t.Errorf("%s.%s: %d entries are accused\n%s", tt.model, tt.run, accused, out.String())
		}
	}
}

// accusedIn counts the entries of a JSON report that are called wrong.
func accusedIn(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var report struct {
		Runs []struct {
			Result struct {
				Rows []struct {
					Verdict  string
					Isolated struct{ Outcome string }
				}
			}
		}
	}
	must(t, json.Unmarshal(text, &report))
	accused := 0
	for _, row := range report.Runs[0].Result.Rows {
		if row.Verdict == "MISMATCH" || row.Isolated.Outcome == "BUG" {
			accused++
		}
	}
	return accused
}
