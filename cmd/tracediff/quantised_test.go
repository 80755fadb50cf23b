package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// A port with codes for weights has one finding for its products. A product that is wrong beside its codes has one of its own: a factor of some
// heads, a bias, or noise are no codes, however small their error is.
func TestCodesDoNotExplainOtherMistakes(t *testing.T) {
	t.Parallel()
	const dir = "../../fixtures/weights/"
	norm := func(v []float32) float64 {
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		return math.Sqrt(sum / float64(len(v)))
	}
	rng := rand.New(rand.NewPCG(18, 2))
	bias := make([]float64, 64)
	for i := range bias {
		bias[i] = rng.NormFloat64()
	}
	for _, tt := range []struct {
		name, port string
		change     func(v []float32)
		own        bool
	}{
		{"nothing", "Q4_K", func([]float32) {}, false},
		{"a factor of some channels", "Q8_0", func(v []float32) {
			changeAll(v, func(i int, x float64) float64 {
				if i%64 < 8 {
					return 1.05 * x
				}
				return x
			})
		}, true},
		{"a bias", "Q4_K", func(v []float32) {
			n := norm(v)
			changeAll(v, func(i int, x float64) float64 { return x + 0.16*n*bias[i%64] })
		}, true},
		{"noise", "Q8_0", func(v []float32) {
			n := norm(v)
			changeAll(v, func(_ int, x float64) float64 { return x + 0.1*n*rng.NormFloat64() })
		}, true},
	} {
		local := changedPort(t, dir+"port/"+tt.port+".safetensors", "layers.0.mlp.up_proj", tt.change)
		var out, errOut bytes.Buffer
		code := run([]string{"tracediff", "compare", "--isolate", local, "--model", dir + "wide"}, nil, &out, &errOut)
		text := out.String() + errOut.String()
		if code != exitMismatch || strings.Count(text, "quantised weights: ") != 2 { // at the first divergence, and among the findings
			t.Fatalf("%s, %s: exit %d\n%s", tt.port, tt.name, code, text)
		}
		if own := strings.Contains(text, "\n  bug in mlp.up_proj, layer 0: "); own != tt.own {
			t.Errorf("%s, %s: it has a finding of its own: %t, want %t\n%s", tt.port, tt.name, own, tt.own, text)
		}
	}
}

// changedPort copies a dump, of which some tensors are changed.
func changedPort(t *testing.T, path, name string, change func(v []float32)) string {
	t.Helper()
	return rewritten(t, path, func(key string, x hooks.Tensor) hooks.Tensor {
		if !strings.HasSuffix(key, name) {
			return x
		}
		v := decoded(x)
		change(v)
		return encoded(x.DType, x.Shape, v)
	})
}

// Of the products with weights in one format half are right, and the others are wrong: that is the engine's way to multiply, and what it leaves
// is a mistake with a name.
func TestAWayOfHalfTheProductsIsTheEngines(t *testing.T) {
	t.Parallel()
	const dir = "../../fixtures/weights/"
	local := changedPort(t, dir+"port/Q4_K.rounded.safetensors", "layers.0.mlp.down_proj", func(v []float32) {
		for at := 0; at < len(v); at += 256 {
			row := v[at : at+256]
			last := row[255]
			copy(row[1:], row)
			row[0] = last
		}
	})
	var out, errOut bytes.Buffer
	code := run([]string{"tracediff", "compare", "--isolate", local, "--model", dir + "wide", "--weights", dir + "wide.Q4_K.gguf"}, nil, &out, &errOut)
	if text := out.String() + errOut.String(); code != exitMismatch || !strings.Contains(text, "bug in mlp.down_proj, layer 0: the result is shifted by 1 along its channels") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

// changeAll changes every number.
func changeAll(v []float32, f func(i int, x float64) float64) {
	for i, x := range v {
		v[i] = float32(f(i, float64(x)))
	}
}
