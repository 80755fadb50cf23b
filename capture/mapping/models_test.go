package mapping_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// One name of an engine is another entry in another family: a table of a model_type has its lines, beside those of all.
func TestLinesOfAModel(t *testing.T) {
	text := `[tensors]
"last" = "norm"
[model.llama.tensors]
"n" = "layers.0.post_attention_layernorm"
[model.gemma3_text.tensors]
"n" = "layers.0.pre_feedforward_layernorm"
`
	m, err := mapping.Parse("map.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"llama-tiny": "layers.0.post_attention_layernorm", "gemma3-tiny": "layers.0.pre_feedforward_layernorm"} {
		_, list := mappingtest.Golden(t, model+"/prefill.float32")
		dump := mappingtest.Assembled(t, mappingtest.Counted("n", 0, 3, 2), mappingtest.Counted("last", 0, 5, 2))
		if !m.Matches(dump) {
			t.Error("no line matches")
		}
		a, err := m.Apply(dump, list)
		if err != nil {
			t.Fatal(err)
		}
		if _, v := mappingtest.Elements(t, a.Trace, 0, want); v[0] != 3 || len(a.Absent) > 0 {
			t.Error(model, v, a.Absent)
		}
	}
	for model, want := range map[string]string{
		"qwen3-tiny": "map.toml: it has lines for gemma3_text, llama, and no lines for qwen3",
		"":           "map.toml: it has lines for gemma3_text, llama, and the model is not known",
	} {
		var list *order.List
		if model != "" {
			_, list = mappingtest.Golden(t, model+"/prefill.float32")
		}
		if _, err := m.Apply(mappingtest.Assembled(t, mappingtest.Counted("n", 0, 0, 2)), list); err == nil || err.Error() != want {
			t.Errorf("%s: %v", model, err)
		}
	}
	if m.String() == "" || !strings.Contains(m.String(), "gemma3_text:\n") {
		t.Errorf("%s", m)
	}
	for lines, want := range map[string]string{
		"[tensors]\n'a' = 'x'\n[model.llama.tensors]\n'b' = 'y'\n'c' = 3": `map.toml: line 5, "c": want a name, or a table`,
		"[tensors]\n'a' = 'x'\n[model.llama.tensors]\n'a' = 'y'":          `map.toml: line 4, "a": [tensors] and [model.llama.tensors] both have a line with this pattern`,
		"[model.'a b'.tensors]\n'a' = 'y'":                                "map.toml: the NAME of a table [model.NAME.tensors] is not a model_type",
		"[model.llama]\n'a' = 'y'":                                        "map.toml",
	} {
		if _, err := mapping.Parse("map.toml", []byte(lines)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v", lines, err)
		}
	}
}

// A tensor before a bias is an entry only where the port has no bias.
func TestUnlessAnotherIsThere(t *testing.T) {
	lines := "'gate_b-{L}' = 'layers.{L}.gate'\n'gate-{L}' = { to = 'layers.{L}.gate', unless = 'gate_b-{L}' }"
	a := applied(t, lines, mappingtest.Counted("gate-0", 0, 1, 2), mappingtest.Counted("gate_b-0", 0, 2, 2), mappingtest.Counted("gate-1", 0, 3, 2), mappingtest.Counted("gate-0", 1, 4, 2))
	for _, want := range []struct {
		pass int
		name string
		has  float32
	}{{0, "layers.0.gate", 2}, {0, "layers.1.gate", 3}, {1, "layers.0.gate", 4}} {
		if _, v := mappingtest.Elements(t, a.Trace, want.pass, want.name); v[0] != want.has {
			t.Errorf("pass %d: %s is %v, want %v", want.pass, want.name, v[0], want.has)
		}
	}
	if n := len(a.Trace.Records()); n != 3 {
		t.Errorf("%d tensors", n)
	}
	if _, err := mapping.Parse("map.toml", []byte("[tensors]\n'a{L}' = { to = 'b{L}', unless = 'c{M}' }")); err == nil || !strings.Contains(err.Error(), "unless: {M} is in the target") {
		t.Error(err)
	}
	if _, err := mapping.Parse("map.toml", []byte("[tensors]\n'a{L}' = { to = 'b{L}', unless = 'a{L}' }")); err == nil || !strings.Contains(err.Error(), "unless is the pattern of its own line") {
		t.Error(err)
	}
	if _, err := mapping.Parse("map.toml", []byte("[weights]\n'a{L}' = { to = 'b{L}', unless = 'c{L}' }")); err == nil || !strings.Contains(err.Error(), "unless are for [tensors]") {
		t.Error(err)
	}
}

// A name that fires once more where there is a bias is counted from its end.
func TestFiringsFromTheEnd(t *testing.T) {
	for firings := 3; firings <= 4; firings++ {
		var all []capture.Source
		for n := range firings {
			s := mappingtest.Counted("q", 0, 10*n, 1)
			s.Firing = n
			all = append(all, s)
		}
		a := applied(t, "'q#last-1' = 'q_proj'\n'q#last' = 'q_rope'\n'q#0' = { to = [] }\n'q#last-2' = { to = [] }", all...)
		_, proj := mappingtest.Elements(t, a.Trace, 0, "q_proj")
		_, rope := mappingtest.Elements(t, a.Trace, 0, "q_rope")
		if proj[0] != float32(10*(firings-2)) || rope[0] != float32(10*(firings-1)) || len(a.Trace.Records()) != 2 {
			t.Errorf("%d firings: %v and %v, %d tensors", firings, proj, rope, len(a.Trace.Records()))
		}
	}
	for _, text := range []string{"q#last-0", "q#last-", "q#last-1000", "q#lastly", "q#-1"} {
		if _, err := mapping.Parse("map.toml", []byte("[tensors]\n'"+text+"' = 'x'")); err == nil || !strings.Contains(err.Error(), "want a number, last, or last-1") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
