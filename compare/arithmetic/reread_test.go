package arithmetic_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// A compiler fuses the activation with the product behind it: the product reads the activation before it is rounded to bfloat16, and the
// trace has the rounded one. The outputs of a healthy engine are right, and what differs is said. Of an engine that computes another
// activation inside the kernel, while the hook shows the right one, they are not: nor is one layer of a healthy engine that is scaled.
func TestOperandReadBeforeItIsRounded(t *testing.T) {
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		what  string
		act   func(x float64) float64
		scale float64 // of layer 1
		bad   string  // the layers that are accused
	}{
		{"healthy", silu, 1, ""},
		{"layer 1 is scaled", silu, 1.25, "1"},
		{"another activation inside the kernel", func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) }, 1, "012"},
	} {
		local := fusedActivation(t, "qwen3-tiny", c.act, c.scale)
		judgeLayers(t, c.what, local, "mlp.down_proj", "reads mlp.act_fn before it is rounded, as a fused kernel does", c.bad)
	}
}

// A compiler fuses the sum at the end of a layer with the norm behind it: the mean of squares is that of the sum before it is rounded to bfloat16,
// and what is multiplied is the rounded sum, which the trace has. The norms of a healthy engine are right, and what differs is said. With another
// epsilon inside the kernel they are not, nor is one layer that is scaled.
func TestNormThatReadsASumInTwoWays(t *testing.T) {
	const said = "reads out before it is rounded, except in product, as a fused kernel does"
	for _, c := range []struct {
		what  string
		eps   float64
		scale float64 // of layer 1
		bad   string  // the layers that are accused
	}{
		{"healthy", 1e-6, 1, ""},
		{"layer 1 is scaled", 1e-6, 1.25, "1"},
		{"another epsilon", 1e-1, 1, "12"},
	} {
		judgeLayers(t, c.what, fusedNorm(t, "qwen3-tiny", c.eps, c.scale), "input_layernorm", said, c.bad)
	}
}

// judgeLayers holds an entry of three layers to a verdict: BUG in the bad ones, and in the others transformers' arithmetic or the one that is said. The
// last layer of a healthy run shows the latter.
func judgeLayers(t *testing.T, what string, trace *capture.Trace, entry, said, bad string) {
	t.Helper()
	of := certifier(t, "qwen3-tiny", trace)
	for _, layer := range []string{"0", "1", "2"} {
		key := "layers." + layer + "." + entry
		z := of(key)
		switch wrong := strings.Contains(bad, layer); {
		case wrong != (z.Outcome == isolate.Bug):
			t.Errorf("%s: %s: %s, %d outside", what, key, z.Outcome, z.Outside)
		case !wrong && z.Arithmetic != "strict" && z.Arithmetic != said, layer == "2" && bad == "" && z.Arithmetic != said:
			t.Errorf("%s: %s: %q", what, key, z.Arithmetic)
		}
	}
}

// certifier certifies entries of the first pass of a trace, each by itself.
func certifier(t *testing.T, dir string, trace *capture.Trace) func(name string) *isolate.Certificate {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.BF16), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) *isolate.Certificate {
		t.Helper()
		c, err := i.Certify(context.Background(), name, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return c
	}
}

// fusedNorm is a golden's residual stream with the norms in front of attention: of the layers after the first R(R(out·inv)·w), inv of the sum out before
// it is rounded.
func fusedNorm(t *testing.T, dir string, eps, scale float64) *capture.Trace {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	last := map[string][]float64{}
	return testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }, func(_ string, e hooks.Event) []hooks.Event {
		layer, name, _ := strings.Cut(strings.TrimPrefix(e.Name, "layers."), ".")
		switch {
		case e.Name == "input_ids", e.Name == "position_ids", e.Name == "embed_tokens":
			return []hooks.Event{e}
		case name == "attn_residual", name == "mlp.down_proj", name == "out", name == "input_layernorm" && layer == "0":
			last[name] = testengine.ValuesOf(e.Tensor)
			return []hooks.Event{e}
		case name != "input_layernorm":
			return nil
		}
		entry, _ := list.Lookup(e.Name)
		rows, err := reference.Weights(ck, hooks.BF16)(entry.Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		w := matrixOf(t, rows)[0]
		by := 1.0
		if layer == "1" {
			by = scale
		}
		var y []float64
		for row := 0; row < len(last["out"]); row += len(w) {
			squares := 0.0
			for k := range w {
				x := float64(float32(last["attn_residual"][row+k]) + float32(last["mlp.down_proj"][row+k]))
				squares += x * x
			}
			inv := float64(float32(1 / math.Sqrt(squares/float64(len(w))+eps)))
			for k, gain := range w {
				product := floats.Round(hooks.BF16, float64(float32(last["out"][row+k]*inv)))
				y = append(y, floats.Round(hooks.BF16, by*float64(float32(product*gain))))
			}
		}
		return []hooks.Event{testengine.InPass(e.Pass, testengine.Fire(e.Name, hooks.BF16, e.Tensor.Shape, y...))}
	})
}

// fusedActivation is a golden's feed-forward layers, of which down_proj is bf16(Σ w·bf16(act(gate)·up)): act is not rounded.
func fusedActivation(t *testing.T, dir string, act func(x float64) float64, scale float64) *capture.Trace {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	last := map[string][]float64{}
	return testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }, func(_ string, e hooks.Event) []hooks.Event {
		layer, name, found := strings.Cut(e.Name, ".mlp.")
		switch {
		case e.Name == "input_ids", e.Name == "position_ids":
			return []hooks.Event{e}
		case !found, name == "gated":
			return nil
		case name != "down_proj":
			last[name] = testengine.ValuesOf(e.Tensor)
			return []hooks.Event{e}
		}
		entry, _ := list.Lookup(e.Name)
		rows, err := reference.Weights(ck, hooks.BF16)(entry.Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		w := matrixOf(t, rows)
		gate, up := last["gate_proj"], last["up_proj"]
		width := len(w[0])
		by := 1.0
		if layer == "layers.1" {
			by = scale
		}
		y := make([]float64, 0, len(gate)/width*len(w))
		for row := 0; row < len(gate); row += width {
			for _, of := range w {
				sum := 0.0
				for k, x := range of {
					sum += x * floats.Round(hooks.BF16, float64(float32(act(gate[row+k]))*float32(up[row+k])))
				}
				y = append(y, floats.Round(hooks.BF16, by*sum))
			}
		}
		return []hooks.Event{testengine.InPass(e.Pass, testengine.Fire(e.Name, hooks.BF16, e.Tensor.Shape, y...))}
	})
}

// matrixOf reads a weight, row by row.
func matrixOf(t *testing.T, w program.Rows) [][]float64 {
	t.Helper()
	rows, cols := w.Size()
	all := make([][]float64, rows)
	for r := range all {
		all[r] = make([]float64, cols)
		if err := w.Row(all[r], r); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
