package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
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
		{"llama-64", "steps", "../../llamacpp/llamacpp"},
		{"llama-64", "fused", "llamacpp-llama-flash"},
		{"llama-64", "rotary-200", "llamacpp-rotary"}, // the tables alone: INCOMPLETE
		{"llama-128", "steps", "../../llamacpp/llamacpp"},
		{"llama-128", "fused", "llamacpp-llama-flash"},
		{"gemma3-window", "steps", "../../llamacpp/llamacpp"},
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

// A mistake in the attention of one of two layers is found there, and the other layer is healthy: the passes together show the kernel that most of
// their attentions have.
func TestMistakeInACutTraceOfLlamaCpp(t *testing.T) {
	t.Parallel()
	root := filepath.Join(sources(t), "fixtures/wild/trained")
	report, trace := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "trace.safetensors")
	timesInCopy(t, filepath.Join(root, "cut/llama-64.fused.safetensors"), trace, "kqv_out-0", 1.01)
	var out, errOut bytes.Buffer
	code := run([]string{
		"tracediff", "compare", "--isolate", "--all", trace, "--model", filepath.Join(root, "cut/llama-64"),
		"--map", filepath.Join(root, "maps/llamacpp-llama-flash.toml"), "--report", "json=" + report,
	}, nil, &out, &errOut)
	const first = "first divergence: layers.0.self_attn.context"
	// o_proj was computed from what is multiplied here, so it is the second.
	if accused := accusedIn(t, report); code != exitMismatch || accused != 2 || !strings.Contains(out.String(), first) {
		t.Errorf("exit %d, %d entries are accused, want 2 and %q\n%s%s", code, accused, first, out.String(), errOut.String())
	}
	// The factor is read off the result: it is found before the mistakes that have no such hint, of which 40,000 are possible here.
	if tried := triedAt(t, report, "layers.0.self_attn.context"); tried == 0 || tried > 10_000 {
		t.Errorf("%d mistakes are tried", tried)
	}
}

// triedAt is how many mistakes were tried for a name in a JSON report.
func triedAt(t *testing.T, path, name string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var report struct {
		Runs []struct {
			Result struct {
				Rows []struct {
					Name     string
					Isolated struct{ Finding struct{ Tried int } }
				}
			}
		}
	}
	must(t, json.Unmarshal(text, &report))
	for _, row := range report.Runs[0].Result.Rows {
		if row.Name == name && row.Isolated.Finding.Tried > 0 {
			return row.Isolated.Finding.Tried
		}
	}
	return 0
}

// timesInCopy copies a file of float32 tensors, of which one is multiplied by a number.
func timesInCopy(t *testing.T, from, to, name string, by float32) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	header := 8 + int(binary.LittleEndian.Uint64(data))
	var tensors map[string]struct {
		Offsets []int `json:"data_offsets"`
	}
	must(t, json.Unmarshal(data[8:header], &tensors))
	at, ok := tensors[name]
	if !ok {
		t.Fatalf("%s has no %s", from, name)
	}
	for i := header + at.Offsets[0]; i < header+at.Offsets[1]; i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(by*x))
	}
	must(t, os.WriteFile(to, data, 0o666))
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
