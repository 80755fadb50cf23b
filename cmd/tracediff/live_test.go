package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// goldens that transformers is run for again, with the number of passes that it decoded itself.
var liveGoldens = []struct {
	checkpoint, name, dtype string
	decoded                 int
}{
	{"gemma3n-tiny", "hello", "bfloat16", 0},
	{"gemma3n-tiny", "decode", "float32", 6},
	{"gemma3n-odd", "decode", "bfloat16", 4},
	{"gemma3n-variant", "prefill", "float32", 0},
	{"gemma3-tiny", "decode", "bfloat16", 4},
	{"gemma3-multimodal", "prefill", "float32", 0},
	{"gemma2-tiny", "prefill", "bfloat16", 0},
	{"gemma2-variant", "decode", "bfloat16", 4},
	{"gemma-tiny", "decode", "float32", 4},
	{"llama-tiny", "prefill", "bfloat16", 0},
	{"qwen2-tiny", "prefill", "float32", 0},
	{"qwen3-tiny", "decode", "bfloat16", 4},
}

// liveLimit is the limit of relative L2 of a float32 tensor where MKL has other kernels than the goldens' processor;
// fixtures/README.md says where it comes from.
const liveLimit = 1e-4

// What `tracediff capture --reference hf` captures is the committed golden, equal to the bit where torch takes the same
// kernels. The interpreter that TRACEDIFF_PYTHON names has to have torch and transformers.
func TestLiveTransformers(t *testing.T) {
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and transformers")
	}
	// As when the goldens were made.
	t.Setenv("OMP_NUM_THREADS", "1")
	t.Setenv("ATEN_CPU_CAPABILITY", "avx2")
	t.Setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
	folder := t.TempDir()
	must(t, ondisk.Copy(folder))
	for _, g := range liveGoldens {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			path := "golden/" + g.checkpoint + "/" + g.name + "." + g.dtype + ".safetensors"
			data, err := fs.ReadFile(ondisk.Files(), path)
			must(t, err)
			want, err := capture.OpenReader(path, bytes.NewReader(data), int64(len(data)))
			must(t, err)
			passes, err := want.IDs()
			must(t, err)

			dir := t.TempDir()
			var out, errOut bytes.Buffer
			args := []string{
				"tracediff", "capture", "--side", "reference", "--reference", "hf", "--python", interpreter, "--dir", dir,
				"--model", filepath.Join(folder, g.checkpoint), "--tokens", tokensOf(passes[:len(passes)-g.decoded]),
				"--max-new-tokens", fmt.Sprint(g.decoded), "--dtype", g.dtype,
			}
			if code := run(args, nil, &out, &errOut); code != exitMatch {
				t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
			}
			got, err := capture.Open(filepath.Join(dir, "reference.safetensors"))
			must(t, err)
			defer got.Close()
			compareLive(t, got, want)
		})
	}
}

// compareLive holds a trace to a golden: manifest, names, shapes and bits. The bits of float32 are demanded where the
// processors are of one maker, by which MKL chooses its kernels.
func compareLive(t *testing.T, got, want *capture.Trace) {
	t.Helper()
	a, b := got.Manifest(), want.Manifest()
	if a.Weights != b.Weights || a.Passes != b.Passes || a.DType != b.DType || a.Producer.Version != b.Producer.Version || !cmp.Equal(a.Entries, b.Entries) {
		t.Errorf("the manifest is another: %+v, %+v", a.Producer, b.Producer)
	}
	const kernels = "cpu_capability"
	if a.Producer.Details[kernels] != b.Producer.Details[kernels] {
		t.Fatalf("torch has its %s kernels here, the golden is made with %s", a.Producer.Details[kernels], b.Producer.Details[kernels])
	}
	exact := a.DType != hooks.F32 || maker(a) == maker(b)
	if len(got.Records()) != len(want.Records()) || len(want.Records()) < 50 {
		t.Fatalf("%d tensors, want %d", len(got.Records()), len(want.Records()))
	}
	unequal := 0
	for i, r := range want.Records() {
		g := got.Records()[i]
		if g.Key != r.Key || g.DType != r.DType || !cmp.Equal(g.Shape, r.Shape) {
			t.Fatalf("%s %v %v, want %s %v %v", g.Key, g.DType, g.Shape, r.Key, r.DType, r.Shape)
		}
		x, err := got.Read(g)
		must(t, err)
		y, err := want.Read(r)
		must(t, err)
		if bytes.Equal(x.Data, y.Data) {
			continue
		}
		unequal++
		if d := liveDistance(t, x, y); exact || !(d <= liveLimit) {
			t.Errorf("%s: relative L2 %g (equality is demanded: %v)", r.Key, d, exact)
		}
	}
	t.Logf("%d of %d tensors differ (equality is demanded: %v)", unequal, len(want.Records()), exact)
}

// maker is the first word of the processor's name.
func maker(m capture.Manifest) string {
	name, _, _ := strings.Cut(m.Producer.Details["cpu"], " ")
	return name
}

// liveDistance is the relative L2 distance of finite tensors.
func liveDistance(t *testing.T, x, y hooks.Tensor) float64 {
	t.Helper()
	if !x.DType.Float() {
		return math.Inf(1)
	}
	a, b := make([]float64, len(x.Data)/x.DType.Size()), make([]float64, len(y.Data)/y.DType.Size())
	must(t, floats.Decode(a, x.DType, x.Data))
	must(t, floats.Decode(b, y.DType, y.Data))
	var diff, norm float64
	for i := range a {
		diff += (a[i] - b[i]) * (a[i] - b[i])
		norm += b[i] * b[i]
	}
	return math.Sqrt(diff / norm)
}
