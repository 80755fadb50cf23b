package arithmetic_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// In a layer with norms behind attention and behind the feed-forward layer, a compiler fuses the last norm, the sum behind it and the norm of the next layer:
// the mean of squares is that of the sum of the unrounded norm, and what is multiplied is the rounded sum, which the trace has. In front of the
// feed-forward layer the sum is written nowhere: the mean takes the unrounded norm behind attention, and what is multiplied takes the rounded one.
// The norms of a healthy engine are right, and what differs is said. With another epsilon they are not, nor is one layer that is scaled.
func TestNormsThatReadAFusedSum(t *testing.T) {
	const (
		next   = "reads out, and post_feedforward_layernorm for that, before they are rounded, except in product, as a fused kernel does"
		first  = "reads embed_tokens before it is rounded, except in product, as a fused kernel does"
		within = "reads post_attention_layernorm before it is rounded, except in product, as a fused kernel does"
	)
	for _, c := range []struct {
		what  string
		eps   float64
		scale float64 // of layer 1
		bad   string  // the layers that are accused
	}{
		{"healthy", 1e-6, 1, ""},
		{"layer 1 is scaled", 1e-6, 1.25, "1"},
		{"another epsilon", 20, 1, "012"},
	} {
		of := certifier(t, "gemma2-tiny", fusedSums(t, "gemma2-tiny", c.eps, c.scale))
		for entry, said := range map[string]string{"input_layernorm": next, "pre_feedforward_layernorm": within} {
			for _, layer := range []string{"0", "1", "2"} {
				key := "layers." + layer + "." + entry
				z := of(key)
				if entry == "input_layernorm" && layer == "0" {
					if right := z.Arithmetic == first; right && strings.Contains(c.bad, layer) || !right && c.bad == "" {
						t.Errorf("%s: %s: %s: %q", c.what, key, z.Outcome, z.Arithmetic)
					}
					continue
				}
				switch wrong := strings.Contains(c.bad, layer); {
				case wrong != (z.Outcome == isolate.Bug):
					t.Errorf("%s: %s: %s, %d outside", c.what, key, z.Outcome, z.Outside)
				case !wrong && z.Arithmetic != said && (c.bad == "" || z.Arithmetic != "not known"):
					t.Errorf("%s: %s: %q", c.what, key, z.Arithmetic)
				}
			}
		}
	}
}

// fusedSums is the residual stream of a golden with norms on both sides, as such an engine computes it from the golden's projections.
func fusedSums(t *testing.T, dir string, eps, scale float64) *capture.Trace {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	round := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	gain := func(name string) []float64 {
		entry, _ := list.Lookup(name)
		rows, err := reference.Weights(ck, hooks.BF16)(entry.Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		return matrixOf(t, rows)[0]
	}
	// norm is that of the rows of x, in float32; the mean of squares is that of others.
	norm := func(x, of, w []float64, eps float64) []float64 {
		y := make([]float64, len(x))
		for row := 0; row < len(x); row += len(w) {
			squares := 0.0
			for _, v := range of[row : row+len(w)] {
				squares += float64(float32(v * v))
			}
			inv := float64(float32(1 / math.Sqrt(squares/float64(len(w))+eps)))
			for k, g := range w {
				y[row+k] = float64(float32(float64(float32(x[row+k]*inv)) * (1 + g)))
			}
		}
		return y
	}
	var in0, fresh, sum, out []float64 // a layer's input, its norm, and sums, before they are rounded
	stream := map[string][]float64{}
	return testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }, func(_ string, e hooks.Event) []hooks.Event {
		layer, name, _ := strings.Cut(strings.TrimPrefix(e.Name, "layers."), ".")
		x := testengine.ValuesOf(e.Tensor)
		by := 1.0
		if layer == "1" {
			by = scale
		}
		switch {
		case e.Name == "input_ids", e.Name == "position_ids":
			return []hooks.Event{e}
		case e.Name == "embed_tokens.lookup":
			out = x
			for i := range out {
				out[i] = float64(float32(out[i]) * float32(round(math.Sqrt(float64(e.Tensor.Shape[2])))))
			}
			return nil
		case e.Name == "embed_tokens":
			return []hooks.Event{e}
		case name == "self_attn.o_proj", name == "mlp.down_proj":
			fresh = norm(x, x, gain(strings.Replace(strings.Replace(e.Name, "self_attn.o_proj", "post_attention_layernorm", 1), "mlp.down_proj", "post_feedforward_layernorm", 1)), 1e-6)
			return []hooks.Event{e}
		case name == "post_attention_layernorm", name == "post_feedforward_layernorm":
			x = inBF16(fresh)
			stream[name] = x
		case name == "pre_feedforward_layernorm":
			in0 = inBF16(out)
			sum = sumOf(in0, stream["post_attention_layernorm"])
			x = norm(sum, sumOf(in0, fresh), gain(e.Name), eps)
		case name == "out":
			out = sumOf(sum, fresh)
			x = inBF16(out)
		case name == "input_layernorm":
			x = norm(inBF16(out), out, gain(e.Name), eps)
		default:
			return nil
		}
		for i := range x {
			if strings.HasPrefix(name, "pre_") || name == "input_layernorm" {
				x[i] *= by
			}
			x[i] = round(x[i])
		}
		return []hooks.Event{testengine.InPass(e.Pass, testengine.Fire(e.Name, hooks.BF16, e.Tensor.Shape, x...))}
	})
}

// sumOf adds in float32.
func sumOf(a, b []float64) []float64 {
	y := make([]float64, len(a))
	for i := range y {
		y[i] = float64(float32(a[i]) + float32(b[i]))
	}
	return y
}

// inBF16 rounds to bfloat16.
func inBF16(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range y {
		y[i] = floats.Round(hooks.BF16, x[i])
	}
	return y
}
