package propose_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
)

// element is a tensor of a trace in an element of a list, under another name.
func element(t *testing.T, trace *capture.Trace, pass int, name, key string) capture.Source {
	t.Helper()
	r, data := mappingtest.Raw(t, trace, pass, name)
	return capture.Source{Key: key, Name: key, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)}
}

// Elements of a list are layers where two of them have the values of two layers, whatever the others have. Else they may be passes, which
// is a choice.
func TestListsAreLayersOrPasses(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/decode.float32")
	var layers, passes []capture.Source
	for n := range 3 {
		layers = append(layers, element(t, trace, 0, fmt.Sprintf("layers.%d.self_attn.o_proj", n), fmt.Sprintf("%d.self_attn.o_proj", n)),
			element(t, trace, 0, fmt.Sprintf("layers.%d.input_layernorm", n), fmt.Sprintf("%d.normed", n)))
		passes = append(passes, element(t, trace, n, "norm", fmt.Sprintf("%d.act", n)), element(t, trace, n, "logits", fmt.Sprintf("%d.out", n)))
	}
	p, text := proposed(t, mappingtest.Assembled(t, layers...), list, trace)
	if p.Open() > 0 || !strings.Contains(text, `"{L}.self_attn.o_proj" = "layers.{L}.self_attn.o_proj" # values: 3 of 3`) || !strings.Contains(text, `"{L}.normed" = "layers.{L}.input_layernorm"`) {
		t.Error(text)
	}
	wrong, data := mappingtest.Raw(t, trace, 0, "layers.1.self_attn.o_proj")
	slices.Reverse(data)
	layers[2].Data = bytes.NewReader(data[:wrong.Size])
	if p, text = proposed(t, mappingtest.Assembled(t, layers...), list, trace); p.Open() > 0 || !strings.Contains(text, "# values: 2 of 3") {
		t.Error(text)
	}
	p, text = proposed(t, mappingtest.Assembled(t, passes...), list, trace)
	if len(p.Lines) > 0 || len(p.Choices) != 2 || !strings.Contains(text, `# "{S}.act" = { to = "norm", pass = "S" } # values: 1 of 1, relative L2 0.0e+00; if the elements are passes`) {
		t.Error(text)
	}
	again := slices.Clone(passes)
	for n := range 3 {
		again = append(again, element(t, trace, n, "logits", fmt.Sprintf("%d.seen", n)))
	}
	if p, text := proposed(t, mappingtest.Assembled(t, again...), list, trace); p.Open() != 2 || !strings.Contains(text, "\n\"{S}.seen\" = { to = [] } # the same numbers as {S}.out\n") {
		t.Error(text)
	}
	lines := strings.ReplaceAll(text, `# "`, `"`)
	if _, ok := remade(t, mappingtest.Assembled(t, passes...), list, lines).Trace.Lookup(2, "logits"); !ok {
		t.Error(lines)
	}
}

// Elements of a list are passes where the ids in them, whatever they are called, are those that the reference was given pass by pass. The same
// ids in every element say nothing.
func TestListsWithTheReferencesIDsArePasses(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/decode.float32")
	var passes, layers []capture.Source
	for n := range 5 {
		passes = append(passes, element(t, trace, n, "input_ids", fmt.Sprintf("%d.fed", n)), element(t, trace, n, "norm", fmt.Sprintf("%d.act", n)))
	}
	for n := range 3 {
		layers = append(layers, element(t, trace, 0, "input_ids", fmt.Sprintf("%d.fed", n)), element(t, trace, 0, "norm", fmt.Sprintf("%d.act", n)))
	}
	p, text := proposed(t, mappingtest.Assembled(t, passes...), list, trace)
	if p.Open() > 0 || !strings.Contains(text, `"{S}.fed" = { to = "input_ids", pass = "S" }`) || !strings.Contains(text, `"{S}.act" = { to = "norm", pass = "S" } # values: 1 of 1`) {
		t.Error(text)
	}
	if p, text = proposed(t, mappingtest.Assembled(t, layers...), list, trace); p.Open() == 0 {
		t.Error(text)
	}
}
