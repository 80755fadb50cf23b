package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// inFloat64 is a file with its floating-point numbers as float64, and nothing that it says of itself.
func inFloat64(t *testing.T, data []byte) []byte {
	t.Helper()
	f := readST(t, data)
	f.meta = nil
	for _, s := range f.tensors {
		from, is := map[string]hooks.DType{"F32": hooks.F32, "BF16": hooks.BF16}[s.DType]
		if !is {
			continue
		}
		x := make([]float64, len(s.Data)/from.Size())
		must(t, floats.Decode(x, from, s.Data))
		s.DType, s.Data = "F64", nil
		for _, v := range x {
			bits := math.Float64bits(v)
			for shift := 0; shift < 64; shift += 8 {
				s.Data = append(s.Data, byte(bits>>shift))
			}
		}
	}
	return f.bytes()
}

// Numbers that are saved as float64, as NumPy does, are those that they are: what was computed in float32 or bfloat16 is right against a
// reference of either dtype, and what was computed in float64 is, too. A wrong epsilon is found in all of them.
func TestDumpsInFloat64(t *testing.T) {
	t.Parallel()
	golden := func(dtype string) string {
		return "../../fixtures/golden/gemma2-tiny/prefill." + dtype + ".safetensors"
	}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		must(t, err)
		return data
	}
	for _, tt := range []struct {
		name string
		file []byte
		want int
	}{
		{"float32 saved as float64", inFloat64(t, read(golden("float32"))), exitMatch},
		{"bfloat16 saved as float64", inFloat64(t, read(golden("bfloat16"))), exitMatch},
		{"a float64 engine", read("../../fixtures/foreign/float64.safetensors"), exitMatch},
		{"a wrong epsilon, saved as float64", inFloat64(t, read(withEpsilon(t, "gemma2-tiny", "prefill.float32", "layers.1.pre_feedforward_layernorm", 1e-5))), exitMismatch},
	} {
		path := filepath.Join(t.TempDir(), "port.safetensors")
		must(t, os.WriteFile(path, tt.file, 0o666))
		for _, dtype := range []string{"float32", "bfloat16"} {
			var out, errOut bytes.Buffer
			got := run([]string{"tracediff", "compare", path, golden(dtype), "--model", "../../fixtures/gemma2-tiny"}, nil, &out, &errOut)
			if got != tt.want {
				t.Errorf("%s, reference in %s: exit %d, want %d\n%s%s", tt.name, dtype, got, tt.want, lastLines(out.String()), errOut.String())
			}
			if tt.want == exitMismatch && !strings.Contains(out.String(), "epsilon is 1e-05") {
				t.Errorf("%s, reference in %s: the epsilon is not named\n%s", tt.name, dtype, out.String())
			}
		}
	}
}

// Numbers of 16 bits that are saved in more digits are held to 16 bits, so that fused attention is known to the bit as in the trace that they come
// from: a healthy run is verified, and a mistake under the kernel has its name.
func TestFusedAttentionInFloat64(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"healthy": "99 EXACT, 9 ROUNDING", "base": "theta is 10000"} {
		data, err := os.ReadFile("../../fixtures/fused/llama-tiny." + name + ".safetensors")
		must(t, err)
		path := filepath.Join(t.TempDir(), "port.safetensors")
		must(t, os.WriteFile(path, inFloat64(t, data), 0o666))
		var out, errOut bytes.Buffer
		run([]string{"tracediff", "compare", "--all", path, "../../fixtures/fused/llama-tiny.healthy.safetensors", "--model", "../../fixtures/llama-tiny", "--fused-attention"}, nil, &out, &errOut)
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) || strings.Contains(text, "UNIDENTIFIED") {
			t.Errorf("%s: the report has no %q:\n%s%s", name, want, out.String(), errOut.String())
		}
	}
}
