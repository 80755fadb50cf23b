package propose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// A layer of a wrong shape has the name that the other layers give, so that a comparison shows its shape: the map leaves nothing out.
func TestLayerOfAnotherShapeIsMapped(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, c := range []struct {
		what, name, of string
		axes           func(shape []int) []int // of layers 0 and 2
		wrong          func(shape []int) []int // of layer 1
		values         bool
		want           []string
	}{
		{
			"transposed", "h%d/res", "layers.%d.out",
			func(s []int) []int { return s[1:] }, func(s []int) []int { return []int{s[2], s[1]} }, true,
			[]string{`"h{L}/res" = "layers.{L}.out" # values: 2 of 3, `},
		},
		{
			"heads behind tokens", "h%d/q", "layers.%d.self_attn.q_rope",
			func(s []int) []int { return s[1:] }, func(s []int) []int { return []int{s[2], s[1], s[3]} }, true,
			[]string{`"h{L}/q" = "layers.{L}.self_attn.q_rope" # values: 2 of 3, `},
		},
		{
			"no axis of heads", "h%d/p", "layers.%d.self_attn.q_proj",
			func(s []int) []int { return []int{s[1], 4, s[2] / 4} }, func(s []int) []int { return s[1:] }, true,
			[]string{
				`"h0/p" = { to = "layers.0.self_attn.q_proj", axes = "t h d -> 1 t (h d)" } # values: 2 of 3, `,
				`"h1/p" = "layers.1.self_attn.q_proj" # the axes of the other layers do not fit its shape`,
				`"h2/p" = { to = "layers.2.self_attn.q_proj", axes = "t h d -> 1 t (h d)" } # values: 2 of 3, `,
			},
		},
		{
			"a known name", "ffn_gate-%d", "layers.%d.mlp.gate_proj",
			func(s []int) []int { return s[1:] }, func(s []int) []int { return []int{s[2], s[1]} }, false,
			[]string{`"ffn_gate-{L}" = "layers.{L}.mlp.gate_proj" # name`},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
			for l := range list.Config.NumLayers {
				s := copied(t, trace, fmt.Sprintf(c.name, l), fmt.Sprintf(c.of, l), 0)
				if s.Shape = c.axes(s.Shape); l == 1 {
					r, _ := mappingtest.Raw(t, trace, 0, fmt.Sprintf(c.of, l))
					s.Shape = c.wrong(r.Shape)
				}
				sources = append(sources, s)
			}
			dump := mappingtest.Assembled(t, sources...)
			ref := trace
			if !c.values {
				ref = nil
			}
			p, text := proposed(t, dump, list, ref)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("it lacks %s", want)
				}
			}
			if len(p.Choices)+len(p.Left) > 0 || t.Failed() {
				t.Fatal(text)
			}
			made := remade(t, dump, list, text).Trace
			for l := range list.Config.NumLayers {
				want, _ := mappingtest.Raw(t, trace, 0, fmt.Sprintf(c.of, l))
				got, _ := mappingtest.Raw(t, made, 0, fmt.Sprintf(c.of, l))
				right := slices.Equal(got.Shape, want.Shape) || slices.Equal(got.Shape, want.Shape[1:])
				if right != (l != 1 || c.what == "no axis of heads") {
					t.Errorf("layer %d has shape %v, and the reference %v", l, got.Shape, want.Shape)
				}
			}
		})
	}
}

// So it is with query, key and value in one tensor, whichever layer is wrong.
func TestFusedLayerOfAnotherShapeIsMapped(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for wrong := range list.Config.NumLayers {
		sources := port(t, trace, list, func(string, []byte) {})
		for i, s := range sources {
			if s.Name == fmt.Sprintf("stage%d/qkv", wrong) {
				sources[i].Shape = []int{s.Shape[1], s.Shape[0]}
			}
		}
		dump := mappingtest.Assembled(t, sources...)
		p, text := proposed(t, dump, list, trace)
		for l := range list.Config.NumLayers {
			want := fmt.Sprintf(`"stage%[1]d/qkv" = { to = ["layers.%[1]d.self_attn.q_proj", "layers.%[1]d.self_attn.k_proj", "layers.%[1]d.self_attn.v_proj"], axes = "t c -> 1 t c", split = "c: 24 | 12 | 12" } # values: 2 of 3`, l)
			if l == wrong {
				want = fmt.Sprintf(`"stage%[1]d/qkv" = "layers.%[1]d.self_attn.q_proj" # the axes of the other layers do not fit its shape`, l)
			}
			if !strings.Contains(text, want+"\n") {
				t.Errorf("it lacks %s", want)
			}
		}
		if len(p.Choices)+len(p.Left) > 0 || t.Failed() {
			t.Fatal(text)
		}
		remade(t, dump, list, text)
	}
}

// Tensors whose number is no layer's are what their values say, each by itself.
func TestNumbersThatAreNoLayers(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	dump := mappingtest.Assembled(t, copied(t, trace, order.InputIDs, order.InputIDs, 0),
		copied(t, trace, "tmp_0", "layers.0.mlp.gate_proj", 0), copied(t, trace, "tmp_1", "layers.1.self_attn.k_proj", 0))
	p, text := proposed(t, dump, list, trace)
	if len(p.Lines) != 2 || p.Open() > 0 || !strings.Contains(text, `"tmp_0" = "layers.0.mlp.gate_proj" # values`) || !strings.Contains(text, `"tmp_1" = "layers.1.self_attn.k_proj" # values`) {
		t.Error(text)
	}
}
