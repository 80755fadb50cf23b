package propose_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// What hooks on all modules of a port see, in the order in which the modules return: entries, or several that one matrix makes. A module that returns what its last part
// has returned has the entry of that part in brackets.
var moduleNames = [][]string{
	{"tok", "embed_tokens"},
	{"blocks.{L}.ln1", "layers.{L}.input_layernorm"},
	{"blocks.{L}.attn.wqkv", "layers.{L}.self_attn.q_proj", "layers.{L}.self_attn.k_proj", "layers.{L}.self_attn.v_proj"},
	{"blocks.{L}.attn.ln_q", "layers.{L}.self_attn.q_norm"},
	{"blocks.{L}.attn.ln_k", "layers.{L}.self_attn.k_norm"},
	{"blocks.{L}.attn.rot.0", "layers.{L}.self_attn.q_rope"},
	{"blocks.{L}.attn.rot.1", "layers.{L}.self_attn.k_rope"},
	{"blocks.{L}.attn.sdpa", "layers.{L}.self_attn.context"},
	{"blocks.{L}.attn.wo", "layers.{L}.self_attn.o_proj"},
	{"blocks.{L}.attn", "[layers.{L}.self_attn.o_proj]"},
	{"blocks.{L}.ln2", "layers.{L}.post_attention_layernorm"},
	{"blocks.{L}.ln3", "layers.{L}.pre_feedforward_layernorm"},
	{"blocks.{L}.mlp.w12", "layers.{L}.mlp.gate_proj", "layers.{L}.mlp.up_proj"},
	{"blocks.{L}.mlp.gelu", "layers.{L}.mlp.act_fn"},
	{"blocks.{L}.mlp.w3", "layers.{L}.mlp.down_proj"},
	{"blocks.{L}.mlp", "[layers.{L}.mlp.down_proj]"},
	{"blocks.{L}.ln4", "layers.{L}.post_feedforward_layernorm"},
	{"blocks.{L}", "layers.{L}.out"},
	{"ln_f", "norm"},
	{"head", "logits"},
}

// hooked is the dump of modules, by the values of entries.
func hooked(t *testing.T, golden *capture.Trace, list *order.List, values map[string]program.Value) *capture.Trace {
	t.Helper()
	r, data := mappingtest.Raw(t, golden, 0, order.InputIDs)
	all := []capture.Source{{Key: order.InputIDs, Name: order.InputIDs, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)}}
	add := func(names []string, layer int) {
		in := func(name string) string {
			return strings.ReplaceAll(strings.Trim(name, "[]"), "{L}", fmt.Sprint(layer))
		}
		shape := slices.Clone(values[in(names[1])].Shape)
		last := len(shape) - 1
		shape[last] = 0
		for _, name := range names[1:] {
			shape[last] += values[in(name)].Shape[last]
		}
		rows, _ := hooks.Elements(shape[:last])
		var data []byte
		for row := range rows {
			for _, name := range names[1:] {
				v := values[in(name)]
				for _, x := range v.Data[row*v.Shape[last]:][:v.Shape[last]] {
					data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
				}
			}
		}
		all = append(all, capture.Source{Key: in(names[0]), Name: in(names[0]), DType: hooks.F32, Shape: shape, Data: bytes.NewReader(data)})
	}
	add(moduleNames[0], 0)
	for l := range list.Config.NumLayers {
		for _, names := range moduleNames[1 : len(moduleNames)-2] {
			add(names, l)
		}
	}
	for _, names := range moduleNames[len(moduleNames)-2:] {
		add(names, 0)
	}
	return mappingtest.Assembled(t, all...)
}

// mappedAs checks that a proposal gives each module its entries, and leaves out those that are copies.
func mappedAs(t *testing.T, p *propose.Proposal) {
	t.Helper()
	got := map[string]string{}
	for _, l := range p.Lines {
		got[l.From] = strings.Join(l.To, " ")
		t.Log(l.From, l.To, l.Why)
	}
	for _, c := range p.Copies {
		got[c.From] = ""
		t.Log(c.From, c.Of)
	}
	for _, names := range moduleNames {
		want := strings.Join(names[1:], " ")
		if strings.HasPrefix(want, "[") {
			want = ""
		}
		if is, ok := got[names[0]]; !ok || is != want {
			t.Errorf("%s is %q, want %q", names[0], is, want)
		}
	}
	if p.Open() > 0 || len(p.Lines)+len(p.Copies) != len(moduleNames) {
		t.Errorf("%d lines, %d copies, %d patterns are open: %v", len(p.Lines), len(p.Copies), p.Open(), p.Left)
	}
}

// Hooks on all modules see some tensors twice. The copy is no reason to doubt what the other is, and is no other entry: also behind a mistake.
func TestModulesThatReturnWhatTheirLastPartReturns(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, c := range []struct {
		spoilt string
		spoil  func(x []float64, of func(string) []float64)
	}{
		{"", nil},
		{"embed_tokens", as("embed_tokens.lookup")},
		{"layers.{L}.input_layernorm", backwards},
		{"layers.{L}.self_attn.q_rope", backwards},
		{"layers.{L}.self_attn.context", backwards},
		{"layers.{L}.attn_residual", as("layers.{L}.post_attention_layernorm")},
		{"layers.{L}.mlp.act_fn", backwards},
	} {
		t.Run(c.spoilt, func(t *testing.T) {
			values, weights := wrongValues(t, "gemma3-tiny", trace, list, c.spoilt, c.spoil)
			dump := hooked(t, trace, list, values)
			p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			mappedAs(t, p)
			for _, l := range p.Lines {
				if l.From == "blocks.{L}.mlp.w3" && l.By != "" {
					t.Errorf("what the copy says of down_proj: %s", l.Why)
				}
			}
		})
	}
}

// A port that changes queries before their norm and shows them: the norm follows from them, but they are not the projected ones, since a fused matrix has those.
func TestFusedProjectionsComeBeforeWhatAPairSays(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	right := map[int][]float64{}
	layer := 0
	values, weights := wrongValues(t, "gemma3-tiny", trace, list, "layers.{L}.self_attn.q_proj", func(x []float64, _ func(string) []float64) {
		right[layer] = slices.Clone(x)
		layer++
		slices.Reverse(x)
	})
	for l := range right {
		at := fmt.Sprintf("layers.%d.self_attn.", l)
		rotated := values[at+"q_proj"] // [1, T, H·D], shown as [1, H, T, D]
		shape := values[at+"q_rope"].Shape
		shown := program.Value{Shape: shape, Data: make([]float64, len(rotated.Data))}
		for h := range shape[1] {
			for token := range shape[2] {
				copy(shown.Data[(h*shape[2]+token)*shape[3]:][:shape[3]], rotated.Data[(token*shape[1]+h)*shape[3]:][:shape[3]])
			}
		}
		values[at+"q_proj"], values[at+"q_rope"] = program.Value{Shape: rotated.Shape, Data: right[l]}, shown
	}
	dump := hooked(t, trace, list, values)
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range p.Lines {
		for _, names := range moduleNames {
			if l.From == names[0] && len(l.To) > 0 && !slices.Equal(l.To, names[1:]) {
				t.Errorf("%s is %v # %s", l.From, l.To, l.Why)
			}
		}
	}
	if want := []string{"blocks.{L}.attn.rot.0"}; !slices.Equal(p.Left, want) || p.Open() > 1 {
		t.Errorf("left: %v, want %v", p.Left, want)
	}
}
