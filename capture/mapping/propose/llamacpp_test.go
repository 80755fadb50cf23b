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

// llamaNames are what llama.cpp's graph of Gemma 3 calls the entries, in the order in which it computes them. "unit" is a norm before its weight: it has no entry.
var llamaNames = [][3]string{
	{"embd", "embed_tokens.lookup"},
	{"inp_scaled", "embed_tokens"},
	{"norm-{L}#0", "", "unit layers.{L}.in"},
	{"attn_norm-{L}", "layers.{L}.input_layernorm"},
	{"Qcur-{L}#0", "layers.{L}.self_attn.q_proj"},
	{"norm-{L}#1", "", "unit q"},
	{"Qcur_normed-{L}", "layers.{L}.self_attn.q_norm"},
	{"Qcur-{L}#1", "layers.{L}.self_attn.q_rope"},
	{"Kcur-{L}#0", "layers.{L}.self_attn.k_proj"},
	{"Kcur_normed-{L}", "layers.{L}.self_attn.k_norm"},
	{"Kcur-{L}#1", "layers.{L}.self_attn.k_rope"},
	{"Vcur-{L}", "layers.{L}.self_attn.v_proj"},
	{"k_cache-{L}", "layers.{L}.self_attn.keys"},
	{"kq-{L}", "layers.{L}.self_attn.scores"},
	{"kq_soft_max-{L}", "layers.{L}.self_attn.probs"},
	{"kqv_out-{L}", "layers.{L}.self_attn.context"},
	{"norm-{L}#2", "", "unit layers.{L}.self_attn.o_proj"}, // whose own result has no name
	{"attn_post_norm-{L}", "layers.{L}.post_attention_layernorm"},
	{"sa_out-{L}", "layers.{L}.attn_residual"},
	{"ffn_norm-{L}", "layers.{L}.pre_feedforward_layernorm"},
	{"ffn_gate-{L}", "layers.{L}.mlp.gate_proj"},
	{"ffn_up-{L}", "layers.{L}.mlp.up_proj"},
	{"ffn_geglu-{L}", "layers.{L}.mlp.gated"},
	{"ffn_out-{L}", "layers.{L}.mlp.down_proj"},
	{"ffn_post_norm-{L}", "layers.{L}.post_feedforward_layernorm"},
	{"l_out-{L}", "layers.{L}.out"},
	{"norm#0", "", "unit layers.0.out"}, // those of the norms without the number of a layer, too
	{"norm#1", "", "unit norm.in"},
	{"result_norm", "norm"},
	{"result_output", "logits"},
}

// asLlama is a dump under the names of llama.cpp, with four axes each.
func asLlama(t *testing.T, golden *capture.Trace, list *order.List, values map[string]program.Value) *capture.Trace {
	t.Helper()
	r, data := mappingtest.Raw(t, golden, 0, order.InputIDs)
	all := []capture.Source{{Key: order.InputIDs, Name: order.InputIDs, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)}}
	add := func(own, name, unit string) {
		from, isUnit := strings.CutPrefix(unit, "unit ")
		if from == "q" { // by heads
			from = strings.TrimSuffix(strings.Replace(own, "norm-", "layers.", 1), "#1") + ".self_attn.q_proj"
		}
		if isUnit {
			name = from
		}
		v, ok := values[name]
		if !ok {
			t.Fatalf("%s was not computed", name)
		}
		shape, x := slices.Clone(v.Shape), slices.Clone(v.Data)
		switch {
		case strings.HasSuffix(name, "_rope") || strings.HasSuffix(name, ".keys"): // tokens before heads
			h, n, d := shape[1], shape[2], shape[3]
			for i := range x {
				x[i] = v.Data[(i/d%h*n+i/d/h)*d+i%d]
			}
			shape[1], shape[2] = n, h
		case unit == "unit q":
			shape = []int{1, shape[1], list.Config.NumHeads, list.Config.HeadDim}
		case len(shape) == 3:
			shape = slices.Insert(shape, 0, 1)
		}
		if isUnit {
			normalise(x, shape[3])
		}
		var data []byte
		for _, y := range x {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(y)))
		}
		base, firing := own, 0
		if at := strings.IndexByte(own, '#'); at >= 0 {
			base, firing = own[:at], int(own[at+1]-'0')
		}
		all = append(all, capture.Source{Key: capture.Key(0, base, firing), Name: base, Firing: firing, DType: hooks.F32, Shape: shape, Data: bytes.NewReader(data)})
	}
	layered := func(names [3]string) bool { return strings.Contains(names[0], "{L}") }
	for layer, first := range llamaNames {
		if layered(first) {
			continue
		}
		add(first[0], first[1], first[2])
		if layer != 1 {
			continue
		}
		for l := range list.Config.NumLayers {
			for _, names := range llamaNames {
				if in := strings.NewReplacer("{L}", fmt.Sprint(l)).Replace; layered(names) {
					add(in(names[0]), in(names[1]), in(names[2]))
				}
			}
		}
	}
	dump, err := capture.Assemble("port", all, capture.Manifest{}, false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// normalise divides rows by their root mean square.
func normalise(x []float64, width int) {
	for row := range slices.Chunk(x, width) {
		sum := 0.0
		for _, v := range row {
			sum += v * v
		}
		for i := range row {
			row[i] /= math.Sqrt(sum/float64(width) + 1e-6)
		}
	}
}

// llama.cpp shows norms before their weights under the name of the last norm, and beside the projection whose result it does not show. Each tensor keeps its entry in a wrong
// port, and these get none.
func TestNamesOfLlamaCppInAWrongPort(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, c := range []struct {
		what, spoilt string
		spoil        func(x []float64, of func(string) []float64)
	}{
		{"right", "", nil},
		{"embeddings without their factor", "embed_tokens", func(x []float64, of func(string) []float64) { copy(x, of("embed_tokens.lookup")) }},
		{"scores with another factor", "layers.{L}.self_attn.scores", func(x []float64, _ func(string) []float64) {
			for i := range x {
				x[i] /= 4
			}
		}},
		{"context in the reverse order", "layers.{L}.self_attn.context", func(x []float64, _ func(string) []float64) { slices.Reverse(x) }},
		{"gate and up exchanged", "", nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			values, weights := wrongValues(t, "gemma3-tiny", trace, list, c.spoilt, c.spoil)
			exchanged := c.what == "gate and up exchanged"
			for l := range list.Config.NumLayers {
				gate, up := fmt.Sprintf("layers.%d.mlp.gate_proj", l), fmt.Sprintf("layers.%d.mlp.up_proj", l)
				if exchanged {
					values[gate], values[up] = values[up], values[gate]
				}
			}
			dump := asLlama(t, trace, list, values)
			p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, l := range p.Lines {
				got[l.From] = strings.Join(l.To, " ")
				t.Log(l.From, l.To, l.Why)
				if to := l.To; exchanged && len(to) == 1 && (strings.HasSuffix(to[0], "gate_proj") || strings.HasSuffix(to[0], "up_proj")) && l.By != "name" {
					t.Errorf("%s is %s, by %q", l.From, to[0], l.By)
				}
			}
			want := map[string]string{"norm": ""}
			for _, names := range llamaNames {
				if names[1] != "" {
					want[names[0]] = names[1]
				}
			}
			for from, to := range want {
				if is, ok := got[from]; !ok || is != to {
					t.Errorf("%s is %q, want %q", from, is, to)
				}
			}
			for from, to := range got {
				if _, ok := want[from]; !ok && to != "" {
					t.Errorf("%s is %s", from, to)
				}
			}
			if len(p.Choices) > 0 {
				t.Errorf("%v", p.Choices)
			}
		})
	}
}
