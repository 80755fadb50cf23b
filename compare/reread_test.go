package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
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
		res := isolated(t, "qwen3-tiny", local, nil)
		for _, layer := range []string{"0", "1", "2"} {
			row := rowOfKey(t, res, "layers."+layer+".mlp.down_proj")
			z := row.Isolated
			switch bad := strings.Contains(c.bad, layer); {
			case z == nil:
				t.Errorf("%s: %s: %s", c.what, row.Key(), row.NotIsolated)
			case bad != (z.Outcome == certify.Bug):
				t.Errorf("%s: %s: %s, %d outside", c.what, row.Key(), z.Outcome, z.Outside)
			case !bad && z.Arithmetic != "strict" && z.Arithmetic != "reads mlp.act_fn before it is rounded, as a kernel does that fuses the two":
				t.Errorf("%s: %s: %q", c.what, row.Key(), z.Arithmetic)
			}
		}
	}
}

// fusedActivation is a golden's feed-forward layers, of which down_proj is bf16(Σ w·bf16(act(gate)·up)): act is not rounded.
func fusedActivation(t *testing.T, dir string, act func(x float64) float64, scale float64) *capture.Trace {
	t.Helper()
	ck, list := openModel(t, dir)
	golden := openGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	last := map[string][]float64{}
	return rewritten(t, golden, func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }, func(_ string, e hooks.Event) []hooks.Event {
		layer, name, found := strings.Cut(e.Name, ".mlp.")
		switch {
		case e.Name == "input_ids", e.Name == "position_ids":
			return []hooks.Event{e}
		case !found, name == "gated":
			return nil
		case name != "down_proj":
			last[name] = valuesOf(e.Tensor)
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
		return []hooks.Event{in(e.Pass, fire(e.Name, hooks.BF16, e.Tensor.Shape, y...))}
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
