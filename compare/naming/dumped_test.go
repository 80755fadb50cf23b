package naming_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// scaled multiplies a tensor by a number.
func scaled(by float64) func([]float64) {
	return func(data []float64) {
		for i := range data {
			data[i] *= by
		}
	}
}

// cleared has zeros in the place of the second half of a tensor.
func cleared(data []float64) { clear(data[len(data)/2:]) }

// inPrompt changes the last row of 16 elements of the prompt, and no decode step.
func inPrompt(change func(row []float64)) func([]float64) {
	return func(data []float64) {
		if len(data) > 16 {
			change(data[len(data)-16:])
		}
	}
}

// A tensor is wrong only in the dump if all operations that read it are right with the right values. Where an operation has read what was dumped, or is wrong
// with the right values too, the port is wrong.
func TestATensorThatIsWrongOnlyInTheDump(t *testing.T) {
	const norm, q, k, v, context, o = "layers.1.input_layernorm", "layers.1.self_attn.q_proj", "layers.1.self_attn.k_proj", "layers.1.self_attn.v_proj", "layers.1.self_attn.context", "layers.1.self_attn.o_proj"
	for _, c := range []struct {
		what    string
		dtype   string
		change  map[string]func([]float64)
		of      string
		says    string // of the wrong tensor
		readers map[string]string
	}{
		{
			"a factor", "float32",
			map[string]func([]float64){context: scaled(1.01)},
			context, "is multiplied by 1.01, in layers.1 only; with the right values, self_attn.o_proj is right: wrong only in the dump, or two mistakes cancel",
			map[string]string{o: "with the right " + context + ", every element is right: " + context + " was not dumped as it was read, or two mistakes cancel"},
		},
		{
			"16 bits", "bfloat16",
			map[string]func([]float64){context: scaled(1.5)},
			context, "; with the right values, self_attn.o_proj is right: wrong only in the dump, or two mistakes cancel",
			map[string]string{o: "with the right " + context},
		},
		{
			"three readers", "float32",
			map[string]func([]float64){norm: cleared},
			norm, "; with the right values, self_attn.q_proj, self_attn.k_proj, self_attn.v_proj are right: wrong only in the dump, or two mistakes cancel",
			map[string]string{q: "with the right " + norm, k: "with the right " + norm, v: "with the right " + norm},
		},
		{
			"the reader is in the layer after", "float32",
			map[string]func([]float64){"layers.0.out": cleared},
			"layers.0.out", "; with the right values, in is right: wrong only in the dump, or two mistakes cancel",
			map[string]string{"layers.1.in": "with the right layers.*.out, every element is right"},
		},
		{
			"one row shows too little", "float32",
			map[string]func([]float64){context: inPrompt(func(row []float64) { row[0]++ })},
			context, "unexplained: no mistake that was tried reproduces all elements", nil,
		},
		{
			"one of three readers has read it, without a name", "float32",
			map[string]func([]float64){norm: inPrompt(func(row []float64) { clear(row) }), v: inPrompt(func(row []float64) { clear(row) })},
			norm, "1 of 5 rows are zeros (in layers.1.input_layernorm: tokens 4)", nil,
		},
		{"the reader has read it", "float32", map[string]func([]float64){context: scaled(2), o: scaled(2)}, context, "is multiplied by 2, in layers.1 only", nil},
		{"the reader is wrong too", "float32", map[string]func([]float64){context: scaled(1.01), o: scaled(1.03)}, context, "is multiplied by 1.01, in layers.1 only", map[string]string{o: ""}},
		{"one of three readers has read it", "float32", map[string]func([]float64){norm: scaled(2), v: scaled(2)}, norm, "is multiplied by 2", map[string]string{q: q + ".weight is multiplied by 0.5"}},
		{"a mistake that cancels it has a name", "float32", map[string]func([]float64){context: scaled(2)}, context, "is multiplied by 2, in layers.1 only", map[string]string{o: o + ".weight is multiplied by 0.5"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			golden := testengine.OpenGolden(t, "golden/llama-tiny/decode."+c.dtype+".safetensors")
			trace := testengine.Tampered(t, golden, func(_ string, r capture.Record, data []float64) ([]float64, hooks.DType) {
				if change := c.change[r.Name]; change != nil {
					change(data)
				}
				return data, r.DType
			})
			dtype, err := hooks.ParseDType(c.dtype)
			if err != nil {
				t.Fatal(err)
			}
			ck, list := ordertest.Embedded(t, "llama-tiny")
			i, err := compare.NewIsolator(trace, list, reference.Weights(ck, dtype), isolate.Options{DType: dtype})
			if err != nil {
				t.Fatal(err)
			}
			f, err := i.Name(t.Context(), c.of)
			if err != nil {
				t.Fatal(err)
			}
			inDump := strings.Contains(c.says, "only in the dump")
			if !strings.HasSuffix(f.Text(), c.says) || inDump != (len(f.DumpOnly) > 0) || inDump && f.Page != "docs/mistakes.md#hooks-at-another-point" {
				t.Errorf("%s: %q, %s", c.of, f.Text(), f.Page)
			}
			for name, says := range c.readers {
				f, err := i.Name(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(f.Text(), says) || says == "" && f.Relation.Kind != "" {
					t.Errorf("%s: %q", name, f.Text())
				}
			}
		})
	}
}

// A trace without position_ids: the reader of a wrong tensor is computed from the positions that are assumed, and they have no evidence of their own.
func TestThatIsWrongOnlyInADumpWithoutPositions(t *testing.T) {
	const q = "layers.1.self_attn.q_proj"
	golden := testengine.OpenGolden(t, "golden/llama-tiny/decode.float32.safetensors")
	trace := testengine.Rewritten(t, golden, nil, func(_ string, e hooks.Event) []hooks.Event {
		if e.Name == order.PositionIDs || strings.HasPrefix(e.Name, "rotary") {
			return nil
		}
		return []hooks.Event{e}
	})
	trace = testengine.Tampered(t, trace, func(_ string, r capture.Record, data []float64) ([]float64, hooks.DType) {
		if r.Name == q {
			cleared(data)
		}
		return data, r.DType
	})
	ck, list := ordertest.Embedded(t, "llama-tiny")
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.F32), isolate.Options{DType: hooks.F32})
	if err != nil {
		t.Fatal(err)
	}
	f, err := i.Name(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(f.Text(), "; with the right values, self_attn.q_rope is right: wrong only in the dump, or two mistakes cancel") {
		t.Errorf("%q", f.Text())
	}
}
