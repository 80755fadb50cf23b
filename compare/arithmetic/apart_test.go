package arithmetic_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A compiler rotates queries and keys in float32 in front of a fused attention. Two layers read the rounded cosines, and the last layer reads them
// rounded for its queries alone: the layers are right, and what the last one does is said. A mistake in the last
// layer is none of this: its result multiplied, or its keys turned too far.
func TestQueriesAndKeysReadATableApart(t *testing.T) {
	const said = "rounds the common input of queries and keys for only one of them"
	for _, c := range []struct {
		what string
		attention
		bad string // the layers that are accused
	}{
		{"healthy", attention{result: 1}, ""},
		{"the last layer is scaled", attention{result: 1.25}, "2"},
		{"keys of the last layer are turned by one position more", attention{result: 1, ahead: 1}, "2"},
	} {
		of := certifier(t, "qwen3-tiny", c.attention.trace(t, "qwen3-tiny"))
		for layer, name := range []string{"layers.0.self_attn.o_proj", "layers.1.self_attn.o_proj", "layers.2.self_attn.o_proj"} {
			z := of(name)
			switch wrong := strings.Contains(c.bad, name[7:8]); {
			case wrong != (z.Outcome == isolate.Bug):
				t.Errorf("%s: %s: %s, %d outside: %s", c.what, name, z.Outcome, z.Outside, z.Arithmetic)
			case !wrong && z.Outcome != isolate.Rounding:
				t.Errorf("%s: %s: %s: %s", c.what, name, z.Outcome, z.Arithmetic)
			case !wrong && strings.Contains(z.Arithmetic, said) != (layer == 2):
				t.Errorf("%s: %s: %s", c.what, name, z.Arithmetic)
			}
		}
	}
}

// A mistake of all layers is named under a kernel with float32 in front of it: neither the kernel alone with the mistake nor float32 in front without
// it gives the elements.
func TestMistakesUnderAttentionThatACompilerFused(t *testing.T) {
	of := certifier(t, "qwen3-tiny", attention{result: 1, alike: true, scaled: 2}.trace(t, "qwen3-tiny"))
	for _, name := range []string{"layers.0.self_attn.o_proj", "layers.1.self_attn.o_proj", "layers.2.self_attn.o_proj"} {
		if z := of(name); z.Outcome != isolate.Bug || !strings.Contains(z.Mistake, "the factor 0.288675 is applied twice") {
			t.Errorf("%s: %s, %q: %s", name, z.Outcome, z.Mistake, z.Arithmetic)
		}
	}
}

// A mask with blocks changes the last tokens alone, and has its name under a kernel whose operands are rounded as transformers does, and under one with
// float32 in front of it.
func TestMasksUnderFusedAttention(t *testing.T) {
	for _, a := range []attention{
		{result: 1, alike: true, rounded: true, block: 8},
		{result: 1, alike: true, rounded: true, block: 30, tokens: 48},
		{result: 1, alike: true, block: 30, tokens: 48},
	} {
		of, want := certifier(t, "qwen3-tiny", a.trace(t, "qwen3-tiny")), fmt.Sprintf("within their block of %d tokens", a.block)
		for _, name := range []string{"layers.0.self_attn.o_proj", "layers.1.self_attn.o_proj", "layers.2.self_attn.o_proj"} {
			if z := of(name); z.Outcome != isolate.Bug || !strings.Contains(z.Mistake, want) {
				t.Errorf("%s: %s, %q: %s", name, z.Outcome, z.Mistake, z.Arithmetic)
			}
		}
	}
}

// A mistake too small for the bounds of attention in 16 bits proves nothing, and no arithmetic gives its elements. The search for one ends, and the certificate
// names the flag with which it goes on.
func TestASearchThatStoppedNamesTheFlag(t *testing.T) {
	of := certifier(t, "qwen3-tiny", attention{result: 1, alike: true, rounded: true, off: 0.004}.trace(t, "qwen3-tiny"))
	if z := of("layers.1.self_attn.o_proj"); z.Outcome != isolate.Unidentified || z.Stopped != "--search-work 30x goes on" || !strings.Contains(z.Unidentified(), z.Stopped) {
		t.Errorf("%s: %s, stopped %q", z.Outcome, z.Unidentified(), z.Stopped)
	}
}

// attention is an engine's fused attention in plain loops, with queries and keys that are drawn.
type attention struct {
	result float64 // what the last layer's result is multiplied by: 1 in a healthy engine
	ahead  int     // positions by which the keys of the last layer are turned too far
	alike  bool    // the last layer reads the tables as the others do
	scaled int     // how often scores are scaled; 0 for once
	block  int     // tokens of a block, whose queries see their own block alone; 0 for none
	tokens int     // 0: as many as the golden has
	f32    bool    // the model's dtype is float32; else bfloat16
	faint  float64 // how little the first layer looks beyond its block: the weight of a key there is e^-faint
	spared bool    // the first layer has no blocks
	off    float64 // how far the scale is off: 0 in a healthy engine
	// rounded: queries and keys are rotated as transformers rotates them, with a rounding after each step; else in float32.
	rounded bool
}

func (a attention) dtype() hooks.DType {
	if a.f32 {
		return hooks.F32
	}
	return hooks.BF16
}

// trace is a run of some layers of which queries, keys, values and the output were captured.
func (a attention) trace(t *testing.T, dir string) *capture.Trace {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	golden := testengine.OpenGolden(t, "golden/"+dir+"/prefill."+a.dtype().String()+".safetensors")
	rng := rand.New(rand.NewPCG(7, 7))
	entry, _ := list.Lookup("rotary.cos")
	turns := op.Frequencies(entry.Op.(op.Rotary))
	last := map[string][]float64{}
	return testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }, func(_ string, e hooks.Event) []hooks.Event {
		layer, name, _ := strings.Cut(e.Name, ".self_attn.")
		shape := e.Tensor.Shape
		if a.tokens > 0 && len(shape) > 1 {
			shape = slices.Clone(shape)
			shape[1] = a.tokens
		}
		switch {
		case e.Name == "input_ids", e.Name == "position_ids":
			ids := make([]float64, sizeOf(shape))
			for i := range ids {
				ids[i] = float64(i)
			}
			return []hooks.Event{testengine.Fire(e.Name, hooks.I64, shape, ids...)}
		case name == "q_norm", name == "k_norm", name == "v_proj":
			x := make([]float64, sizeOf(shape))
			for i := range x {
				x[i] = floats.Round(a.dtype(), 2*rng.NormFloat64())
			}
			if layer == "layers.0" && a.faint > 0 {
				a.turnedAway(name, x, len(turns))
			}
			last[name] = x
			return []hooks.Event{testengine.Fire(e.Name, a.dtype(), shape, x...)}
		case name != "o_proj":
			return nil
		}
		entry, _ := list.Lookup(e.Name)
		rows, err := reference.Weights(ck, a.dtype())(entry.Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		block := a.block
		if layer == "layers.0" && a.spared {
			block = 0
		}
		own, ahead, by := layer == "layers.2" && !a.alike, 0, 1.0
		if own {
			ahead, by = a.ahead, a.result
		}
		tokens, width := shape[1], 2*len(turns)
		q := rotatedBy(last["q_norm"], tokens, turns, 0, true, a.rounded, a.dtype())
		k := rotatedBy(last["k_norm"], tokens, turns, ahead, !own, a.rounded, a.dtype())
		context := attend(q, k, last["v_proj"], tokens, width, max(a.scaled, 1), block, 1+a.off, a.dtype())
		var y []float64
		for token := range tokens {
			x := context[token*len(context)/tokens:]
			for _, of := range matrixOf(t, rows) {
				sum := 0.0
				for i, w := range of {
					sum += w * x[i]
				}
				y = append(y, floats.Round(a.dtype(), by*sum))
			}
		}
		return []hooks.Event{testengine.Fire(e.Name, a.dtype(), shape, y...)}
	})
}

// turnedAway turns the keys of the first block away from all queries, in the pair that a position turns least, and makes the other pairs small: such a key
// has the same low weight for all queries.
func (a attention) turnedAway(name string, x []float64, half int) {
	for i := range x {
		x[i] /= 8
	}
	for from := 0; from < len(x); from += 2 * half {
		switch first := from/(2*half) < a.block; {
		case name == "q_norm":
			x[from+half-1], x[from+2*half-1] = floats.Round(a.dtype(), a.faint*math.Sqrt(float64(2*half))), 0
		case name == "k_norm" && first:
			x[from+half-1], x[from+2*half-1] = -1, 0
		case name == "k_norm":
			x[from+half-1], x[from+2*half-1] = 0, 0
		}
	}
}

// rotatedBy rotates vectors, [tokens, heads, 2 × turns], in float32 and rounds the result once. The cosines are rounded or not. Each: the sines, the
// products and their sum are rounded too.
func rotatedBy(x []float64, tokens int, turns []float64, ahead int, rounded, each bool, d hooks.DType) []float64 {
	round := func(x float32) float32 {
		if each {
			return float32(floats.Round(d, float64(x)))
		}
		return x
	}
	half := len(turns)
	y := make([]float64, len(x))
	for from := 0; from < len(x); from += 2 * half {
		position := float32(from/(len(x)/tokens) + ahead)
		for j, turn := range turns {
			angle := float64(position * float32(turn))
			cos, sin := float32(math.Cos(angle)), float32(math.Sin(angle))
			sin = round(sin)
			if rounded || each {
				cos = float32(floats.Round(d, float64(cos)))
			}
			a, b := float32(x[from+j]), float32(x[from+j+half])
			y[from+j] = floats.Round(d, float64(round(a*cos)-round(b*sin)))
			y[from+j+half] = floats.Round(d, float64(round(b*cos)+round(a*sin)))
		}
	}
	return y
}

// attend is attention as a fused kernel computes it whose keys are one block, [tokens, heads × width]; keys and values have one head. Scores are scaled by
// 1/√width so often, times off. A query sees the keys from the beginning of its block on.
func attend(q, k, v []float64, tokens, width, scaled, block int, off float64, d hooks.DType) []float64 {
	scale := float32(off * math.Pow(float64(width), -float64(scaled)/2))
	out := make([]float64, len(q))
	for from := 0; from < len(q); from += width {
		keys, first := from/(len(q)/tokens)+1, 0
		if block > 0 {
			first = (keys - 1) / block * block
		}
		scores, top := make([]float32, keys), float32(math.Inf(-1))
		for j := first; j < keys; j++ {
			sum := 0.0
			for i := range width {
				sum += q[from+i] * k[j*width+i]
			}
			scores[j] = float32(sum) * scale
			top = max(top, scores[j])
		}
		sum, o := 0.0, make([]float64, width)
		for _, s := range scores[first:] {
			sum += float64(float32(math.Exp(float64(s - top))))
		}
		for j, s := range scores[first:] {
			p := floats.Round(d, float64(float32(math.Exp(float64(s-top)))))
			for i := range o {
				o[i] += p * v[(first+j)*width+i]
			}
		}
		for i := range o {
			out[from+i] = floats.Round(d, float64(float32(o[i])*(1/float32(sum))))
		}
	}
	return out
}

func sizeOf(shape []int) int { n, _ := hooks.Elements(shape); return n }
