package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// numbers are those of a tensor of a file.
func (s *stTensor) numbers(t *testing.T) []float64 {
	t.Helper()
	d := map[string]hooks.DType{"F32": hooks.F32, "BF16": hooks.BF16, "F16": hooks.F16}[s.DType]
	x := make([]float64, len(s.Data)/d.Size())
	must(t, floats.Decode(x, d, s.Data))
	return x
}

// setHalves makes a tensor one of float16.
func (s *stTensor) setHalves(x []float64) {
	s.DType, s.Data = "F16", nil
	for _, v := range x {
		s.Data = binary.LittleEndian.AppendUint16(s.Data, floats.F16(float32(v)))
	}
}

// A dump in float16 of a port that computes wider says of an element beyond 65504 that it is infinite. That is no match, and the operation is not
// what is wrong. An infinity that is no overflow, and other numbers that are wrong beside one, are the operation's.
func TestDumpThatOverflowed(t *testing.T) {
	const name = "layers.1.mlp.down_proj"
	const accused = "all its inputs match: check this operation"
	overflowed := []string{
		"first divergence: " + name + " (NONFINITE)", "float16 overflowed in ", "and float16 ends at 65504", "dump float32 or bfloat16; a port that computes in float16 cannot hold them",
		"first " + name + " (float16 overflowed)",
	}
	for _, tt := range []struct {
		what, dtype string
		scale       float64 // of the tensor, in the reference and in the port
		wrong       func(x []float64)
		says        []string
	}{
		{"overflow, float32", "float32", 1 << 20, func([]float64) {}, overflowed},
		{"overflow, bfloat16", "bfloat16", 1 << 20, func([]float64) {}, overflowed},
		{"another sign", "float32", 1 << 20, func(x []float64) {
			for i, v := range x {
				if math.Abs(v) > 1e5 {
					x[i] = -v
					return
				}
			}
		}, []string{name + " (NONFINITE)", accused}},
		{"other numbers, too", "float32", 1 << 16, func(x []float64) {
			for i, v := range x {
				if math.Abs(v) < 6e4 {
					x[i] = -v
				}
			}
		}, []string{name + " (NONFINITE)", accused}},
		{"infinite without a reason", "float32", 1, func(x []float64) { x[5] = math.Inf(1) }, []string{name + " (NONFINITE)", accused}},
	} {
		data, err := os.ReadFile("../../fixtures/golden/llama-tiny/prefill." + tt.dtype + ".safetensors")
		must(t, err)
		reference, port := readST(t, data), readST(t, data)
		port.meta = nil
		for i, s := range reference.tensors {
			if s.DType != "F32" && s.DType != "BF16" {
				continue
			}
			x := s.numbers(t)
			if s.Key == name {
				for k := range x {
					x[k] *= tt.scale
				}
				var out []byte
				for _, v := range x { // a power of two: exact in either
					if bits := math.Float32bits(float32(v)); tt.dtype == "float32" {
						out = binary.LittleEndian.AppendUint32(out, bits)
					} else {
						out = binary.LittleEndian.AppendUint16(out, uint16(bits>>16))
					}
				}
				s.Data = out
				tt.wrong(x)
			}
			port.tensors[i].setHalves(x)
		}
		port.tensors = slices.DeleteFunc(port.tensors, func(s *stTensor) bool { return strings.HasSuffix(s.Key, "probs_f32") }) // which the order has in float32
		dir := t.TempDir()
		local, ref := filepath.Join(dir, "port.safetensors"), filepath.Join(dir, "reference.safetensors")
		must(t, os.WriteFile(local, port.bytes(), 0o666))
		must(t, os.WriteFile(ref, reference.bytes(), 0o666))
		var out, errOut bytes.Buffer
		args := []string{"tracediff", "compare", local, ref, "--model", "../../fixtures/llama-tiny"}
		if tt.dtype == "bfloat16" { // whose numbers are float16's, so that the dump shows its operations, and the checkpoint is not scaled
			args = append(args, "--no-isolate")
		}
		status := run(args, nil, &out, &errOut)
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, says := range tt.says {
			if status != exitMismatch || !strings.Contains(text, says) {
				t.Errorf("%s: exit %d, want %d and %q\n%s%s", tt.what, status, exitMismatch, says, out.String(), errOut.String())
			}
		}
		if is := strings.Contains(text, accused); is == strings.Contains(text, "overflowed") {
			t.Errorf("%s: accused is %v\n%s", tt.what, is, out.String())
		}
	}
}
