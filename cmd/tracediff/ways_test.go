package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/safetensors"
)

// A kernel that is not known may have made the one product of two that the known one does not give, such as a head on another device: where the
// product differs by no more than codes of its inputs make, it is no BUG, and nothing verifies it. A larger difference is one.
func TestHeadByAnotherKernel(t *testing.T) {
	const dir = "../../fixtures/wild/llamacpp/"
	trace, err := os.ReadFile(dir + "quantised/wide.Q4_K.safetensors")
	must(t, err)
	text, err := safetensors.Text(bytes.NewReader(trace), int64(len(trace)))
	must(t, err)
	h, err := safetensors.Parse(text)
	must(t, err)
	for _, tt := range []struct {
		off      float64 // codes of 8 bits in blocks of 32 take the head's products 0.015 from those of the file, which reach 3.3
		says, no string
	}{
		{0.01, "products with Q6_K weights in passes of one token are not", "BUG"},
		{0.5, "first divergence: logits ", "are not verified"},
	} {
		data := bytes.Clone(trace)
		for _, x := range h.Tensors {
			if !strings.HasSuffix(x.Name, "result_output") {
				continue
			}
			for at, list := 0, data[8+len(text):][x.Begin:x.End]; at < len(list); at += 4 {
				v := float64(math.Float32frombits(binary.LittleEndian.Uint32(list[at:])))
				binary.LittleEndian.PutUint32(list[at:], math.Float32bits(float32(v+tt.off*math.Sin(float64(at)))))
			}
		}
		file := filepath.Join(t.TempDir(), "trace.safetensors")
		must(t, os.WriteFile(file, data, 0o666))
		var stdout, stderr bytes.Buffer
		exit := run([]string{
			"tracediff", "compare", "--isolate", file, "--model", wideModel, "--map", dir + "llamacpp.toml",
			"--weights", dir + "quantised/wide.Q4_K_M.gguf", "--color", "never",
		}, strings.NewReader(""), &stdout, &stderr)
		if out := stdout.String(); exit != 1 || !strings.Contains(out, tt.says) || strings.Contains(out, tt.no) {
			t.Errorf("off by %v: exit %d:\n%s%s", tt.off, exit, out, stderr.String())
		}
	}
}
