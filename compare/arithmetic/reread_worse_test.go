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
)

// An arithmetic that reads an operand before it is rounded explains many results of four elements by chance. It decides nothing if the engine's own
// arithmetic explains more: only the layer with a sigmoid is accused.
func TestRereadingThatExplainsFewerEntriesDecidesNothing(t *testing.T) {
	for _, wrong := range []string{"layers.2", "layers.3", "layers.4"} {
		accusesOneRouter(t, wrong)
	}
}

// accusesOneRouter holds the routers of a trace to a verdict: BUG in the wrong layer alone.
func accusesOneRouter(t *testing.T, wrong string) {
	t.Helper()
	const dir = "gemma3n-tiny"
	trace := routers(t, dir, wrong)
	ck, list := ordertest.Embedded(t, dir)
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.BF16), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range trace.Records() {
		if !strings.HasSuffix(r.Name, ".modalities") {
			continue
		}
		c, err := i.Certify(context.Background(), r.Name, r.Pass)
		if err != nil {
			t.Fatalf("%s: %v", r.Key, err)
		}
		if strings.HasPrefix(r.Name, wrong+".") != (c.Outcome == isolate.Bug) {
			t.Errorf("%s is wrong: %s: %s, %q, %d outside", wrong, r.Key, c.Outcome, c.Arithmetic, c.Outside)
		}
	}
}

// routers is a golden at level 2, with three passes, and with the modalities of an engine that rounds every step: tanh of the wrong layer is a sigmoid.
func routers(t *testing.T, dir, wrong string) *capture.Trace {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	weight := func(name string) [][]float64 {
		entry, _ := list.Lookup(name)
		rows, err := reference.Weights(ck, hooks.BF16)(entry.Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		return matrixOf(t, rows)
	}
	r := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	router := func(layer string, x []float64) (y []float64) {
		gain, w := weight(layer + ".altup.predict.router_norm")[0], weight(layer+".altup.predict.modality_router")
		squares := 0.0
		for _, v := range x {
			squares += r(v * v)
		}
		inv := r(1 / math.Sqrt(r(r(squares/float64(len(x)))+r(1e-6))))
		for _, of := range w {
			sum := 0.0
			for k, v := range x {
				sum += of[k] * r(r(r(v*inv)*gain[k])*r(1/float64(len(x))))
			}
			if sum = r(sum); layer == wrong {
				y = append(y, r(1/(1+math.Exp(-sum))))
			} else {
				y = append(y, r(math.Tanh(sum)))
			}
		}
		return y
	}
	var from []float64 // what the next router reads: the first stream of a layer's input, or what is to be corrected
	golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	level := func(m *capture.Manifest) {
		m.Scope, m.Entries = capture.Scope{Level: 2}, nil
		for _, e := range m.Scope.Select(list) {
			m.Entries = append(m.Entries, e.Name)
		}
	}
	return testengine.Rewritten(t, golden, level, func(_ string, e hooks.Event) []hooks.Event {
		entry, _ := list.Lookup(e.Name)
		layer, name, _ := strings.Cut(e.Name, ".altup.")
		switch {
		case entry.Level > 2 || e.Pass > 2:
			return nil
		case strings.HasSuffix(e.Name, ".in"):
			all := testengine.ValuesOf(e.Tensor)
			from = all[:len(all)/4]
		case strings.HasSuffix(e.Name, ".attn_ffw_laurel_gated"):
			from = testengine.ValuesOf(e.Tensor)
		case strings.HasSuffix(name, "modalities"):
			var y []float64
			for width := 32; len(from) > 0; from = from[width:] {
				y = append(y, router(layer, from[:width])...)
			}
			return []hooks.Event{testengine.InPass(e.Pass, testengine.Fire(e.Name, hooks.BF16, e.Tensor.Shape, y...))}
		}
		return []hooks.Event{e}
	})
}
