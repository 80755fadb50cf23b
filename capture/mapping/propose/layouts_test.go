package propose_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
)

// Of entries that have the same values, such as lm_head and the logits of a model without a cap, the one is meant that is captured first.
func TestLogitsAreTheLogits(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	for _, name := range []string{"logits", "my_scores"} {
		r, data := mappingtest.Raw(t, trace, 0, "logits")
		width := r.Shape[2] * r.DType.Size()
		last := capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape[2:], Data: bytes.NewReader(data[len(data)-width:])}
		dump, err := capture.Assemble("port.npz", []capture.Source{copied(t, trace, "input_ids", "input_ids", 0), last}, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, text := proposed(t, dump, list, trace); !strings.Contains(text, `"`+name+`" = { to = "logits", rows = "last" }`) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// An axis that the order has as two may be one in a dump: the inputs of all layers side by side, [T, L·D] for [T, L, D]. The numbers say so, whatever the name.
func TestTwoAxesInOne(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3n-tiny/hello.float32")
	r, data := mappingtest.Raw(t, trace, 0, "embed_tokens_per_layer")
	for _, name := range []string{"embed_tokens_per_layer", "all_layers"} {
		flat := capture.Source{Key: name, Name: name, DType: r.DType, Shape: []int{r.Shape[1], r.Shape[2] * r.Shape[3]}, Data: bytes.NewReader(data)}
		dump := mappingtest.Assembled(t, copied(t, trace, "input_ids", "input_ids", 0), flat)
		want := `"` + name + `" = { to = "embed_tokens_per_layer", axes = "t (l:7 c) -> 1 t l c" } # values: 1 of 1, relative L2 0.0e+00`
		if _, text := proposed(t, dump, list, trace); !strings.Contains(text, want) {
			t.Errorf("no %s:\n%s", want, text)
		}
	}
}

// A tensor that has the name of an entry in another layout is mapped to that entry, and no other tensor is.
func TestNamesInOtherLayouts(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	r, data := mappingtest.Raw(t, trace, 0, "layers.1.self_attn.q_rope") // [1, h, t, c]
	heads, tokens, row := r.Shape[1], r.Shape[2], r.Shape[3]*r.DType.Size()
	var moved []byte
	for token := range tokens {
		for h := range heads {
			moved = append(moved, data[(h*tokens+token)*row:][:row]...)
		}
	}
	const name = "layers.1.self_attn.q_rope"
	other := capture.Source{Key: name, Name: name, DType: r.DType, Shape: []int{tokens, heads, r.Shape[3]}, Data: bytes.NewReader(moved)}
	same := copied(t, trace, "turned", name, 0)
	for _, c := range []struct {
		sources []capture.Source
		want    string
	}{
		{[]capture.Source{other}, `"layers.{L}.self_attn.q_rope" = { to = "layers.{L}.self_attn.q_rope", axes = "t h c -> 1 h t c" }`},
		{[]capture.Source{other, same}, `# "turned"`},
	} {
		dump, err := capture.Assemble("port.npz", append(c.sources, copied(t, trace, "input_ids", "input_ids", 0)), capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, text := proposed(t, dump, list, trace); !strings.Contains(text, c.want) {
			t.Errorf("no %s:\n%s", c.want, text)
		}
	}
}
