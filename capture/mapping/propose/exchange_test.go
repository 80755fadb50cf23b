package propose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// withWeightsOf are weights in which two parts of names are exchanged, such as k_proj and v_proj.
func withWeightsOf(weights propose.Weights, one, other string) propose.Weights {
	exchanged := strings.NewReplacer("."+one+".", "."+other+".", "."+other+".", "."+one+".")
	return func(w order.Weight) (program.Rows, error) {
		w.Name = exchanged.Replace(w.Name)
		return weights(w)
	}
}

// renamed is a dump with other names for its tensors. If valuesFirst is true, the values stand in front of the keys.
func renamed(t *testing.T, dump *capture.Trace, name func(string) string, valuesFirst bool) *capture.Trace {
	t.Helper()
	sources := dump.Sources()
	for i := range sources[1:] {
		if valuesFirst && strings.HasSuffix(sources[i].Name, ".attn.k") && strings.HasSuffix(sources[i+1].Name, ".attn.v") {
			sources[i], sources[i+1] = sources[i+1], sources[i]
		}
	}
	for i := range sources {
		sources[i].Name = name(sources[i].Name)
		sources[i].Key = sources[i].Name
	}
	return mappingtest.Assembled(t, sources...)
}

// wordless is a name without words, for a name of [ownNames].
func wordless(name string) string {
	front, own, layered := strings.Cut(strings.TrimPrefix(name, "blocks."), ".")
	if !layered {
		return name
	}
	i := slices.IndexFunc(ownNames, func(names [2]string) bool { return names[0] == "blocks.{L}."+own })
	return fmt.Sprintf("blocks.%s.y%c%c", front, 'a'+i/5, 'a'+i%5)
}

// A port that reads the weights of two operations of one module in each other's place keeps its names: the words of the names say what is what, or else the order of the dump. Where what
// is computed from two tensors takes them for what their values are, the map follows the values.
func TestExchangedWeightsDoNotExchangeNames(t *testing.T) {
	words := func(name string) string { return name }
	labels := strings.NewReplacer("attn.k", "attn.v", "attn.v", "attn.k")
	crossed := func(name string) string {
		if strings.HasSuffix(name, ".attn.k") || strings.HasSuffix(name, ".attn.v") {
			return labels.Replace(name)
		}
		return name
	}
	for _, c := range []struct {
		title, model, one, other string
		name                     func(string) string
		valuesFirst              bool
	}{
		{"keys and values, by words", "gemma3-tiny", "k_proj", "v_proj", words, false},
		{"keys and values, by words", "llama-tiny", "k_proj", "v_proj", words, false},
		{"keys and values, by the order", "gemma3-tiny", "k_proj", "v_proj", wordless, false},
		{"gate and up, by words", "gemma3-tiny", "gate_proj", "up_proj", words, false},
		{"gate and up, by words", "llama-tiny", "gate_proj", "up_proj", words, false},
		{"gate and up, by the order", "gemma3-tiny", "gate_proj", "up_proj", wordless, false},
		{"two norms, by the order", "gemma3-tiny", "post_attention_layernorm", "post_feedforward_layernorm", words, false},
		{"two norms, by the order alone", "gemma3-tiny", "post_attention_layernorm", "post_feedforward_layernorm", wordless, false},
		{"a right port that writes values first", "gemma3-tiny", "", "", wordless, true},
		{"a right port with the labels of keys and values exchanged", "gemma3-tiny", "", "", crossed, false},
	} {
		t.Run(c.model+" "+c.title, func(t *testing.T) {
			trace, list := mappingtest.Golden(t, c.model+"/prefill.float32")
			weights := weightsOf(t, c.model)
			read := weights
			if c.one != "" {
				read = withWeightsOf(weights, c.one, c.other)
			}
			dump := renamed(t, written(t, trace, list, valuesWith(t, read, trace, list, "", nil)), c.name, c.valuesFirst)
			p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			right := map[string]string{}
			for _, names := range ownNames {
				if c.model == "llama-tiny" && names[0] == "blocks.{L}.norm_b" {
					names[1] = "layers.{L}.post_attention_layernorm"
				}
				right[strings.ReplaceAll(c.name(strings.ReplaceAll(names[0], "{L}", "0")), ".0.", ".{L}.")] = names[1]
			}
			for _, l := range p.Lines {
				if len(l.To) != 1 || l.To[0] != right[l.From] {
					t.Errorf("%s is %v, want %s # %s", l.From, l.To, right[l.From], l.Why)
				}
				exchanged := c.one != "" && len(l.To) == 1 && (strings.HasSuffix(l.To[0], c.one) || strings.HasSuffix(l.To[0], c.other))
				if exchanged != (l.By != "") {
					t.Errorf("%s stands on %q # %s", l.From, l.By, l.Why)
				}
			}
			if p.Open() > 0 {
				t.Errorf("open: %v, %v", p.Left, p.Choices)
			}
		})
	}
}

// Tensors without words that are told one by one, each as the entry of its own layer, have one line.
func TestSingleTensorsOfAllLayersHaveOneLine(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	right, weights := wrongPort(t, "llama-tiny", trace, list, "layers.{L}.self_attn.q_rope", func(x []float64, _ func(string) []float64) {
		for i := range x {
			x[i] *= 1.6
		}
	})
	dump := renamed(t, right, wordless, false)
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	var lines []propose.Line
	for _, l := range p.Lines {
		if strings.HasSuffix(l.To[0], ".q_rope") {
			lines = append(lines, l)
		}
	}
	own := strings.Replace(wordless("blocks.0.attn.q_rot"), ".0.", ".{L}.", 1)
	if len(lines) != 1 || lines[0].From != own || lines[0].To[0] != "layers.{L}.self_attn.q_rope" || !strings.HasSuffix(lines[0].Why, ", and the other layers alike)") {
		t.Errorf("%v, open: %v", lines, p.Left)
	}
}
