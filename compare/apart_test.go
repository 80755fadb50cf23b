package compare_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
)

// A compiler rotates queries and keys in float32 in front of a fused attention. Two layers read the rounded cosines, and the last layer reads them
// rounded for its queries alone: the layers are right, and what the last one does is said. A mistake in the last
// layer is none of this: its result multiplied, or its keys turned too far.
func TestQueriesAndKeysReadATableApart(t *testing.T) {
	const said = "rounds what queries and keys are both computed from for one of them alone"
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
			case wrong != (z.Outcome == certify.Bug):
				t.Errorf("%s: %s: %s, %d outside: %s", c.what, name, z.Outcome, z.Outside, z.Arithmetic)
			case !wrong && z.Outcome != certify.Rounding:
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
		if z := of(name); z.Outcome != certify.Bug || !strings.Contains(z.Mistake, "the factor 0.288675 is applied twice") {
			t.Errorf("%s: %s, %q: %s", name, z.Outcome, z.Mistake, z.Arithmetic)
		}
	}
}

// A mask with blocks of eight tokens changes the last tokens alone, and has its name under a kernel whose operands are rounded as transformers does.
func TestMasksUnderFusedAttention(t *testing.T) {
	of := certifier(t, "qwen3-tiny", attention{result: 1, alike: true, rounded: true, block: 8}.trace(t, "qwen3-tiny"))
	for _, name := range []string{"layers.0.self_attn.o_proj", "layers.1.self_attn.o_proj", "layers.2.self_attn.o_proj"} {
		if z := of(name); z.Outcome != certify.Bug || !strings.Contains(z.Mistake, "the mask has blocks of 8 tokens") {
			t.Errorf("%s: %s, %q: %s", name, z.Outcome, z.Mistake, z.Arithmetic)
		}
	}
}

// attention is an engine's fused attention in plain loops, with queries and keys that are drawn.
type attention struct {
	result float64 // what the last layer's result is multiplied by: 1 in a healthy engine
	ahead  int     // positions by which the keys of the last layer are turned too far
	alike  bool    // the last layer reads the tables as the others do
	scaled int     // how often scores are scaled; 0 for once
	block  int     // tokens of a block, whose queries see their own block alone; 0 for none
	// rounded: queries and keys are rotated as transformers rotates them, with a rounding after each step; else in float32.
	rounded bool
}

// trace is a run of some layers of which queries, keys, values and the output were captured.
func (a attention) trace(t *testing.T, dir string) *capture.Trace {
	t.Helper()
	ck, list := openModel(t, dir)
	golden := openGolden(t, "golden/"+dir+"/prefill.bfloat16.safetensors")
	rng := rand.New(rand.NewPCG(7, 7))
	entry, _ := list.Lookup("rotary.cos")
	turns := op.Frequencies(entry.Op.(op.Rotary))
	last := map[string][]float64{}
	return rewritten(t, golden, func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }, func(_ string, e hooks.Event) []hooks.Event {
		layer, name, _ := strings.Cut(e.Name, ".self_attn.")
		switch {
		case e.Name == "input_ids", e.Name == "position_ids":
			return []hooks.Event{e}
		case name == "q_norm", name == "k_norm", name == "v_proj":
			x := valuesOf(e.Tensor)
			for i := range x {
				x[i] = floats.Round(hooks.BF16, 2*rng.NormFloat64())
			}
			last[name] = x
			return []hooks.Event{fire(e.Name, hooks.BF16, e.Tensor.Shape, x...)}
		case name != "o_proj":
			return nil
		}
		entry, _ := list.Lookup(e.Name)
		rows, err := reference.Weights(ck, hooks.BF16)(entry.Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		own, ahead, by := layer == "layers.2" && !a.alike, 0, 1.0
		if own {
			ahead, by = a.ahead, a.result
		}
		tokens, width := e.Tensor.Shape[1], 2*len(turns)
		q := rotatedBy(last["q_norm"], tokens, turns, 0, true, a.rounded)
		k := rotatedBy(last["k_norm"], tokens, turns, ahead, !own, a.rounded)
		context := attend(q, k, last["v_proj"], tokens, width, max(a.scaled, 1), a.block)
		var y []float64
		for token := range tokens {
			x := context[token*len(context)/tokens:]
			for _, of := range matrixOf(t, rows) {
				sum := 0.0
				for i, w := range of {
					sum += w * x[i]
				}
				y = append(y, floats.Round(hooks.BF16, by*sum))
			}
		}
		return []hooks.Event{fire(e.Name, hooks.BF16, e.Tensor.Shape, y...)}
	})
}

// rotatedBy rotates vectors, [tokens, heads, 2 × turns], in float32 and rounds the result once. The cosines are rounded or not. Each: the sines, the
// products and their sum are rounded too.
func rotatedBy(x []float64, tokens int, turns []float64, ahead int, rounded, each bool) []float64 {
	round := func(x float32) float32 {
		if each {
			return float32(floats.Round(hooks.BF16, float64(x)))
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
				cos = float32(floats.Round(hooks.BF16, float64(cos)))
			}
			a, b := float32(x[from+j]), float32(x[from+j+half])
			y[from+j] = floats.Round(hooks.BF16, float64(round(a*cos)-round(b*sin)))
			y[from+j+half] = floats.Round(hooks.BF16, float64(round(b*cos)+round(a*sin)))
		}
	}
	return y
}

// attend is attention as a fused kernel computes it whose keys are one block, [tokens, heads × width]; keys and values have one head. Scores are scaled by
// 1/√width so often. A query sees the keys from the beginning of its block on.
func attend(q, k, v []float64, tokens, width, scaled, block int) []float64 {
	scale := float32(math.Pow(float64(width), -float64(scaled)/2))
	out := make([]float64, len(q))
	for from := 0; from < len(q); from += width {
		keys, first := from/(len(q)/tokens)+1, 0
		if block > 0 {
			first = (keys - 1) / block * block
		}
		scores, top := make([]float32, keys), float32(math.Inf(-1))
		for j := first; j < keys; j++ {
			sum := 0.0
			for d := range width {
				sum += q[from+d] * k[j*width+d]
			}
			scores[j] = float32(sum) * scale
			top = max(top, scores[j])
		}
		sum, o := 0.0, make([]float64, width)
		for _, s := range scores[first:] {
			sum += float64(float32(math.Exp(float64(s - top))))
		}
		for j, s := range scores[first:] {
			p := floats.Round(hooks.BF16, float64(float32(math.Exp(float64(s-top)))))
			for d := range o {
				o[d] += p * v[(first+j)*width+d]
			}
		}
		for d := range o {
			out[from+d] = floats.Round(hooks.BF16, float64(float32(o[d])*(1/float32(sum))))
		}
	}
	return out
}
